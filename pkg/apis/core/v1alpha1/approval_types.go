// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ApprovalState is where an approval is. All but pending are final.
// +enum
// +k8s:enum
type ApprovalState string

// States of an approval.
const (
	ApprovalPending   ApprovalState = "pending"
	ApprovalApproved  ApprovalState = "approved"
	ApprovalDeclined  ApprovalState = "declined"
	ApprovalExpired   ApprovalState = "expired"
	ApprovalCancelled ApprovalState = "cancelled"
)

// ApprovalOutcome is how the approved action went, apart from the decision.
// +enum
// +k8s:enum
type ApprovalOutcome string

// Outcomes of an approved action. Unknown means that it began and nothing is
// known of its end; it is never repeated.
const (
	ApprovalNotStarted ApprovalOutcome = "not_started"
	ApprovalRunning    ApprovalOutcome = "running"
	ApprovalSucceeded  ApprovalOutcome = "succeeded"
	ApprovalFailed     ApprovalOutcome = "failed"
	ApprovalUnknown    ApprovalOutcome = "unknown"
)

// +genclient
// +genclient:onlyVerbs=get,list,watch
// +genclient:method=Decide,verb=create,subresource=decision,input=ApprovalDecision,result=Approval
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// Approval is one action that an agent may take only after a person agreed. It
// is derived from the events of its task and not stored by itself. Its name is
// the approval id, the SHA-256 of what exactly is to be approved.
type Approval struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata; the owner reference names the task.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what the agent asks for.
	// +required
	Spec ApprovalSpec `json:"spec"`
	// status is what was decided and what came of it.
	// +optional
	Status ApprovalStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ApprovalList is a list of approvals.
type ApprovalList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the approvals.
	Items []Approval `json:"items"`
}

// ApprovalSpec is what an agent asks for. It never changes.
type ApprovalSpec struct {
	// taskName is the task that waits.
	// +required
	TaskName string `json:"taskName"`
	// taskUID is the UID of that task.
	// +optional
	TaskUID types.UID `json:"taskUID,omitempty"`
	// rootTask is the task at the top of the tree that the waiting task belongs to.
	// +optional
	RootTask string `json:"rootTask,omitempty"`
	// rootTaskUID is the UID of that task. Another task may get its name when it is gone.
	// +optional
	RootTaskUID types.UID `json:"rootTaskUID,omitempty"`
	// requestedBy is the user name of the task's creator; empty when it is not known.
	// +optional
	RequestedBy string `json:"requestedBy,omitempty"`
	// action is what is to be done, in words.
	// +optional
	Action string `json:"action,omitempty"`
	// riskSummary says what could go wrong, in words.
	// +optional
	RiskSummary string `json:"riskSummary,omitempty"`
	// severity ranks the risk: debug, info, warning, error or critical.
	// +optional
	Severity EventSeverity `json:"severity,omitempty"`
	// targetTool is the tool that waits to be called.
	// +optional
	TargetTool string `json:"targetTool,omitempty"`
	// toolCallID is the model's call that waits.
	// +optional
	ToolCallID string `json:"toolCallID,omitempty"`
	// targetArgsDigest is the hex SHA-256 of the canonical JSON of the exact arguments.
	// +optional
	TargetArgsDigest string `json:"targetArgsDigest,omitempty"`
	// targetSpecDigest is the hex SHA-256 of the canonical JSON of the tool's definition.
	// +optional
	TargetSpecDigest string `json:"targetSpecDigest,omitempty"`
	// targetArgsPreview shows the arguments, redacted, in at most 8 KiB.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	// +patchStrategy=replace
	TargetArgsPreview *apiextensionsv1.JSON `json:"targetArgsPreview,omitempty" patchStrategy:"replace"`
	// timeout is how long the decision may take, as text; empty means without limit.
	// +optional
	Timeout string `json:"timeout,omitempty"`
	// expiresAt is when the decision comes too late.
	// +optional
	// +k8s:optional
	ExpiresAt *metav1.MicroTime `json:"expiresAt,omitempty"`
	// binding ties the approval to one run.
	// +optional
	// +k8s:optional
	Binding *ApprovalBinding `json:"binding,omitempty"`
}

// ApprovalBinding ties an approval to one run. What a runtime does not know is
// left out.
type ApprovalBinding struct {
	// taskAttempt is the attempt of the task.
	// +optional
	TaskAttempt int32 `json:"taskAttempt,omitempty"`
	// request is the number of the request in that attempt.
	// +optional
	Request int32 `json:"request,omitempty"`
	// tool is the Tool that the call would use; absent for a built-in tool. The approval is void once the Tool is another.
	// +optional
	// +k8s:optional
	Tool *ApprovalTool `json:"tool,omitempty"`
	// effect is the ToolEffect that was reserved for the call, with the account that is used; absent for a call without one.
	// +optional
	Effect string `json:"effect,omitempty"`
	// promptID is the prompt at the runtime.
	// +optional
	PromptID string `json:"promptID,omitempty"`
	// callIDDigest is the digest of the call's id.
	// +optional
	CallIDDigest string `json:"callIDDigest,omitempty"`
	// operationIDDigest is the digest of the operation's id.
	// +optional
	OperationIDDigest string `json:"operationIDDigest,omitempty"`
	// runtimeSessionUID is the session at the runtime.
	// +optional
	RuntimeSessionUID string `json:"runtimeSessionUID,omitempty"`
	// runtimeSessionGeneration is its generation.
	// +optional
	RuntimeSessionGeneration int64 `json:"runtimeSessionGeneration,omitempty"`
	// runtimeInstanceIDDigest is the digest of the runtime instance's id.
	// +optional
	RuntimeInstanceIDDigest string `json:"runtimeInstanceIDDigest,omitempty"`
	// supervisorBootIDDigest is the digest of the supervisor's boot id.
	// +optional
	SupervisorBootIDDigest string `json:"supervisorBootIDDigest,omitempty"`
	// controllerEpoch is the epoch of the controller.
	// +optional
	ControllerEpoch int64 `json:"controllerEpoch,omitempty"`
	// requestDigest is the digest of the request.
	// +optional
	RequestDigest string `json:"requestDigest,omitempty"`
}

// ApprovalTool is one state of a Tool. Its name is spec.targetTool.
type ApprovalTool struct {
	// namespace is empty for that of the task.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// uid tells the Tool from others that had its name.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// generation counts the changes of its spec.
	// +optional
	Generation int64 `json:"generation,omitempty"`
}

// ApprovalStatus is what was decided about an approval and what came of it.
type ApprovalStatus struct {
	// state is pending, approved, declined, expired or cancelled.
	// +optional
	// +k8s:optional
	State ApprovalState `json:"state,omitempty"`
	// argumentsExact is true if spec.targetArgsPreview shows the complete arguments: no secret is replaced in it and no text
	// is cut, so its digest is spec.targetArgsDigest. Otherwise the digest, and a decision, cover more than what is shown.
	// +optional
	ArgumentsExact bool `json:"argumentsExact,omitempty"`
	// requestedSeq is the event of the task that asked.
	// +optional
	RequestedSeq int64 `json:"requestedSeq,omitempty"`
	// decisionSeq is the event of the task that decided.
	// +optional
	DecisionSeq int64 `json:"decisionSeq,omitempty"`
	// decisionTime is when it was decided.
	// +optional
	// +k8s:optional
	DecisionTime *metav1.MicroTime `json:"decisionTime,omitempty"`
	// decisionReason is why, in words.
	// +optional
	DecisionReason string `json:"decisionReason,omitempty"`
	// decisionActor is the user name of whoever decided.
	// +optional
	DecisionActor string `json:"decisionActor,omitempty"`
	// executionOutcome is how the approved action went.
	// +optional
	// +k8s:optional
	ExecutionOutcome ApprovalOutcome `json:"executionOutcome,omitempty"`
	// executionReason explains the outcome, in words.
	// +optional
	ExecutionReason string `json:"executionReason,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ApprovalDecision is the body of a create on approvals/decision. The server
// fills in spec.approval before admission sees it, so that a policy can compare
// what was asked, who asked, and who decides.
type ApprovalDecision struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata; it is not used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the decision.
	// +required
	Spec ApprovalDecisionSpec `json:"spec"`
}

// ApprovalDecisionSpec is a decision.
type ApprovalDecisionSpec struct {
	// decision is approve, approved, decline or declined, in any case.
	// +required
	// +k8s:required
	Decision string `json:"decision"`
	// reason tells why, in at most 1024 characters.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	Reason string `json:"reason,omitempty"`
	// taskName must be the approval's task, where it is set.
	// +optional
	TaskName string `json:"taskName,omitempty"`
	// approval is what is decided about. The server sets it.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	Approval *ApprovalSpec `json:"approval,omitempty"`
}
