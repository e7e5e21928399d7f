// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/server/registry/coretest"
)

func TestToolRules(t *testing.T) {
	coretest.Rules(t, "Tool", [][3]string{
		{"http", `{description: d, http: {url: "https://h/?a=b", headers: {X-A: b}}}`, ""},
		{"no description", `{http: {url: "https://h/"}}`, "spec.description: Required"},
		{"no address", `{description: d, http: {}}`, "spec.http.url: only a tool with mcp"},
		{"other scheme", `{description: d, http: {url: "ftp://h/"}}`, "spec.http.url: must be an absolute URL"},
		{"template", `{description: d, http: {url: "https://h/items/{id}"}}`, "spec.http.url: is no template: {name} is not replaced"},
		{"template in a query", `{description: d, http: {url: "https://h/items?id={{id}}"}}`, "spec.http.url: is no template"},
		{"braces that are sent", `{description: d, http: {url: "https://h/%7Bid%7D"}}`, ""},
		{"template of mcp", `{description: d, mcp: {remote: {url: "https://h/{tenant}/mcp"}}}`, "spec.mcp.remote.url: is no template"},
		{"method", `{description: d, http: {url: "https://h/", method: HEAD}}`, "spec.http.method: supported values"},
		{"timeout", `{description: d, http: {url: "https://h/", timeout: -1s}}`, "spec.http.timeout: greater than zero"},
		{"two credentials", `{description: d, http: {url: "https://h/", authSecretRef: {name: s, key: k}, outboundAccessPolicyRef: {name: p}}}`, "spec.http.authSecretRef: cannot be set together"},
		{"body without key", `{description: d, http: {url: "https://h/", authInject: body}}`, "spec.http.authBodyKey: authInject body needs it"},
		{"key without body", `{description: d, http: {url: "https://h/", authBodyKey: k}}`, "spec.http.authBodyKey: for authInject body"},
		{"body of get", `{description: d, http: {url: "https://h/", method: GET, authInject: body, authBodyKey: k}}`, "spec.http.authInject: GET request has no body"},
		{"reserved header", `{description: d, http: {url: "https://h/", headers: {txn-token: x}}}`, "spec.http.headers[txn-token]: set on each call"},
		{"idempotency", `{description: d, http: {url: "https://h/", headers: {Idempotency-Key: x}}}`, "spec.http.headers[Idempotency-Key]: approved call"},
		{"header name", `{description: d, http: {url: "https://h/", headers: {"a b": x}}}`, "spec.http.headers[a b]: must be the name of a header"},
		{"header value", `{description: d, http: {url: "https://h/", headers: {a: "x\ny"}}}`, "spec.http.headers[a]: must be a valid value of a header"},
		{"long header", `{description: d, http: {url: "https://h/", headers: {a: "` + strings.Repeat("x", 1025) + `"}}}`, "spec.http.headers[a]: at most 1024 bytes"},
		{"schema", `{description: d, http: {url: "https://h/"}, parameters: {type: object, properties: {a: {type: nothing}}}}`, "spec.parameters: must be a JSON Schema of an object: properties.a.type: value must be one of"},
		{"recursive schema", `{description: d, http: {url: "https://h/"}, parameters: {type: object, properties: {a: {$ref: "#"}}}}`, ""},
		{"endless schema", `{description: d, http: {url: "https://h/"}, parameters: {type: object, $ref: "#"}}`, "spec.parameters: leads to itself without an end"},
		{"pattern of ECMAScript", `{description: d, http: {url: "https://h/"}, parameters: {type: object, properties: {a: {pattern: "^(?!root$)"}}}}`, ""},
		{"no pattern", `{description: d, http: {url: "https://h/"}, parameters: {type: object, properties: {a: {pattern: "("}}}}`, "spec.parameters: properties.a.pattern"},
		{"data like a reference", `{description: d, http: {url: "https://h/"}, parameters: {type: object, properties: {a: {default: {$ref: "#/x"}}}}}`, ""},
		{"another document", `{description: d, http: {url: "https://h/"}, parameters: {type: object, properties: {a: {$ref: "x.json"}}}}`, `spec.parameters: loading "x.json": references to other documents`},
		{"schema of a list", `{description: d, http: {url: "https://h/"}, parameters: {type: array}}`, "spec.parameters: JSON Schema of an object"},
		{"mcp", `{description: d, mcp: {substrateActor: {templateRef: {name: t}}}}`, ""},
		{"mcp of nothing", `{description: d, mcp: {}}`, "spec.mcp: exactly one"},
		{"mcp with address", `{description: d, http: {url: "https://h/"}, mcp: {remote: {url: "https://h/mcp"}}}`, "spec.http.url: comes from mcp"},
		{"mcp path", `{description: d, mcp: {path: mcp, remote: {url: "https://h/mcp"}}}`, "spec.mcp.path: must begin"},
		{"mcp port", `{description: d, mcp: {workspace: {classRef: {name: c}, port: 70000}}}`, "spec.mcp.workspace.port: less than or equal to 65535"},
		{"mcp by get", `{description: d, http: {method: GET}, mcp: {remote: {url: "https://h/mcp"}}}`, "spec.http.method: called by POST"},
		{"slow mcp", `{description: d, http: {timeout: 5m}, mcp: {remote: {url: "https://h/mcp"}}}`, "spec.http.timeout: not be longer than 2m0s"},
	})
}

// TestToolNames: a Tool has a name that every vendor takes and that no built-in tool has in another spelling. One of an earlier
// version can still be changed.
func TestToolNames(t *testing.T) {
	s := start(t)
	for name, want := range map[string]string{
		"weather": "", "run-code": "", strings.Repeat("a", 64): "",
		"a.b": "must be 1 to 64 letters", strings.Repeat("a", 65): "must be 1 to 64 letters",
		"web-fetch": "the tool web_fetch, which is built in", "recall-memory": "the tool recall_memory, which is built in",
	} {
		obj, err := s.Decode(withHead(`kind: Tool`+"\n"+`spec: {description: d, http: {url: "https://h/"}}`, name))
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Create(s.User(), "tools", obj)
		if want == "" && err != nil || want != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
