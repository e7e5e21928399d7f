// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import "github.com/platform-ai/platform/pkg/apis/core/v1alpha1"

// workspaceArguments describe the repository that a task works on. What this server cannot do with it is refused when the
// task is created, with the reason.
type workspaceArguments struct {
	GitRepo                  string `json:"gitRepo" desc:"URL of the repository, without credentials" minLength:"1"`
	Branch                   string `json:"branch,omitempty" desc:"Branch to begin from; default: that of the repository"`
	Ref                      string `json:"ref,omitempty" desc:"Commit or tag to begin from"`
	SubPath                  string `json:"subPath,omitempty" desc:"Folder of the repository that becomes the root"`
	ReadCredentialRef        string `json:"readCredentialRef,omitempty" desc:"Name of a Secret whose key token reads the repository"`
	PublicationGitRepo       string `json:"publicationGitRepo,omitempty" desc:"URL of the repository that changes are pushed to"`
	PublicationCredentialRef string `json:"publicationCredentialRef,omitempty" desc:"Name of a Secret whose key token pushes"`
	PushBranch               string `json:"pushBranch,omitempty" desc:"Branch that changes are pushed to"`
}

// agentWorkspaceArguments are those of coding agents, which may also open pull requests.
type agentWorkspaceArguments struct {
	Intent                       string `json:"intent,omitempty" desc:"Whether changes are published; read by default" enum:"read,write"`
	GitRepo                      string `json:"gitRepo" desc:"URL of the repository, without credentials" minLength:"1"`
	Branch                       string `json:"branch,omitempty" desc:"Branch to begin from; default: that of the repository"`
	Ref                          string `json:"ref,omitempty" desc:"Commit or tag to begin from"`
	SubPath                      string `json:"subPath,omitempty" desc:"Folder of the repository that becomes the root"`
	ReadCredentialRef            string `json:"readCredentialRef,omitempty" desc:"Name of a Secret whose key token reads the repository"`
	PublicationGitRepo           string `json:"publicationGitRepo,omitempty" desc:"URL of the repository that changes are pushed to"`
	PublicationReadCredentialRef string `json:"publicationReadCredentialRef,omitempty" desc:"Name of a Secret whose key token reads that repository"`
	PublicationCredentialRef     string `json:"publicationCredentialRef,omitempty" desc:"Name of a Secret whose key token pushes"`
	ForgeCredentialRef           string `json:"forgeCredentialRef,omitempty" desc:"Name of a Secret whose key token opens pull requests"`
	PushBranch                   string `json:"pushBranch,omitempty" desc:"Branch that changes are pushed to"`
	PRBaseBranch                 string `json:"prBaseBranch,omitempty" desc:"Branch that a pull request is for"`
	CreatePR                     bool   `json:"createPR,omitempty" desc:"Whether a pull request is opened"`
}

func (w *workspaceArguments) workspace() *v1alpha1.TaskWorkspace {
	if w == nil {
		return nil
	}
	return &v1alpha1.TaskWorkspace{
		GitRepo: w.GitRepo, Branch: w.Branch, Ref: w.Ref, SubPath: w.SubPath, ReadCredentialRef: credential(w.ReadCredentialRef),
		PublicationGitRepo: w.PublicationGitRepo, PublicationCredentialRef: credential(w.PublicationCredentialRef), PushBranch: w.PushBranch,
	}
}

func (w *agentWorkspaceArguments) workspace() *v1alpha1.TaskWorkspace {
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
