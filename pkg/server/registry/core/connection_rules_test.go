// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/server/registry/coretest"
)

// The rules of package connector, and the declarative ones, as the API answers them.
func TestConnectorProviderRules(t *testing.T) {
	const client = `clientID: c, clientSecretRef: {name: s, key: k}`
	oauth := func(more string) string {
		return `{oauth: {authorizeURL: "https://a.example.com/authorize", tokenURL: "https://a.example.com/token", ` + client + more + `}, tools: [{name: find, class: read, source: HTTP, description: d, parameters: {type: object}, http: {url: "https://a.example.com/find"}}]}`
	}
	tools := func(tools string) string {
		return `{oauth: {authorizeURL: "https://github.com/a", tokenURL: "https://github.com/t", ` + client + `}, tools: [` + tools + `]}`
	}
	coretest.Rules(t, "ConnectorProvider", [][3]string{
		{"least", oauth(""), ""},
		{"everything", oauth(`, issuer: "https://a.example.com", revocationURL: "https://a.example.com/revoke", clientAuthentication: ClientSecretPost, pkce: false, scopes: {read: [r], write: [w]}, additionalAuthorizeParameters: {prompt: consent}`), ""},
		{"metadata service", strings.ReplaceAll(oauth(""), "https://a.example.com/token", "https://169.254.169.254/token"), "spec.oauth.tokenURL"},
		{"http", strings.ReplaceAll(oauth(""), "https://a.example.com/token", "http://a.example.com/token"), "spec.oauth.tokenURL"},
		{"single label", strings.ReplaceAll(oauth(""), "https://a.example.com/token", "https://intranet/token"), "spec.oauth.tokenURL"},
		{"revocation elsewhere", oauth(`, revocationURL: "https://b.example.com/revoke"`), "spec.oauth.revocationURL"},
		{"reserved parameter", oauth(`, additionalAuthorizeParameters: {state: s}`), "spec.oauth.additionalAuthorizeParameters[state]: Forbidden"},
		{"scope with a comma", oauth(`, scopes: {read: ["a,b"]}`), "spec.oauth.scopes.read[0]"},
		{"long client", strings.ReplaceAll(oauth(""), "clientID: c", "clientID: "+strings.Repeat("c", 257)), "spec.oauth.clientID"},
		{"authentication", oauth(`, clientAuthentication: None`), "spec.oauth.clientAuthentication: supported values"},
		{"no tools", tools(""), "spec.tools"},
		{"twice", tools(`{name: get_issue, class: read, source: Builtin}, {name: get_issue, class: read, source: Builtin}`), "spec.tools[1]: Duplicate"},
		{"built in", tools(`{name: get_issue, class: read, source: Builtin}, {name: create_pull_request, class: write, source: Builtin}`), ""},
		{"other class", tools(`{name: create_pull_request, class: read, source: Builtin}`), "spec.tools[0].class"},
		{"misspelled", tools(`{name: get_isue, class: read, source: Builtin}`), "spec.tools[0].name"},
		{"ignores the account", tools(`{name: web_search, class: read, source: Builtin}`), "spec.tools[0].name"},
	})
}
