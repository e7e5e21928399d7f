// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// generatedBranches is how the branches of tasks begin that name none.
const generatedBranches = "platform/"

// checkWorkspace refuses a workspace of a delegated task that gives it more than its parent has. The model that delegates may have read
// anything, so it must not decide where a credential is sent, nor which branch of people is moved. A child works on the repository of its
// parent, with the same credentials in the same roles; one whose parent has the public network may also read what is public.
func checkWorkspace(parent *v1alpha1.Task, coordinator *v1alpha1.Agent, child *v1alpha1.Task, forbid func(field, format string, args ...any)) {
	w, has := child.Spec.Workspace, parent.Spec.Workspace
	if w == nil {
		return
	}
	if has == nil || w.GitRepo != has.GitRepo {
		if !PublicNetwork(coordinator) || w.Writes() || !equality.Semantic.DeepEqual(*w, bareWorkspace(w)) {
			forbid("spec.workspace.gitRepo", "a delegated task works on the repository of its parent (spec.workspace.gitRepo), with what the parent may do there; "+
				"another one it may only read, without a credential, if the agent of the parent has the public network")
		}
		return
	}
	if w.Writes() && !has.Writes() {
		forbid("spec.workspace.intent", "a delegated task may change the repository only if its parent may")
	}
	if w.Writes() && w.PublicationURL() != has.PublicationURL() {
		forbid("spec.workspace.publicationGitRepo", "a delegated task publishes to the repository of its parent")
	}
	for _, f := range []struct {
		name     string
		own, has *v1alpha1.WorkspaceCredentialReference
	}{
		{"readCredentialRef", w.ReadCredentialRef, has.ReadCredentialRef},
		{"publicationReadCredentialRef", w.PublicationReadCredentialRef, has.PublicationReadCredentialRef},
		{"publicationCredentialRef", w.PublicationCredentialRef, has.PublicationCredentialRef},
		{"forgeCredentialRef", w.ForgeCredentialRef, has.ForgeCredentialRef},
	} {
		if f.own != nil && (f.has == nil || key(f.own) != key(f.has)) {
			forbid("spec.workspace."+f.name, "a delegated task may only have that of its parent")
		}
	}
	if !within(w.SubPath, has.SubPath) {
		forbid("spec.workspace.subPath", "a delegated task may only work in the folder of its parent, %q", has.SubPath)
	}
	if w.Writes() {
		checkPublication(w, has, forbid)
	}
}

// key returns the key of a Secret that a reference means.
func key(r *v1alpha1.WorkspaceCredentialReference) v1alpha1.KeyReference {
	return v1alpha1.KeyReference{Name: r.Name, Key: cmp.Or(r.Key, "token")}
}

// checkPublication refuses to publish what the parent may not publish, or where.
func checkPublication(w, has *v1alpha1.TaskWorkspace, forbid func(field, format string, args ...any)) {
	own := w.PushBranch == "" || strings.HasPrefix(w.PushBranch, generatedBranches) ||
		has.PushBranch != "" && (w.PushBranch == has.PushBranch || strings.HasPrefix(w.PushBranch, has.PushBranch+"-"))
	if !own {
		forbid("spec.workspace.pushBranch", "a delegated task publishes to the branch of its parent, to one that begins with its name and a dash, or to one below %s", generatedBranches)
	}
	if most := has.MaxChangedFiles; most != nil && (w.MaxChangedFiles == nil || *w.MaxChangedFiles > *most) {
		forbid("spec.workspace.maxChangedFiles", "a delegated task may change as many files as its parent, %d", *most)
	}
	outside := func(p string) bool {
		return !slices.ContainsFunc(has.AllowedPaths, func(allowed string) bool { return within(p, allowed) })
	}
	if len(has.AllowedPaths) > 0 && (len(w.AllowedPaths) == 0 || slices.ContainsFunc(w.AllowedPaths, outside)) {
		forbid("spec.workspace.allowedPaths", "a delegated task may only change what its parent may: %s", strings.Join(has.AllowedPaths, ", "))
	}
	for name, missing := range map[string]bool{
		"denyRepositoryControlPaths": has.DenyRepositoryControlPaths && !w.DenyRepositoryControlPaths,
		"rejectBinaryFiles":          has.RejectBinaryFiles && !w.RejectBinaryFiles,
		"rejectSecretLikeContent":    has.RejectSecretLikeContent && !w.RejectSecretLikeContent,
	} {
		if missing {
			forbid("spec.workspace."+name, "the parent has it, so a delegated task must have it, too")
		}
	}
}

// bareWorkspace returns what a workspace has that needs no credential and publishes nothing.
func bareWorkspace(w *v1alpha1.TaskWorkspace) v1alpha1.TaskWorkspace {
	return v1alpha1.TaskWorkspace{Intent: w.Intent, GitRepo: w.GitRepo, Branch: w.Branch, Ref: w.Ref, SubPath: w.SubPath}
}

// within reports whether a path is a folder's, or in it. No folder is the whole repository.
func within(p, folder string) bool {
	p, folder = path.Clean("/"+p), path.Clean("/"+folder)
	return folder == "/" || p == folder || strings.HasPrefix(p, folder+"/")
}
