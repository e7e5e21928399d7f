// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"context"

	"github.com/platform-ai/platform/pkg/agentloop"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/worker/transcript"
)

// conversation returns the messages that the run begins with: the system text, the history of
// the task's session, and the prompt.
func (r *run) conversation(ctx context.Context, agent *v1alpha1.Agent, prompt, system string) ([]llm.Message, error) {
	said, err := transcript.Read(ctx, r.API, r.Task, agent)
	if err != nil {
		return nil, err
	}
	notes, messages := agentloop.Replay(said)
	if !plan.PromptInSession(&r.Task.Spec) {
		messages = append(messages, llm.Message{Role: llm.RoleUser, Text: prompt})
	}
	// Many servers take a system message at the beginning only, and only one.
	if system = plan.JoinTexts(append([]string{system}, notes...)); system != "" {
		messages = append([]llm.Message{{Role: llm.RoleSystem, Text: system}}, messages...)
	}
	return messages, nil
}
