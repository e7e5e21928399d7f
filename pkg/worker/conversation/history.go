// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package conversation

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/worker/runner"
	"github.com/platform-ai/platform/pkg/worker/transcript"
)

const (
	// maxHistory is how much of a session an agent is told, in bytes of JSON, and maxSaid how much of one message. What is older is left
	// out.
	maxHistory = 128 << 10
	maxSaid    = 32 << 10

	historyText = "These messages were exchanged in this session before, the oldest first, as JSON. What you are asked now follows after them.\n"
)

// Question returns what the agent of a run is asked: what was said in the session of its task, if it has one, and the prompt. A coding agent
// begins each task with a session of its own, so it knows of earlier ones only what it is told.
func Question(ctx context.Context, r *runner.Run, p *plan.Plan) (texts []string, err error) {
	said, err := transcript.Read(ctx, r.API, r.Task, p.Agent)
	if err != nil {
		return nil, err
	}
	prompt := p.Prompt
	if plan.PromptInSession(&r.Task.Spec) {
		last := len(said) - 1
		prompt, said = said[last].Content, said[:last]
	}
	if before := history(said); before != "" {
		texts = append(texts, historyText+before)
	}
	return append(texts, prompt), nil
}

// history returns the messages of people and agents as JSON; empty if there are none.
func history(said []v1alpha1.SessionMessage) string {
	type message struct {
		Role    v1alpha1.MessageRole `json:"role"`
		Content string               `json:"content"`
	}
	var lines []string
	left := maxHistory
	for _, s := range slices.Backward(said) {
		m := message{s.Role, clip.Marked(s.Content, maxSaid)}
		if m.Role == v1alpha1.RoleTool || strings.TrimSpace(m.Content) == "" {
			continue
		}
		line, err := json.Marshal(m)
		if err != nil { // texts always marshal
			continue
		}
		if left -= len(line) + 1; left < 0 {
			break
		}
		lines = append(lines, string(line))
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n")
}
