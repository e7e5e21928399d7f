// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/agentloop"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/redact"
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

// TestWithheldCalls: the arguments of a call are withheld if they hold a secret, and for no other reason: not for the white space that
// most models write.
func TestWithheldCalls(t *testing.T) {
	t.Parallel()
	for arguments, withheld := range map[string]bool{
		`{"name":"x"}`: false, `{"name": "x"}`: false, "{\n  \"name\" : \"x y\",\n  \"list\": [ 1, 2 ]\n}": false, `{"name": "x`: false, ``: false, ` {} `: false,
		`{"headers": {"Authorization": "Bearer aGVsbG8td29ybGQtMTIzNDU2Nzg5"}}`: true, `{"name": "x", "key": "ghp_0123456789abcdefghijABCDEFGHIJ012345"`: true,
	} {
		for _, c := range []cleaner{{}, {&redact.Seen{}}} {
			kept, ids := c.messages([]llm.Message{{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: "1", Name: "create_tool", Arguments: arguments}}}})
			if got := len(ids) > 0; got != withheld || strings.Contains(kept[0].ToolCalls[0].Arguments, "0123456789") {
				t.Errorf("%s: withheld %v; kept %s", arguments, got, kept[0].ToolCalls[0].Arguments)
			}
		}
	}
}

// TestToldToWait: a model is told again about tasks that run, unless it repeats the answer that it gave before.
func TestToldToWait(t *testing.T) {
	t.Parallel()
	notice := llm.Message{Role: llm.RoleUser, Text: "[platform notice] " + unfinishedBegin + "x"}
	call := llm.Message{Role: llm.RoleAssistant, Text: "I look.", ToolCalls: []llm.ToolCall{{ID: "1", Name: "wait_for_task"}}}
	says := func(text string) llm.Message { return llm.Message{Role: llm.RoleAssistant, Text: text} }
	for name, tt := range map[string]struct {
		said    []llm.Message
		answer  string
		times   int
		repeats bool
	}{
		"never":                  {[]llm.Message{call}, "It runs.", 0, false},
		"repeats":                {[]llm.Message{says("It runs."), notice}, " It runs.\n", 1, true},
		"answers otherwise":      {[]llm.Message{says("It runs."), notice}, "It still runs.", 1, false},
		"repeats later":          {[]llm.Message{says("It runs."), notice, says("It still runs."), notice}, "It still runs.", 2, true},
		"repeats, but has acted": {[]llm.Message{says("It runs."), notice, call}, "It runs.", 1, false},
	} {
		if times, repeats := toldToWait(tt.said, tt.answer); times != tt.times || repeats != tt.repeats {
			t.Errorf("%s: %d %v, want %d %v", name, times, repeats, tt.times, tt.repeats)
		}
	}
}
