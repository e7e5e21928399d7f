// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// TaskCancellation is the body of a create on tasks/cancel. It cancels the task and all that it delegated.
type TaskCancellation struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata; it is not used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// reason tells people why the task is cancelled.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	Reason string `json:"reason,omitempty"`
	// descendantsOnly leaves the task itself as it is, and cancels only what it delegated.
	// +optional
	DescendantsOnly bool `json:"descendantsOnly,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// TaskDetachment is the body of a create on tasks/detach, which separates a delegated task from its parent: the parent
// does not wait for it any more, and it is not cancelled with the parent.
type TaskDetachment struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata; it is not used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// reason tells people why the task is detached.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	Reason string `json:"reason,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// TaskResult is the answer of a get on tasks/result.
type TaskResult struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata; it is not used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// result is the result as the worker submitted it.
	// +optional
	Result string `json:"result,omitempty"`
	// structured is the same in parts, with what is known of the task's repository. It is there if the query parameter structured is true and
	// the task has a repository, or its result is a structured result: a JSON object whose version is 1.
	// +optional
	// +k8s:optional
	Structured *TaskStructuredResult `json:"structured,omitempty"`
}

// TaskVerdict is what a review has found.
type TaskVerdict string

// Verdicts.
const (
	// VerdictApproved: what was reviewed is as it should be.
	VerdictApproved TaskVerdict = "APPROVED"
	// VerdictChangesNeeded: feedback says what has to change.
	VerdictChangesNeeded TaskVerdict = "CHANGES_NEEDED"
)

// TaskStructuredResult is the result of a task in parts. Summary, verdict, feedback, data and metadata are what the run said. Of a task with a
// repository the platform itself says the rest.
type TaskStructuredResult struct {
	// version is 1.
	// +required
	Version int32 `json:"version"`
	// summary is the result as text, at most 32 KiB.
	// +optional
	Summary string `json:"summary,omitempty"`
	// verdict is what a review has found: APPROVED or CHANGES_NEEDED.
	// +optional
	Verdict TaskVerdict `json:"verdict,omitempty"`
	// feedback says what has to change.
	// +optional
	Feedback string `json:"feedback,omitempty"`
	// files are the paths of the changed files in the repository, in order.
	// +optional
	// +listType=atomic
	Files []string `json:"files,omitempty"`
	// baseSHA is the commit that the run began with.
	// +optional
	BaseSHA string `json:"baseSHA,omitempty"`
	// headSHA is the commit of what the run changed, once it was seen in the repository.
	// +optional
	HeadSHA string `json:"headSHA,omitempty"`
	// diff is all that is different from baseSHA, as git shows it with whole object names and binary files (git diff --binary --full-index).
	// +optional
	Diff string `json:"diff,omitempty"`
	// pushBranch is the branch to which it was published, or was to be.
	// +optional
	PushBranch string `json:"pushBranch,omitempty"`
	// pushError says why it was not published.
	// +optional
	PushError string `json:"pushError,omitempty"`
	// artifacts are the files that the task left, beside the diff.
	// +optional
	// +listType=atomic
	Artifacts []TaskResultArtifact `json:"artifacts,omitempty"`
	// data is any JSON value that the run adds.
	// +optional
	// +k8s:opaqueType
	// +patchStrategy=replace
	Data *apiextensionsv1.JSON `json:"data,omitempty" patchStrategy:"replace"`
	// metadata is a JSON object with what the run says about its result.
	// +optional
	// +k8s:opaqueType
	// +patchStrategy=replace
	Metadata *apiextensionsv1.JSON `json:"metadata,omitempty" patchStrategy:"replace"`
}

// TaskResultArtifact describes a file in a structured result.
type TaskResultArtifact struct {
	// filename is the name of the file.
	// +required
	Filename string `json:"filename"`
	// contentType is the media type of the file.
	// +optional
	ContentType string `json:"contentType,omitempty"`
	// size is the length of the file in bytes.
	// +optional
	Size int64 `json:"size,omitempty"`
	// description says what the file is.
	// +optional
	Description string `json:"description,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// TaskArtifactList is the answer of a get on tasks/artifacts.
type TaskArtifactList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata; it is not used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// artifacts are the files that the task left, by name.
	// +listType=map
	// +listMapKey=filename
	Artifacts []TaskArtifact `json:"artifacts"`
}

// TaskArtifact describes one file that a task left.
type TaskArtifact struct {
	// filename is the name of the file.
	// +required
	Filename string `json:"filename"`
	// contentType is the media type of the file.
	// +optional
	ContentType string `json:"contentType,omitempty"`
	// size is the length of the file in bytes.
	// +required
	Size int64 `json:"size"`
	// createdAt is when the file was stored.
	// +optional
	CreatedAt metav1.Time `json:"createdAt,omitempty"`
}
