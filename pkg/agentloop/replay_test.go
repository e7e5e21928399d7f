// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agentloop_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/platform-ai/platform/pkg/agentloop"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
)

func spoke(role v1alpha1.MessageRole, text string) v1alpha1.SessionMessage {
	return v1alpha1.SessionMessage{Role: role, Content: text}
}

func calling(text string, ids ...string) v1alpha1.SessionMessage {
	m := spoke(v1alpha1.RoleAssistant, text)
	for _, id := range ids {
		m.ToolCalls = append(m.ToolCalls, v1alpha1.MessageToolCall{ID: id, Name: "f", Arguments: `{}`})
	}
	return m
}

func answered(id, text string) v1alpha1.SessionMessage {
	return v1alpha1.SessionMessage{Role: v1alpha1.RoleTool, ToolCallID: id, Content: text}
}

// What a session keeps becomes a conversation in which all calls of a message are followed by their answers, however the
// transcript was truncated.
func TestReplay(t *testing.T) {
	t.Parallel()
	user, assistant, system := v1alpha1.RoleUser, v1alpha1.RoleAssistant, v1alpha1.RoleSystem
	broken := calling("broken", "1")
	broken.ToolCalls[0].Arguments = "{"
	for _, tc := range []struct {
		name string
		in   []v1alpha1.SessionMessage
		want []string
	}{
		{"none", nil, nil},
		{"talk", []v1alpha1.SessionMessage{spoke(user, "a"), spoke(assistant, "b"), spoke(user, " "), spoke(assistant, "")}, []string{"user a", "assistant b"}},
		{"system texts stand apart", []v1alpha1.SessionMessage{spoke(user, "a"), spoke(system, "s"), spoke(system, "")}, []string{"system s", "user a"}},
		{
			"calls with their answers",
			[]v1alpha1.SessionMessage{calling("", "1", "2"), answered("2", "y"), answered("1", "x"), spoke(assistant, "b")},
			[]string{"assistant  [1 2]", "tool 2 y", "tool 1 x", "assistant b"},
		},
		{"an answer whose call has left", []v1alpha1.SessionMessage{answered("1", "x"), spoke(assistant, "b")}, []string{"assistant b"}},
		{"a call without its answer", []v1alpha1.SessionMessage{calling("let me see", "1", "2"), answered("1", "x"), spoke(user, "a")}, []string{"assistant let me see", "user a"}},
		{"a call that nobody answered", []v1alpha1.SessionMessage{calling("", "1")}, nil},
		{"an answer too late", []v1alpha1.SessionMessage{calling("", "1"), spoke(user, "a"), answered("1", "x")}, []string{"user a"}},
		{"an answer twice", []v1alpha1.SessionMessage{calling("", "1"), answered("1", "x"), answered("1", "z"), answered("9", "z")}, []string{"assistant  [1]", "tool 1 x"}},
		{"an id again", []v1alpha1.SessionMessage{calling("", "1"), answered("1", "x"), calling("again", "1"), answered("1", "y")}, []string{"assistant  [1]", "tool 1 x", "assistant again"}},
		{"an id twice in one turn", []v1alpha1.SessionMessage{calling("twice", "1", "1"), answered("1", "x")}, []string{"assistant twice"}},
		{"arguments that are no JSON", []v1alpha1.SessionMessage{broken, answered("1", "x")}, []string{"assistant broken"}},
	} {
		system, messages := agentloop.Replay(tc.in)
		var got []string
		for _, s := range system {
			got = append(got, "system "+s)
		}
		for _, m := range messages {
			switch {
			case m.Role == llm.RoleTool:
				got = append(got, fmt.Sprintf("tool %s %s", m.ToolCallID, m.Text))
			case len(m.ToolCalls) > 0:
				var ids []string
				for _, c := range m.ToolCalls {
					ids = append(ids, c.ID)
				}
				got = append(got, fmt.Sprintf("%s %s %v", m.Role, m.Text, ids))
			default:
				got = append(got, fmt.Sprintf("%s %s", m.Role, m.Text))
			}
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, d)
		}
	}
}
