// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package prmonitor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// having finds credentials in these Secrets alone.
func having(names ...string) Find {
	return func(_ context.Context, _ string, among, keys []string) (*v1alpha1.WorkspaceCredentialReference, error) {
		for _, name := range among {
			if slices.Contains(names, name) {
				return &v1alpha1.WorkspaceCredentialReference{Name: name, Key: keys[0]}, nil
			}
		}
		return nil, nil //nolint:nilnil // none
	}
}

func reviewer() *v1alpha1.Agent {
	return &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: "reviewer"}, Spec: v1alpha1.AgentSpec{Coordination: &v1alpha1.AgentCoordination{Enabled: true}}}
}

// TestTask: the task of a monitor is one of type ai with a schedule, the repository and the tools for reviews.
func TestTask(t *testing.T) {
	t.Parallel()
	got, err := Task(t.Context(), "team", &builtin.PRMonitorArguments{
		Name: "Mine", RepoURL: "git@github.com:o/r.git", Schedule: "@hourly", AgentRef: "reviewer", ProviderRef: "p", ReadCredentialRef: "s", Prompt: "Look at tests.",
	}, reviewer(), having("s"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`repo_url "https://github.com/o/r.git"`, "per_page 30", "event COMMENT", "Look at tests."} {
		if !strings.Contains(got.Spec.Prompt, part) {
			t.Errorf("the prompt lacks %s:\n%s", part, got.Spec.Prompt)
		}
	}
	got.Spec.Prompt = ""
	secret := &v1alpha1.WorkspaceCredentialReference{Name: "s", Key: "token"}
	want := &v1alpha1.Task{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Annotations: map[string]string{
			"platform.ai/pr-monitor-name": "Mine", "platform.ai/disable-coordination-tool-injection": "true",
		}},
		Spec: v1alpha1.TaskSpec{
			Type: v1alpha1.TaskTypeAI, AgentRef: &v1alpha1.NamespacedReference{Name: "reviewer"}, Schedule: "@hourly",
			AI: &v1alpha1.TaskAI{
				ProviderRef: &v1alpha1.NamespacedReference{Name: "p"},
				Tools:       []string{"list_pull_requests", "check_pr_review_marker", "check_pull_request_ci", "review_pull_request", "post_review_comment"},
			},
			Workspace: &v1alpha1.TaskWorkspace{GitRepo: "https://github.com/o/r.git", ReadCredentialRef: secret, ForgeCredentialRef: secret},
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("task (-want +got):\n%s", d)
	}
}

// TestRefused: which Agents review, and which Secrets have a credential.
func TestRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		agent func(*v1alpha1.AgentSpec)
		named string
		there []string
		want  string // the Secret, or the type of the error
	}{
		"the first of two": {nil, "", []string{"git-token", "github-token"}, "github-token"},
		"named":            {nil, "mine", []string{"git-token", "mine"}, "mine"},
		"none is there":    {nil, "", []string{"mine"}, "not_found"},
		"named, not there": {nil, "mine", []string{"git-token"}, "not_found"},
		"a coding agent":   {func(s *v1alpha1.AgentSpec) { s.Runtime = &v1alpha1.AgentCodingRuntime{} }, "", []string{"git-token"}, "invalid_arguments"},
		"no coordination":  {func(s *v1alpha1.AgentSpec) { s.Coordination = nil }, "", []string{"git-token"}, "invalid_arguments"},
		"switched off":     {func(s *v1alpha1.AgentSpec) { s.Coordination.Enabled = false }, "", []string{"git-token"}, "invalid_arguments"},
		"autonomous":       {func(s *v1alpha1.AgentSpec) { s.Coordination.Autonomous = true }, "", []string{"git-token"}, "invalid_arguments"},
	} {
		a := reviewer()
		if c.agent != nil {
			c.agent(&a.Spec)
		}
		got := ""
		made, err := Task(t.Context(), "team", &builtin.PRMonitorArguments{Name: "m", RepoURL: "https://github.com/o/r", Schedule: "@hourly", AgentRef: "reviewer", GitSecretRef: c.named}, a, having(c.there...))
		if refused, ok := errors.AsType[*tool.Error](err); ok {
			got = string(refused.Type)
		} else if err == nil {
			got = made.Spec.Workspace.ReadCredentialRef.Name
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s: %v", name, got, c.want, err)
		}
	}
}

// TestRepository: only the address of a repository itself is accepted.
func TestRepository(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://github.com/o/r": "", "https://github.com/o/r.git": "", "https://GitHub.com/o-1/r_.x": "",
		"git@github.com:o/r.git": "https://github.com/o/r.git", "ssh://git@github.com/o/r": "https://github.com/o/r",
	} {
		if want == "" {
			want = address
		}
		if got, err := repository(address); err != nil || got != want {
			t.Errorf("%s: %s %v", address, got, err)
		}
	}
	for _, address := range []string{
		"", "o/r", "http://github.com/o/r", "https://example.com/o/r", "https://github.com.example.com/o/r", "https://github.com/o", "https://github.com/o/r/",
		"https://github.com/o/r/pull/1", "https://github.com/o/r/issues/1", "https://github.com/o/r/tree/main", "https://github.com/o/r/blob/main/x",
		"https://github.com/o/r/commit/abc", "https://github.com/o/r?tab=x", "https://github.com/o/r?", "https://github.com/o/r#x", "https://github.com/o/r#",
		"https://u:p@github.com/o/r", "https://token@github.com/o/r", "ssh://git:p@github.com/o/r", "git@example.com:o/r", "git@github.com:o/r/x", "file:///o/r",
		"https://github.com/o/..", "https://github.com:8443/o/r", "--upload-pack=x",
	} {
		if _, err := repository(address); err == nil {
			t.Errorf("%q is accepted", address)
		}
	}
}
