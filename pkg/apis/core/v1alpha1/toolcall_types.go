// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// LabelRequireApproval marks a ValidatingAdmissionPolicy. With the value "true", a call of a tool that the policy objects to is
// not refused: a person must approve it first. Its bindings need the action Audit.
const LabelRequireApproval = "platform.ai/require-approval"

// ToolSource says where a tool comes from.
type ToolSource string

// Sources of tools.
const (
	// ToolSourceBuiltin is a tool of the platform.
	ToolSourceBuiltin ToolSource = "BuiltIn"
	// ToolSourceCustom is a Tool object.
	ToolSourceCustom ToolSource = "Custom"
	// ToolSourceAgent is a tool that a coding agent has of its own.
	ToolSourceAgent ToolSource = "Agent"
)

// ToolCallVerdict is what policies decide about a call.
type ToolCallVerdict string

// Verdicts.
const (
	// ToolCallAllowed means that the call may be made.
	ToolCallAllowed ToolCallVerdict = "Allowed"
	// ToolCallApprovalRequired means that the call may be made once a person has approved it.
	ToolCallApprovalRequired ToolCallVerdict = "ApprovalRequired"
	// ToolCallDenied means that the call must not be made.
	ToolCallDenied ToolCallVerdict = "Denied"
)

// ToolCallAction is what follows from one finding of a policy.
type ToolCallAction string

// Actions.
const (
	// ToolCallDeny refuses the call.
	ToolCallDeny ToolCallAction = "Deny"
	// ToolCallRequireApproval makes the call wait for a person.
	ToolCallRequireApproval ToolCallAction = "RequireApproval"
	// ToolCallWarn lets the call pass and warns.
	ToolCallWarn ToolCallAction = "Warn"
	// ToolCallAudit lets the call pass and records the finding.
	ToolCallAudit ToolCallAction = "Audit"
)

// +genclient
// +genclient:onlyVerbs=create
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ToolCall is a call of a tool that a model wants to make. Workers create one before each call; it is judged by the
// ValidatingAdmissionPolicies that match creates of toolcalls, answered with a verdict, and not stored. Other
// callers, and dry runs (dryRun=All), are answered in the same way, and nothing is recorded.
type ToolCall struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata; only the namespace is used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is the call.
	Spec ToolCallSpec `json:"spec"`
	// status is the verdict. The server sets it.
	// +optional
	Status ToolCallStatus `json:"status,omitempty"`
}

// ToolCallSpec is a call and what the server knows about it. A client sets taskName, toolName, kind, callId, arguments,
// sensitive and policies; the server sets everything else, whatever the client sent there.
type ToolCallSpec struct {
	// taskName is the task that makes the call, in the namespace of the request. Policies see it empty, and a task without UID
	// and type, if a model makes the call in a request to one of the vendors' APIs; the user of the request is then the caller.
	// +required
	// +k8s:required
	// +k8s:format=k8s-long-name
	TaskName string `json:"taskName"`
	// toolName is the tool, by the name that the model knows. A coding agent that does not name its tool calls it by its kind.
	// +required
	// +k8s:required
	// +k8s:maxLength=253
	ToolName string `json:"toolName"`
	// kind is set for a call that a coding agent makes with a tool of its own: read, edit, delete, move, search, execute, think,
	// fetch, switch_mode or other, in the words of the Agent Client Protocol. Commands are of kind execute, however the agent
	// names its tool. It is empty for every other call. Only tasks of type agent make such calls.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=32
	Kind string `json:"kind"`
	// callId is the id that the model gave to the call.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	CallID string `json:"callId,omitempty"`
	// arguments is the argument object, exactly as the tool will receive it. It has no schema, so policies use the
	// typed members below: those of the built-in tool, or strings, numbers and booleans.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	// +patchStrategy=replace
	Arguments *apiextensionsv1.JSON `json:"arguments,omitempty" patchStrategy:"replace"`
	// sensitive are secrets of the run that occur in arguments, at most 64. Messages of policies that quote them, or a
	// part of them, are redacted before they are answered or recorded. Policies do not see this field, and the answer
	// does not have it.
	// +optional
	// +listType=atomic
	Sensitive []string `json:"sensitive,omitempty"`
	// policies are ValidatingAdmissionPolicies and ValidatingAdmissionPolicyBindings that judge the call in place of those
	// of the server, to try them before they are stored. A policy without a binding here denies. Only dry runs (dryRun=All)
	// of callers other than workers may have them, at most 32. They may not refer to parameters (paramKind) or ask an
	// authorizer, and know only the name of the namespace. Policies do not see this field, and the answer does not have it.
	// +optional
	// +listType=atomic
	// +k8s:opaqueType
	Policies []apiextensionsv1.JSON `json:"policies,omitempty"`

	// task is the task that makes the call. The server sets it.
	// +optional
	// +k8s:opaqueType
	Task ToolCallTask `json:"task,omitempty"`
	// source is where the tool comes from. The server sets it.
	// +optional
	Source ToolSource `json:"source,omitempty"`
	// class is spec.brokeredToolClass of the Tool object: read, write or coordination; empty if it has none, and for
	// built-in tools. The server sets it.
	// +optional
	Class BrokeredToolClass `json:"class,omitempty"`
	// strings are the strings in arguments by their path, such as name, order.customer or items.0.name; a dot within a name
	// is written as \. (backslash, dot). Expressions ask first whether a value is there:
	// !('name' in object.spec.strings) || object.spec.strings['name'] == 'x'. The server sets it, as it sets numbers and
	// booleans.
	// +optional
	Strings map[string]string `json:"strings"`
	// numbers are the numbers in arguments by their path, such as order.total.
	// +optional
	Numbers map[string]float64 `json:"numbers"`
	// booleans are the booleans in arguments by their path.
	// +optional
	Booleans map[string]bool `json:"booleans"`
	// codeExec is set for calls of code_exec. The server sets it from arguments, as it does for the following members.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	CodeExec *CodeExecArguments `json:"codeExec,omitempty"`
	// fileRead is set for calls of file_read.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	FileRead *FileReadArguments `json:"fileRead,omitempty"`
	// fileWrite is set for calls of file_write.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	FileWrite *FileWriteArguments `json:"fileWrite,omitempty"`
	// webFetch is set for calls of web_fetch.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	WebFetch *WebFetchArguments `json:"webFetch,omitempty"`
	// webSearch is set for calls of web_search.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	WebSearch *WebSearchArguments `json:"webSearch,omitempty"`
}

// ToolCallTask is what policies may know about the task of a call.
type ToolCallTask struct {
	// uid is the UID of the task.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// type is the type of the task.
	// +optional
	Type TaskType `json:"type,omitempty"`
	// agentName is the agent of the task; empty for a task without one.
	// +optional
	AgentName string `json:"agentName,omitempty"`
	// labels are the labels of the task.
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// attempt is the attempt that makes the call, from 1.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`
	// createdBy is the name of the user who created the task, as the server recorded it; without a task, that of the caller.
	// +optional
	CreatedBy string `json:"createdBy,omitempty"`
	// requestedBy is the verified identity that the task acts for, if there is one.
	// +optional
	RequestedBy *TaskRequester `json:"requestedBy,omitempty"`
}

// CodeExecArguments are the arguments of code_exec.
type CodeExecArguments struct {
	// language is the language of the program, as the model wrote it, such as python or bash.
	Language string `json:"language"`
	// code is the program.
	Code string `json:"code"`
	// timeoutSeconds is the time limit in seconds; 0 means the default.
	TimeoutSeconds int64 `json:"timeoutSeconds"`
}

// FileReadArguments are the arguments of file_read.
type FileReadArguments struct {
	// path is the file, as the model wrote it.
	Path string `json:"path"`
	// offset is where reading begins, in bytes.
	Offset int64 `json:"offset"`
	// limit is how much is read, in bytes; 0 means the default.
	Limit int64 `json:"limit"`
}

// FileWriteArguments are the arguments of file_write.
type FileWriteArguments struct {
	// path is the file, as the model wrote it.
	Path string `json:"path"`
	// content is what is written.
	Content string `json:"content"`
	// mode is write or append; empty means write.
	Mode string `json:"mode"`
	// createDirs says whether missing folders are made.
	CreateDirs bool `json:"createDirs"`
}

// WebFetchArguments are the arguments of web_fetch.
type WebFetchArguments struct {
	// url is the address, as the model wrote it.
	URL string `json:"url"`
	// host is the host of url in lower case, without the port; empty if url cannot be parsed.
	Host string `json:"host"`
	// maxChars is how much is returned, in characters; 0 means the default.
	MaxChars int64 `json:"maxChars"`
	// raw says whether the page is returned as it is.
	Raw bool `json:"raw"`
}

// WebSearchArguments are the arguments of web_search.
type WebSearchArguments struct {
	// query is what is searched for.
	Query string `json:"query"`
	// limit is the number of results; 0 means the default.
	Limit int64 `json:"limit"`
}

// ToolCallStatus is the verdict of all policies.
type ToolCallStatus struct {
	// verdict is Allowed, ApprovalRequired or Denied.
	// +optional
	Verdict ToolCallVerdict `json:"verdict,omitempty"`
	// findings are the faults that policies found, the gravest first.
	// +optional
	// +listType=atomic
	Findings []ToolCallFinding `json:"findings,omitempty"`
}

// ToolCallFinding is one fault that a policy found with a call.
type ToolCallFinding struct {
	// action is what follows: Deny, RequireApproval, Warn or Audit.
	Action ToolCallAction `json:"action"`
	// policy is the ValidatingAdmissionPolicy; empty if something else refused the call, such as a webhook.
	// +optional
	Policy string `json:"policy,omitempty"`
	// binding is the ValidatingAdmissionPolicyBinding.
	// +optional
	Binding string `json:"binding,omitempty"`
	// message is the policy's reason.
	// +optional
	Message string `json:"message,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// TaskCallList is the answer of a get on tasks/calls: the calls of tools that the task's workers asked for, whatever was
// decided about them. At most 4 MiB of calls are kept of a task; later ones are missing. They go with the task.
type TaskCallList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata holds the name and the namespace of the task.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// calls are the calls, by attempt.
	// +listType=atomic
	Calls []TaskCall `json:"calls"`
}

// TaskCall is a call of a tool as the model asked for it.
type TaskCall struct {
	// attempt is the attempt of the task that asked, from 1.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`
	// toolName is the tool, by the name that the model knows.
	ToolName string `json:"toolName"`
	// kind is that of a call of a coding agent's own tool; empty for every other call.
	// +optional
	Kind string `json:"kind,omitempty"`
	// callId is the id that the model gave to the call.
	// +optional
	CallID string `json:"callId,omitempty"`
	// arguments is the argument object, without secrets.
	// +optional
	// +k8s:opaqueType
	// +patchStrategy=replace
	Arguments *apiextensionsv1.JSON `json:"arguments,omitempty" patchStrategy:"replace"`
	// redacted is set if secrets were removed from the arguments, so that they are not those that the tool received.
	// +optional
	Redacted bool `json:"redacted,omitempty"`
}
