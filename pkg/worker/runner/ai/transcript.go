// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/worker/runner"
)

const (
	// defaultHistory is how many messages of its session a task reads, unless it says otherwise.
	defaultHistory = 50
	// maxHistoryPage is how many messages the server returns in one page.
	maxHistoryPage = 500
)

// conversation returns the messages that the run begins with: the system text, the history of
// the task's session, and the prompt.
func (r *run) conversation(ctx context.Context, prompt, system string) ([]llm.Message, error) {
	said, err := r.history(ctx, r.Task)
	if err != nil {
		return nil, err
	}
	notes, messages := replay(said)
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

// history reads the newest messages of the task's session, oldest first: at most
// maxMessages, none after throughMessageId.
func (r *run) history(ctx context.Context, t *v1alpha1.Task) ([]v1alpha1.SessionMessage, error) {
	ref := t.Spec.SessionRef
	if ref == nil {
		return nil, nil
	}
	want := defaultHistory
	if ref.MaxMessages != nil {
		want = int(*ref.MaxMessages)
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

// replay turns stored messages into a conversation that model servers accept. System texts are
// returned separately. Every call must be followed directly by all its answers. If one is
// missing, because part of the transcript was removed or never existed, replay drops the calls
// and their answers, and keeps the text that came with them.
func replay(said []v1alpha1.SessionMessage) (system []string, messages []llm.Message) {
	known := map[string]bool{} // ids of calls
	for i := range said {
		m := &said[i]
		blank := strings.TrimSpace(m.Content) == ""
		switch {
		case m.Role == v1alpha1.RoleSystem && !blank:
			system = append(system, m.Content)
		case m.Role == v1alpha1.RoleUser && !blank:
			messages = append(messages, llm.Message{Role: llm.RoleUser, Text: m.Content})
		case m.Role == v1alpha1.RoleAssistant:
			calls, answers := called(m, said[i+1:], known)
			if !blank || len(calls) > 0 {
				messages = append(messages, llm.Message{Role: llm.RoleAssistant, Text: m.Content, ToolCalls: calls})
				messages = append(messages, answers...)
			}
		}
	}
	return system, messages
}

// called returns the calls of m and their answers, which are the first of the messages follows.
// If an answer is missing, it returns neither.
func called(m *v1alpha1.SessionMessage, follows []v1alpha1.SessionMessage, known map[string]bool) ([]llm.ToolCall, []llm.Message) {
	open := map[string]bool{}
	var calls []llm.ToolCall
	for _, c := range m.ToolCalls {
		if c.ID == "" || c.Name == "" || open[c.ID] || known[c.ID] || !json.Valid([]byte(c.Arguments)) {
			return nil, nil
		}
		open[c.ID] = true
		calls = append(calls, llm.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	var answers []llm.Message
	for i := 0; i < len(follows) && follows[i].Role == v1alpha1.RoleTool; i++ {
		if id := follows[i].ToolCallID; open[id] {
			delete(open, id)
			answers = append(answers, llm.Message{Role: llm.RoleTool, Text: follows[i].Content, ToolCallID: id})
		}
	}
	if len(open) > 0 {
		return nil, nil
	}
	for _, c := range calls {
		known[c.ID] = true
	}
	return calls, answers
}
