// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package runspec

// Names in a folder of credentials. Each file holds one value and nothing else.
const (
	// CredentialProviders and CredentialTools are folders that hold a folder for each namespace,
	// which holds a file for each Provider or Tool (see CredentialKey).
	CredentialProviders = "providers"
	CredentialTools     = "tools"
	// CredentialConfigMaps is a folder that holds a folder for each namespace, which holds a
	// folder for each ConfigMap, which holds a file for each key (see ConfigMapKey).
	CredentialConfigMaps = "configmaps"
	// CredentialSearch is the file with the key of the search service.
	CredentialSearch = "search"
)

// CredentialsStdin is the value of EnvCredentials that makes the worker read one JSON document
// from standard input, so that no secret is in the environment, in a file or in an argument.
const CredentialsStdin = "stdin"

// Credentials are the secrets of one run, and other values that it needs but may not read from the API. They are
// never stored.
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
	// SearchKey is the bearer token for the search service that web_search uses.
	SearchKey string `json:"searchKey,omitempty"`
	// ConfigMaps holds the values of keys of ConfigMaps, by their ConfigMapKey. They are not secret.
	ConfigMaps map[string]string `json:"configMaps,omitempty"`
}

// CredentialKey names the credential of a Provider or Tool, in Credentials and as a path in a folder of credentials.
// Neither a namespace nor a name can contain a slash, so keys are unique, and each is a valid path.
func CredentialKey(namespace, name string) string { return namespace + "/" + name }

// ConfigMapKey names a key of a ConfigMap, in Credentials and as a path in a folder of credentials. None of the three
// may contain a slash.
func ConfigMapKey(namespace, name, key string) string { return namespace + "/" + name + "/" + key }
