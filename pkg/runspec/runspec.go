// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runspec is the contract between an executor, which starts a worker,
// and the worker: environment names, the credentials document, exit codes and
// the termination message. Both executors (Kubernetes Job, local process) and
// the one worker program use it, and nothing else.
package runspec

// Environment variables that an executor sets. They win over the task's own.
const (
	EnvTaskName      = "PLATFORM_TASK_NAME"
	EnvTaskNamespace = "PLATFORM_TASK_NAMESPACE"
	EnvTaskUID       = "PLATFORM_TASK_UID"
	// EnvAttempt is the number of this attempt, from 1. It is part of the
	// worker's de-duplication keys.
	EnvAttempt = "PLATFORM_TASK_ATTEMPT"
	// EnvControllerURL is the API server, for example https://127.0.0.1:7443.
	EnvControllerURL = "PLATFORM_CONTROLLER_URL"
	// EnvCAFile is the CA bundle that the API server's certificate is checked with.
	EnvCAFile = "PLATFORM_CA_FILE"
	// EnvCredentials says where Credentials come from: CredentialsStdin, a file with
	// the same document, or a folder with one file for each secret: see
	// CredentialProviders. Empty is none.
	EnvCredentials = "PLATFORM_CREDENTIALS" //nolint:gosec // the name of a variable
	// EnvTokenPath is a file with the worker's token, for projected tokens that
	// rotate. It wins over Credentials.Token.
	EnvTokenPath = "PLATFORM_SA_TOKEN_PATH" //nolint:gosec // the name of a variable
	// EnvWorkDir is the only folder, beside the system's temporary one, that file tools may touch.
	EnvWorkDir = "PLATFORM_WORK_DIR"
	// EnvArtifactsDir is the folder whose files are uploaded as artifacts at the end.
	EnvArtifactsDir = "PLATFORM_ARTIFACTS_DIR"
	// EnvTerminationLog is the file that the worker writes its Termination to.
	EnvTerminationLog = "PLATFORM_TERMINATION_LOG"
	// EnvSpoolDir is a folder that outlives the worker, for what it has to bring to
	// the API server: see package spool. Empty is none.
	EnvSpoolDir = "PLATFORM_SPOOL_DIR"
	// EnvDeliver is "true" for a worker that shall do nothing but bring what an
	// earlier one of the same attempt left in EnvSpoolDir.
	EnvDeliver = "PLATFORM_DELIVER_ONLY"
	// EnvHostCommands is "true" when the operator allowed container tasks to
	// run as commands of the host.
	EnvHostCommands = "PLATFORM_ALLOW_HOST_COMMANDS"
	// EnvContained is "true" when the worker runs in the container that the task
	// asked for. A command is then one of that container's image, needs no
	// EnvHostCommands, and gets the container's environment.
	EnvContained = "PLATFORM_CONTAINED"
	// EnvSandbox is a Sandbox as JSON: what programs of the run are kept in. Empty is the same as an empty one.
	EnvSandbox = "PLATFORM_SANDBOX"
	// EnvSecretEnv lists, separated by commas, the variables of the worker's own
	// environment whose values are secrets.
	EnvSecretEnv = "PLATFORM_SECRET_ENV"
	// EnvSecretDirs lists, separated by colons, folders whose files are secrets.
	EnvSecretDirs = "PLATFORM_SECRET_DIRS"
	// EnvAgentName, EnvParentTask and EnvSessionName tell programs of the run what
	// its task names. They are empty for none.
	EnvAgentName   = "PLATFORM_AGENT_NAME"
	EnvParentTask  = "PLATFORM_PARENT_TASK"
	EnvSessionName = "PLATFORM_SESSION_NAME"
)

// Names in a folder of credentials. Each file holds one value and nothing else.
const (
	// CredentialProviders and CredentialTools are folders with a folder for each
	// namespace, and in that a file for each Provider and each Tool: see CredentialKey.
	CredentialProviders = "providers"
	CredentialTools     = "tools"
	// CredentialConfigMaps is a folder with a folder for each namespace, in that one
	// for each ConfigMap, and in that a file for each key: see ConfigMapKey.
	CredentialConfigMaps = "configmaps"
	// CredentialSearch is the file with the key of the search service.
	CredentialSearch = "search"
)

// Environment variables that are the operator's: an executor always sets them,
// to its own value or to nothing, so that a task cannot. See OperatorEnv.
const (
	// EnvWebFetchAllow lists host:port, separated by commas, that web_fetch may
	// reach although they are private.
	EnvWebFetchAllow = "PLATFORM_WEB_FETCH_ALLOW"
	// EnvSearchURL is the search service behind web_search, empty for none.
	EnvSearchURL = "SEARCH_API_URL"
	// EnvCodeCPUSeconds, EnvCodeMemoryKB and EnvCodeMaxProcesses limit each
	// process of code_exec; empty means 60 s, 4 GiB and 1,024.
	EnvCodeCPUSeconds   = "PLATFORM_CODE_EXEC_LOCAL_CPU_SECONDS"
	EnvCodeMemoryKB     = "PLATFORM_CODE_EXEC_LOCAL_MEMORY_KB"
	EnvCodeMaxProcesses = "PLATFORM_CODE_EXEC_LOCAL_MAX_PROCESSES"
)

// OperatorEnv returns the names of the operator's variables.
func OperatorEnv() []string {
	return []string{EnvWebFetchAllow, EnvSearchURL, EnvCodeCPUSeconds, EnvCodeMemoryKB, EnvCodeMaxProcesses}
}

// WorkerEnv returns the names of variables that concern the worker alone. What it
// runs does not see them.
func WorkerEnv() []string {
	return append(OperatorEnv(), EnvCredentials, EnvTerminationLog, EnvSpoolDir, EnvDeliver, EnvHostCommands, EnvContained, EnvSandbox, EnvSecretEnv, EnvSecretDirs)
}

// Sandbox is what the operator says about the sandbox that programs of runs are kept in. Nothing of it comes from a task.
type Sandbox struct {
	// Off runs programs without one.
	Off bool `json:"off,omitempty"`
	// Hide are folders of the host that no program may reach, apart from what the run has in them.
	Hide []string `json:"hide,omitempty"`
	// Read are folders that programs may read beside those of the system.
	Read []string `json:"read,omitempty"`
}

// CredentialsStdin as value of EnvCredentials: one JSON document on standard
// input, so that no secret is in the environment, in a file or in an argument.
const CredentialsStdin = "stdin"

// Credentials are the secrets of one run, and what else it needs and may not read itself. They are never stored.
type Credentials struct {
	// Token authenticates the worker to the API server.
	Token string `json:"token,omitempty"`
	// ProviderKeys holds the API key of each Provider, by its CredentialKey.
	ProviderKeys map[string]string `json:"providerKeys,omitempty"`
	// ToolKeys holds the credential of each custom Tool that has an authSecretRef, by its CredentialKey.
	ToolKeys map[string]string `json:"toolKeys,omitempty"`
	// Env holds the values of the task's environment variables that come from
	// Secrets, by name of the variable.
	Env map[string]string `json:"env,omitempty"`
	// SearchKey is the bearer token of the search service behind web_search.
	SearchKey string `json:"searchKey,omitempty"`
	// ConfigMaps holds the values of keys of ConfigMaps, by their ConfigMapKey. They are no secrets.
	ConfigMaps map[string]string `json:"configMaps,omitempty"`
}

// CredentialKey names the credential of a Provider or Tool, in Credentials and as a path in a folder of credentials. A
// namespace has no slash, and neither has a name, so no two objects have one key, and each is a valid path.
func CredentialKey(namespace, name string) string { return namespace + "/" + name }

// ConfigMapKey names a key of a ConfigMap, in Credentials and as a path in a folder of credentials. None of the three may
// have a slash.
func ConfigMapKey(namespace, name, key string) string { return namespace + "/" + name + "/" + key }

// ProgramName is the file of the worker program, where it is put into another image.
const ProgramName = "platform-worker"

// Exit codes of the worker.
const (
	// ExitSucceeded: the work is done and the result was accepted by the API.
	ExitSucceeded = 0
	// ExitFailed: the work failed; the Termination says why.
	ExitFailed = 1
	// ExitUsage: the worker was started wrongly.
	ExitUsage = 2
	// ExitUnavailable: the API or the model could not be reached; trying again may help.
	ExitUnavailable = 75
)

// Termination is what the worker leaves in EnvTerminationLog, as JSON of at
// most 4096 bytes.
type Termination struct {
	// Reason is one CamelCase word, for a condition.
	Reason string `json:"reason"`
	// Message is redacted text for people.
	Message string `json:"message,omitempty"`
	// ExitCode is the code the worker exits with.
	ExitCode int `json:"exitCode"`
}
