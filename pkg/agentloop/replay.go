// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agentloop

import (
	"encoding/json"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
)

// Replay turns the messages of a session into a conversation that model servers accept. System texts are
// returned separately. Every call must be followed directly by all its answers. If one is
// missing, because part of the transcript was removed or never existed, Replay drops the calls
// and their answers, and keeps the text that came with them.
func Replay(said []v1alpha1.SessionMessage) (system []string, messages []llm.Message) {
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
