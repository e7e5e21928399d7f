// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/plan/plantest"
)

const repository = "https://forge.example/o/r.git"

func credential(name string) *v1alpha1.WorkspaceCredentialReference {
	return &v1alpha1.WorkspaceCredentialReference{Name: name, Key: "token"}
}

// writing is a workspace that publishes.
func writing(change func(*v1alpha1.TaskWorkspace)) *v1alpha1.TaskWorkspace {
	w := &v1alpha1.TaskWorkspace{
		Intent: v1alpha1.WorkspaceWrite, GitRepo: repository, SubPath: "src", PushBranch: "feature", CreatePR: true, MaxChangedFiles: new(int32(5)), AllowedPaths: []string{"src/a", "src/b"},
		ReadCredentialRef: credential("read"), PublicationReadCredentialRef: credential("look"), PublicationCredentialRef: credential("push"), ForgeCredentialRef: credential("forge"),
		RejectSecretLikeContent: true, DenyRepositoryControlPaths: true, RejectBinaryFiles: true,
	}
	if change != nil {
		change(w)
	}
	return w
}

// TestChildWorkspace: a delegated task has no more of a repository than its parent.
func TestChildWorkspace(t *testing.T) {
	open := chief()
	open.Spec.Sandbox = &v1alpha1.AgentSandbox{Network: v1alpha1.SandboxNetworkPublic}
	elsewhere := func(change func(*v1alpha1.TaskWorkspace)) *v1alpha1.TaskWorkspace {
		w := &v1alpha1.TaskWorkspace{Intent: v1alpha1.WorkspaceRead, GitRepo: "https://other.example/x", Branch: "main"}
		if change != nil {
			change(w)
		}
		return w
	}
	reading := &v1alpha1.TaskWorkspace{Intent: v1alpha1.WorkspaceRead, GitRepo: repository}
	for name, tc := range map[string]struct {
		parent *v1alpha1.TaskWorkspace
		child  *v1alpha1.TaskWorkspace
		agent  *v1alpha1.Agent
		want   string
	}{
		"none":                        {writing(nil), nil, chief(), ""},
		"the same":                    {writing(nil), writing(nil), chief(), ""},
		"a key that is the default":   {writing(nil), writing(func(w *v1alpha1.TaskWorkspace) { w.ForgeCredentialRef.Key = "" }), chief(), ""},
		"less":                        {writing(nil), reading, chief(), "spec.workspace.subPath"},
		"a folder below":              {writing(nil), &v1alpha1.TaskWorkspace{Intent: v1alpha1.WorkspaceRead, GitRepo: repository, SubPath: "src/a", Ref: "v1"}, chief(), ""},
		"another folder":              {writing(nil), writing(func(w *v1alpha1.TaskWorkspace) { w.SubPath = "src/../lib" }), chief(), "spec.workspace.subPath"},
		"a folder with its name":      {writing(nil), writing(func(w *v1alpha1.TaskWorkspace) { w.SubPath = "srcs" }), chief(), "spec.workspace.subPath"},
		"parent without a repository": {nil, reading, chief(), "spec.workspace.gitRepo"},
		"public, parent without one":  {nil, elsewhere(nil), open, ""},
		"public":                      {reading, elsewhere(nil), open, ""},
		"public, without the network": {reading, elsewhere(nil), chief(), "spec.workspace.gitRepo"},
		"elsewhere with a credential": {writing(nil), elsewhere(func(w *v1alpha1.TaskWorkspace) { w.ReadCredentialRef = credential("read") }), open, "spec.workspace.gitRepo"},
		"elsewhere to write":          {writing(nil), writing(func(w *v1alpha1.TaskWorkspace) { w.GitRepo = "https://other.example/x" }), open, "spec.workspace.gitRepo"},
		"a parent that reads":         {reading, &v1alpha1.TaskWorkspace{Intent: v1alpha1.WorkspaceWrite, GitRepo: repository}, chief(), "spec.workspace.intent"},
		"another Secret":              {writing(nil), writing(func(w *v1alpha1.TaskWorkspace) { w.ReadCredentialRef = credential("other") }), chief(), "spec.workspace.readCredentialRef"},
		"another role":                {writing(nil), writing(func(w *v1alpha1.TaskWorkspace) { w.PublicationReadCredentialRef = credential("push") }), chief(), "spec.workspace.publicationReadCredentialRef"},
		"another key":                 {writing(nil), writing(func(w *v1alpha1.TaskWorkspace) { w.PublicationCredentialRef.Key = "x" }), chief(), "spec.workspace.publicationCredentialRef"},
		"a Secret of its own":         {writing(func(w *v1alpha1.TaskWorkspace) { w.ForgeCredentialRef = nil }), writing(nil), chief(), "spec.workspace.forgeCredentialRef"},
		"publication elsewhere":       {writing(nil), writing(func(w *v1alpha1.TaskWorkspace) { w.PublicationGitRepo = "https://other.example/x" }), chief(), "spec.workspace.publicationGitRepo"},
		"no publication repository":   {writing(func(w *v1alpha1.TaskWorkspace) { w.PublicationGitRepo = "https://fork.example/x" }), writing(nil), chief(), "spec.workspace.publicationGitRepo"},
		"a branch of people":          {writing(nil), writing(func(w *v1alpha1.TaskWorkspace) { w.PushBranch = "main" }), chief(), "spec.workspace.pushBranch"},
		"a branch with the name":      {writing(nil), writing(func(w *v1alpha1.TaskWorkspace) { w.PushBranch = "feature-2" }), chief(), ""},
		"a branch that begins alike":  {writing(nil), writing(func(w *v1alpha1.TaskWorkspace) { w.PushBranch = "features" }), chief(), "spec.workspace.pushBranch"},
		"a branch of the platform":    {writing(nil), writing(func(w *v1alpha1.TaskWorkspace) { w.PushBranch = "platform/x" }), chief(), ""},
		"no branch":                   {writing(nil), writing(func(w *v1alpha1.TaskWorkspace) { w.PushBranch = "" }), chief(), ""},
		"a branch, parent has none":   {writing(func(w *v1alpha1.TaskWorkspace) { w.PushBranch = "" }), writing(func(w *v1alpha1.TaskWorkspace) { w.PushBranch = "-x" }), chief(), "spec.workspace.pushBranch"},
		"more files":                  {writing(nil), writing(func(w *v1alpha1.TaskWorkspace) { w.MaxChangedFiles = new(int32(6)) }), chief(), "spec.workspace.maxChangedFiles"},
		"any number of files":         {writing(nil), writing(func(w *v1alpha1.TaskWorkspace) { w.MaxChangedFiles = nil }), chief(), "spec.workspace.maxChangedFiles"},
		"fewer paths":                 {writing(nil), writing(func(w *v1alpha1.TaskWorkspace) { w.AllowedPaths = []string{"src/a/x"} }), chief(), ""},
		"more paths":                  {writing(nil), writing(func(w *v1alpha1.TaskWorkspace) { w.AllowedPaths = []string{"src/a", "src/c"} }), chief(), "spec.workspace.allowedPaths"},
		"all paths":                   {writing(nil), writing(func(w *v1alpha1.TaskWorkspace) { w.AllowedPaths = nil }), chief(), "spec.workspace.allowedPaths"},
		"control files":               {writing(nil), writing(func(w *v1alpha1.TaskWorkspace) { w.DenyRepositoryControlPaths = false }), chief(), "spec.workspace.denyRepositoryControlPaths"},
		"binary files":                {writing(nil), writing(func(w *v1alpha1.TaskWorkspace) { w.RejectBinaryFiles = false }), chief(), "spec.workspace.rejectBinaryFiles"},
		"secrets":                     {writing(nil), writing(func(w *v1alpha1.TaskWorkspace) { w.RejectSecretLikeContent = false }), chief(), "spec.workspace.rejectSecretLikeContent"},
	} {
		parent := plantest.AI(plantest.ByAgent("chief"), func(s *v1alpha1.TaskSpec) { s.Workspace = tc.parent })
		child := plantest.AI(plantest.ByAgent("clerk"), func(s *v1alpha1.TaskSpec) { s.Workspace = tc.child })
		list := plan.CheckChild(parent, tc.agent, child, nil)
		switch {
		case tc.want == "" && len(list) > 0:
			t.Errorf("%s: %s: %s", name, list[0].Field, list[0].Message)
		case tc.want != "" && (len(list) != 1 || list[0].Field != tc.want):
			t.Errorf("%s: %+v, want %s", name, list, tc.want)
		}
	}
}

// TestBeginning: where a task begins that continues another one.
func TestBeginning(t *testing.T) {
	const base, published = "base", "published"
	delivered := v1alpha1.TaskDelivery{State: v1alpha1.DeliveryVerifiedExact, StartingSHA: base, Branch: "feature", VerifiedRemoteSHA: published}
	for name, tc := range map[string]struct {
		own, prior *v1alpha1.TaskWorkspace
		delivery   *v1alpha1.TaskDelivery
		want       plan.Beginning
		refused    bool
	}{
		"a review":               {writing(func(w *v1alpha1.TaskWorkspace) { w.Intent, w.PushBranch = v1alpha1.WorkspaceRead, "" }), writing(nil), &delivered, plan.Beginning{Commit: base, Apply: true}, false},
		"the same branch":        {writing(nil), writing(nil), &delivered, plan.Beginning{Commit: published}, false},
		"another branch":         {writing(func(w *v1alpha1.TaskWorkspace) { w.PushBranch = "other" }), writing(nil), &delivered, plan.Beginning{Commit: base, Apply: true}, false},
		"not published":          {writing(nil), writing(nil), &v1alpha1.TaskDelivery{State: v1alpha1.DeliveryConflict, StartingSHA: base, Branch: "feature"}, plan.Beginning{Commit: base, Apply: true}, false},
		"published to a fork":    {writing(nil), writing(func(w *v1alpha1.TaskWorkspace) { w.PublicationGitRepo = "https://fork.example/x" }), &delivered, plan.Beginning{Commit: base, Apply: true}, false},
		"no change":              {writing(nil), writing(nil), &v1alpha1.TaskDelivery{State: v1alpha1.DeliveryNoChange, StartingSHA: base}, plan.Beginning{Commit: base}, false},
		"without a repository":   {writing(nil), writing(nil), nil, plan.Beginning{}, true},
		"before it had its own":  {writing(nil), writing(nil), &v1alpha1.TaskDelivery{}, plan.Beginning{}, true},
		"one that reads":         {writing(nil), writing(func(w *v1alpha1.TaskWorkspace) { w.Intent = v1alpha1.WorkspaceRead }), &delivered, plan.Beginning{}, true},
		"one elsewhere":          {writing(nil), writing(func(w *v1alpha1.TaskWorkspace) { w.GitRepo = "https://other.example/x" }), &delivered, plan.Beginning{}, true},
		"one in another folder":  {writing(nil), writing(func(w *v1alpha1.TaskWorkspace) { w.SubPath = "" }), &delivered, plan.Beginning{}, true},
		"one without repository": {writing(nil), nil, nil, plan.Beginning{}, true},
	} {
		task := &v1alpha1.Task{Spec: v1alpha1.TaskSpec{Workspace: tc.own}}
		prior := &v1alpha1.Task{Spec: v1alpha1.TaskSpec{Workspace: tc.prior}, Status: v1alpha1.TaskStatus{Delivery: tc.delivery}}
		got, refused := plan.BeginningOf(task, prior)
		if got != tc.want || (refused != nil) != tc.refused {
			t.Errorf("%s: %+v, %v, want %+v, refused %t", name, got, refused, tc.want, tc.refused)
		}
	}
}
