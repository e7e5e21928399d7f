// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

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
		words := Words(tt.message, tt.history)
		var got []string
		for _, of := range builtin.In(builtin.Chats | builtin.APIs) {
			if of.Asked != builtin.Anything && wanted(of.Asked, words) {
				got = append(got, of.Name)
			}
		}
		if d := cmp.Diff(tt.want, strings.Join(got, " ")); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// Each tool that the catalogue has in chats or in the vendors' APIs, and that runs do not have, has code here, once, and nothing else has.
// The code makes the tool that the catalogue describes.
func TestBindings(t *testing.T) {
	t.Parallel()
	bound := map[*builtin.Tool]bool{}
	for _, one := range bindings() {
		if bound[one.of] || one.of.In&(builtin.Chats|builtin.APIs) == 0 || one.of.In&builtin.Runs != 0 || one.of.Absent != nil {
			t.Errorf("%s: bound twice, or the catalogue does not have it here", one.of.Name)
		}
		bound[one.of] = true
		if d := cmp.Diff(one.of.Definition(), one.make(&Box{}).Definition()); d != "" {
			t.Errorf("%s (-catalogue +code):\n%s", one.of.Name, d)
		}
	}
	for _, of := range builtin.In(builtin.Chats | builtin.APIs) {
		if _, err := carriedOut(&Box{}, of, bindings()); err != nil && of.In&builtin.Runs == 0 {
			t.Error(err)
		}
		if wanted(of.Asked, "") != (of.Asked == builtin.Anything) || !wanted(of.Asked, "create, change, delete, pull requests, file_read") {
			t.Errorf("%s: no words ask for the intent %s", of.Name, of.Asked)
		}
	}
}

// The beginning of a text has whole characters, and a mark after them.
func TestBeginning(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "abc": "abc", "äöü": "äöü", "äöüß": "äöü" + clip.Mark, "abcd": "abc" + clip.Mark} {
		if got := beginning(text, 3); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Names of tasks are valid, carry the prefix of their session once, and differ between sessions.
func TestTaskNames(t *testing.T) {
	t.Parallel()
	of := func(uid types.UID) *Box {
		return &Box{Scope: ForSession(&v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{UID: uid}})}
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
