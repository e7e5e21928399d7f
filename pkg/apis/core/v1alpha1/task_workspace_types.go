// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WorkspaceIntent says whether a task may change the repository.
// +enum
// +k8s:enum
type WorkspaceIntent string

// Workspace intents.
const (
	// WorkspaceRead gives a working copy whose changes go nowhere.
	WorkspaceRead WorkspaceIntent = "read"
	// WorkspaceWrite lets changes be published as a branch.
	WorkspaceWrite WorkspaceIntent = "write"
)

// RepositoryIdentity names a repository independently of its URL.
// +structType=atomic
type RepositoryIdentity struct {
	// provider is the code host, for example github.
	// +required
	// +k8s:required
	// +k8s:maxLength=63
	Provider string `json:"provider"`
	// id is the code host's own identifier of the repository.
	// +required
	// +k8s:required
	// +k8s:maxLength=256
	ID string `json:"id"`
}

// WorkspaceCredentialReference names a Secret key with one repository credential.
// Its key has a default, so its fields are owned one by one: owned as a whole, it would differ from each manifest that leaves
// the key out.
type WorkspaceCredentialReference struct {
	// name is the name of the Secret.
	// +required
	// +k8s:required
	// +k8s:format=k8s-long-name
	Name string `json:"name"`
	// key is the key in the Secret's data.
	// +optional
	// +default="token"
	// +k8s:optional
	// +k8s:maxLength=253
	Key string `json:"key,omitempty"`
}

// TaskWorkspace is the repository that a task works on, and how its changes
// are published.
type TaskWorkspace struct {
	// intent says whether the task may change the repository: read or write. The effective intent cannot be changed.
	// Agent tasks read when it is unset.
	// +optional
	// +k8s:optional
	Intent WorkspaceIntent `json:"intent,omitempty"`
	// gitRepo is the source URL, without credentials, query or fragment.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=2048
	GitRepo string `json:"gitRepo,omitempty"`
	// sourceRepository is the canonical identity of the source repository.
	// +optional
	// +k8s:optional
	SourceRepository *RepositoryIdentity `json:"sourceRepository,omitempty"`
	// branch is the source branch. With branch and ref both empty the default branch is taken.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=255
	Branch string `json:"branch,omitempty"`
	// ref is the exact ref, commit or tag of the source.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=512
	Ref string `json:"ref,omitempty"`
	// subPath is the folder of the repository that becomes the workspace root.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	SubPath string `json:"subPath,omitempty"`
	// readCredentialRef is the credential that the source is cloned with, and nothing else.
	// +optional
	// +k8s:optional
	ReadCredentialRef *WorkspaceCredentialReference `json:"readCredentialRef,omitempty"`

	// publicationGitRepo is the URL that changes are published to, without credentials, query or fragment.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=2048
	PublicationGitRepo string `json:"publicationGitRepo,omitempty"`
	// publicationRepository is the canonical identity of the publication repository.
	// +optional
	// +k8s:optional
	PublicationRepository *RepositoryIdentity `json:"publicationRepository,omitempty"`
	// publicationReadCredentialRef is the credential for checks before and after a publication.
	// +optional
	// +k8s:optional
	PublicationReadCredentialRef *WorkspaceCredentialReference `json:"publicationReadCredentialRef,omitempty"`
	// publicationCredentialRef is the credential for the push of the publication branch.
	// +optional
	// +k8s:optional
	PublicationCredentialRef *WorkspaceCredentialReference `json:"publicationCredentialRef,omitempty"`
	// forgeCredentialRef is the credential for pull requests; createPR needs it.
	// +optional
	// +k8s:optional
	ForgeCredentialRef *WorkspaceCredentialReference `json:"forgeCredentialRef,omitempty"`
	// pushBranch is the publication branch. An agent task that writes and has no schedule gets one of its own if it is empty.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=255
	PushBranch string `json:"pushBranch,omitempty"`
	// expectedRemoteSHA is the commit that the publication branch must be at for the push to happen.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	ExpectedRemoteSHA string `json:"expectedRemoteSHA,omitempty"`

	// createPR asks for a pull request after the branch is published; it needs intent write.
	// +optional
	// +k8s:optional
	CreatePR bool `json:"createPR,omitempty"`
	// prBaseBranch is the base branch of the pull request.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=255
	PRBaseBranch string `json:"prBaseBranch,omitempty"`
	// prTitle is the title of the pull request; empty means the first line of the prompt.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	PRTitle string `json:"prTitle,omitempty"`
	// prBody is the text of the pull request; empty means a summary.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=32768
	PRBody string `json:"prBody,omitempty"`

	// maxChangedFiles is the most files that a publication may change.
	// +optional
	// +k8s:optional
	// +k8s:minimum=1
	MaxChangedFiles *int32 `json:"maxChangedFiles,omitempty"`
	// allowedPaths are the paths that a publication may change; empty means all.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=256
	// +listType=atomic
	AllowedPaths []string `json:"allowedPaths,omitempty"`
	// denyRepositoryControlPaths refuses changes to files that control the repository or its automation.
	// +optional
	// +k8s:optional
	DenyRepositoryControlPaths bool `json:"denyRepositoryControlPaths,omitempty"`
	// rejectBinaryFiles refuses binary files in a publication.
	// +optional
	// +k8s:optional
	RejectBinaryFiles bool `json:"rejectBinaryFiles,omitempty"`
	// rejectSecretLikeContent refuses content that looks like a secret in a publication.
	// +optional
	// +k8s:optional
	RejectSecretLikeContent bool `json:"rejectSecretLikeContent,omitempty"`
}

// TaskExecutionSpec places a task's worker.
type TaskExecutionSpec struct {
	ExecutionPlacement `json:",inline"`
	// workspace runs the agent in an external sandbox. It is refused where the server does not offer it.
	// +optional
	// +k8s:optional
	Workspace *ExecutionWorkspace `json:"workspace,omitempty"`
}

// ExecutionWorkspaceProvider names what provides sandboxes.
// +enum
// +k8s:enum
type ExecutionWorkspaceProvider string

// Sandbox providers.
const (
	WorkspaceAgentSandbox ExecutionWorkspaceProvider = "agent-sandbox"
	WorkspaceSubstrate    ExecutionWorkspaceProvider = "substrate"
)

// WorkspaceReusePolicy says what a sandbox is shared by.
// +enum
// +k8s:enum
type WorkspaceReusePolicy string

// Reuse policies.
const (
	// WorkspaceReuseNone gives each task its own sandbox.
	WorkspaceReuseNone WorkspaceReusePolicy = "none"
	// WorkspaceReuseSession keeps one sandbox for a session.
	WorkspaceReuseSession WorkspaceReusePolicy = "session"
)

// WorkspaceCleanupPolicy says what becomes of a sandbox after the task.
// +enum
// +k8s:enum
type WorkspaceCleanupPolicy string

// Cleanup policies.
const (
	WorkspaceCleanupDelete WorkspaceCleanupPolicy = "delete"
	WorkspaceCleanupRetain WorkspaceCleanupPolicy = "retain"
)

// WorkspaceDetachPolicy says what happens to a sandbox when nothing uses it.
// +enum
// +k8s:enum
type WorkspaceDetachPolicy string

// Detach policies.
const (
	WorkspaceDetachSuspend WorkspaceDetachPolicy = "Suspend"
	WorkspaceDetachDelete  WorkspaceDetachPolicy = "Delete"
)

// ExecutionWorkspace asks for a sandbox. Either classRef is set, or enabled
// and provider.
type ExecutionWorkspace struct {
	// classRef is the class of the sandbox.
	// +optional
	// +k8s:optional
	ClassRef *LocalReference `json:"classRef,omitempty"`
	// enabled asks for a sandbox of provider, without a class.
	// +optional
	// +k8s:optional
	Enabled bool `json:"enabled,omitempty"`
	// provider provides the sandbox: agent-sandbox or substrate.
	// +optional
	// +k8s:optional
	Provider ExecutionWorkspaceProvider `json:"provider,omitempty"`
	// templateRef is the provider's template.
	// +optional
	// +k8s:optional
	TemplateRef *NamespacedReference `json:"templateRef,omitempty"`
	// poolRef is the provider's pool of prepared sandboxes.
	// +optional
	// +k8s:optional
	PoolRef *NamespacedReference `json:"poolRef,omitempty"`
	// reusePolicy is none or session; session needs sessionRef.
	// +optional
	// +k8s:optional
	ReusePolicy WorkspaceReusePolicy `json:"reusePolicy,omitempty"`
	// cleanupPolicy is delete or retain.
	// +optional
	// +k8s:optional
	CleanupPolicy WorkspaceCleanupPolicy `json:"cleanupPolicy,omitempty"`
	// workspaceSlot tells several sandboxes of one session apart.
	// +optional
	// +default="default"
	// +k8s:optional
	// +k8s:format=k8s-short-name
	WorkspaceSlot string `json:"workspaceSlot,omitempty"`
	// onDetach is Suspend or Delete.
	// +optional
	// +k8s:optional
	OnDetach WorkspaceDetachPolicy `json:"onDetach,omitempty"`
	// boot starts the sandbox from scratch on its first use.
	// +optional
	// +k8s:optional
	Boot bool `json:"boot,omitempty"`
	// snapshot configures snapshots, in the provider's own terms.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	// +patchStrategy=replace
	Snapshot *apiextensionsv1.JSON `json:"snapshot,omitempty" patchStrategy:"replace"`
	// hibernation configures hibernation, in the provider's own terms.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	// +patchStrategy=replace
	Hibernation *apiextensionsv1.JSON `json:"hibernation,omitempty" patchStrategy:"replace"`
	// restoreFrom is the checkpoint that the sandbox begins with.
	// +optional
	// +k8s:optional
	RestoreFrom *ExecutionCheckpointReference `json:"restoreFrom,omitempty"`
}

// ExecutionCheckpointReference names one exact checkpoint of a sandbox.
// +structType=atomic
type ExecutionCheckpointReference struct {
	// name is the name of the checkpoint.
	// +required
	// +k8s:required
	// +k8s:format=k8s-long-name
	Name string `json:"name"`
	// uid is the UID of the checkpoint.
	// +required
	// +k8s:required
	// +k8s:maxLength=128
	UID string `json:"uid"`
	// digest is the content digest of the checkpoint, "sha256:" and 64 lower-case hexadecimal digits.
	// +required
	// +k8s:required
	// +k8s:maxLength=71
	Digest string `json:"digest"`
}

// TaskExecutionWorkspaceStatus describes the sandbox of a task.
type TaskExecutionWorkspaceStatus struct {
	// provider provides the sandbox.
	// +optional
	Provider ExecutionWorkspaceProvider `json:"provider,omitempty"`
	// classRef is the class of the sandbox.
	// +optional
	// +k8s:optional
	ClassRef *LocalReference `json:"classRef,omitempty"`
	// workspaceRef is the sandbox.
	// +optional
	// +k8s:optional
	WorkspaceRef *NamespacedReference `json:"workspaceRef,omitempty"`
	// uid is the UID of the sandbox.
	// +optional
	UID string `json:"uid,omitempty"`
	// slot is the slot of the sandbox in its session.
	// +optional
	Slot string `json:"slot,omitempty"`
	// state is the provider's word for the state of the sandbox.
	// +optional
	State string `json:"state,omitempty"`
	// message explains state to people.
	// +optional
	Message string `json:"message,omitempty"`
	// lastTransitionTime is when state last changed.
	// +optional
	// +k8s:optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
}

// Writes reports whether what a run changes in the workspace is to be published. A nil workspace writes nothing.
func (w *TaskWorkspace) Writes() bool { return w != nil && w.Intent == WorkspaceWrite }

// PublicationURL returns the repository that changes are published to: the source, unless another one is named.
func (w *TaskWorkspace) PublicationURL() string {
	if w.PublicationGitRepo != "" {
		return w.PublicationGitRepo
	}
	return w.GitRepo
}
