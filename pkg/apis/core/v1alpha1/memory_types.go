// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// MemorySourceProposal is spec.source of a memory that was made by applying a proposal.
const MemorySourceProposal = "memory_proposal"

// +genclient
// +genclient:method=Disable,verb=create,subresource=disable,input=MemoryChange,result=Memory
// +genclient:method=Enable,verb=create,subresource=enable,input=MemoryChange,result=Memory
// +genclient:method=Discard,verb=create,subresource=discard,input=MemoryChange,result=Memory
// +genclient:method=Restore,verb=create,subresource=restore,input=MemoryChange,result=Memory
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// Memory is a text that later tasks recall. It has a scope: the whole namespace, the tasks of one agent, the tasks of
// one session, or the tasks of one agent in one session. Tasks outside the scope never recall it.
type Memory struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the text, its scope and what it is about.
	// +required
	Spec MemorySpec `json:"spec"`
	// status is where the memory came from and how it is used, written by the server.
	// +optional
	Status MemoryStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MemoryList is a list of memories.
type MemoryList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the memories.
	Items []Memory `json:"items"`
}

// MemorySpec is the text of a memory, its scope and what it is about. Secrets, and invisible characters, are removed from every
// text before it is stored.
type MemorySpec struct {
	// content is what is remembered.
	// +required
	// +k8s:required
	// +k8s:maxLength=32768
	Content string `json:"content"`
	// tags are words to find the memory by.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=64
	// +listType=atomic
	Tags []string `json:"tags,omitempty"`
	// source is where the text came from, in the writer's words; "memory_proposal" for an applied proposal.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	Source string `json:"source,omitempty"`
	// sessionName limits the memory to tasks of this session. A later session of the same name does not recall the
	// memory; see status.sessionUID.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=253
	SessionName string `json:"sessionName,omitempty"`
	// agentName limits the memory to tasks of this agent: NAME, or NAMESPACE/NAME for an agent of another namespace.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=317
	AgentName string `json:"agentName,omitempty"`
	// taskName is the task that the memory is about. It is no limit.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=253
	TaskName string `json:"taskName,omitempty"`
	// parentTask is the parent of that task.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=253
	ParentTask string `json:"parentTask,omitempty"`
}

// MemoryStatus is where a memory came from and how it is used.
type MemoryStatus struct {
	// disabled excludes the memory from recall. It changes by memories/disable and memories/enable.
	// +optional
	Disabled bool `json:"disabled,omitempty"`
	// deleted hides the memory. It changes by memories/discard and memories/restore.
	// +optional
	Deleted bool `json:"deleted,omitempty"`
	// updatedAt is the time of the last change of the spec, or of disabled or deleted.
	// +optional
	// +k8s:optional
	UpdatedAt *metav1.Time `json:"updatedAt,omitempty"`
	// lastRecalledAt is when the memory was last given to a task.
	// +optional
	// +k8s:optional
	LastRecalledAt *metav1.Time `json:"lastRecalledAt,omitempty"`
	// recalledCount is how often the memory was given to a task.
	// +optional
	RecalledCount int64 `json:"recalledCount,omitempty"`
	// proposalName is the proposal that was applied to make this memory.
	// +optional
	ProposalName string `json:"proposalName,omitempty"`
	// proposalUID is the UID of that proposal.
	// +optional
	ProposalUID types.UID `json:"proposalUID,omitempty"`
	// sessionUID is the session that spec.sessionName stands for: the one of that name when the memory was written or
	// moved to it. If there was none, it is the first one whose tasks recall the memory.
	// +optional
	SessionUID types.UID `json:"sessionUID,omitempty"`
	// origin is the run that proposed the memory; absent for one that a person proposed or wrote.
	// +optional
	// +k8s:optional
	Origin *MemoryOrigin `json:"origin,omitempty"`
}

// MemoryOrigin is the run that proposed a memory. The server sets it from the worker's credential and from the events
// of the run.
type MemoryOrigin struct {
	// taskName is the task.
	// +required
	TaskName string `json:"taskName"`
	// taskUID is the UID of the task.
	// +required
	TaskUID types.UID `json:"taskUID"`
	// requestedBy is the user name of the task's creator; empty if that is not known.
	// +optional
	RequestedBy string `json:"requestedBy,omitempty"`
	// sequence is the event of the task that began the call which proposed the memory; 0 if there is none.
	// +optional
	Sequence int64 `json:"sequence,omitempty"`
	// toolCallID is the model's call that proposed the memory.
	// +optional
	ToolCallID string `json:"toolCallID,omitempty"`
	// outsideText reports that untrusted text, such as a web page or a program's output, may be in what the run
	// proposes: the run had called a tool that brings such text, or its prompt or its session may have it. The person who
	// created the task may not apply such a proposal.
	// +optional
	OutsideText bool `json:"outsideText,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MemoryChange is the body of a create on memories/disable, memories/enable, memories/discard, memories/restore and
// memoryproposals/archive. It says nothing beyond that.
type MemoryChange struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata; it is not used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
}

// +genclient
// +genclient:onlyVerbs=create
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// MemorySearch finds memories. It is answered and not stored.
type MemorySearch struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata; only the namespace is used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what to find.
	// +optional
	Spec MemorySearchSpec `json:"spec,omitempty"`
	// status is what was found.
	// +optional
	Status MemorySearchStatus `json:"status,omitempty"`
}

// MemorySearchSpec is what to find. A memory must match every field that is set. A worker finds only memories whose
// scope includes its task.
type MemorySearchSpec struct {
	// query is text: memories with any of its words are found, the best matches first. Without a query the newest come
	// first.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=65536
	Query string `json:"query,omitempty"`
	// ids are names of memories; any of them matches.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=200
	// +listType=atomic
	IDs []string `json:"ids,omitempty"`
	// tags must all be on the memory.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=64
	// +listType=atomic
	Tags []string `json:"tags,omitempty"`
	// source is that of the memory.
	// +optional
	Source string `json:"source,omitempty"`
	// sessionName is that of the memory.
	// +optional
	SessionName string `json:"sessionName,omitempty"`
	// agentName is that of the memory.
	// +optional
	AgentName string `json:"agentName,omitempty"`
	// taskName is that of the memory.
	// +optional
	TaskName string `json:"taskName,omitempty"`
	// parentTask is that of the memory.
	// +optional
	ParentTask string `json:"parentTask,omitempty"`
	// includeDisabled also finds disabled memories.
	// +optional
	IncludeDisabled bool `json:"includeDisabled,omitempty"`
	// includeDeleted also finds discarded memories. A worker may not set it.
	// +optional
	IncludeDeleted bool `json:"includeDeleted,omitempty"`
	// limit is how many memories are returned: 50 by default, at most 200.
	// +optional
	Limit int32 `json:"limit,omitempty"`
	// maxCharacters is how long the contents may be together; memories that do not fit are left out. 0 means no limit.
	// +optional
	// +k8s:optional
	// +k8s:minimum=0
	MaxCharacters int32 `json:"maxCharacters,omitempty"`
	// scope leaves out what a wider one would find: Namespace, Agent or Session of the worker's task. Without it, and at most, it
	// is that of spec.memory.recall of the task's Agent. Only a worker's search has a scope.
	// +optional
	// +k8s:optional
	Scope MemoryScope `json:"scope,omitempty"`
	// recall counts the memories that are returned as recalled. Only a worker's search is counted.
	// +optional
	Recall bool `json:"recall,omitempty"`
}

// MemorySearchStatus is what a search found.
type MemorySearchStatus struct {
	// items are the memories, the best first.
	// +optional
	// +k8s:optional
	// +listType=atomic
	Items []MemoryMatch `json:"items,omitempty"`
}

// MemoryMatch is one memory that was found.
type MemoryMatch struct {
	// score ranks the match among those of the same search: BM25 in thousandths; 0 without a query.
	// +optional
	Score int64 `json:"score,omitempty"`
	// memory is the memory.
	// +required
	Memory Memory `json:"memory"`
}
