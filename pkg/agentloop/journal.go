// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agentloop

import (
	"context"
	"fmt"

	"github.com/platform-ai/platform/pkg/llm"
)

// Step is what a run added to its conversation at once, and how far the run was then. The steps of a run are enough to
// continue it in another process.
type Step struct {
	// Messages are an answer that calls tools, the result of a call, or notices.
	Messages []llm.Message
	// Iteration and Asked are the iterations that are used, with and without penalties.
	Iteration, Asked int
	Usage            Totals
}

// noResults stands for an answer that was not interrupted, so that none of its calls was begun before.
const noResults = -1

// interrupted is an answer whose calls, or what comes after them, were interrupted.
type interrupted struct {
	answer  llm.Response
	results int // how many of its calls have results
}

// add adds a message to the conversation.
func (l *loop) add(m llm.Message) {
	l.messages = append(l.messages, m)
	if l.c.Journal != nil {
		l.unsaved = append(l.unsaved, m)
	}
}

// save stores what was added since the last step.
func (l *loop) save(ctx context.Context) error {
	if l.c.Journal == nil || len(l.unsaved) == 0 {
		return nil
	}
	s := Step{Messages: l.unsaved, Iteration: l.iteration, Asked: l.asked, Usage: l.usage}
	l.unsaved = nil
	if err := l.c.Journal(ctx, s); err != nil {
		return fmt.Errorf("store a step of the conversation: %w", err)
	}
	return nil
}

// resume takes the state from the steps in Past. It returns the last answer if nothing but results follows it. If the
// model was being asked when the process ended, that request counts as one whose usage is not known.
func (l *loop) resume() *interrupted {
	if l.c.Past == nil {
		return nil
	}
	var past []llm.Message
	for _, s := range l.c.Past {
		past = append(past, s.Messages...)
		l.iteration, l.asked, l.usage = s.Iteration, s.Asked, s.Usage
	}
	l.messages = append(l.messages, past...)
	last := len(past) - 1
	for last >= 0 && past[last].Role == llm.RoleTool {
		last--
	}
	if last < 0 || past[last].Role != llm.RoleAssistant {
		last = len(past) // notices follow the last answer
	}
	for _, m := range past[:last] {
		for _, c := range m.ToolCalls {
			l.repeat(c)
		}
	}
	if last == len(past) || len(past)-last-1 == len(past[last].ToolCalls) {
		l.usage.Attempts++
		l.usage.Unreported++
	}
	if last == len(past) {
		return nil
	}
	return &interrupted{llm.Response{Text: past[last].Text, ToolCalls: past[last].ToolCalls}, len(past) - last - 1}
}
