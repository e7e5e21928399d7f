// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
)

// A secret is never shown, wherever the pieces of a text are cut, and nothing else is lost.
func TestTextHidesSecretsInPieces(t *testing.T) {
	t.Parallel()
	const secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEF"
	whole := "The key is " + secret + " and the header is\nAuthorization: Bearer " + secret + "\n" + strings.Repeat("more words ", 20) + "end"
	for size := 1; size < len(whole); size += 7 {
		var shown text
		var out strings.Builder
		for at := 0; at < len(whole); at += size {
			out.WriteString(shown.add(whole[at:min(at+size, len(whole))]))
		}
		out.WriteString(shown.rest())
		got := out.String()
		if strings.Contains(got, "abcdefghij") || !strings.HasPrefix(got, "The key is ") || !strings.HasSuffix(got, "more words end") {
			t.Errorf("in pieces of %d: %q", size, got)
		}
	}
}

// What a session keeps becomes a conversation in which every call has a result, however it was truncated.
func TestRecall(t *testing.T) {
	t.Parallel()
	call := func(ids ...string) v1alpha1.SessionMessage {
		m := v1alpha1.SessionMessage{Role: v1alpha1.RoleAssistant}
		for _, id := range ids {
			m.ToolCalls = append(m.ToolCalls, v1alpha1.MessageToolCall{ID: id, Name: "n", Arguments: "{}"})
		}
		return m
	}
	result := func(id string) v1alpha1.SessionMessage {
		return v1alpha1.SessionMessage{Role: v1alpha1.RoleTool, ToolCallID: id, Content: "r" + id}
	}
	user, answer := v1alpha1.SessionMessage{Role: v1alpha1.RoleUser, Content: "u"}, v1alpha1.SessionMessage{Role: v1alpha1.RoleAssistant, Content: "a"}
	for name, tt := range map[string]struct {
		said []v1alpha1.SessionMessage
		want string
	}{
		"whole":             {[]v1alpha1.SessionMessage{user, call("1", "2"), result("1"), result("2"), answer}, "user assistant(2) tool tool assistant"},
		"calls removed":     {[]v1alpha1.SessionMessage{user, result("1"), answer}, "user assistant"},
		"one result lost":   {[]v1alpha1.SessionMessage{user, call("1", "2"), result("2"), answer}, "user assistant(1) tool assistant"},
		"all results lost":  {[]v1alpha1.SessionMessage{user, call("1"), answer}, "user assistant"},
		"result comes late": {[]v1alpha1.SessionMessage{user, call("1"), answer, result("1")}, "user assistant"},
	} {
		var got []string
		for _, m := range recall(tt.said) {
			word := string(m.Role)
			if n := len(m.ToolCalls); n > 0 {
				word += "(" + string(rune('0'+n)) + ")"
			}
			got = append(got, word)
			if m.Role == llm.RoleTool && m.Text == "" {
				t.Errorf("%s: empty result", name)
			}
		}
		if d := cmp.Diff(tt.want, strings.Join(got, " ")); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// Tools that manage objects are offered for what the user asks for, and for a confirmation of that.
func TestIntent(t *testing.T) {
	t.Parallel()
	asked := []v1alpha1.SessionMessage{{Role: v1alpha1.RoleUser, Content: "delete the agent old"}, {Role: v1alpha1.RoleAssistant, Content: "Really?"}}
	for name, tt := range map[string]struct {
		message string
		history []v1alpha1.SessionMessage
		want    string
	}{
		"a question":      {"which tasks run?", nil, ""},
		"create":          {"Create an agent that reviews code", nil, "create_agent create_tool"},
		"change":          {"change the prompt of agent x", nil, "update_agent"},
		"delete":          {"please remove the tool y", nil, "delete_agent delete_tool delete_session"},
		"confirmation":    {"yes, do it", asked, "delete_agent delete_tool delete_session"},
		"not a confirmed": {"which agents are there?", asked, ""},
	} {
		words := intent(tt.message, tt.history)
		var got []string
		for _, e := range entries() {
			if e.offered != nil && e.offered(words) {
				got = append(got, e.name)
			}
		}
		if d := cmp.Diff(tt.want, strings.Join(got, " ")); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// Names of tasks are valid, carry the prefix of their session once, and differ between sessions.
func TestTaskNames(t *testing.T) {
	t.Parallel()
	b := &toolbox{session: &v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{UID: types.UID("one")}}}
	other := &toolbox{session: &v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{UID: types.UID("two")}}}
	prefix := taskPrefix(b.session)
	for name, want := range map[string]string{"Build It!": prefix + "build-it", prefix + "x": prefix + "x", "...": prefix + "task"} {
		if got := b.taskName(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
	if long := b.taskName(strings.Repeat("long", 40)); len(long) > 63 || long == b.taskName(strings.Repeat("long", 41)) {
		t.Errorf("a long name: %s", long)
	}
	if b.taskName("x") == other.taskName("x") {
		t.Error("two sessions share names")
	}
}
