// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runspec is the contract between an executor, which starts a worker, and the worker:
// environment names, the credentials document, exit codes and the termination message. Both
// executors (Kubernetes Job, local process), the worker program and the init container of
// package workspace use it; the server has ModelsSubresource and HeaderReason from it, and nothing else.
package runspec

// Environment variables that an executor sets. They override the task's own.
const (
	EnvTaskName      = "PLATFORM_TASK_NAME"
	EnvTaskNamespace = "PLATFORM_TASK_NAMESPACE"
	EnvTaskUID       = "PLATFORM_TASK_UID"
	// EnvAttempt is the number of this attempt, from 1. It is part of the
	// worker's de-duplication keys.
	EnvAttempt = "PLATFORM_TASK_ATTEMPT"
	// EnvControllerURL is the API server, for example https://127.0.0.1:7443.
	EnvControllerURL = "PLATFORM_CONTROLLER_URL"
	// EnvCAFile is the path of the CA bundle that verifies the API server's certificate.
	EnvCAFile = "PLATFORM_CA_FILE"
	// EnvCredentials says where Credentials come from: CredentialsStdin, the path of a file with
	// the same document, or the path of a folder with one file for each secret (see
	// CredentialProviders). Empty means no credentials.
	EnvCredentials = "PLATFORM_CREDENTIALS" //nolint:gosec // the name of a variable
	// EnvSecretHosts is a SecretHosts as JSON, where EnvCredentials is a folder. An empty value means the zero
	// SecretHosts.
	EnvSecretHosts = "PLATFORM_SECRET_HOSTS"
	// EnvTokenPath is the path of a file with the worker's token, for projected tokens that
	// rotate. It overrides Credentials.Token.
	EnvTokenPath = "PLATFORM_SA_TOKEN_PATH" //nolint:gosec // the name of a variable
	// EnvWorkDir is the only folder, besides the system's temporary one, that file tools may read or write.
	EnvWorkDir = "PLATFORM_WORK_DIR"
	// EnvSkillsDir is the folder with the files of the run's skills, each in a folder with the name of its skill. Programs of
	// the run have it if there are such files.
	EnvSkillsDir = "PLATFORM_SKILLS_DIR"
	// EnvArtifactsDir is the folder whose files are uploaded as artifacts at the end.
	EnvArtifactsDir = "PLATFORM_ARTIFACTS_DIR"
	// EnvTerminationLog is the file that the worker writes its Termination to.
	EnvTerminationLog = "PLATFORM_TERMINATION_LOG"
	// EnvSpoolDir is a folder that outlives the worker. It keeps what the worker still has to send
	// to the API server (see package spool). Empty means no spool.
	EnvSpoolDir = "PLATFORM_SPOOL_DIR"
	// EnvDeliver is "true" for a worker that only delivers what an earlier worker of the same
	// attempt left in EnvSpoolDir.
	EnvDeliver = "PLATFORM_DELIVER_ONLY"
	// EnvDeliveryTime is how much longer, as a Go duration, a worker that is asked to stop may deliver what its work
	// produced, if the work was over by then. Empty means a moment. A worker whose work is not over stops at once.
	EnvDeliveryTime = "PLATFORM_DELIVERY_TIME"
	// EnvStandby is "true" for a worker that is started before there is a run for it. It reads its Assignment from standard
	// input before anything else, and ends without doing anything if there is none.
	EnvStandby = "PLATFORM_STANDBY"
	// EnvHostCommands is "true" when the operator allowed container tasks to
	// run as commands of the host.
	EnvHostCommands = "PLATFORM_ALLOW_HOST_COMMANDS"
	// EnvContained is "true" when the worker runs in the container that the task asked for. A
	// command then comes from that container's image, does not need EnvHostCommands, and gets the
	// container's environment.
	EnvContained = "PLATFORM_CONTAINED"
	// EnvSandbox is a Sandbox as JSON: the operator's settings for the sandbox of the run's programs. An empty value
	// means the zero Sandbox.
	EnvSandbox = "PLATFORM_SANDBOX"
	// EnvSecretEnv lists, separated by commas, the variables of the worker's own
	// environment whose values are secrets.
	EnvSecretEnv = "PLATFORM_SECRET_ENV"
	// EnvTaskVariable begins the names of the variables with which a Pod of type ai gets spec.env of its task, for the
	// programs that it runs. They are not variables of the worker itself, which has the keys of the run.
	EnvTaskVariable = "PLATFORM_TASK_ENV_"
	// EnvSecretDirs lists, separated by colons, folders whose files are secrets.
	EnvSecretDirs = "PLATFORM_SECRET_DIRS"
	// EnvAgentName, EnvParentTask and EnvSessionName give programs of the run the agent, the
	// parent task and the session that the task names. Each is empty if the task names none.
	EnvAgentName   = "PLATFORM_AGENT_NAME"
	EnvParentTask  = "PLATFORM_PARENT_TASK"
	EnvSessionName = "PLATFORM_SESSION_NAME"
	// EnvPriorTask, EnvPriorTaskNamespace and EnvPriorTaskDigest name the task that the run's own task continues (spec.priorTaskRef). The last
	// one is the SHA-256 of its changes in hexadecimal digits; empty if the commit of the workspace has them.
	EnvPriorTask          = "PLATFORM_PRIOR_TASK"
	EnvPriorTaskNamespace = "PLATFORM_PRIOR_TASK_NAMESPACE"
	EnvPriorTaskDigest    = "PLATFORM_PRIOR_TASK_DIFF_SHA256"
	// These give programs of an iteration of an autonomous task "true", the number of the iteration, from 0, the limit of
	// iterations, 0 for none, and what people decided on earlier calls, as JSON. Other programs do not get them.
	EnvAutonomousMode          = "PLATFORM_AUTONOMOUS_MODE"
	EnvAutonomousIteration     = "PLATFORM_AUTONOMOUS_ITERATION"
	EnvAutonomousMaxIterations = "PLATFORM_AUTONOMOUS_MAX_ITERATIONS"
	EnvResolvedApprovals       = "PLATFORM_RESOLVED_APPROVALS"
)

// Environment variables that only the operator controls. An executor always sets them, possibly
// to an empty value, so that a task cannot. See OperatorEnv.
const (
	// EnvWebFetchAllow lists host:port, separated by commas, that web_fetch may reach although
	// their addresses are private.
	EnvWebFetchAllow = "PLATFORM_WEB_FETCH_ALLOW"
	// EnvRepositoryAllow lists host:port, separated by commas, from which repositories of tasks may be fetched although their
	// addresses are private.
	EnvRepositoryAllow = "PLATFORM_REPOSITORY_ALLOW"
	// EnvWorkspaceProgram is the path of the program that prepares a task's repository (see package workspace); empty means that
	// there is none.
	EnvWorkspaceProgram = "PLATFORM_WORKSPACE_PROGRAM"
	// EnvWorkspaceAnswer is the path of the file with the report on the repository that the init container of a Pod prepared (a
	// workspace.Answer as JSON); empty if the worker has it prepared. The init container writes the file that the variable names.
	EnvWorkspaceAnswer = "PLATFORM_WORKSPACE_ANSWER"
	// EnvWorkspaceBaseline is the folder with the commit that the task's repository was prepared from, where an init container did that
	// and the run may change the repository; empty otherwise.
	EnvWorkspaceBaseline = "PLATFORM_WORKSPACE_BASELINE"
	// EnvAgentPrograms lists, separated by commas, the programs of coding agents that the operator named, as NAME=PATH.
	EnvAgentPrograms = "PLATFORM_AGENT_PROGRAMS"
	// EnvRemote is a Remote as JSON: the registered runtime at which the run's coding agent is; empty for other runs.
	EnvRemote = "PLATFORM_AGENT_RUNTIME"
	// EnvAgentImage is the image that a coding agent and its worker run in; empty where runs are processes, and for other runs.
	EnvAgentImage = "PLATFORM_AGENT_IMAGE"
	// EnvSearchURL is the URL of the search service that web_search uses; empty means none.
	EnvSearchURL = "SEARCH_API_URL"
	// EnvMemoryContextEnabled is false for runs that start without memories. EnvMemoryContextLimit and
	// EnvMemoryContextMaxChars lower how many memories, and how many characters of them, the prompt gets; empty means 5
	// and 6,000.
	EnvMemoryContextEnabled  = "PLATFORM_MEMORY_CONTEXT_ENABLED"
	EnvMemoryContextLimit    = "PLATFORM_MEMORY_CONTEXT_LIMIT"
	EnvMemoryContextMaxChars = "PLATFORM_MEMORY_CONTEXT_MAX_CHARS"
	// EnvCodeCPUSeconds, EnvCodeMemoryKB and EnvCodeMaxProcesses limit each
	// process of code_exec; empty means 60 s, 4 GiB and 1,024.
	EnvCodeCPUSeconds   = "PLATFORM_CODE_EXEC_LOCAL_CPU_SECONDS"
	EnvCodeMemoryKB     = "PLATFORM_CODE_EXEC_LOCAL_MEMORY_KB"
	EnvCodeMaxProcesses = "PLATFORM_CODE_EXEC_LOCAL_MAX_PROCESSES"
)

// Environment variables of the init container that prepares a repository (see package workspace), in addition to EnvWorkspaceAnswer
// and EnvTerminationLog.
const (
	// EnvWorkspaceOrder is the workspace.Order as JSON, without the credential.
	EnvWorkspaceOrder = "PLATFORM_WORKSPACE_ORDER"
	// EnvWorkspaceTokenFile is the path of the file with the credential; empty for none.
	EnvWorkspaceTokenFile = "PLATFORM_WORKSPACE_TOKEN_FILE"
)

// Environment variables of a run in a transaction. A run of a task without one gets none of them.
const (
	// EnvTransactionPrefix begins the names of those that commands get, too.
	EnvTransactionPrefix = "PLATFORM_TRANSACTION_"
	// These describe the transaction (spec.transaction of the task). Scopes are separated by commas.
	EnvTransactionID                     = "PLATFORM_TRANSACTION_ID"
	EnvTransactionProfile                = "PLATFORM_TRANSACTION_PROFILE"
	EnvTransactionIssuer                 = "PLATFORM_TRANSACTION_ISSUER"
	EnvTransactionSubject                = "PLATFORM_TRANSACTION_SUBJECT"
	EnvTransactionWorkload               = "PLATFORM_TRANSACTION_REQUESTING_WORKLOAD"
	EnvTransactionScope                  = "PLATFORM_TRANSACTION_SCOPE"
	EnvTransactionScopes                 = "PLATFORM_TRANSACTION_SCOPES"
	EnvTransactionContextDigest          = "PLATFORM_TRANSACTION_CONTEXT_DIGEST"
	EnvTransactionRequesterContextDigest = "PLATFORM_TRANSACTION_REQUESTER_CONTEXT_DIGEST"
	// EnvTransactionTokenFile is the path of the file with the task's own transaction token. EnvSubjectTokenFile is that of
	// the token that is exchanged for those of children, which is the same. Runs on the server's machine have no such file;
	// there the token is among the Credentials.
	EnvTransactionTokenFile = "PLATFORM_TRANSACTION_TOKEN_FILE"
	EnvSubjectTokenFile     = "PLATFORM_CONTEXT_TOKEN_SUBJECT_TOKEN_FILE"
	// These say where and how a token for a child is asked for; see package tokenexchange. EnvTTSAuthorities has the
	// authorities of the service's certificate as PEM; empty means those of the system.
	EnvTTSEndpoint      = "PLATFORM_CONTEXT_TOKEN_TTS_ENDPOINT"
	EnvTTSAudience      = "PLATFORM_CONTEXT_TOKEN_TTS_AUDIENCE"
	EnvTTSTimeout       = "PLATFORM_CONTEXT_TOKEN_TTS_TIMEOUT"
	EnvTTSTokenSource   = "PLATFORM_CONTEXT_TOKEN_TTS_TOKEN_SOURCE"
	EnvTTSAuthorities   = "PLATFORM_CONTEXT_TOKEN_TTS_AUTHORITIES"
	EnvSubjectTokenType = "PLATFORM_CONTEXT_TOKEN_SUBJECT_TOKEN_TYPE"
	EnvChildScope       = "PLATFORM_CONTEXT_TOKEN_CHILD_SCOPE"
	EnvChildTokenTTL    = "PLATFORM_CONTEXT_TOKEN_CHILD_TOKEN_TTL"
)

// OperatorEnv returns the names of the variables that only the operator controls.
func OperatorEnv() []string {
	return []string{EnvWebFetchAllow, EnvRepositoryAllow, EnvWorkspaceProgram, EnvWorkspaceAnswer, EnvWorkspaceBaseline, EnvAgentPrograms, EnvRemote, EnvAgentImage, EnvSearchURL, EnvCodeCPUSeconds, EnvCodeMemoryKB, EnvCodeMaxProcesses, EnvMemoryContextEnabled, EnvMemoryContextLimit, EnvMemoryContextMaxChars}
}

// WorkerEnv returns the names of variables that only the worker uses. The programs that it runs
// do not get them.
func WorkerEnv() []string {
	return append(OperatorEnv(), EnvCredentials, EnvSecretHosts, EnvTerminationLog, EnvSpoolDir, EnvDeliver, EnvDeliveryTime, EnvStandby, EnvHostCommands, EnvContained, EnvSandbox, EnvSecretEnv, EnvSecretDirs)
}

// Sandbox is the operator's configuration of the sandbox in which programs of runs execute. No part of it comes
// from a task.
type Sandbox struct {
	// Off runs programs without a sandbox.
	Off bool `json:"off,omitempty"`
	// Hide lists folders of the host that no program may reach, except for the run's own folders below them.
	Hide []string `json:"hide,omitempty"`
	// Read lists folders that programs may read in addition to those of the system.
	Read []string `json:"read,omitempty"`
	// Groups is the folder in which each program gets a control group; empty if there can be none.
	Groups string `json:"groups,omitempty"`
	// DiskBytes is what the files of a run may take. Its programs may keep as much open in files that they deleted. 0 means
	// DefaultDiskBytes.
	DiskBytes uint64 `json:"diskBytes,omitempty"`
}

// DefaultDiskBytes is what the files of a run may take if the operator says nothing else. In a Pod it is the limit of the
// working folder.
const DefaultDiskBytes = 10 << 30

// ProgramName is the file name of the worker program when it is copied into a container of another image.
const ProgramName = "platform-worker"

// ModelsSubresource is the subresource of a task below which the worker of its coding agent finds the vendors' APIs. A kube-apiserver in
// front of the server gives requests to a subresource of this name no deadline.
const ModelsSubresource = "proxy"

// HeaderReason is the header of a refused model request of a coding agent that has the reason, such as ReasonBudgetExhausted.
const HeaderReason = "X-Platform-Reason"
