// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/agentloop"
	"github.com/platform-ai/platform/pkg/llm"
)

// TestInterruptedCalls: a call that was under way when the server ended is made again if that does no harm. Otherwise the
// model reads that it may or may not have been carried out, or that its arguments were not kept.
func TestInterruptedCalls(t *testing.T) {
	t.Parallel()
	turn := &Turn{journal: &journal{past: []step{{Step: agentloop.Step{}, Withheld: []string{"secret"}}}}}
	for name, tt := range map[string]struct {
		call  llm.ToolCall
		begun bool
		want  string // what the model reads; empty if the call is made
	}{
		"a read":                     {llm.ToolCall{ID: "1", Name: "wait_for_task"}, true, ""},
		"what marks its objects":     {llm.ToolCall{ID: "1", Name: "create_ai_task"}, true, ""},
		"a change":                   {llm.ToolCall{ID: "1", Name: "update_agent"}, true, "may or may not have been carried out"},
		"a deletion":                 {llm.ToolCall{ID: "1", Name: "delete_session"}, true, "may or may not have been carried out"},
		"a change that had no turn":  {llm.ToolCall{ID: "1", Name: "update_agent"}, false, ""},
		"arguments that were secret": {llm.ToolCall{ID: "secret", Name: "create_tool"}, false, "make it again without the secret"},
		"a tool that does not exist": {llm.ToolCall{ID: "1", Name: "absent"}, true, ""},
	} {
		got, told := turn.interrupted(tt.call, tt.begun)
		if told != (tt.want != "") || !strings.Contains(got.Text, tt.want) {
			t.Errorf("%s: %v %s", name, told, got.Text)
		}
	}
}

// TestToldToWait: a model is asked once more about tasks that run only after it has called a tool.
func TestToldToWait(t *testing.T) {
	t.Parallel()
	notice := llm.Message{Role: llm.RoleUser, Text: "[platform notice] " + unfinishedBegin + "x"}
	call := llm.Message{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: "1", Name: "wait_for_task"}}}
	for _, tt := range []struct {
		said  []llm.Message
		times int
		acted bool
	}{
		{[]llm.Message{call}, 0, true},
		{[]llm.Message{call, notice}, 1, false},
		{[]llm.Message{call, notice, {Role: llm.RoleAssistant, Text: "no"}}, 1, false},
		{[]llm.Message{call, notice, call, notice, call}, 2, true},
	} {
		if times, acted := toldToWait(tt.said); times != tt.times || acted != tt.acted {
			t.Errorf("%d %v, want %d %v", times, acted, tt.times, tt.acted)
		}
	}
}
