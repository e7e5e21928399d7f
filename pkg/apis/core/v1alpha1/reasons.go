// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// This file is the one list of reasons: each is one CamelCase word that stands in a condition, in the content of an event
// or in what a worker leaves at its end. The values are API: they are never changed, and clients may match on them.
// Each says when it occurs and, where there is anything to do, what a user can do.
//
// What ends an attempt leads to another attempt as long as spec.retryPolicy allows one, and ends the task after the last.
// TimedOut, and the refusals before a run, end the task at once.

// Reasons of the end of a task: of its conditions Complete, Succeeded and Failed, and of its terminal event.
const (
	// ReasonTaskSucceeded: the work is done and its result is stored.
	ReasonTaskSucceeded = "TaskSucceeded"
	// ReasonTaskFailed: the task failed. Condition Failed and the terminal event have a more exact reason where one is known.
	ReasonTaskFailed = "TaskFailed"
	// ReasonTaskCancelled: the task was cancelled or deleted before it ended. Create it again to run it.
	ReasonTaskCancelled = "TaskCancelled"
	// ReasonCancelled is in the terminal event of a task that tasks/cancel ended.
	ReasonCancelled = "Cancelled"
	// ReasonDeleted is in the terminal event of a task that was deleted before it ended.
	ReasonDeleted = "Deleted"
	// ReasonTimedOut: the work took longer than spec.timeout. Raise the timeout, or give the task less to do.
	ReasonTimedOut = "TimedOut"
)

// Reasons of tasks that are refused before they run: the task, or what it refers to, has to be changed. The task fails
// without an attempt; correct it, and create it again. Objects that are missing are waited for, for a few seconds.
const (
	// ReasonRefused: this installation does not run such a task; the message says which part, and what is allowed.
	ReasonRefused = "Refused"
	// ReasonNotSupported: the task or its Agent uses a field that this version does not implement. Remove the field that
	// the message names. Also in condition Ready of an Agent.
	ReasonNotSupported = "NotSupported"
	// ReasonInvalidSchedule: spec.schedule or spec.timeZone cannot be read.
	ReasonInvalidSchedule = "InvalidSchedule"
	// ReasonUnknownType: this version does not know spec.type. Use ai or container.
	ReasonUnknownType = "UnknownType"
	// ReasonRuntimeNotAvailable: the coding agent of a task of type agent cannot be run here: its program is not installed, or in a
	// cluster no image is named for it or the image lacks its program. The message says how to install or name it; otherwise use type ai or
	// container. Of a registered runtime: it is not ready, cannot be used for tasks, could not be reached, or refused the task; the message
	// says which.
	ReasonRuntimeNotAvailable = "RuntimeNotAvailable"
	// ReasonIncompatibleAgent: the Agent has a runtime, and tasks of type ai need one with a provider. Name another Agent.
	ReasonIncompatibleAgent = "IncompatibleAgent"
	// ReasonNamespaceIsolationViolation: a reference names an object of another namespace, which this installation does
	// not allow. Copy the object into the namespace of the task.
	ReasonNamespaceIsolationViolation = "NamespaceIsolationViolation"
	// ReasonNoPrompt: a task of type ai has neither a prompt nor one in its session.
	ReasonNoPrompt = "NoPrompt"
	// ReasonNoProvider: neither the task nor its Agent names a Provider.
	ReasonNoProvider = "NoProvider"
	// ReasonProviderUnsupported: the Provider is of a type that this version does not support. Use one of those that
	// kubectl explain provider.spec.type names.
	ReasonProviderUnsupported = "ProviderUnsupported"
	// ReasonProviderInvalid: the Provider lacks what its type needs, or its address cannot be used. Correct the Provider. For
	// ProviderResolved=False of a connection: its ConnectorProvider is not accepted, or is being deleted.
	ReasonProviderInvalid = "ProviderInvalid"
	// ReasonNoModel: neither the task, its Agent nor the Provider names a model.
	ReasonNoModel = "NoModel"
	// ReasonAmbiguousProvider: a provider type is named and several Providers have it. Name one with providerRef.
	ReasonAmbiguousProvider = "AmbiguousProvider"
	// ReasonCommandRequired: a container task has no spec.command.
	ReasonCommandRequired = "CommandRequired"
	// ReasonImageNotUsed: spec.image is set where runs are processes of the server's machine, which use no image. Remove
	// it, or run the task in a cluster.
	ReasonImageNotUsed = "ImageNotUsed"
	// ReasonSandboxUnavailable: the run would execute programs, and its machine cannot confine them (Linux 5.13 with
	// Landlock and seccomp is required). The operator can update the kernel, or allow --sandbox=off.
	ReasonSandboxUnavailable = "SandboxUnavailable"
	// ReasonHostCommandsNotAllowed: a container task on a server that was started without --allow-host-commands.
	ReasonHostCommandsNotAllowed = "HostCommandsNotAllowed"
	// ReasonToolUnavailable: a tool cannot work where the task would run, because something is not configured there. The
	// message says what; remove the tool, or ask the operator for it.
	ReasonToolUnavailable = "ToolUnavailable"
	// ReasonToolInvalid: a Tool's definition cannot be used; the message names the field. Correct the Tool, or remove it
	// from the tools of the task and its Agent.
	ReasonToolInvalid = "ToolInvalid"

	// ReasonTransactionTokenPendingTimeout: the task did not get its transaction token within two minutes after its
	// creation, because the server or the run that delegated the task ended before. Create the task, or delegate it, again.
	ReasonTransactionTokenPendingTimeout = "TransactionTokenPendingTimeout"
	// ReasonTransactionTokenLost: the Secret with the task's transaction token is gone, or is not the one that the server
	// made for the task. Create the task again.
	ReasonTransactionTokenLost = "TransactionTokenLost"
	// ReasonRequesterUnverified: the record of who asked for the task is not sealed by this server, for example because its key
	// of requesters was lost. Restore the key, or create the task again.
	ReasonRequesterUnverified = "RequesterUnverified"

	// ReasonCoordinationDisabled: the task was delegated, and the Agent of its parent may not delegate. Set
	// coordination.enabled in that Agent.
	ReasonCoordinationDisabled = "CoordinationDisabled"
	// ReasonDepthExceeded: the task was delegated deeper than coordination.maxDepth of its parent's Agent allows.
	ReasonDepthExceeded = "DepthExceeded"
	// ReasonTreeLimitReached: a tree has as many delegated tasks as coordination.maxTasks of its Agents or --tree-tasks of the
	// server allows. It is a cause of the refusal of a task, whose message says which limit and how high it is.
	ReasonTreeLimitReached = "TreeLimitReached"
	// ReasonAgentNotAllowed: the task was delegated to an Agent that is not in coordination.allowedAgents of its parent's
	// Agent.
	ReasonAgentNotAllowed = "AgentNotAllowed"
	// ReasonParentEnded: the task that delegated this one ended before this one could start.
	ReasonParentEnded = "ParentEnded"

	// ReasonAgentNotFound: the Agent that the task names does not exist.
	ReasonAgentNotFound = "AgentNotFound"
	// ReasonProviderNotFound: the Provider does not exist, or none has the type that is named.
	ReasonProviderNotFound = "ProviderNotFound"
	// ReasonAgentRuntimeNotFound: the AgentRuntime that the Agent names does not exist.
	ReasonAgentRuntimeNotFound = "AgentRuntimeNotFound"
	// ReasonSkillNotFound: a Skill does not exist.
	ReasonSkillNotFound = "SkillNotFound"
	// ReasonSecretNotFound: a Secret does not exist.
	ReasonSecretNotFound = "SecretNotFound"
	// ReasonSecretKeyNotFound: the Secret exists but lacks the key that is referred to.
	ReasonSecretKeyNotFound = "SecretKeyNotFound"
	// ReasonSecretHostNotAllowed: the annotation platform.ai/allowed-hosts of a Secret does not permit the use that a
	// Provider, a Tool or the task makes of it, or the Secret has none and the operator requires one.
	ReasonSecretHostNotAllowed = "SecretHostNotAllowed"
	// ReasonConfigMapNotFound: a ConfigMap with a prompt or a skill does not exist.
	ReasonConfigMapNotFound = "ConfigMapNotFound"
	// ReasonConfigMapKeyNotFound: the ConfigMap exists but lacks the key that is referred to.
	ReasonConfigMapKeyNotFound = "ConfigMapKeyNotFound"
	// ReasonSessionNotFound: the Session does not exist, and the reference does not ask for it to be made.
	ReasonSessionNotFound = "SessionNotFound"
)

// Reasons that a worker gives for how its run ended, in its termination file, in WorkerFailed and, unless the host knows
// better, in the end of the attempt.
const (
	// ReasonCompleted: the work is done and its result was accepted.
	ReasonCompleted = "Completed"
	// ReasonWorkerMisconfigured: the worker was started with flags or an environment it cannot use; an error of the
	// installation.
	ReasonWorkerMisconfigured = "WorkerMisconfigured"
	// ReasonWorkerStopped: the worker was told to stop before its work was done.
	ReasonWorkerStopped = "WorkerStopped"
	// ReasonNotBegun: the worker got no credentials, for example because the server died while starting it, and did nothing. The
	// same attempt is started again.
	ReasonNotBegun = "NotBegun"
	// ReasonServerUnreachable: the API server did not answer, or refused the worker's token, for too long.
	ReasonServerUnreachable = "ServerUnreachable"
	// ReasonTaskReplaced: the task was deleted, or re-created under the same name, while the worker ran.
	ReasonTaskReplaced = "TaskReplaced"
	// ReasonRepositoryUnreachable: the server of the task's repository could not be reached, or did not answer properly. Another
	// attempt may succeed.
	ReasonRepositoryUnreachable = "RepositoryUnreachable"
	// ReasonRepositoryNotRead: the task's repository, or the branch, ref or commit, does not exist, or is not shown with the
	// credential of spec.workspace.readCredentialRef.
	ReasonRepositoryNotRead = "RepositoryNotRead"
	// ReasonWorkspaceRefused: the repository contains what is not written into a run's folder, such as a folder named .git, or is
	// larger than the run may store; the message says what.
	ReasonWorkspaceRefused = "WorkspaceRefused"
	// ReasonPriorTaskUnusable: what the task that spec.priorTaskRef names has changed cannot be applied; the message says why.
	ReasonPriorTaskUnusable = "PriorTaskUnusable"
	// ReasonNoChanges: the task was to change its repository (spec.workspace.intent is write), and its run changed nothing.
	ReasonNoChanges = "NoChanges"
	// ReasonPublicationRefused: what the run changed is not published, because the task does not allow it (spec.workspace), or because no
	// commit can be made of it; the message says what.
	ReasonPublicationRefused = "PublicationRefused"
	// ReasonDeliveryConflict: the publication branch is not where it must be, or its server refuses to move it. Nothing was overwritten.
	ReasonDeliveryConflict = "DeliveryConflict"
	// ReasonCredentialBlocked: a credential of the publication is missing, was changed since the run began, or is refused.
	ReasonCredentialBlocked = "CredentialBlocked" //nolint:gosec // a reason, not a credential
	// ReasonPublicationOutcomeUnknown: the server of the publication was asked to move the branch, and whether it did cannot be seen.
	ReasonPublicationOutcomeUnknown = "PublicationOutcomeUnknown"
	// ReasonPullRequestNotOpened: the branch was published, and the pull request that the task asked for (spec.workspace.createPR) is not
	// there, or is not open; the message says why.
	ReasonPullRequestNotOpened = "PullRequestNotOpened"
	// ReasonReferenceInvalid: what the task refers to was deleted or changed since it was admitted, and cannot be used.
	ReasonReferenceInvalid = "ReferenceInvalid"
	// ReasonCommandFailed: the command of a container task ended with an exit code other than 0; the message has it, and
	// the log says more.
	ReasonCommandFailed = "CommandFailed"
	// ReasonCommandNotRun: the command of a container task could not be started, for example because its program does not exist.
	ReasonCommandNotRun = "CommandNotRun"
	// ReasonAgentFailed: the coding agent of a task of type agent ended without an answer, answered with an error, or did not speak the
	// protocol; the message says what, and the log says more.
	ReasonAgentFailed = "AgentFailed"
	// ReasonAgentRefused: the coding agent refused to do what its prompt asks for.
	ReasonAgentRefused = "AgentRefused"
	// ReasonAgentLimitReached: the coding agent stopped before it was done, because its model wrote as much as it may at once, or was
	// asked as often as the agent allows.
	ReasonAgentLimitReached = "AgentLimitReached"
	// ReasonRuntimeReplaced: the registered runtime is another instance, has another profile, or has lost the session of the task, so
	// that what its agent did is not known. Another attempt may succeed.
	ReasonRuntimeReplaced = "RuntimeReplaced"
	// ReasonRuntimeLeaseLost: the lease of the prompt at a registered runtime ended before the agent did, because the worker and the
	// runtime did not reach each other. The runtime has stopped the agent. Another attempt may succeed.
	ReasonRuntimeLeaseLost = "RuntimeLeaseLost"
	// ReasonMaxIterations: the model still asked for tools after the last turn that it had. Raise maxIterations.
	ReasonMaxIterations = "MaxIterations"
	// ReasonToolCallsRepeated: the model called tools with the same arguments again and again, and used up its turns with
	// that. Describe the task more precisely, or see in the events why the calls did not help.
	ReasonToolCallsRepeated = "ToolCallsRepeated"
	// ReasonTokenBudgetExhausted: the next model request may exceed spec.ai.tokenBudget of the task, or of a task above
	// it. The task is not retried. Raise the budget, or give the task less to do.
	ReasonTokenBudgetExhausted = "TokenBudgetExhausted" //nolint:gosec // no credential
	// ReasonBudgetExhausted: the next model request may exceed a Budget of the namespace; the message names it and says
	// when it begins again. The task is not retried. Wait for that time, or have the budget raised. Also the reason of
	// an event that records the refusal, of condition Exhausted of a Budget, and of the error (429) that a chat or a
	// client of the vendors' APIs gets.
	ReasonBudgetExhausted = "BudgetExhausted"
	// ReasonBudgetUnpriced: a Budget limits the cost of the model request in a currency, and no price in that currency is
	// in force for its model. The task is not retried. Add the price to spec.prices of the Provider. Also the reason of an
	// event that records the refusal, and of the error (403) that a chat or a client of the vendors' APIs gets.
	ReasonBudgetUnpriced = "BudgetUnpriced"
	// ReasonBudgetWarning is in an event that records that a Budget has reached one of its spec.warnPercent.
	ReasonBudgetWarning = "BudgetWarning"
	// ReasonBudgetAvailable is the reason of condition Exhausted of a Budget that is not used up.
	ReasonBudgetAvailable = "BudgetAvailable"
	// ReasonBlankAnswer: the model answered with neither text nor a tool call, twice.
	ReasonBlankAnswer = "BlankAnswer"
	// ReasonApprovalNotAsked: a call needs a person's approval, and the question could not be stored.
	ReasonApprovalNotAsked = "ApprovalNotAsked"
	// ReasonResultNotSubmitted: the work is done, and its result did not reach the API server. The events up to its
	// end are there.
	ReasonResultNotSubmitted = "ResultNotSubmitted"
	// ReasonInternalError: an error of the platform itself; the log of the run says more.
	ReasonInternalError = "InternalError"

	// ReasonModelRequestUnrecorded: the server refused the event that a model request starts, so the request was not sent. Look
	// for an admission policy or webhook that denies events of type ModelRequestStarted.
	ReasonModelRequestUnrecorded = "ModelRequestUnrecorded"
	// ReasonModelAuthenticationFailed: the vendor refused the API key. Correct the Provider's Secret.
	ReasonModelAuthenticationFailed = "ModelAuthenticationFailed"
	// ReasonModelQuotaExhausted: the vendor's account has no credit left.
	ReasonModelQuotaExhausted = "ModelQuotaExhausted"
	// ReasonModelContextTooLong: the conversation is longer than the model takes. Shorten it, or use another model.
	ReasonModelContextTooLong = "ModelContextTooLong"
	// ReasonModelRequestInvalid: the vendor refused the request, for example an unknown model or option.
	ReasonModelRequestInvalid = "ModelRequestInvalid"
	// ReasonModelRateLimited: the vendor's rate limit held for longer than the worker repeats a request.
	ReasonModelRateLimited = "ModelRateLimited"
	// ReasonModelServerError: the vendor answered with errors of its own.
	ReasonModelServerError = "ModelServerError"
	// ReasonModelUnreachable: no connection to the vendor could be made. Look at baseURL and the network.
	ReasonModelUnreachable = "ModelUnreachable"
	// ReasonModelStreamCut: the vendor's answer broke off.
	ReasonModelStreamCut = "ModelStreamCut"
	// ReasonModelResponseMalformed: the vendor's answer could not be read.
	ReasonModelResponseMalformed = "ModelResponseMalformed"
)

// Reasons that come from where a run is: what became of its process or Pod. They end an attempt; what keeps one from
// beginning is the reason of condition WaitingToStart meanwhile. Kubernetes and container runtimes use the same words
// where they have one.
const (
	// ReasonWorkerLost: the run cannot be found again, so nobody knows how it ended.
	ReasonWorkerLost = "WorkerLost"
	// ReasonWorkerFailed: the run ended with an error and left no reason.
	ReasonWorkerFailed = "WorkerFailed"
	// ReasonWorkerKilled: a signal ended the run, and it left no report.
	ReasonWorkerKilled = "WorkerKilled"
	// ReasonDiskLimitExceeded: the files of a run on this machine, or deleted files that its command kept open on any host, needed
	// more disk than a run may have. Write less, or ask the operator to raise --run-disk-limit.
	ReasonDiskLimitExceeded = "DiskLimitExceeded"
	// ReasonOOMKilled: the run needed more memory than it may have. Raise resources.limits.memory.
	ReasonOOMKilled = "OOMKilled"
	// ReasonEvicted: the cluster took the Pod off its node, for example for want of disk or memory there.
	ReasonEvicted = "Evicted"
	// ReasonPreempted: the Pod made room for one of higher priority.
	ReasonPreempted = "Preempted"
	// ReasonNodeLost: the node of the Pod is gone, or has not answered for too long.
	ReasonNodeLost = "NodeLost"
	// ReasonImagePullFailed: an image cannot be pulled. Correct its name, or the credentials of the registry.
	ReasonImagePullFailed = "ImagePullFailed"
	// ReasonUnschedulable: no node takes the Pod. Look at resources, nodeSelector, tolerations and affinity.
	ReasonUnschedulable = "Unschedulable"
	// ReasonMountFailed: a volume cannot be mounted, for example that of a Secret which is gone.
	ReasonMountFailed = "MountFailed"
	// ReasonPodNotCreated: the cluster refused to create the Pod; the message has its words, for example a policy's.
	ReasonPodNotCreated = "PodNotCreated"
	// ReasonPodNotAccepted: the Pod that is there is not what the run's Job makes; somebody else made or changed it.
	ReasonPodNotAccepted = "PodNotAccepted"
	// ReasonContainerConfigInvalid: the container cannot be made as it is configured, for example for want of a Secret.
	ReasonContainerConfigInvalid = "ContainerConfigInvalid"
	// ReasonStartFailed: the process or container could not be started.
	ReasonStartFailed = "StartFailed"
	// ReasonStartTimedOut: the worker did not begin in time, and nothing says why.
	ReasonStartTimedOut = "StartTimedOut"
	// ReasonQuotaExceeded: the quota of the namespace leaves no room for the Pod. The task waits for it without a limit: raise
	// the quota, or wait for other runs to end.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonImagePulling: the images of the Pod are being pulled, with nothing wrong so far. Only in WaitingToStart.
	ReasonImagePulling = "ImagePulling"
	// ReasonMounting: volumes and network of the Pod are being set up, with nothing wrong so far. Only in WaitingToStart.
	ReasonMounting = "Mounting"
)

// Reasons of condition WaitingToStart before an attempt is recorded. While the run of an attempt waits, the reason is
// one of those that come from where the run is.
const (
	// ReasonNamespaceTaskLimitReached: the namespace runs as many tasks as it may. The task runs when one of them ends.
	ReasonNamespaceTaskLimitReached = "NamespaceTaskLimitReached"
	// ReasonTaskLimitReached: the installation runs as many tasks as it may. The task runs when one of them ends.
	ReasonTaskLimitReached = "TaskLimitReached"
	// ReasonTransactionTokenPending: the task does not have its transaction token yet. It runs when the token is there.
	ReasonTransactionTokenPending = "TransactionTokenPending"
	// ReasonChildLimitReached: as many tasks of the same parent run as coordination.maxConcurrentChildren of its Agent
	// allows. The task runs when one of them ends.
	ReasonChildLimitReached = "ChildLimitReached"
	// ReasonRuntimePoolFull: the RuntimePool of the task's coding agent has as many sessions or running prompts as its spec.capacity allows,
	// or takes no tasks now. The task runs when it is its turn.
	ReasonRuntimePoolFull = "RuntimePoolFull"
	// ReasonPriorTaskActive: the task that spec.priorTaskRef names has not ended. The task runs when it has.
	ReasonPriorTaskActive = "PriorTaskActive"
	// ReasonSessionBusy: an earlier task of the same session has not ended; tasks of a session run one after the other.
	ReasonSessionBusy = "SessionBusy"
	// ReasonNoController: no controller has looked at the task; the server writes this. The operator should see whether
	// the controller runs, and watches the namespace.
	ReasonNoController = "NoController"
	// ReasonWaitingOver is the reason of the condition when it is False: the task no longer waits.
	ReasonWaitingOver = "WaitingOver"
)

// Reasons of other conditions of a task, and of its events about limits.
const (
	// ReasonJobStarting is for JobCreated=False: an attempt is recorded, and its run is about to be started.
	ReasonJobStarting = "Starting"
	// ReasonJobCreated is for JobCreated=True: the attempt has its Job or process.
	ReasonJobCreated = "Created"
	// ReasonJobRetrying is for JobCreated=False: the attempt failed and another will follow.
	ReasonJobRetrying = "Retrying"
	// ReasonIterationOver is for JobCreated=False: the iteration of an autonomous task is over and another will follow.
	ReasonIterationOver = "IterationOver"
	// ReasonIterating is for Iterating=True: the task works in iterations until its agent reports that the goal is complete.
	ReasonIterating = "Iterating"
	// ReasonSuspended is for Iterating=False: no other iteration begins. Unset spec.suspend to continue.
	ReasonSuspended = "Suspended"
	// ReasonJobEnded is for JobCreated, Iterating and WaitingForChildren, if False: the task is over. JobCreated of a task that
	// failed has the reason of the failure instead.
	ReasonJobEnded = "Ended"
	// ReasonApprovalPending is for WaitingForApproval=True: a call waits for a person. Approve or decline it.
	ReasonApprovalPending = "ApprovalPending"
	// ReasonApprovalDecided is for WaitingForApproval=False: no call waits any longer.
	ReasonApprovalDecided = "ApprovalDecided"
	// ReasonChildrenWaitForApproval is for WaitingForApproval=False: the task itself waits for nobody, but all that it delegated
	// and that has not ended does, so its timeout does not run. Approve or decline what waits below it.
	ReasonChildrenWaitForApproval = "ChildrenWaitForApproval"
	// ReasonChildrenActive is for WaitingForChildren=True: the work is done, and delegated tasks have not ended. Wait for
	// them, cancel them, or detach them.
	ReasonChildrenActive = "ChildrenActive"
	// ReasonChildrenEnded is for WaitingForChildren=False: all delegated tasks have ended or were detached.
	ReasonChildrenEnded = "ChildrenEnded"
	// ReasonDetached is in the event of a task that tasks/detach separated from its parent.
	ReasonDetached = "Detached"
	// ReasonCancelRequested is for CancelRequested: tasks/cancel was called.
	ReasonCancelRequested = "CancelRequested"
	// ReasonRateLimited is in the event that says that a model request waits for the rateLimit of its Provider or Agent.
	ReasonRateLimited = "RateLimited"
	// ReasonEventLimitReached is in the one event, for each limit, that says that events of the task are refused, or delayed
	// for a rate.
	ReasonEventLimitReached = "EventLimitReached"
	// ReasonContentLimitReached is in the one event, for each limit, that says that artifacts, results or log of the task are
	// refused, or delayed for a rate.
	ReasonContentLimitReached = "ContentLimitReached"
)

// Reasons of conditions of Agents, Providers, Tools, Skills and AgentRuntimes.
const (
	// ReasonReady is for Ready=True of an Agent: all that it refers to was found.
	ReasonReady = "Ready"
	// ReasonAgentsAllowed is for CanDelegate=True of an Agent: coordination.allowedAgents names agents.
	ReasonAgentsAllowed = "AgentsAllowed"
	// ReasonNoAgentAllowed is for CanDelegate=False of an Agent: coordination.allowedAgents is empty, which admits none.
	ReasonNoAgentAllowed = "NoAgentAllowed"
	// ReasonConfined is for SandboxReady=True of an Agent: the message says what the kernel of the server's machine offers.
	ReasonConfined = "Confined"
	// ReasonSandboxOff is for SandboxReady=False of an Agent: the operator lets programs run without a sandbox (--sandbox=off).
	ReasonSandboxOff = "SandboxOff"
	// ReasonNodeDecides is for SandboxReady=Unknown of an Agent: runs are Pods, and the kernel of each one's node confines its
	// programs or refuses them. The event WorkerStarted of a run says what does.
	ReasonNodeDecides = "NodeDecides"
	// ReasonValidationSucceeded is for Ready=True of a Provider: its API key was found, and accepted if spec.probe is set. It is for
	// Ready=True of an AgentRuntime, too: the runtime answers, and can do what is declared.
	ReasonValidationSucceeded = "ValidationSucceeded"
	// ReasonValidationFailed is for Ready=False: the object refers to what is not there, or contradicts itself. The message
	// names the first problem.
	ReasonValidationFailed = "ValidationFailed"
	// ReasonCoolDownOver is for Available=True of a Provider: it is asked in its turn again, because a request succeeded or
	// its pause is over. While it is False, the reason is that of the failed request, such as ModelRateLimited.
	ReasonCoolDownOver = "CoolDownOver"
	// ReasonContentValid is for Ready=True of a Skill.
	ReasonContentValid = "ContentValid"
	// ReasonContentTooLarge is for ContentSizeWarning of a Skill: it is so long that it crowds a prompt. Shorten it.
	ReasonContentTooLarge = "ContentTooLarge"
	// ReasonEndpointReachable is for Available=True of a Tool: its endpoint answers.
	ReasonEndpointReachable = "EndpointReachable"
	// ReasonEndpointUnreachable is for Available=False of a Tool and Ready=False of an AgentRuntime: its endpoint does not answer; the
	// message says how.
	ReasonEndpointUnreachable = "EndpointUnreachable"
	// ReasonRuntimeUnhealthy is for Ready=False of an AgentRuntime: the runtime says that it cannot work now. Look at its own logs.
	ReasonRuntimeUnhealthy = "RuntimeUnhealthy"
	// ReasonProtocolViolated is for Ready=False of an AgentRuntime, and for a task that it was given: the runtime does not keep to its
	// protocol. The command platform runtime conformance names what it breaks.
	ReasonProtocolViolated = "ProtocolViolated"
	// ReasonCapabilitiesDiffer is for Ready=False of an AgentRuntime: the runtime lacks what spec.capabilities declares. The message names
	// the field; change it, or the runtime.
	ReasonCapabilitiesDiffer = "CapabilitiesDiffer"
)

// Reasons of conditions of RuntimePools. Where a task of the pool waits for something, the reason is that of the task.
const (
	// ReasonAccepting is for AdmissionReady=True: the pool takes tasks.
	ReasonAccepting = "Accepting"
	// ReasonDraining is for AdmissionReady=False: the program or image of the pool's agents was changed. Its tasks end here, and others go
	// to another pool.
	ReasonDraining = "Draining"
	// ReasonNotManaged is for AdmissionReady=False: the pool was not made by the controller, so no task uses it. Delete it.
	ReasonNotManaged = "NotManaged"
	// ReasonObserved is for the other conditions while they are True: a task of the pool is at work.
	ReasonObserved = "Observed"
	// ReasonNotChecked is for the other conditions while they are Unknown: no task of the pool is at work, so nothing is known.
	ReasonNotChecked = "NotChecked"
)

// Reasons of Events of an installation in a cluster.
const (
	// ReasonAPIServiceRepaired is for an Event of the Service of platform-apiserver: somebody changed the APIService of the group, and
	// the server restored what the note names. The cluster's audit log says who it was.
	ReasonAPIServiceRepaired = "APIServiceRepaired"
)

// Reasons of RepositoryMonitors: of items that are blocked, of commands, work and mutations; and of deliveries of code hosts.
const (
	// ReasonMonitorPaused: the pull request or issue has a label of spec.policy.pauseLabels. Take it away.
	ReasonMonitorPaused = "Paused"
	// ReasonMonitorProtected: it has a label of spec.policy.protectedLabels, so the monitor changes and merges nothing.
	ReasonMonitorProtected = "ProtectedLabel"
	// ReasonMonitorStopped: the command stop was given. The command resume permits work again.
	ReasonMonitorStopped = "Stopped"
	// ReasonMonitorDraft: the pull request is a draft, and spec.targets.pullRequests.includeDrafts is not set.
	ReasonMonitorDraft = "Draft"
	// ReasonMonitorChecks: spec.review.requireGreenCI is set, and the checks of the head have not passed.
	ReasonMonitorChecks = "ChecksNotPassed"
	// ReasonMonitorFork: the pull request comes from another repository, whose branches are not changed.
	ReasonMonitorFork = "FromFork"
	// ReasonMonitorLimit: it was repaired or tried as often as the monitor permits.
	ReasonMonitorLimit = "AttemptsUsedUp"
	// ReasonMonitorHeadMoved: the head is another commit than the one that was meant.
	ReasonMonitorHeadMoved = "HeadChanged"
	// ReasonMonitorGateClosed: the operator does not permit merging (PLATFORM_REPOSITORY_MONITOR_AUTOMERGE_GATE).
	ReasonMonitorGateClosed = "MergeGateClosed"
	// ReasonNotReady: the review or the code host says that something is lacking before a merge. For Ready=False of a gateway or a
	// binding: another condition is not met.
	ReasonNotReady = "NotReady"
	// ReasonMonitorNotOpen: the pull request or issue is not open.
	ReasonMonitorNotOpen = "NotOpen"
	// ReasonMonitorNotEnabled: the monitor is not set up for what was asked for. Change its spec.
	ReasonMonitorNotEnabled = "NotEnabled"
	// ReasonMonitorPlanNotApproved: nobody has approved of a plan.
	ReasonMonitorPlanNotApproved = "PlanNotApproved"
	// ReasonMonitorGone: the monitor was deleted.
	ReasonMonitorGone = "MonitorGone"
	// ReasonMonitorLabelGone: the label of a command was taken away before the command was looked at.
	ReasonMonitorLabelGone = "LabelGone"
	// ReasonMonitorPermission: who set the label of a command may not do enough in the repository.
	ReasonMonitorPermission = "PermissionMissing"
	// ReasonMonitorItemGone: the code host has no such pull request or issue, or does not show it.
	ReasonMonitorItemGone = "ItemNotFound"
	// ReasonMonitorHostRefused: the code host refuses what was asked for.
	ReasonMonitorHostRefused = "CodeHostRefused"
	// ReasonMonitorTaskRefused: the task of the agent was not accepted. Correct the monitor or its Agent.
	ReasonMonitorTaskRefused = "TaskRefused"
	// ReasonTaskGone: the task of the agent of a monitor, or the one that answers an event of a gateway, was deleted before it ended.
	ReasonTaskGone = "TaskGone"
	// ReasonMonitorNothingPublished: the agent published no change.
	ReasonMonitorNothingPublished = "NothingPublished"
	// ReasonMonitorRepositoryRead: the credential of the monitor can read its repository.
	ReasonMonitorRepositoryRead = "RepositoryRead"
	// ReasonMonitorNoAnswer: the agent gave no answer that can be read.
	ReasonMonitorNoAnswer = "NoAnswer"
	// ReasonDeliveryEvent: events of this kind cause nothing.
	ReasonDeliveryEvent = "EventNotHandled"
	// ReasonDeliveryNothingAsked: no monitor looks after the repository, and no label asks for a task.
	ReasonDeliveryNothingAsked = "NothingAsked"
	// ReasonDeliveryQueued: monitors were told.
	ReasonDeliveryQueued = "Queued"
	// ReasonDeliveryLabelIgnored: a label asks for something that cannot be done about this pull request or issue.
	ReasonDeliveryLabelIgnored = "LabelIgnored"
	// ReasonDeliveryTaskCreated: a label asked for a task.
	ReasonDeliveryTaskCreated = "TaskCreated"
	// ReasonDeliveryTaskExists: another delivery made the task.
	ReasonDeliveryTaskExists = "TaskExists"
	// ReasonDeliveryNoAgent: no Agent is configured for labels (PLATFORM_GITHUB_LABEL_TRIGGER_AGENT).
	ReasonDeliveryNoAgent = "NoAgent"
	// ReasonDeliveryAgentMissing: the Agent for a label does not exist.
	ReasonDeliveryAgentMissing = "AgentMissing"
	// ReasonDeliveryAgentNoRuntime: the Agent for a label has no runtime.
	ReasonDeliveryAgentNoRuntime = "AgentWithoutRuntime"
)

// Reasons of the conditions of gateways, of their classes and of bindings. The message says what is wrong.
const (
	// ReasonReferencesResolved: what the object refers to was found.
	ReasonReferencesResolved = "ReferencesResolved"
	// ReasonReferencesNotResolved: something that the object refers to is missing, or does not permit it.
	ReasonReferencesNotResolved = "ReferencesNotResolved"
	// ReasonProbeSucceeded: the adapter answered, and can do what its class asks for.
	ReasonProbeSucceeded = "ProbeSucceeded"
	// ReasonProbeFailed: the adapter did not answer as it should. It is asked again.
	ReasonProbeFailed = "ProbeFailed"
	// ReasonProgrammed: events are routed by the binding.
	ReasonProgrammed = "Programmed"
	// ReasonAmbiguousOrUnsupported: another binding matches the same with the same priority, or the gateway cannot do what the binding
	// asks for.
	ReasonAmbiguousOrUnsupported = "AmbiguousOrUnsupported"
)

// Reasons of events and deliveries of gateways.
const (
	// ReasonNoBinding: no GatewayBinding is for the conversation of the event.
	ReasonNoBinding = "NoBinding"
	// ReasonAmbiguousBinding: more than one binding is. Give them different priorities, and replay the event.
	ReasonAmbiguousBinding = "AmbiguousBinding"
	// ReasonSenderNotAllowed: the senderPolicy of the binding does not have the sender.
	ReasonSenderNotAllowed = "SenderNotAllowed"
	// ReasonSessionQueueFull: too many events wait in the session.
	ReasonSessionQueueFull = "SessionQueueFull"
	// ReasonGatewayObstacle: the task cannot be made yet. It is tried again.
	ReasonGatewayObstacle = "DispatchDelayed"
	// ReasonGatewayTaskRefused: the task is not accepted. Correct the binding or its Agent.
	ReasonGatewayTaskRefused = "DispatchRefused"
	// ReasonGatewayAnswered: the answer is a delivery.
	ReasonGatewayAnswered = "Answered"
	// ReasonGatewayExpired: it took too long.
	ReasonGatewayExpired = "Expired"
	// ReasonGatewayGone: the gateway was deleted, or another one has its name.
	ReasonGatewayGone = "GatewayGone"
	// ReasonGatewayDecided: the event decided on an approval.
	ReasonGatewayDecided = "DecisionCounted"
	// ReasonGatewayDecisionRefused: the event was to decide on an approval, and may not, or there is none of that code.
	ReasonGatewayDecisionRefused = "DecisionRefused"
	// ReasonNotReached: the adapter could not be reached, and was sent nothing.
	ReasonNotReached = "NotReached"
	// ReasonSendFailed: the adapter says that it could not deliver. It is asked again.
	ReasonSendFailed = "SendFailed"
	// ReasonOutcomeUnknown: no answer came, or none that can be read. The text may have been posted.
	ReasonOutcomeUnknown = "OutcomeUnknown"
	// ReasonNotDeliverable: the adapter says that it can never deliver this.
	ReasonNotDeliverable = "NotDeliverable"
	// ReasonAttemptsSpent: it was sent as often as it may be.
	ReasonAttemptsSpent = "AttemptsSpent"
	// ReasonGatewayAbandoned: a person gave it up.
	ReasonGatewayAbandoned = "Abandoned"
	// ReasonGatewayDelivered: the adapter says that it was delivered.
	ReasonGatewayDelivered = "Delivered"
)

// Reasons of the conditions of connections. The message says what to do.
const (
	// ReasonPendingConsent: the person has not given consent yet. They open the address that connections/authorize gives.
	ReasonPendingConsent = "PendingConsent"
	// ReasonConsentRequired: another consent is needed, because the mode or the provider asks for more than was granted, or because the
	// provider is not the one that the consent was given for.
	ReasonConsentRequired = "ConsentRequired"
	// ReasonConsentCommitted: the person has given consent, and the tokens are kept.
	ReasonConsentCommitted = "ConsentCommitted"
	// ReasonScopesCovered: what was granted covers what the mode needs.
	ReasonScopesCovered = "ScopesCovered"
	// ReasonConnectionExpired: the access token has ended, and there is nothing to refresh it with. The person connects again.
	ReasonConnectionExpired = "TokenExpired"
	// ReasonConnectionRevoked: the provider does not honour the grant any longer. The person connects again.
	ReasonConnectionRevoked = "GrantRevoked"
	// ReasonRefreshFailed: the access token could not be refreshed for now; the message says why. It is tried again.
	ReasonRefreshFailed = "RefreshFailed"
	// ReasonDisconnecting: the person has disconnected, and the tokens could not be given back yet. It is tried again.
	ReasonDisconnecting = "Disconnecting"
	// ReasonProviderMissing: the ConnectorProvider does not exist.
	ReasonProviderMissing = "ProviderMissing"
	// ReasonProviderResolved: the ConnectorProvider is there and can be used.
	ReasonProviderResolved = "ProviderResolved"
	// ReasonConnectorsDisabled: the server was started without --connectors-enabled.
	ReasonConnectorsDisabled = "ConnectorsDisabled"
)

// ReasonNotFound is the reason of a task that refers to an object of a kind, such as Agent, which does not exist.
func ReasonNotFound(kind string) string {
	switch kind {
	case "Agent":
		return ReasonAgentNotFound
	case "AgentRuntime":
		return ReasonAgentRuntimeNotFound
	case "Provider":
		return ReasonProviderNotFound
	case "Skill":
		return ReasonSkillNotFound
	case "Secret":
		return ReasonSecretNotFound
	case "ConfigMap":
		return ReasonConfigMapNotFound
	case "Session":
		return ReasonSessionNotFound
	default:
		return ReasonRefused
	}
}
