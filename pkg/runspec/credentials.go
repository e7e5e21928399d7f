// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package runspec

import (
	"encoding/json"

	"github.com/platform-ai/platform/pkg/egress"
)

// Names in a folder of credentials. Each file holds one value and nothing else.
const (
	// CredentialProviders and CredentialTools are folders that hold a folder for each namespace,
	// which holds a file for each Provider or Tool (see CredentialKey).
	CredentialProviders = "providers"
	CredentialTools     = "tools"
	// CredentialConfigMaps is a folder that holds a folder for each namespace, which holds a
	// folder for each ConfigMap, which holds a file for each key (see ConfigMapKey).
	CredentialConfigMaps = "configmaps"
	// CredentialRuntimeToken and CredentialRuntimeKey are the files with the credentials of a registered runtime.
	CredentialRuntimeToken = "runtime-token"
	CredentialRuntimeKey   = "runtime-key"
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
	// RepositoryToken is the credential that the task's repository is read with; empty for none.
	RepositoryToken string `json:"repositoryToken,omitempty"`
	// RuntimeToken and RuntimeKey are the controller token and the operation key of the registered runtime at which the run's coding
	// agent is; empty for none.
	RuntimeToken string `json:"runtimeToken,omitempty"`
	RuntimeKey   string `json:"runtimeKey,omitempty"`
	// SearchKey is the bearer token for the search service that web_search uses.
	SearchKey string `json:"searchKey,omitempty"`
	// TransactionToken is the transaction token of the task; empty if it has none.
	TransactionToken string `json:"transactionToken,omitempty"`
	// Hosts says where keys may be sent.
	Hosts SecretHosts `json:"hosts,omitzero"`
	// ConfigMaps holds the values of keys of ConfigMaps, by their ConfigMapKey. They are not secret.
	ConfigMaps map[string]string `json:"configMaps,omitempty"`
	// Task is the task with which the run was started, as JSON. A worker that gets none reads it from the API server.
	Task json.RawMessage `json:"task,omitempty"`
}

// SecretHosts says to which hosts the keys of Providers and the credentials of Tools may be sent, by their CredentialKey, and the
// RepositoryToken. What is not listed may be sent anywhere.
type SecretHosts struct {
	Providers  map[string]egress.Hosts `json:"providers,omitempty"`
	Tools      map[string]egress.Hosts `json:"tools,omitempty"`
	Repository egress.Hosts            `json:"repository,omitzero"`
}

// Provider limits where the key of a Provider may be sent, if there is a rule.
func (h *SecretHosts) Provider(key string, hosts egress.Hosts) { limit(&h.Providers, key, hosts) }

// Tool limits where the credential of a Tool may be sent, if there is a rule.
func (h *SecretHosts) Tool(key string, hosts egress.Hosts) { limit(&h.Tools, key, hosts) }

func limit(all *map[string]egress.Hosts, key string, hosts egress.Hosts) {
	if !hosts.Set {
		return
	}
	if *all == nil {
		*all = map[string]egress.Hosts{}
	}
	(*all)[key] = hosts
}

// CredentialKey names the credential of a Provider or Tool, in Credentials and as a path in a folder of credentials.
// Neither a namespace nor a name can contain a slash, so keys are unique, and each is a valid path.
func CredentialKey(namespace, name string) string { return namespace + "/" + name }

// ConfigMapKey names a key of a ConfigMap, in Credentials and as a path in a folder of credentials. None of the three
// may contain a slash.
func ConfigMapKey(namespace, name, key string) string { return namespace + "/" + name + "/" + key }
