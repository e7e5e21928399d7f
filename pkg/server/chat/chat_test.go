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
	of := func(uid types.UID) *toolbox {
		return &toolbox{Toolset: Toolset{Prefix: taskPrefix(&v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{UID: uid}})}}
	}
	b, other := of("one"), of("two")
	prefix := b.Prefix
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
