// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"strings"
	"testing"
)

// show writes the ids of a conversation: those of an answer's calls in brackets, and that of each result.
func show(messages []Message) string {
	var out []string
	for _, m := range messages {
		if m.Role == RoleTool {
			out = append(out, m.ToolCallID+"="+m.Text)
			continue
		}
		var ids []string
		for _, c := range m.ToolCalls {
			ids = append(ids, c.ID)
		}
		out = append(out, "["+strings.Join(ids, " ")+"]")
	}
	return strings.Join(out, " ")
}

// TestDistinctIDs: calls that share an id get one of their own, and each result stays with its call.
func TestDistinctIDs(t *testing.T) {
	asked := func(ids ...string) Message {
		m := Message{Role: RoleAssistant}
		for _, id := range ids {
			m.ToolCalls = append(m.ToolCalls, ToolCall{ID: id})
		}
		return m
	}
	got := func(id, text string) Message { return Message{Role: RoleTool, ToolCallID: id, Text: text} }
	for name, tc := range map[string]struct {
		messages []Message
		want     string
	}{
		"distinct":             {[]Message{asked("a", "b"), got("b", "2"), got("a", "1"), asked("c"), got("c", "3")}, "[a b] b=2 a=1 [c] c=3"},
		"one id in an answer":  {[]Message{asked("a", "a"), got("a", "1"), got("a", "2")}, "[a a_2] a=1 a_2=2"},
		"one id in each turn":  {[]Message{asked("a"), got("a", "1"), asked("a"), got("a", "2"), asked("a"), got("a", "3")}, "[a] a=1 [a_2] a_2=2 [a_3] a_3=3"},
		"a name that is taken": {[]Message{asked("a", "a_2", "a"), got("a", "1"), got("a_2", "2"), got("a", "3")}, "[a a_2 a_3] a=1 a_2=2 a_3=3"},
		"characters":           {[]Message{asked("a.b", "a_b"), got("a_b", "2"), got("a.b", "1")}, "[a_b a_b_2] a_b_2=2 a_b=1"},
		"a stray result":       {[]Message{asked("a"), got("a", "1"), got("x.y", "2")}, "[a] a=1 x_y=2"},
		"a call without one":   {[]Message{asked("a"), asked("a"), got("a", "2")}, "[a] [a_2] a_2=2"},
	} {
		before := show(tc.messages)
		if s := show(DistinctIDs(tc.messages, func(id string) string { return strings.ReplaceAll(id, ".", "_") })); s != tc.want {
			t.Errorf("%s: %s, want %s", name, s, tc.want)
		}
		if show(tc.messages) != before {
			t.Errorf("%s: the conversation was changed", name)
		}
	}
	calls := asked("a", "b", "a").ToolCalls
	if DistinctCalls(calls); show([]Message{{ToolCalls: calls}}) != "[a b a_2]" {
		t.Error(calls)
	}
}
