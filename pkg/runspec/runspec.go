// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runspec is the contract between an executor, which starts a worker, and the worker:
// environment names, the credentials document, exit codes and the termination message. Both
// executors (Kubernetes Job, local process) and the worker program use it; no other package
// does.
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
	// EnvSecretDirs lists, separated by colons, folders whose files are secrets.
	EnvSecretDirs = "PLATFORM_SECRET_DIRS"
	// EnvAgentName, EnvParentTask and EnvSessionName give programs of the run the agent, the
	// parent task and the session that the task names. Each is empty if the task names none.
	EnvAgentName   = "PLATFORM_AGENT_NAME"
	EnvParentTask  = "PLATFORM_PARENT_TASK"
	EnvSessionName = "PLATFORM_SESSION_NAME"
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

// OperatorEnv returns the names of the variables that only the operator controls.
func OperatorEnv() []string {
	return []string{EnvWebFetchAllow, EnvSearchURL, EnvCodeCPUSeconds, EnvCodeMemoryKB, EnvCodeMaxProcesses, EnvMemoryContextEnabled, EnvMemoryContextLimit, EnvMemoryContextMaxChars}
}

// WorkerEnv returns the names of variables that only the worker uses. The programs that it runs
// do not get them.
func WorkerEnv() []string {
	return append(OperatorEnv(), EnvCredentials, EnvSecretHosts, EnvTerminationLog, EnvSpoolDir, EnvDeliver, EnvHostCommands, EnvContained, EnvSandbox, EnvSecretEnv, EnvSecretDirs)
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
}

// ProgramName is the file name of the worker program when it is copied into a container of another image.
const ProgramName = "platform-worker"
