// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MemoryProposalType is what a proposal would change.
type MemoryProposalType string

// Types of proposals. Other texts are possible. Only a proposal of type memory can be applied.
const (
	ProposalMemory   MemoryProposalType = "memory"
	ProposalSkill    MemoryProposalType = "skill"
	ProposalPolicy   MemoryProposalType = "policy"
	ProposalWorkflow MemoryProposalType = "workflow"
)

// MemoryProposalState is where a proposal is.
// +enum
// +k8s:enum
type MemoryProposalState string

// States of a proposal. A review makes a pending one accepted or rejected. Applying makes an accepted one of type
// memory applied, which is final. All others can be archived, which is final too.
const (
	ProposalPending  MemoryProposalState = "pending"
	ProposalAccepted MemoryProposalState = "accepted"
	ProposalRejected MemoryProposalState = "rejected"
	ProposalApplied  MemoryProposalState = "applied"
	ProposalArchived MemoryProposalState = "archived"
)

// +genclient
// +genclient:method=Review,verb=create,subresource=review,input=MemoryProposalReview,result=MemoryProposal
// +genclient:method=ApplyMemory,verb=create,subresource=apply,input=MemoryProposalApplication,result=Memory
// +genclient:method=Archive,verb=create,subresource=archive,input=MemoryChange,result=MemoryProposal
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// MemoryProposal is something that an agent or a person proposes to remember. Nothing is recalled before somebody
// reviews and applies it. The spec does not change, so that what is applied is what was reviewed.
type MemoryProposal struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is proposed.
	// +required
	Spec MemoryProposalSpec `json:"spec"`
	// status is what was decided, written by the server.
	// +optional
	Status MemoryProposalStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MemoryProposalList is a list of proposals.
type MemoryProposalList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the proposals.
	Items []MemoryProposal `json:"items"`
}

// MemoryProposalSpec is what is proposed. Secrets, and characters that a reviewer would not see, are removed from every
// text before it is stored.
type MemoryProposalSpec struct {
	// title says in a line what is proposed.
	// +required
	// +k8s:required
	// +k8s:maxLength=256
	Title string `json:"title"`
	// type is memory (the default), skill, policy, workflow, or another word.
	// +optional
	// +default="memory"
	// +k8s:optional
	// +k8s:maxLength=63
	Type MemoryProposalType `json:"type,omitempty"`
	// skillName is the skill that a proposal of type skill would change.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=253
	SkillName string `json:"skillName,omitempty"`
	// description says why. Its first line that begins with "Tags:" lists, separated by commas, the tags of the memory.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=32768
	Description string `json:"description,omitempty"`
	// content becomes the content of the memory; if it is empty, the title does.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=32768
	Content string `json:"content,omitempty"`
	// patch is a change of an existing text, for people.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=131072
	Patch string `json:"patch,omitempty"`
	// agentName becomes the memory's limit: NAME, or NAMESPACE/NAME for an agent of another namespace. A run proposes
	// only for its own agent; the server sets it.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=317
	AgentName string `json:"agentName,omitempty"`
	// taskName is the task that the proposal is about. The server sets it on a proposal of a run.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=253
	TaskName string `json:"taskName,omitempty"`
}

// MemoryProposalStatus is what was decided about a proposal. It changes by the subresources review, apply and archive.
type MemoryProposalStatus struct {
	// state is pending, accepted, rejected, applied or archived.
	// +optional
	// +k8s:optional
	State MemoryProposalState `json:"state,omitempty"`
	// updatedAt is the time of the last change of the state.
	// +optional
	// +k8s:optional
	UpdatedAt *metav1.Time `json:"updatedAt,omitempty"`
	// proposedBy is the user name of the proposal's creator; for a run, the account of its worker.
	// +optional
	ProposedBy string `json:"proposedBy,omitempty"`
	// origin is the run that proposed; absent for a person.
	// +optional
	// +k8s:optional
	Origin *MemoryOrigin `json:"origin,omitempty"`
	// reviewer is who reviewed, as the review named them; the user name of the caller by default.
	// +optional
	Reviewer string `json:"reviewer,omitempty"`
	// reviewedBy is the user name of the caller who reviewed.
	// +optional
	ReviewedBy string `json:"reviewedBy,omitempty"`
	// reviewNote is the reviewer's comment.
	// +optional
	ReviewNote string `json:"reviewNote,omitempty"`
	// reviewedAt is when the proposal was reviewed.
	// +optional
	// +k8s:optional
	ReviewedAt *metav1.Time `json:"reviewedAt,omitempty"`
	// memoryName is the memory that was made; its UID is derived from the proposal's.
	// +optional
	MemoryName string `json:"memoryName,omitempty"`
	// memoryUID is the UID of that memory.
	// +optional
	MemoryUID types.UID `json:"memoryUID,omitempty"`
	// appliedBy is who applied, as the request named them; the user name of the caller by default.
	// +optional
	AppliedBy string `json:"appliedBy,omitempty"`
	// applier is the user name of the caller who applied.
	// +optional
	Applier string `json:"applier,omitempty"`
	// appliedAt is when the proposal was applied.
	// +optional
	// +k8s:optional
	AppliedAt *metav1.Time `json:"appliedAt,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MemoryProposalReview is the body of a create on memoryproposals/review.
type MemoryProposalReview struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata; it is not used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the decision.
	// +required
	Spec MemoryProposalReviewSpec `json:"spec"`
}

// MemoryProposalReviewSpec is the decision of a review.
type MemoryProposalReviewSpec struct {
	// status is accepted or rejected.
	// +required
	// +k8s:required
	Status MemoryProposalState `json:"status"`
	// reviewer names who reviewed; the caller by default.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	Reviewer string `json:"reviewer,omitempty"`
	// reviewNote is the reviewer's comment.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=4096
	ReviewNote string `json:"reviewNote,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MemoryProposalApplication is the body of a create on memoryproposals/apply.
type MemoryProposalApplication struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata; it is not used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec says who applies.
	// +optional
	Spec MemoryProposalApplicationSpec `json:"spec,omitempty"`
}

// MemoryProposalApplicationSpec says who applies.
type MemoryProposalApplicationSpec struct {
	// appliedBy names who applies; the caller by default.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	AppliedBy string `json:"appliedBy,omitempty"`
}

// +genclient
// +genclient:onlyVerbs=create
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MemoryProposalSearch finds proposals. It is answered and not stored.
type MemoryProposalSearch struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata; only the namespace is used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what to find.
	// +optional
	Spec MemoryProposalSearchSpec `json:"spec,omitempty"`
	// status is what was found.
	// +optional
	Status MemoryProposalSearchStatus `json:"status,omitempty"`
}

// MemoryProposalSearchSpec is what to find. A proposal must match every field that is set.
type MemoryProposalSearchSpec struct {
	// query is text: proposals that have all its words in their texts are found.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=65536
	Query string `json:"query,omitempty"`
	// taskName is that of the proposal.
	// +optional
	TaskName string `json:"taskName,omitempty"`
	// agentName is that of the proposal.
	// +optional
	AgentName string `json:"agentName,omitempty"`
	// type is that of the proposal.
	// +optional
	Type MemoryProposalType `json:"type,omitempty"`
	// status is the state of the proposal.
	// +optional
	Status MemoryProposalState `json:"status,omitempty"`
	// limit is how many proposals are returned: 100 by default, at most 500.
	// +optional
	Limit int32 `json:"limit,omitempty"`
}

// MemoryProposalSearchStatus is what a search found.
type MemoryProposalSearchStatus struct {
	// items are the proposals, the newest first.
	// +optional
	// +k8s:optional
	// +listType=atomic
	Items []MemoryProposal `json:"items,omitempty"`
}
