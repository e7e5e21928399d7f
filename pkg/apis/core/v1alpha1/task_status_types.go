// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TaskPhase is where a task is in its life.
// +enum
// +k8s:enum
type TaskPhase string

// Task phases. Succeeded, Failed and Cancelled are terminal.
const (
	// TaskPending is for a task that has not started: it is new, or waits for a slot, a session or a retry.
	TaskPending TaskPhase = "Pending"
	// TaskRunning is for a task whose run was started, even while it waits for an approval or for its children.
	TaskRunning TaskPhase = "Running"
	// TaskFinalizing is for a task whose work is done while what it changed in its repository is being published.
	TaskFinalizing TaskPhase = "Finalizing"
	// TaskSucceeded is final: the work was done.
	TaskSucceeded TaskPhase = "Succeeded"
	// TaskFailed is final: the work was not done; the condition Failed has the reason.
	TaskFailed TaskPhase = "Failed"
	// TaskScheduled is for a task with a schedule, which makes a task for each of its times.
	TaskScheduled TaskPhase = "Scheduled"
	// TaskCancelled is final: somebody cancelled the task.
	TaskCancelled TaskPhase = "Cancelled"
)

// TaskTerminating is what tables and summaries show in place of the phase of a task that is being deleted. It is in no object.
const TaskTerminating = "Terminating"

// Terminal reports whether a task in this phase never changes phase again.
func (p TaskPhase) Terminal() bool {
	return p == TaskSucceeded || p == TaskFailed || p == TaskCancelled
}

// Active reports whether a task in this phase counts as active.
func (p TaskPhase) Active() bool {
	return p == TaskPending || p == TaskRunning || p == TaskFinalizing
}

// TaskStatus is what happened to a task. Only the controller writes it, except for creationRevision, scheduleSince and the conditions
// CancelRequested, which tasks/cancel writes, and WaitingToStart with the reason NoController, which are the server's.
type TaskStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// creationRevision is the revision of the store at which the server created the task: tasks of one store are ordered
	// by it. The server sets it and keeps it; 0 is a task of an older server, which comes first.
	// +optional
	// +k8s:optional
	// +k8s:minimum=0
	CreationRevision int64 `json:"creationRevision,omitempty"`
	// phase is where the task is in its life: Pending, Running, Finalizing, Succeeded, Failed, Scheduled or Cancelled.
	// +optional
	// +k8s:optional
	Phase TaskPhase `json:"phase,omitempty"`
	// message explains the phase to people.
	// +optional
	Message string `json:"message,omitempty"`
	// startTime is when the first attempt started.
	// +optional
	// +k8s:optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// completionTime is when the task reached a terminal phase.
	// +optional
	// +k8s:optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
	// attempts is how many attempts were started.
	// +optional
	// +k8s:optional
	// +k8s:minimum=0
	Attempts int32 `json:"attempts,omitempty"`
	// nextAttemptTime is when the next attempt may start, while a retry waits.
	// +optional
	// +k8s:optional
	NextAttemptTime *metav1.Time `json:"nextAttemptTime,omitempty"`
	// iteration is the iteration of an autonomous task, from 0.
	// +optional
	// +k8s:optional
	// +k8s:minimum=0
	Iteration int32 `json:"iteration,omitempty"`
	// jobName is the name of the Job or process of the current or last attempt.
	// +optional
	JobName string `json:"jobName,omitempty"`
	// jobUID identifies that Job or process beyond its name.
	// +optional
	JobUID types.UID `json:"jobUID,omitempty"`
	// podName is the name of the Pod that the controller accepted for the current or last attempt; empty before that, and
	// where runs are processes.
	// +optional
	PodName string `json:"podName,omitempty"`
	// podUID identifies that Pod. Only its tokens are those of the task's worker.
	// +optional
	PodUID types.UID `json:"podUID,omitempty"`

	// agentName is the Agent that was resolved for the task.
	// +optional
	AgentName string `json:"agentName,omitempty"`
	// provider is the name of the Provider that was resolved for the task, and once the task has ended of the one that answered
	// last, which differs from it after a fallback.
	// +optional
	Provider string `json:"provider,omitempty"`
	// model is the model of that Provider.
	// +optional
	Model string `json:"model,omitempty"`
	// usage is what the task's model requests used; absent means that nothing is known.
	// +optional
	// +k8s:optional
	Usage *TaskUsage `json:"usage,omitempty"`

	// resultRef tells whether there is a result to read at tasks/result.
	// +optional
	// +k8s:optional
	ResultRef *TaskResultReference `json:"resultRef,omitempty"`
	// executionOutcome is the result of the work, decided before delivery ends.
	// +optional
	// +k8s:optional
	ExecutionOutcome *TaskExecutionOutcome `json:"executionOutcome,omitempty"`
	// execution describes the durable attempt of an agent task.
	// +optional
	// +k8s:optional
	Execution *TaskExecutionStatus `json:"execution,omitempty"`
	// delivery describes the publication of a task's changes.
	// +optional
	// +k8s:optional
	Delivery *TaskDelivery `json:"delivery,omitempty"`
	// executionWorkspace describes the sandbox of the task.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	ExecutionWorkspace *TaskExecutionWorkspaceStatus `json:"executionWorkspace,omitempty"`
	// harnessRuntime tells which runtime was chosen for an agent task.
	// +optional
	// +k8s:optional
	HarnessRuntime *TaskHarnessRuntime `json:"harnessRuntime,omitempty"`
	// agentExecutionBinding is the Agent as the task uses it. Once it is set, spec cannot be changed.
	// +optional
	// +k8s:optional
	AgentExecutionBinding *TaskAgentExecutionBinding `json:"agentExecutionBinding,omitempty"`
	// connectionBindings are the linked accounts that the task may use, frozen at its start.
	// +optional
	// +listType=map
	// +listMapKey=tool
	ConnectionBindings []TaskConnectionBinding `json:"connectionBindings,omitempty"`
	// delegation is the place of a delegated task in its tree. The server records it when the worker of the parent
	// creates the task, and nobody changes it but the server; absent for a task that was not delegated.
	// +optional
	// +k8s:optional
	Delegation *TaskDelegation `json:"delegation,omitempty"`
	// priorTaskUID is the UID of the task that spec.priorTaskRef names, as the server recorded it when this task was created. The worker of this
	// task may read what that one changed, and no other.
	// +optional
	PriorTaskUID types.UID `json:"priorTaskUID,omitempty"`
	// priorChangesDigest is the digest, sha256:…, of what that task changed, if that is made in the workspace before the work of this task
	// begins; empty where the commit that this task begins with has the changes, or there are none.
	// +optional
	PriorChangesDigest string `json:"priorChangesDigest,omitempty"`
	// approvalRequiredTools are the tools that need a person's approval in a fork, because they did in the task that it was
	// made from, by what was above that task. The server records them when the fork is created.
	// +optional
	// +listType=atomic
	ApprovalRequiredTools []string `json:"approvalRequiredTools,omitempty"`
	// hasChildren is set by the server before the worker of this task creates its first child, and stays.
	// +optional
	HasChildren bool `json:"hasChildren,omitempty"`
	// childTasks are the tasks that this task delegated.
	// +optional
	// +k8s:optional
	// +listType=map
	// +listMapKey=name
	ChildTasks []ChildTask `json:"childTasks,omitempty"`

	// webhookDelivered is set when webhookURL has answered with a 2xx status.
	// +optional
	WebhookDelivered bool `json:"webhookDelivered,omitempty"`
	// scheduleSince is when schedule or timeZone was changed or suspend was removed last. Times before it are not run. The server sets it.
	// +optional
	// +k8s:optional
	ScheduleSince *metav1.Time `json:"scheduleSince,omitempty"`
	// lastScheduleTime is the last time a schedule was due.
	// +optional
	// +k8s:optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
	// nextScheduleTime is the next time a schedule is due.
	// +optional
	// +k8s:optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`
	// conditions are Complete, Succeeded, Failed, JobCreated, WaitingToStart, WaitingForApproval, WaitingForChildren,
	// MissedSchedule and CancelRequested.
	// +optional
	// +k8s:optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// TaskDelegation is the place of a delegated task in the tree of its root, as the server recorded it.
type TaskDelegation struct {
	// parent is the name of the task that delegated this one.
	// +required
	Parent string `json:"parent"`
	// parentUID is the UID of that task.
	// +required
	ParentUID types.UID `json:"parentUID"`
	// root is the name of the task at the top of the tree.
	// +required
	Root string `json:"root"`
	// rootUID is the UID of that task.
	// +required
	RootUID types.UID `json:"rootUID"`
	// depth is how many tasks are above this one, from 1.
	// +required
	// +k8s:minimum=1
	Depth int32 `json:"depth"`
	// maxTasks is how many tasks may be delegated in the tree, as far as the Agents of the tasks above this one limit it;
	// absent means that they were not asked.
	// +optional
	// +k8s:optional
	// +k8s:minimum=1
	MaxTasks int32 `json:"maxTasks,omitempty"`
	// ancestors are the UIDs of the tasks above this one, from the root to the parent.
	// +optional
	// +listType=atomic
	Ancestors []types.UID `json:"ancestors,omitempty"`
	// requests are digests of what the tasks of the path were asked, from the root to this task: of the agent with its
	// prompt, or of the command.
	// +optional
	// +listType=atomic
	Requests []string `json:"requests,omitempty"`
	// approvalRequiredTools are the tools that need a person's approval in a task above this one, and so in this one.
	// +optional
	// +listType=atomic
	ApprovalRequiredTools []string `json:"approvalRequiredTools,omitempty"`
	// deadline is when the parent has to end, and with it this task; absent means no limit.
	// +optional
	// +k8s:optional
	Deadline *metav1.Time `json:"deadline,omitempty"`
	// detached is set once tasks/detach was called: the task goes on without its parent.
	// +optional
	Detached bool `json:"detached,omitempty"`
	// network is what the command of this task, if its type is container, may connect to. That is what programs of the
	// delegating agent may connect to; absent means None.
	// +optional
	// +k8s:optional
	Network SandboxNetwork `json:"network,omitempty"`
}

// TaskUsage sums what a task's model requests used. What a provider did not
// report is not counted as zero: unreportedRequests says how much is missing.
type TaskUsage struct {
	// inputTokens is the sum of reported input tokens; absent means that none were reported.
	// +optional
	// +k8s:optional
	InputTokens *int64 `json:"inputTokens,omitempty"`
	// outputTokens is the sum of reported output tokens; absent means that none were reported.
	// +optional
	// +k8s:optional
	OutputTokens *int64 `json:"outputTokens,omitempty"`
	// cachedInputTokens is the part of inputTokens read from a cache; absent means not reported.
	// +optional
	// +k8s:optional
	CachedInputTokens *int64 `json:"cachedInputTokens,omitempty"`
	// modelRequests is the number of model requests.
	// +optional
	ModelRequests int64 `json:"modelRequests,omitempty"`
	// unreportedRequests is the number of model requests without reported tokens.
	// +optional
	UnreportedRequests int64 `json:"unreportedRequests,omitempty"`
}

// TaskResultReference tells whether a result can be read.
type TaskResultReference struct {
	// available is set when tasks/result has a result.
	// +optional
	Available bool `json:"available,omitempty"`
}

// TaskExecutionOutcome is the result of the work, before its delivery.
type TaskExecutionOutcome struct {
	// phase is the terminal phase that the work itself earned.
	// +optional
	// +k8s:optional
	Phase TaskPhase `json:"phase,omitempty"`
	// attempt is the attempt that decided it.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`
	// resultRef tells whether the attempt left a result.
	// +optional
	// +k8s:optional
	ResultRef *TaskResultReference `json:"resultRef,omitempty"`
	// recordedAt is when it was decided.
	// +optional
	// +k8s:optional
	RecordedAt *metav1.Time `json:"recordedAt,omitempty"`
	// message explains it to people.
	// +optional
	Message string `json:"message,omitempty"`
}

// TaskExecutionState is the state of an agent task's attempt.
// +enum
// +k8s:enum
type TaskExecutionState string

// Execution states, in their usual order.
const (
	ExecutionQueued           TaskExecutionState = "Queued"
	ExecutionReserved         TaskExecutionState = "Reserved"
	ExecutionSessionStarting  TaskExecutionState = "SessionStarting"
	ExecutionPlanned          TaskExecutionState = "Planned"
	ExecutionSubmitting       TaskExecutionState = "Submitting"
	ExecutionSubmittedUnknown TaskExecutionState = "SubmittedUnknown"
	ExecutionAccepted         TaskExecutionState = "Accepted"
	ExecutionRunning          TaskExecutionState = "Running"
	ExecutionSettling         TaskExecutionState = "Settling"
	ExecutionSucceeded        TaskExecutionState = "Succeeded"
	ExecutionFailed           TaskExecutionState = "Failed"
	ExecutionCancelled        TaskExecutionState = "Cancelled"
	ExecutionOutcomeUnknown   TaskExecutionState = "OutcomeUnknown"
)

// TaskExecutionStatus is the durable attempt of an agent task.
type TaskExecutionStatus struct {
	// state is the state of the attempt.
	// +optional
	// +k8s:optional
	State TaskExecutionState `json:"state,omitempty"`
	// outcome is how the attempt ended.
	// +optional
	Outcome string `json:"outcome,omitempty"`
	// reason is one CamelCase word for state.
	// +optional
	Reason string `json:"reason,omitempty"`
	// attempt is the number of the attempt, from 1.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`
	// promptID identifies the prompt at the runtime.
	// +optional
	PromptID string `json:"promptID,omitempty"`
	// runtimePoolName is the RuntimePool that runs the attempt.
	// +optional
	RuntimePoolName string `json:"runtimePoolName,omitempty"`
	// runtimePoolUID is the UID of that RuntimePool.
	// +optional
	RuntimePoolUID types.UID `json:"runtimePoolUID,omitempty"`
	// agentRuntimeName is the AgentRuntime that runs the attempt.
	// +optional
	AgentRuntimeName string `json:"agentRuntimeName,omitempty"`
	// agentRuntimeUID is the UID of that AgentRuntime.
	// +optional
	AgentRuntimeUID types.UID `json:"agentRuntimeUID,omitempty"`
	// runtimeInstanceID is the instance of the runtime.
	// +optional
	RuntimeInstanceID string `json:"runtimeInstanceID,omitempty"`
	// sessionDigest is the digest of the session's configuration.
	// +optional
	SessionDigest string `json:"sessionDigest,omitempty"`
	// requestDigest is the digest of the request as it was submitted.
	// +optional
	RequestDigest string `json:"requestDigest,omitempty"`
	// controllerEpoch is the epoch of the controller that submitted the attempt.
	// +optional
	ControllerEpoch int64 `json:"controllerEpoch,omitempty"`
	// readCredentialResourceVersion is the frozen version of the source's read credential.
	// +optional
	ReadCredentialResourceVersion string `json:"readCredentialResourceVersion,omitempty"`
	// publicationReadCredentialResourceVersion is the frozen version of the publication's read credential.
	// +optional
	PublicationReadCredentialResourceVersion string `json:"publicationReadCredentialResourceVersion,omitempty"`
	// publicationCredentialResourceVersion is the frozen version of the publication's push credential.
	// +optional
	PublicationCredentialResourceVersion string `json:"publicationCredentialResourceVersion,omitempty"`
	// forgeCredentialResourceVersion is the frozen version of the code host's credential.
	// +optional
	ForgeCredentialResourceVersion string `json:"forgeCredentialResourceVersion,omitempty"`
	// message explains state to people.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	Message string `json:"message,omitempty"`
	// lastTransitionTime is when state last changed.
	// +optional
	// +k8s:optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
}

// TaskDeliveryState is the state of a publication.
// +enum
// +k8s:enum
type TaskDeliveryState string

// Delivery states. The first five are on the way; the others are terminal.
const (
	DeliveryValidating TaskDeliveryState = "Validating"
	DeliveryPreparing  TaskDeliveryState = "Preparing"
	DeliveryPrepared   TaskDeliveryState = "Prepared"
	DeliveryPublishing TaskDeliveryState = "Publishing"
	DeliveryVerifying  TaskDeliveryState = "Verifying"

	DeliveryNotRequested              TaskDeliveryState = "NotRequested"
	DeliveryVerifiedExact             TaskDeliveryState = "VerifiedExact"
	DeliveryDeliveredSuperseded       TaskDeliveryState = "DeliveredSuperseded"
	DeliveryReadValidated             TaskDeliveryState = "ReadValidated"
	DeliveryNoChange                  TaskDeliveryState = "NoChange"
	DeliveryCancelledBeforePublish    TaskDeliveryState = "CancelledBeforePublish"
	DeliveryReadOnlyWorkspaceModified TaskDeliveryState = "ReadOnlyWorkspaceModified"
	DeliveryConflict                  TaskDeliveryState = "DeliveryConflict"
	DeliveryCredentialBlocked         TaskDeliveryState = "CredentialBlocked" //nolint:gosec // a state, not a credential
	DeliveryPublicationOutcomeUnknown TaskDeliveryState = "PublicationOutcomeUnknown"
)

// Terminal reports whether the publication is over, or never begins.
func (s TaskDeliveryState) Terminal() bool {
	switch s {
	case DeliveryValidating, DeliveryPreparing, DeliveryPrepared, DeliveryPublishing, DeliveryVerifying:
		return false
	default:
		return true
	}
}

// Delivered reports whether a read of the publication branch has seen what was published.
func (s TaskDeliveryState) Delivered() bool {
	return s == DeliveryVerifiedExact || s == DeliveryDeliveredSuperseded
}

// TaskDelivery is the publication of a task's changes.
type TaskDelivery struct {
	// state is the state of the publication.
	// +optional
	// +k8s:optional
	State TaskDeliveryState `json:"state,omitempty"`
	// publicationID identifies the publication.
	// +optional
	PublicationID string `json:"publicationID,omitempty"`
	// sourceRepository is the identity of the source repository.
	// +optional
	// +k8s:optional
	SourceRepository *RepositoryIdentity `json:"sourceRepository,omitempty"`
	// publicationRepository is the identity of the publication repository.
	// +optional
	// +k8s:optional
	PublicationRepository *RepositoryIdentity `json:"publicationRepository,omitempty"`
	// branch is the publication branch.
	// +optional
	Branch string `json:"branch,omitempty"`
	// startingSHA is the commit that the work began from.
	// +optional
	StartingSHA string `json:"startingSHA,omitempty"`
	// remoteBeforeSHA is the head of the branch before the push: absent if unknown, empty if there was no branch.
	// +optional
	// +k8s:optional
	RemoteBeforeSHA *string `json:"remoteBeforeSHA,omitempty"`
	// treeSHA is the tree that is published.
	// +optional
	TreeSHA string `json:"treeSHA,omitempty"`
	// expectedCommitSHA is the commit that is published.
	// +optional
	ExpectedCommitSHA string `json:"expectedCommitSHA,omitempty"`
	// verifiedRemoteSHA is the head of the branch as it was read back.
	// +optional
	VerifiedRemoteSHA string `json:"verifiedRemoteSHA,omitempty"`
	// supersedingRemoteSHA is a later head that contains the published commit.
	// +optional
	SupersedingRemoteSHA string `json:"supersedingRemoteSHA,omitempty"`
	// artifactDigest is the digest of the published artifact.
	// +optional
	ArtifactDigest string `json:"artifactDigest,omitempty"`
	// prReceipt is the pull request, where one was asked for.
	// +optional
	// +k8s:optional
	PRReceipt *PullRequestReceipt `json:"prReceipt,omitempty"`
	// message explains state to people.
	// +optional
	Message string `json:"message,omitempty"`
}

// PullRequestReceipt is a pull request as the code host returned it.
type PullRequestReceipt struct {
	// id is the code host's identifier of the pull request.
	// +required
	// +k8s:required
	ID string `json:"id"`
	// number is its number in the repository.
	// +optional
	Number int64 `json:"number,omitempty"`
	// url is its page for people.
	// +optional
	URL string `json:"url,omitempty"`
	// state is the code host's word for its state.
	// +optional
	State string `json:"state,omitempty"`
	// baseBranch is the branch it is to be merged into.
	// +optional
	BaseBranch string `json:"baseBranch,omitempty"`
	// headBranch is the branch it comes from.
	// +optional
	HeadBranch string `json:"headBranch,omitempty"`
	// headSHA is the commit it is at.
	// +optional
	HeadSHA string `json:"headSHA,omitempty"`
}

// TaskHarnessRuntime tells which runtime was chosen for an agent task.
type TaskHarnessRuntime struct {
	// type is the kind of coding agent.
	// +optional
	Type string `json:"type,omitempty"`
	// contractVersion is the protocol that the runtime speaks.
	// +optional
	ContractVersion string `json:"contractVersion,omitempty"`
	// runtimeRef is the AgentRuntime, where the Agent names one.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	RuntimeRef *LocalReference `json:"runtimeRef,omitempty"`
	// profileDigest is the digest of the runtime's profile.
	// +optional
	ProfileDigest string `json:"profileDigest,omitempty"`
}

// TaskAgentExecutionBinding is the Agent as a task uses it.
type TaskAgentExecutionBinding struct {
	// agentName is the name of the Agent.
	// +optional
	AgentName string `json:"agentName,omitempty"`
	// agentNamespace is the namespace of the Agent.
	// +optional
	AgentNamespace string `json:"agentNamespace,omitempty"`
	// agentUID is the UID of the Agent.
	// +optional
	AgentUID types.UID `json:"agentUID,omitempty"`
	// agentGeneration is the generation of the Agent.
	// +optional
	AgentGeneration int64 `json:"agentGeneration,omitempty"`
	// configDigest is the digest of the Agent's resolved configuration.
	// +optional
	ConfigDigest string `json:"configDigest,omitempty"`
	// recordedAt is when the binding was recorded.
	// +optional
	// +k8s:optional
	RecordedAt *metav1.Time `json:"recordedAt,omitempty"`
}

// TaskConnectionBinding is a linked account that a task may use, frozen.
type TaskConnectionBinding struct {
	// tool is the name of the connector tool.
	// +required
	Tool string `json:"tool"`
	// connectorProvider is the name of the ConnectorProvider.
	// +optional
	ConnectorProvider string `json:"connectorProvider,omitempty"`
	// toolDigest is the SHA-256 of the definition of the tool, in hexadecimal.
	// +optional
	ToolDigest string `json:"toolDigest,omitempty"`
	// connection is the name of the Connection.
	// +optional
	Connection string `json:"connection,omitempty"`
	// connectionUID is the UID of the Connection.
	// +optional
	ConnectionUID types.UID `json:"connectionUID,omitempty"`
	// grantSequence is the consent that the binding relies on.
	// +optional
	GrantSequence int64 `json:"grantSequence,omitempty"`
	// authorityDigest is the non-secret digest of what that consent authorized.
	// +optional
	AuthorityDigest string `json:"authorityDigest,omitempty"`
}

// ChildTask is a task that a coordinator delegated.
type ChildTask struct {
	// name is the name of the child.
	// +required
	// +k8s:required
	Name string `json:"name"`
	// agent is the name of the child's Agent.
	// +optional
	Agent string `json:"agent,omitempty"`
	// phase is the phase of the child.
	// +optional
	// +k8s:optional
	Phase TaskPhase `json:"phase,omitempty"`
	// result is the result of a succeeded child, cut to 500 characters and "...".
	// +optional
	Result string `json:"result,omitempty"`
}
