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

// The task of a monitor is one of type ai with a schedule, the repository and the tools for reviews.
func TestMonitor(t *testing.T) {
	t.Parallel()
	b := &Box{Scope: Scope{Prefix: "chat-", Labels: map[string]string{"a": "b"}}}
	got := b.monitor(&builtin.PRMonitorArguments{
		Name: "Mine", RepoURL: "https://github.com/o/r", Schedule: "@hourly", AgentRef: "reviewer", ProviderRef: "p", ReadCredentialRef: "s", Prompt: "Look at tests.",
	})
	for _, part := range []string{`repo_url "https://github.com/o/r"`, "per_page 30", "event COMMENT", "Look at tests."} {
		if !strings.Contains(got.Spec.Prompt, part) {
			t.Errorf("the prompt lacks %s:\n%s", part, got.Spec.Prompt)
		}
	}
	got.Spec.Prompt = ""
	want := &v1alpha1.Task{
		ObjectMeta: metav1.ObjectMeta{Name: "chat-mine", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{
			"platform.ai/pr-monitor-name": "Mine", "platform.ai/disable-coordination-tool-injection": "true",
		}},
		Spec: v1alpha1.TaskSpec{
			Type: v1alpha1.TaskTypeAI, AgentRef: &v1alpha1.NamespacedReference{Name: "reviewer"}, Schedule: "@hourly",
			AI: &v1alpha1.TaskAI{
				ProviderRef: &v1alpha1.NamespacedReference{Name: "p"},
				Tools:       []string{"list_pull_requests", "check_pr_review_marker", "check_pull_request_ci", "review_pull_request", "post_review_comment"},
			},
			Workspace: &v1alpha1.TaskWorkspace{GitRepo: "https://github.com/o/r", ReadCredentialRef: &v1alpha1.WorkspaceCredentialReference{Name: "s"}, ForgeCredentialRef: &v1alpha1.WorkspaceCredentialReference{Name: "s"}},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("task (-want +got):\n%s", d)
	}
}

func TestCheckRepository(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"https://github.com/o/r", "https://github.com/o/r.git", "https://GitHub.com/o-1/r_.x", "git@github.com:o/r.git", "ssh://git@github.com/o/r",
	} {
		if err := checkRepository(address); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	for _, address := range []string{
		"", "o/r", "http://github.com/o/r", "https://example.com/o/r", "https://github.com.example.com/o/r", "https://github.com/o", "https://github.com/o/r/",
		"https://github.com/o/r/pull/1", "https://github.com/o/r/issues/1", "https://github.com/o/r/tree/main", "https://github.com/o/r/blob/main/x",
		"https://github.com/o/r/commit/abc", "https://github.com/o/r?tab=x", "https://github.com/o/r?", "https://github.com/o/r#x", "https://github.com/o/r#",
		"https://u:p@github.com/o/r", "https://token@github.com/o/r", "ssh://git:p@github.com/o/r", "git@example.com:o/r", "git@github.com:o/r/x", "file:///o/r",
		"https://github.com/o/..", "https://github.com:8443/o/r", "--upload-pack=x",
	} {
		if err := checkRepository(address); err == nil {
			t.Errorf("%q is accepted", address)
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
