// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"context"
	"fmt"
	"strconv"

	"github.com/platform-ai/platform/pkg/agentloop"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/worker/runner"
)

// maxHistoryPage is how many messages the server returns in one page.
const maxHistoryPage = 500

// conversation returns the messages that the run begins with: the system text, the history of
// the task's session, and the prompt.
func (r *run) conversation(ctx context.Context, agent *v1alpha1.Agent, prompt, system string) ([]llm.Message, error) {
	said, err := r.history(ctx, r.Task, plan.History(&r.Task.Spec, agent))
	if err != nil {
		return nil, err
	}
	notes, messages := agentloop.Replay(said)
	if plan.PromptInSession(&r.Task.Spec) {
		if len(messages) == 0 || messages[len(messages)-1].Role != llm.RoleUser {
			return nil, runner.Fail(v1alpha1.ReasonReferenceInvalid, "session %s: sessionRef.promptIncluded is set, but its last message is not one of the user", r.Task.Spec.SessionRef.Name)
		}
	} else {
		messages = append(messages, llm.Message{Role: llm.RoleUser, Text: prompt})
	}
	// Many servers take a system message at the beginning only, and only one.
	if system = plan.JoinTexts(append([]string{system}, notes...)); system != "" {
		messages = append([]llm.Message{{Role: llm.RoleSystem, Text: system}}, messages...)
	}
	return messages, nil
}

// history reads the newest messages of the task's session, oldest first, at most so many, and none after throughMessageId.
func (r *run) history(ctx context.Context, t *v1alpha1.Task, want int) ([]v1alpha1.SessionMessage, error) {
	ref := t.Spec.SessionRef
	if ref == nil {
		return nil, nil
	}
	var all []v1alpha1.SessionMessage
	for through := ref.ThroughMessageID; ; {
		// Each further page ends with the first message of the previous page.
		again := min(len(all), 1)
		page, err := r.newest(ctx, t, min(want-len(all)+again, maxHistoryPage), through)
		if err != nil {
			return nil, fmt.Errorf("session %s: %w", ref.Name, err)
		}
		fresh := len(page) - again
		if fresh <= 0 {
			return all, nil
		}
		all = append(page[:fresh:fresh], all...)
		if len(all) >= want || all[0].Order == 1 {
			return all, nil
		}
		through = all[0].ID
	}
}

// newest reads the n newest messages up to the one that has the id through.
func (r *run) newest(ctx context.Context, t *v1alpha1.Task, n int, through string) ([]v1alpha1.SessionMessage, error) {
	page := &v1alpha1.SessionTranscript{}
	req := r.API.CoreV1alpha1().RESTClient().Get().Namespace(t.Namespace).Resource("sessions").Name(t.Spec.SessionRef.Name).
		SubResource("transcript").Param("newest", strconv.Itoa(n))
	if through != "" {
		req = req.Param("through", through)
	}
	err := req.Do(ctx).Into(page)
	return page.Items, err
}
