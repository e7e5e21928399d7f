// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MaxPromptBytes is how long a prompt and a system prompt of a task may be, in bytes.
const MaxPromptBytes = 1 << 20

// TaskType says what runs a task.
// +enum
// +k8s:enum
type TaskType string

// Task types.
const (
	// TaskTypeContainer runs a command.
	TaskTypeContainer TaskType = "container"
	// TaskTypeAI runs a prompt against a model with tools.
	TaskTypeAI TaskType = "ai"
	// TaskTypeAgent runs a coding agent in its own runtime.
	TaskTypeAgent TaskType = "agent"
)

// ConcurrencyPolicy says what a schedule does while an earlier run is active.
// +enum
// +k8s:enum
type ConcurrencyPolicy string

// Concurrency policies.
const (
	// ConcurrencyAllow starts the run beside the active one.
	ConcurrencyAllow ConcurrencyPolicy = "Allow"
	// ConcurrencyForbid skips the run.
	ConcurrencyForbid ConcurrencyPolicy = "Forbid"
)

// ProviderType names a model vendor's wire protocol.
// +enum
// +k8s:enum
type ProviderType string

// Provider types.
const (
	ProviderAnthropic   ProviderType = "anthropic"
	ProviderOpenAI      ProviderType = "openai"
	ProviderAzureOpenAI ProviderType = "azure-openai"
)

// +genclient
// +genclient:method=AppendEvent,verb=create,subresource=events,input=ExecutionEvent,result=ExecutionEvent
// +genclient:method=AppendEvents,verb=create,subresource=events,input=ExecutionEventList,result=ExecutionEventList
// +genclient:method=GetResult,verb=get,subresource=result,result=TaskResult
// +genclient:method=ListArtifacts,verb=get,subresource=artifacts,result=TaskArtifactList
// +genclient:method=Cancel,verb=create,subresource=cancel,input=TaskCancellation,result=Task
// +genclient:method=Detach,verb=create,subresource=detach,input=TaskDetachment,result=Task
// +genclient:method=Fork,verb=create,subresource=fork,input=TaskFork,result=TaskFork
// +genclient:method=GetPlan,verb=get,subresource=plan,result=TaskPlan
// +genclient:method=UpdatePlan,verb=create,subresource=plan,input=TaskPlan,result=TaskPlan
// +genclient:method=SendMessage,verb=create,subresource=messages,input=TaskMessage,result=TaskMessage
// +genclient:method=Reply,verb=create,subresource=reply,input=TaskReply,result=TaskReply
// +genclient:method=GetInbox,verb=get,subresource=inbox,result=TaskInbox
// +genclient:method=ReadInbox,verb=create,subresource=inbox,input=TaskInbox,result=TaskInbox
// +genclient:method=CallCodeHost,verb=create,subresource=codehost,input=TaskCodeHostCall,result=TaskCodeHostCall
// +genclient:method=CallConnector,verb=create,subresource=connectortool,input=TaskConnectorCall,result=TaskConnectorCall
// +genclient:method=GetRecording,verb=get,subresource=recording,result=TaskRecording
// +genclient:method=GetCalls,verb=get,subresource=calls,result=TaskCallList
// +genclient:method=GetTrace,verb=get,subresource=trace,result=TaskTrace
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// Task is one unit of work: a command, a prompt, or a run of a coding agent.
type Task struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what to do.
	// +required
	Spec TaskSpec `json:"spec"`
	// status is what happened, written by the controller.
	// +optional
	Status TaskStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// TaskList is a list of tasks.
type TaskList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the tasks.
	Items []Task `json:"items"`
}

// TaskSpec is what a task is to do.
type TaskSpec struct {
	// type says what runs the task: container, ai or agent. It cannot be changed.
	// +required
	// +k8s:required
	// +k8s:immutable
	Type TaskType `json:"type"`

	// image is the container image of a container task; empty means the general worker image.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	Image string `json:"image,omitempty"`
	// command is the program of a container task and its first arguments.
	// +optional
	// +k8s:optional
	// +listType=atomic
	Command []string `json:"command,omitempty"`
	// args are the arguments after command.
	// +optional
	// +k8s:optional
	// +listType=atomic
	Args []string `json:"args,omitempty"`
	// env is added to the worker's environment; the controller's own variables win.
	// +optional
	// +k8s:optional
	// +k8s:eachVal=+k8s:opaqueType
	// +k8s:listType=map
	// +k8s:listMapKey=name
	// +listType=map
	// +listMapKey=name
	// +patchStrategy=merge
	// +patchMergeKey=name
	Env []corev1.EnvVar `json:"env,omitempty" patchStrategy:"merge" patchMergeKey:"name"`
	// resources are the compute resources of the worker.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	// secretRef is a Secret that is mounted at /secrets/task.
	// +optional
	// +k8s:optional
	SecretRef *NamespacedReference `json:"secretRef,omitempty"`
	// execution places the worker; unset values come from the Agent.
	// +optional
	// +k8s:optional
	Execution *TaskExecutionSpec `json:"execution,omitempty"`

	// timeout limits the task in wall-clock time, for example "30m". It must be positive. The default of agent tasks is 30m.
	// +optional
	// +k8s:optional
	Timeout *Duration `json:"timeout,omitempty"`
	// priority orders the tasks of a namespace that wait until fewer tasks run, from 0 to 1000; higher goes first, and of equal
	// ones the task that has waited longest. Whatever the priorities, slots that become free go round the namespaces. A task gains 25 for each 30 seconds that it waits, up to 1000, and goes before
	// all that have waited less once it has waited for 5 minutes, so none waits for ever. It waits from its creation, for
	// a retry from when that is due, and for another iteration from the end of the one before. If a task waits for tasks that it
	// delegated, one of these goes before all others of the namespace. Tasks of one session keep the order of their creation. While a
	// task waits, its priority can be changed.
	// +optional
	// +default=500
	// +k8s:optional
	// +k8s:minimum=0
	// +k8s:maximum=1000
	Priority *int32 `json:"priority,omitempty"`
	// retryPolicy says how failed attempts are repeated; without it they are not.
	// +optional
	// +k8s:optional
	RetryPolicy *RetryPolicy `json:"retryPolicy,omitempty"`
	// webhookURL is called with a POST when the task is complete.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=2048
	WebhookURL string `json:"webhookURL,omitempty"`

	// sessionRef is the session whose history the task reads and continues.
	// +optional
	// +k8s:optional
	SessionRef *TaskSessionReference `json:"sessionRef,omitempty"`
	// agentRef is the Agent that does the work; an agent task needs it.
	// +optional
	// +k8s:optional
	AgentRef *NamespacedReference `json:"agentRef,omitempty"`
	// prompt is what the agent or model is asked, in at most 1 MiB.
	// +optional
	// +k8s:optional
	Prompt string `json:"prompt,omitempty"`
	// ai configures an ai task.
	// +optional
	// +k8s:optional
	AI *TaskAI `json:"ai,omitempty"`
	// agentRuntime overrides the Agent's runtime values for this task.
	// +optional
	// +k8s:optional
	AgentRuntime *TaskAgentRuntime `json:"agentRuntime,omitempty"`
	// workspace is the repository that the task works on.
	// +optional
	// +k8s:optional
	Workspace *TaskWorkspace `json:"workspace,omitempty"`
	// priorTaskRef is an earlier task of the same namespace and repository, with intent write. This task waits until that one has ended, begins
	// with the same commit, and has its changes made before the work begins. Where this task publishes to the branch to which that one has
	// published, it begins with the published commit. It is not for tasks of type agent, which begin with a branch instead.
	// +optional
	// +k8s:optional
	PriorTaskRef *NamespacedReference `json:"priorTaskRef,omitempty"`

	// schedule makes the task a template that is run by cron: five fields, or a descriptor such as "@hourly". Where the clocks of timeZone
	// are set forward, a time of the day that they skip is as long after the change as it would be without it: 02:30 is at 03:30, and
	// midnight at 01:00. A time that occurs twice is run twice. A changed schedule starts at the change.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	Schedule string `json:"schedule,omitempty"`
	// timeZone is the IANA name of the time zone of schedule.
	// +optional
	// +default="UTC"
	// +k8s:optional
	// +k8s:maxLength=64
	TimeZone string `json:"timeZone,omitempty"`
	// concurrencyPolicy says whether a run starts while an earlier one is active: Allow or Forbid.
	// +optional
	// +default="Forbid"
	// +k8s:optional
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
	// startingDeadlineSeconds is how late, in seconds, a missed run may still start.
	// +optional
	// +default=100
	// +k8s:optional
	// +k8s:minimum=0
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`
	// successfulRunsHistoryLimit is how many succeeded runs of a schedule are kept.
	// +optional
	// +default=3
	// +k8s:optional
	// +k8s:minimum=0
	SuccessfulRunsHistoryLimit *int32 `json:"successfulRunsHistoryLimit,omitempty"`
	// failedRunsHistoryLimit is how many failed runs of a schedule are kept.
	// +optional
	// +default=1
	// +k8s:optional
	// +k8s:minimum=0
	FailedRunsHistoryLimit *int32 `json:"failedRunsHistoryLimit,omitempty"`
	// suspend stops new scheduled runs, or new iterations of an autonomous task.
	// +optional
	// +k8s:optional
	Suspend bool `json:"suspend,omitempty"`

	// requestedBy is who asked for the task. Only the server sets it, and it cannot be changed.
	// +optional
	// +k8s:optional
	// +k8s:immutable
	RequestedBy *TaskRequester `json:"requestedBy,omitempty"`
	// transaction is the transaction the request was made in. Only the server sets it, and it cannot be changed.
	// +optional
	// +k8s:optional
	// +k8s:immutable
	Transaction *TaskTransaction `json:"transaction,omitempty"`
}

// RetryPolicy says how failed attempts are repeated.
type RetryPolicy struct {
	// maxRetries is how many attempts may follow the first one.
	// +optional
	// +k8s:optional
	// +k8s:minimum=0
	MaxRetries int32 `json:"maxRetries,omitempty"`
	// backoffMultiplier is the factor between one delay and the next, at least 1.
	// +optional
	// +default=2
	// +k8s:optional
	BackoffMultiplier *float64 `json:"backoffMultiplier,omitempty"`
	// initialDelay is the delay before the first retry; unset means 10s. A delay never exceeds 5m.
	// +optional
	// +k8s:optional
	InitialDelay *Duration `json:"initialDelay,omitempty"`
}

// TaskSessionReference names a task's session and how the task uses it.
type TaskSessionReference struct {
	// name is the name of the session.
	// +required
	// +k8s:required
	// +k8s:format=k8s-long-name
	Name string `json:"name"`
	// create makes the session when it does not exist.
	// +optional
	// +k8s:optional
	Create bool `json:"create,omitempty"`
	// append adds the task's messages to the session when it is complete.
	// +optional
	// +default=true
	// +k8s:optional
	Append *bool `json:"append,omitempty"`
	// maxMessages is how many of the newest messages are read. If it is the default, 50, the agent's session.maxMessages counts.
	// +optional
	// +default=50
	// +k8s:optional
	// +k8s:minimum=1
	MaxMessages *int32 `json:"maxMessages,omitempty"`
	// throughMessageId is the last message that belongs to the history; empty means the newest.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	ThroughMessageID string `json:"throughMessageId,omitempty"`
	// promptIncluded says that the prompt is already the last message of the session.
	// +optional
	// +k8s:optional
	PromptIncluded bool `json:"promptIncluded,omitempty"`
}

// TaskAI configures a task of type ai.
type TaskAI struct {
	// providerRef is the Provider of the model; unset means the Agent's.
	// +optional
	// +k8s:optional
	ProviderRef *NamespacedReference `json:"providerRef,omitempty"`
	// provider is the type of the Provider that is used without a providerRef.
	// +optional
	// +k8s:optional
	Provider ProviderType `json:"provider,omitempty"`
	// model is the model's name; empty means the Agent's, or else the Provider's default.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=256
	Model string `json:"model,omitempty"`
	// prompt is used where spec.prompt is empty. It has at most 1 MiB.
	// +optional
	// +k8s:optional
	Prompt string `json:"prompt,omitempty"`
	// systemPrompt replaces the Agent's system prompt. It has at most 1 MiB.
	// +optional
	// +k8s:optional
	SystemPrompt string `json:"systemPrompt,omitempty"`
	// temperature is the sampling temperature, from 0 to 2.
	// +optional
	// +k8s:optional
	Temperature *float64 `json:"temperature,omitempty"`
	// maxTokens limits the output of one model call, in tokens.
	// +optional
	// +k8s:optional
	// +k8s:minimum=1
	MaxTokens *int32 `json:"maxTokens,omitempty"`
	// tokenBudget limits the tokens of all model requests of the task, of all its attempts and of all tasks below it,
	// input and output together. Before a request, its maxTokens and the input of the request before it, or an
	// estimate of its own input for the first, are reserved; afterwards what the vendor reports is counted. The run
	// fails with the reason TokenBudgetExhausted when a request does not fit, and is not retried. Unset means no limit.
	// +optional
	// +k8s:optional
	// +k8s:minimum=1
	TokenBudget *int64 `json:"tokenBudget,omitempty"`
	// skills are added to those of the Agent.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=64
	// +listType=atomic
	Skills []SkillReference `json:"skills,omitempty"`
	// tools are the names of tools that are added to those of the Agent.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=128
	// +listType=set
	// +k8s:listType=set
	Tools []string `json:"tools,omitempty"`
}

// TaskAgentRuntime overrides values of an Agent's runtime for one task.
type TaskAgentRuntime struct {
	// maxTurns limits the prompt loop, from 1 to 1000 turns.
	// +optional
	// +k8s:optional
	// +k8s:minimum=1
	// +k8s:maximum=1000
	MaxTurns *int32 `json:"maxTurns,omitempty"`
	// allowedTools are the tools that may be used: names that the coding agent gives its tools, or kinds of tools (see spec.kind of
	// ToolCall), in any case; bash means all commands. Unset means the Agent's default; an empty list allows none. Like disallowedTools
	// and allowBash they decide what the agent asks for; what it does without asking is up to the sandbox.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=128
	// +listType=atomic
	AllowedTools []string `json:"allowedTools,omitzero"`
	// disallowedTools are tools that may not be used even where allowedTools has them.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=128
	// +listType=atomic
	DisallowedTools []string `json:"disallowedTools,omitempty"`
	// allowBash says whether shell commands are allowed; unset means the Agent's default.
	// +optional
	// +k8s:optional
	AllowBash *bool `json:"allowBash,omitempty"`
}

// TaskRequester is the verified person or workload that asked for a task.
// +structType=atomic
type TaskRequester struct {
	// subject is the subject claim of the requester's token.
	// +optional
	Subject string `json:"subject,omitempty"`
	// issuer is the issuer claim of the requester's token.
	// +optional
	Issuer string `json:"issuer,omitempty"`
	// username is the name the server knows the requester by.
	// +optional
	Username string `json:"username,omitempty"`
	// email is the requester's address, where the token has one.
	// +optional
	Email string `json:"email,omitempty"`
	// groups are the requester's groups, where the token has them.
	// +optional
	// +listType=atomic
	Groups []string `json:"groups,omitempty"`
	// roles are the requester's roles, where the token has them.
	// +optional
	// +listType=atomic
	Roles []string `json:"roles,omitempty"`
}

// TaskTransaction is the transaction that a task was requested in, taken from
// a verified transaction token.
// +structType=atomic
type TaskTransaction struct {
	// profile is the kind of token, for example transaction-token.
	// +optional
	Profile string `json:"profile,omitempty"`
	// id is the transaction's identifier.
	// +optional
	ID string `json:"id,omitempty"`
	// issuer issued the token.
	// +optional
	Issuer string `json:"issuer,omitempty"`
	// audience is who the token is meant for.
	// +optional
	// +listType=atomic
	Audience []string `json:"audience,omitempty"`
	// subject is on whose behalf the transaction runs.
	// +optional
	Subject string `json:"subject,omitempty"`
	// requestingWorkload is the workload that asked for the token.
	// +optional
	RequestingWorkload string `json:"requestingWorkload,omitempty"`
	// scope is the scope claim as it stands in the token.
	// +optional
	Scope string `json:"scope,omitempty"`
	// scopes are the parts of scope.
	// +optional
	// +listType=atomic
	Scopes []string `json:"scopes,omitempty"`
	// contextDigest is the digest of the transaction context.
	// +optional
	ContextDigest string `json:"contextDigest,omitempty"`
	// requesterContextDigest is the digest of the requester context.
	// +optional
	RequesterContextDigest string `json:"requesterContextDigest,omitempty"`
	// context is the transaction context, without secrets.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	// +patchStrategy=replace
	Context *apiextensionsv1.JSON `json:"context,omitempty" patchStrategy:"replace"`
}
