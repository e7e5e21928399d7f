// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
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
