// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// UsageLinkOrigin is how a pull request came to be linked with a task.
// +enum
// +k8s:enum
type UsageLinkOrigin string

// Origins of links.
const (
	// UsageLinkCreated: the task published the pull request, and the receipt of that is known.
	UsageLinkCreated UsageLinkOrigin = "created"
	// UsageLinkAssisted: the task worked on a pull request that somebody else created, or whose receipt is not known.
	UsageLinkAssisted UsageLinkOrigin = "assisted"
	// UsageLinkReviewOnly: the task only reviewed it.
	UsageLinkReviewOnly UsageLinkOrigin = "review_only"
)

// UsageLinkState is the state of a pull request at the code host.
// +enum
// +k8s:enum
type UsageLinkState string

// States of pull requests.
const (
	UsageLinkOpen    UsageLinkState = "open"
	UsageLinkClosed  UsageLinkState = "closed"
	UsageLinkMerged  UsageLinkState = "merged"
	UsageLinkUnknown UsageLinkState = "unknown"
)

// +genclient
// +genclient:onlyVerbs=create
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// UsageLink records that a task worked on a pull request, and what the code host said about it. Controllers create one for each
// observation; no role of users permits that. The record is kept with those of usage, and reports show it; there is
// no object to read, except that controllers read what to look at again from repositorymonitors/links. Nothing is inferred: without links a
// report says that nothing is known of pull requests.
type UsageLink struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata; only the namespace is used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what was observed. The answer has it as it was recorded: a merge stays, and a pull request without a receipt
	// of its creation is assisted.
	Spec UsageLinkSpec `json:"spec"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// UsageLinkPage is what repositorymonitors/links answers: links, each as it was observed last.
type UsageLinkPage struct {
	metav1.TypeMeta `json:",inline"`
	// metadata holds the name and the namespace of the monitor.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// links are the links.
	// +listType=atomic
	Links []UsageLinkSpec `json:"links"`
}

// UsageLinkSpec is an observation of a pull request.
type UsageLinkSpec struct {
	// taskUID is the task that created, changed or reviewed the pull request. It may be deleted by now.
	// +required
	// +k8s:required
	TaskUID types.UID `json:"taskUID"`
	// repository is OWNER/REPOSITORY.
	// +required
	// +k8s:required
	// +k8s:maxLength=512
	Repository string `json:"repository"`
	// number is the number of the pull request.
	// +required
	// +k8s:minimum=1
	Number int64 `json:"number"`
	// githubID is the identity that the code host gave it, which outlives a renamed repository; 0 if it is not known.
	// +optional
	GitHubID int64 `json:"githubID,omitempty"`
	// url is its address.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=2048
	URL string `json:"url,omitempty"`
	// headSHA is the revision that state and ready are about.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=64
	HeadSHA string `json:"headSHA,omitempty"`
	// origin is created, assisted or review_only.
	// +required
	// +k8s:required
	Origin UsageLinkOrigin `json:"origin"`
	// evidenceID is the receipt of what origin claims: the delivery, commit or review that proves it. Without one, created
	// is recorded as assisted.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=253
	EvidenceID string `json:"evidenceID,omitempty"`
	// state is open, closed, merged or unknown.
	// +required
	// +k8s:required
	State UsageLinkState `json:"state"`
	// ready is set if it could be merged when it was observed. It holds for ten minutes.
	// +optional
	Ready bool `json:"ready,omitempty"`
	// readinessReason says why it is ready or not.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	ReadinessReason string `json:"readinessReason,omitempty"`
	// createdAt is when it was created.
	// +optional
	// +k8s:optional
	CreatedAt *metav1.Time `json:"createdAt,omitempty"`
	// mergedAt is when it was merged.
	// +optional
	// +k8s:optional
	MergedAt *metav1.Time `json:"mergedAt,omitempty"`
	// closedAt is when it was closed.
	// +optional
	// +k8s:optional
	ClosedAt *metav1.Time `json:"closedAt,omitempty"`
	// observedAt is when the code host was asked; now by default.
	// +optional
	// +k8s:optional
	ObservedAt *metav1.MicroTime `json:"observedAt,omitempty"`
}
