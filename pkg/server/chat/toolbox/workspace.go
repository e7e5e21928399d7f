// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// workspace returns the workspace of a task that runs a command; nil for none.
func workspace(w *builtin.WorkspaceArguments) *v1alpha1.TaskWorkspace {
	if w == nil {
		return nil
	}
	return &v1alpha1.TaskWorkspace{
		GitRepo: w.GitRepo, Branch: w.Branch, Ref: w.Ref, SubPath: w.SubPath, ReadCredentialRef: credential(w.ReadCredentialRef),
		PublicationGitRepo: w.PublicationGitRepo, PublicationCredentialRef: credential(w.PublicationCredentialRef), PushBranch: w.PushBranch,
	}
}

// agentWorkspace returns the workspace of a task of a coding agent; nil for none.
func agentWorkspace(w *builtin.AgentWorkspaceArguments) *v1alpha1.TaskWorkspace {
	if w == nil {
		return nil
	}
	return &v1alpha1.TaskWorkspace{
		Intent: v1alpha1.WorkspaceIntent(w.Intent), GitRepo: w.GitRepo, Branch: w.Branch, Ref: w.Ref, SubPath: w.SubPath,
		ReadCredentialRef: credential(w.ReadCredentialRef), PublicationGitRepo: w.PublicationGitRepo,
		PublicationReadCredentialRef: credential(w.PublicationReadCredentialRef), PublicationCredentialRef: credential(w.PublicationCredentialRef),
		ForgeCredentialRef: credential(w.ForgeCredentialRef), PushBranch: w.PushBranch, PRBaseBranch: w.PRBaseBranch, CreatePR: w.CreatePR,
	}
}

// credential returns a reference to a Secret; nil for no name.
func credential(name string) *v1alpha1.WorkspaceCredentialReference {
	if name == "" {
		return nil
	}
	return &v1alpha1.WorkspaceCredentialReference{Name: name}
}
