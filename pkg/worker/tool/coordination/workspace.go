// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package coordination

import (
	"cmp"
	"context"
	"slices"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// equip gives a child its repository: what the model says, completed with what the run's own task has; without a word of the model that of
// the child whose work it continues, if it continues one. The server decides whether the child may have it.
func (f *family) equip(ctx context.Context, child *v1alpha1.Task, says *v1alpha1.TaskWorkspace, prior string) error {
	var before *v1alpha1.Task
	if prior != "" {
		var err error
		if before, err = f.childNamed(ctx, prior); err != nil {
			return err
		}
		child.Spec.PriorTaskRef = &v1alpha1.NamespacedReference{Name: prior}
	}
	switch {
	case says != nil:
		child.Spec.Workspace = f.completed(says, before)
	case before != nil && before.Spec.Workspace != nil:
		child.Spec.Workspace = continued(before)
	}
	return nil
}

// completed returns a workspace of a child with what the model left out.
func (f *family) completed(says *v1alpha1.TaskWorkspace, before *v1alpha1.Task) *v1alpha1.TaskWorkspace {
	w, own := says.DeepCopy(), f.task.Spec.Workspace
	if before != nil && before.Spec.Workspace != nil {
		w.GitRepo, w.SubPath = cmp.Or(w.GitRepo, before.Spec.Workspace.GitRepo), cmp.Or(w.SubPath, before.Spec.Workspace.SubPath)
	}
	if own == nil || cmp.Or(w.GitRepo, own.GitRepo) != own.GitRepo {
		return w
	}
	w.GitRepo, w.SubPath = own.GitRepo, cmp.Or(w.SubPath, own.SubPath)
	if w.Branch == "" && w.Ref == "" {
		w.Branch, w.Ref = own.Branch, own.Ref
	}
	w.ReadCredentialRef = cmp.Or(w.ReadCredentialRef, own.ReadCredentialRef)
	if !w.Writes() {
		return w
	}
	w.PublicationGitRepo = cmp.Or(w.PublicationGitRepo, own.PublicationGitRepo)
	w.PublicationReadCredentialRef = cmp.Or(w.PublicationReadCredentialRef, own.PublicationReadCredentialRef)
	w.PublicationCredentialRef = cmp.Or(w.PublicationCredentialRef, own.PublicationCredentialRef)
	if w.CreatePR {
		w.ForgeCredentialRef, w.PRBaseBranch = cmp.Or(w.ForgeCredentialRef, own.ForgeCredentialRef), cmp.Or(w.PRBaseBranch, own.PRBaseBranch)
	}
	w.MaxChangedFiles = cmp.Or(w.MaxChangedFiles, own.MaxChangedFiles)
	if len(w.AllowedPaths) == 0 {
		w.AllowedPaths = slices.Clone(own.AllowedPaths)
	}
	w.DenyRepositoryControlPaths = w.DenyRepositoryControlPaths || own.DenyRepositoryControlPaths
	w.RejectBinaryFiles = w.RejectBinaryFiles || own.RejectBinaryFiles
	w.RejectSecretLikeContent = w.RejectSecretLikeContent || own.RejectSecretLikeContent
	return w
}

// continued returns the workspace of a child for one that continues its work. What that one has published is continued on its branch.
func continued(before *v1alpha1.Task) *v1alpha1.TaskWorkspace {
	w := before.Spec.Workspace.DeepCopy()
	w.ExpectedRemoteSHA = ""
	if d := before.Status.Delivery; d != nil && d.VerifiedRemoteSHA != "" {
		w.PushBranch = d.Branch
	}
	return w
}
