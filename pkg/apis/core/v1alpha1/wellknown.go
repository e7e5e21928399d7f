// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// LabelPrefix starts every label and annotation that the platform owns.
const LabelPrefix = "platform.ai/"

// FinalizerCleanup keeps a Task until the controller has stopped its work.
const FinalizerCleanup = LabelPrefix + "cleanup"

// AnnotationAllowedHosts is an annotation of Secrets: the hosts to which the values may be sent, separated by commas, such
// as "api.example.com,*.example.org". Package egress defines the list (Hosts). A Secret without it may be sent anywhere,
// unless the operator requires it.
const AnnotationAllowedHosts = LabelPrefix + "allowed-hosts"

// LabelRecordRequests is a label of Namespaces: with Full or Digests, what chats and clients of the vendors' APIs ask models in the
// namespace is recorded, and what they answer; see RequestRecording.
const LabelRecordRequests = LabelPrefix + "record-requests"

// What names the store that an object or an answer belongs to. The identity of a store is a random UUID.
const (
	// HeaderStoreID is a header of every answer of the API: the identity of the store that gave it.
	HeaderStoreID = "Platform-Store-Id"
	// LabelStoreID is a label of Jobs: the identity of the store that has their Task.
	LabelStoreID = LabelPrefix + "store-id"
	// AnnotationStoreID and AnnotationStoreService are on the APIService: the identity of the one store that is served
	// under it, and the Service of the server that has it, as NAMESPACE/NAME. Only that server changes them.
	AnnotationStoreID      = LabelPrefix + "store-id"
	AnnotationStoreService = LabelPrefix + "store-service"
)

// LabelAgentRuntime is a label of RuntimePools that the controller made: the type of coding agents that they run.
const LabelAgentRuntime = LabelPrefix + "agent-runtime"

// Labels of tasks.
const (
	LabelTask           = LabelPrefix + "task"
	LabelTaskType       = LabelPrefix + "task-type"
	LabelParentTask     = LabelPrefix + "parent-task"
	LabelScheduledRun   = LabelPrefix + "scheduled-run"
	LabelCreatedBy      = LabelPrefix + "created-by"
	LabelAgentRole      = LabelPrefix + "agent-role"
	LabelCoordinator    = LabelPrefix + "coordinator"
	LabelDelegatedAgent = LabelPrefix + "delegated-agent"
	LabelIteration      = LabelPrefix + "iteration"
	LabelIterationGroup = LabelPrefix + "iteration-group"
	LabelPurpose        = LabelPrefix + "purpose"
	LabelManaged        = LabelPrefix + "managed"
	LabelChatSession    = LabelPrefix + "chat-session"
	LabelTransactionID  = LabelPrefix + "transaction-id"
	LabelAuthProfile    = LabelPrefix + "auth-profile"
)

// Annotations of tasks.
const (
	AnnotationCoordinationDepth = LabelPrefix + "coordination-depth"
	// AnnotationCreatedByUID is the UID of the task that created an agent. The server sets it; the label created-by has
	// the task's name.
	AnnotationCreatedByUID = LabelPrefix + "created-by-uid"
	// AnnotationParentTaskName is the exact name of the parent; the label may be shortened.
	AnnotationParentTaskName = LabelPrefix + "parent-task-name"
	AnnotationAutoRetry      = LabelPrefix + "auto-retry"
	AnnotationMaxRetries     = LabelPrefix + "max-retries"
	AnnotationRetryCount     = LabelPrefix + "retry-count"
	AnnotationOriginalPrompt = LabelPrefix + "original-prompt"
	// AnnotationPRMonitorName is the name that a user gave to a monitor of pull requests, on its task.
	AnnotationPRMonitorName = LabelPrefix + "pr-monitor-name"
	// AnnotationDisableCoordination turns off the coordination tools of a task.
	AnnotationDisableCoordination = LabelPrefix + "disable-coordination-tool-injection"

	AnnotationForkSourceTask       = LabelPrefix + "fork-source-task"
	AnnotationForkSourceSeq        = LabelPrefix + "fork-source-seq"
	AnnotationForkContextTruncated = LabelPrefix + "fork-context-truncated"
	// AnnotationForkSourceUID is the UID of the source, which tells it from a later task of its name.
	AnnotationForkSourceUID = LabelPrefix + "fork-source-uid"
	// AnnotationForkAgent is the agent of a fork when it was made: NAME, or NAMESPACE/NAME for one of another namespace.
	AnnotationForkAgent = LabelPrefix + "fork-agent"
	// AnnotationForkGates are the tools, separated by commas, whose calls needed an approval in the source because of tasks
	// above it. The server records them in status.approvalRequiredTools of the fork when it is created.
	AnnotationForkGates = LabelPrefix + "fork-approval-required-tools"
	// AnnotationForkKeyDigest is the SHA-256 of the idempotency key that made a fork.
	AnnotationForkKeyDigest = LabelPrefix + "fork-key-digest"
	// AnnotationForkCheckpointDigest is the SHA-256 of the checkpoint that a fork starts from.
	AnnotationForkCheckpointDigest = LabelPrefix + "fork-checkpoint-digest"

	// Annotations of the last decided approval of a task.
	AnnotationApprovalDecidedAt      = LabelPrefix + "approval-decided-at"
	AnnotationApprovalDecisionID     = LabelPrefix + "approval-decision-id"
	AnnotationApprovalDecisionStatus = LabelPrefix + "approval-decision-status"
	AnnotationApprovalDecisionSeq    = LabelPrefix + "approval-decision-seq"
	AnnotationApprovalResumedSeq     = LabelPrefix + "approval-resumed-seq"

	AnnotationTraceparent = LabelPrefix + "traceparent"
	AnnotationTracestate  = LabelPrefix + "tracestate"
	AnnotationBaggage     = LabelPrefix + "baggage"
)

// Labels and annotations of tasks that a RepositoryMonitor made. Whoever may create tasks can write them, too.
const (
	LabelRepositoryMonitor          = LabelPrefix + "repository-monitor"
	LabelMonitorRun                 = LabelPrefix + "monitor-run"
	AnnotationRepositoryMonitorName = LabelPrefix + "repository-monitor-name"
	AnnotationRepositoryMonitorUID  = LabelPrefix + "repository-monitor-uid"
	AnnotationMonitorRunID          = LabelPrefix + "monitor-run-id"
	AnnotationMonitorItemKind       = LabelPrefix + "monitor-item-kind"
	AnnotationMonitorItemNumber     = LabelPrefix + "monitor-item-number"
	AnnotationMonitorHeadSHA        = LabelPrefix + "monitor-head-sha"
	// AnnotationMonitorWork is the MonitorWorkAction that the task is for.
	AnnotationMonitorWork = LabelPrefix + "monitor-work-action"
	// AnnotationMonitorValidation is how the tool run_validation of a reviewer checks the head: a JSON object with image, a container image
	// with its digest, and commands, lines for a shell.
	AnnotationMonitorValidation = LabelPrefix + "monitor-validation"
	// AnnotationAgentReadOnly is "true" on a task whose agent changes nothing.
	AnnotationAgentReadOnly = LabelPrefix + "agent-read-only"
	// AnnotationGitHubRepository is the repository, OWNER/NAME, that a task is about.
	AnnotationGitHubRepository = LabelPrefix + "github-repository"
)

// GatewayPrefix starts the labels and annotations about gateways.
const GatewayPrefix = "gateway.platform.ai/"

// Labels and annotations of the tasks that answer events of gateways. Only the server and its controllers write them.
const (
	// The labels have names that are made fit for labels, the annotations have them whole.
	LabelGateway              = GatewayPrefix + "gateway"
	LabelGatewayBinding       = GatewayPrefix + "binding"
	LabelGatewayEvent         = GatewayPrefix + "event-id"
	LabelGatewaySession       = GatewayPrefix + "session"
	AnnotationGatewayName     = GatewayPrefix + "gateway-name"
	AnnotationGatewayBinding  = GatewayPrefix + "binding-name"
	AnnotationGatewayEvent    = GatewayPrefix + "event-id"
	AnnotationGatewayExternal = GatewayPrefix + "external-event-id"
	AnnotationGatewayDelivery = GatewayPrefix + "delivery-id"
	AnnotationGatewayMessage  = GatewayPrefix + "provider-message-id"
	// AnnotationGatewayInterim is "true" on a task that may reply before it has ended, because its adapter can post that.
	AnnotationGatewayInterim = GatewayPrefix + "interim-messages"
	// AnnotationGatewayApproval names, on a delivery, the approval that it is about.
	AnnotationGatewayApproval = GatewayPrefix + "approval"
)

// FinalizerConnection keeps a Connection until its tokens are revoked, as far as that can be, and removed.
const FinalizerConnection = LabelPrefix + "connection-custody"

// Labels of connections. The server sets them.
const (
	// LabelConnectionSubject is a digest of issuer and subject, 32 hexadecimal digits.
	LabelConnectionSubject = LabelPrefix + "connection-subject"
	// LabelConnectorProvider is the name of the ConnectorProvider.
	LabelConnectorProvider = LabelPrefix + "connector-provider"
)

// Marks of the Secrets of gateways. The annotation AnnotationGatewayName names the gateway that may use the Secret.
const (
	LabelGatewayInboundAuth   = GatewayPrefix + "inbound-auth"
	LabelGatewayOutboundAuth  = GatewayPrefix + "outbound-auth"
	AnnotationGatewayEndpoint = GatewayPrefix + "adapter-endpoint"
)

// Annotations that only the controller and the server write.
const (
	// AnnotationRequestedBy is the user name of a task's creator.
	AnnotationRequestedBy = LabelPrefix + "requested-by"
	// AnnotationRequestedByGroups is a JSON array of the groups that the user had then. Budgets of groups use it.
	AnnotationRequestedByGroups = LabelPrefix + "requested-by-groups"
	AnnotationRequestedBySource = LabelPrefix + "requested-by-source"
	AnnotationRequestedByStamp  = LabelPrefix + "requested-by-stamp"
	// AnnotationChatCall is on what a chat creates: the turn and the call that created it. A turn that a restart of the
	// server interrupted uses it to recognise what it has created already.
	AnnotationChatCall = LabelPrefix + "chat-call"

	// The annotations of the transaction in which a task was created. Its ID is also an annotation, named as the label.
	AnnotationContextTokenProfile      = LabelPrefix + "context-token-profile"
	AnnotationTransactionIssuer        = LabelPrefix + "transaction-issuer"
	AnnotationTransactionSubject       = LabelPrefix + "transaction-subject"
	AnnotationTransactionWorkload      = LabelPrefix + "transaction-requesting-workload"
	AnnotationTransactionScope         = LabelPrefix + "transaction-scope"
	AnnotationTransactionContextDigest = LabelPrefix + "transaction-context-digest"
	AnnotationRequesterContextDigest   = LabelPrefix + "requester-context-digest"

	// AnnotationTransactionTokenSecret names the Secret that has the task's own transaction token, under
	// TransactionTokenKey. The task owns the Secret.
	AnnotationTransactionTokenSecret = LabelPrefix + "transaction-token-secret"
	// AnnotationTransactionTokenPending is "true" on a task that does not start before it has that Secret, and
	// AnnotationTransactionTokenPendingSince is when that began, in RFC 3339.
	AnnotationTransactionTokenPending      = LabelPrefix + "transaction-token-pending"
	AnnotationTransactionTokenPendingSince = LabelPrefix + "transaction-token-pending-since"
)

// The Secret with the transaction token of a task.
const (
	// SecretTypeTransactionToken is the type of such a Secret.
	SecretTypeTransactionToken = LabelPrefix + "transaction-token"
	// TransactionTokenKey is its only key.
	TransactionTokenKey = "token"
)

// AnnotationRunID is, on a Job, the identity that the controller gave the run before the Job existed: status.jobUID
// of its Task, until the controller knows the Job's own UID.
const AnnotationRunID = LabelPrefix + "run-id"

// Reasons of the Kubernetes Events about tasks that are not reasons of conditions as well.
const (
	// EventReasonIteration: an iteration of an autonomous task was started.
	EventReasonIteration = "AutonomousIteration"
	// EventReasonScheduledRun: a run of a schedule was created.
	EventReasonScheduledRun = "ScheduledRun"
	// EventReasonWebhookRefused: the completion callback is not sent, because the address in spec.webhookURL may not be
	// reached.
	EventReasonWebhookRefused = "WebhookRefused"
	// EventReasonWebhookFailed: the receiver of the completion callback did not take it; it is sent again.
	EventReasonWebhookFailed = "WebhookFailed"
	// EventReasonMissedSchedule: runs of a schedule were not created, because their starting deadline had passed or a later one was due.
	EventReasonMissedSchedule = "MissedSchedule"
	// EventReasonPoolRebound: a task of type agent that waited for a place in one RuntimePool waits in another one now, because the program
	// of its agent was changed.
	EventReasonPoolRebound = "ACPRuntimePoolRebound"
	// EventReasonRetry: an attempt failed, and another one follows.
	EventReasonRetry = "RetryScheduled"
	// EventReasonApproval: the task waits for a person's decision.
	EventReasonApproval = "ApprovalRequested"
	// EventReasonDecided: what the task waited for was decided, or has expired. Its execution events say how.
	EventReasonDecided = "ApprovalDecided"
	// EventReasonFailed: the task failed for a reason that is not known.
	EventReasonFailed = "Failed"
)

// Condition types.
const (
	// ConditionAdmissionReady is True on a RuntimePool that takes tasks.
	ConditionAdmissionReady = "AdmissionReady"
	// ConditionQuotaReady is False on a RuntimePool of which a task waits for room in the quota or the task limit of its namespace.
	ConditionQuotaReady = "QuotaReady"
	// ConditionSchedulingReady is False on a RuntimePool with a Pod that no node takes.
	ConditionSchedulingReady = "SchedulingReady"
	// ConditionPodSecurityReady is False on a RuntimePool with a Pod that the rules of the namespace refuse.
	ConditionPodSecurityReady = "PodSecurityReady"
	// ConditionRolloutReady is False on a RuntimePool whose program or image cannot be used.
	ConditionRolloutReady = "RolloutReady"
	// ConditionComplete is True on a task in a terminal phase, however it ended.
	ConditionComplete = "Complete"
	// ConditionSucceeded is True on a task that ended in phase Succeeded, False on one that ended otherwise, and
	// absent until the task has ended. Its reason is that of ConditionComplete.
	ConditionSucceeded = "Succeeded"
	// ConditionFailed is True on a task that ended in phase Failed, False on one that succeeded or was cancelled, and
	// absent until the task has ended. Where it is True its reason says why, as the task's last event does.
	ConditionFailed = "Failed"
	// ConditionJobCreated is True while an attempt of a task has its Job or process.
	ConditionJobCreated = "JobCreated"
	// ConditionWaitingForApproval is True while a task is parked on an approval.
	ConditionWaitingForApproval = "WaitingForApproval"
	// ConditionWaitingForChildren is True on a task whose work is done while tasks that it delegated have not ended.
	ConditionWaitingForChildren = "WaitingForChildren"
	// ConditionWaitingToStart is True while a task, or the run of its attempt, waits for something before its work can
	// begin; its reason says for what.
	ConditionWaitingToStart = "WaitingToStart"
	// ConditionIterating is True while a task of an autonomous agent works in iterations, False while it is suspended
	// between two of them and after its end, and absent on other tasks.
	ConditionIterating = "Iterating"
	// ConditionMissedSchedule is True on a task with a schedule since runs of it were missed, and False since one was in time again. It is
	// absent before any was missed.
	ConditionMissedSchedule = "MissedSchedule"
	// ConditionRequesterVerified is False on a task whose recorded requester is not the one that this server sealed, for
	// example because its key was lost. It is absent on all others.
	ConditionRequesterVerified = "RequesterVerified"
	// ConditionCancelRequested is True once tasks/cancel was called.
	ConditionCancelRequested = "CancelRequested"
	// ConditionReady is True on an Agent, Provider or Skill that can be used, and on a connection that has tokens.
	ConditionReady = "Ready"
	// ConditionAccepted: the spec of a gateway, of its class, of a binding or of a connector provider is usable.
	ConditionAccepted = "Accepted"
	// ConditionResolvedRefs: what a gateway, a binding or a connector provider refers to was found.
	ConditionResolvedRefs = "ResolvedRefs"
	// ConditionConnected: the adapter of a gateway answered, and can do what its class asks for.
	ConditionConnected = "Connected"
	// ConditionProgrammed: events are routed by a binding.
	ConditionProgrammed = "Programmed"
	// ConditionProviderResolved: the ConnectorProvider of a connection is there and can be used.
	ConditionProviderResolved = "ProviderResolved"
	// ConditionScopesGranted: what was granted at the consent for a connection covers its mode, and the provider is still the one that the
	// consent was given for.
	ConditionScopesGranted = "ScopesGranted"
	// ConditionSandboxReady is True on an Agent whose programs (code_exec) are confined to a sandbox where they run, and
	// False if they are refused there, or run without one. Agents that run no programs lack it.
	ConditionSandboxReady = "SandboxReady"
	// ConditionCanDelegate is False on an Agent that has coordination.enabled and names nobody in coordination.allowedAgents,
	// so that its tasks may delegate to no Agents but those that they create, and True if it names any. Other Agents lack it.
	ConditionCanDelegate = "CanDelegate"
	// ConditionRepositoryAccessible is True on a RepositoryMonitor whose own credential has read its repository. Deliveries of webhooks are told
	// to no other.
	ConditionRepositoryAccessible = "RepositoryAccessible"
	// ConditionAvailable is True on a Tool whose endpoint answers, and False on a Provider while it cools down.
	ConditionAvailable = "Available"
	// ConditionExhausted is True on a Budget that is used up, or whose rest is reserved.
	ConditionExhausted = "Exhausted"
	// ConditionContentSizeWarning is True on a Skill with very long content.
	ConditionContentSizeWarning = "ContentSizeWarning"
)

// Service accounts of workers, one per level of trust, in the task's namespace.
const (
	// ServiceAccountAIWorker runs tasks of type ai.
	ServiceAccountAIWorker = "platform-ai-worker"
	// ServiceAccountAgentWorker runs tasks of type agent.
	ServiceAccountAgentWorker = "platform-agent-worker"
	// ServiceAccountContainerWorker runs tasks of type container.
	ServiceAccountContainerWorker = "platform-container-worker"
	// ClusterRoleWorker is the role that the three accounts are bound to. Both hosts refuse to bind it to others.
	ClusterRoleWorker = "platform-worker"
)

// Keys of a worker's user extras. Where they are present, the user may act on
// exactly that task and no other.
const (
	ExtraTaskName      = GroupName + "/task-name"
	ExtraTaskUID       = GroupName + "/task-uid"
	ExtraTaskNamespace = GroupName + "/task-namespace"
	// ExtraTaskRun is status.jobUID of the task when the credential was made; only that run is meant. Credentials that were
	// made before this key existed lack it.
	ExtraTaskRun = GroupName + "/task-run"
)

// ResourceExecutionEventsControlled is the virtual subresource whose create
// permission allows appending terminal task events and approval decisions.
const ResourceExecutionEventsControlled = "controlled"
