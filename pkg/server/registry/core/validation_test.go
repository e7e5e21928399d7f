// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// A row is a kind, its spec in YAML, and "path: part of the message" of the one
// error that is expected; none for "". Tags and hand-written rules are both here:
// a client cannot tell them apart.
func TestRules(t *testing.T) {
	s := start(t)
	for _, tc := range []struct{ kind, name, spec, want string }{
		{"task", "minimal", `{type: container}`, ""},
		{"task", "no type", `{command: [x]}`, "spec.type: Required"},
		{"task", "unknown type", `{type: robot}`, `spec.type: supported values: "agent", "ai", "container"`},
		{"task", "priority", `{type: container, priority: 1001}`, "spec.priority: must be less than or equal to 1000"},
		{"task", "negative priority", `{type: container, priority: -1}`, "spec.priority: must be greater than or equal to 0"},
		{"task", "maxRetries", `{type: container, retryPolicy: {maxRetries: -1}}`, "spec.retryPolicy.maxRetries: must be greater than or equal to 0"},
		{"task", "concurrency", `{type: container, concurrencyPolicy: Replace}`, "spec.concurrencyPolicy: supported values"},
		{"task", "session name", `{type: container, sessionRef: {name: ""}}`, "spec.sessionRef.name: Required"},
		{"task", "session messages", `{type: container, sessionRef: {name: s, maxMessages: 0}}`, "spec.sessionRef.maxMessages: greater than or equal to 1"},
		{"task", "agent name", `{type: container, agentRef: {name: "a b"}}`, "spec.agentRef.name: "},
		{"task", "turns", `{type: agent, prompt: p, agentRef: {name: a}, agentRuntime: {maxTurns: 1001}}`, "spec.agentRuntime.maxTurns: less than or equal to 1000"},
		{"task", "title", `{type: agent, prompt: p, agentRef: {name: a}, workspace: {prTitle: "` + strings.Repeat("x", 257) + `"}}`, "spec.workspace.prTitle: more than 256"},
		{"task", "env twice", `{type: container, env: [{name: A}, {name: A}]}`, "spec.env[1]: Duplicate"},
		{"task", "requester", `{type: container, requestedBy: {subject: me}}`, "spec.requestedBy: set by the server"},

		{"agent", "empty", `{}`, ""},
		{"agent", "provider and runtime", `{providerRef: {name: p}, runtime: {type: codex}}`, "spec.providerRef: cannot be set together with runtime"},
		{"agent", "runtime of nothing", `{runtime: {}}`, "spec.runtime: one of type and runtimeRef"},
		{"agent", "two runtimes", `{runtime: {type: codex, runtimeRef: {name: r}}}`, "spec.runtime.runtimeRef: cannot be set together with type"},
		{"agent", "effort", `{runtime: {type: codex, defaultReasoningEffort: xhigh}}`, ""},
		{"agent", "most effort", `{runtime: {type: claude, defaultReasoningEffort: max}}`, ""},
		{"agent", "too much effort", `{runtime: {type: codex, defaultReasoningEffort: max}}`, "spec.runtime.defaultReasoningEffort: only the runtime claude"},
		{"agent", "effort of copilot", `{runtime: {type: copilot, defaultReasoningEffort: low}}`, "spec.runtime.defaultReasoningEffort: only the runtimes claude and codex"},
		{"agent", "contract", `{runtime: {type: codex, contractVersion: v3}}`, "spec.runtime.contractVersion: supported values"},
		{"agent", "temperature", `{model: {temperature: -0.1}}`, "spec.model.temperature: between 0 and 2"},
		{"agent", "fallback to nothing", `{model: {fallbacks: [{model: m}, {}]}}`, "spec.model.fallbacks[1]: providerRef or model"},
		{"agent", "output beyond the window", `{model: {contextWindow: 10, maxTokens: 11}}`, "spec.model.maxTokens: not be greater than contextWindow"},
		{"agent", "two prompts", `{systemPrompt: {inline: x, configMapRef: {name: c, key: k}}}`, "spec.systemPrompt.configMapRef: cannot be set together with inline"},
		{"agent", "two skills in one", `{skills: [{name: s, configMapRef: {name: c, key: k}}]}`, "spec.skills[0]: only one of"},
		{"agent", "tool twice", `{tools: [{name: t}, {name: t}]}`, "spec.tools[1]: Duplicate"},
		{"agent", "depth", `{coordination: {maxDepth: 11}}`, "spec.coordination.maxDepth: less than or equal to 10"},
		{"agent", "children", `{coordination: {maxConcurrentChildren: 0}}`, "spec.coordination.maxConcurrentChildren: greater than or equal to 1"},
		{"agent", "ttl", `{ttlAfterLastTask: 0s}`, "spec.ttlAfterLastTask: greater than zero"},

		{"provider", "openai", `{type: openai, secretRef: {name: s}}`, ""},
		{"provider", "no secret", `{type: openai}`, "spec.secretRef.name: Required"},
		{"provider", "unknown", `{type: acme, secretRef: {name: s}}`, "spec.type: supported values"},
		{"provider", "azure without address", `{type: azure-openai, secretRef: {name: s}, azure: {deploymentName: d}}`, "spec.baseURL: type azure-openai needs it"},
		{"provider", "azure without deployment", `{type: azure-openai, secretRef: {name: s}, baseURL: "https://h"}`, "spec.azure: type azure-openai needs it"},
		{"provider", "azure of openai", `{type: openai, secretRef: {name: s}, azure: {deploymentName: d}}`, "spec.azure: not for openai"},
		{"provider", "address with key", `{type: openai, secretRef: {name: s}, baseURL: "https://h/?key=secret"}`, "spec.baseURL: must not contain a query"},
		{"provider", "address with password", `{type: openai, secretRef: {name: s}, baseURL: "https://a:b@h/"}`, "spec.baseURL: must not contain credentials"},

		{"tool", "http", `{description: d, http: {url: "https://h/?a=b", headers: {X-A: b}}}`, ""},
		{"tool", "no description", `{http: {url: "https://h/"}}`, "spec.description: Required"},
		{"tool", "no address", `{description: d, http: {}}`, "spec.http.url: only a tool with mcp"},
		{"tool", "other scheme", `{description: d, http: {url: "ftp://h/"}}`, "spec.http.url: must be an absolute URL"},
		{"tool", "method", `{description: d, http: {url: "https://h/", method: HEAD}}`, "spec.http.method: supported values"},
		{"tool", "timeout", `{description: d, http: {url: "https://h/", timeout: -1s}}`, "spec.http.timeout: greater than zero"},
		{"tool", "two credentials", `{description: d, http: {url: "https://h/", authSecretRef: {name: s, key: k}, outboundAccessPolicyRef: {name: p}}}`, "spec.http.authSecretRef: cannot be set together"},
		{"tool", "body without key", `{description: d, http: {url: "https://h/", authInject: body}}`, "spec.http.authBodyKey: authInject body needs it"},
		{"tool", "key without body", `{description: d, http: {url: "https://h/", authBodyKey: k}}`, "spec.http.authBodyKey: for authInject body"},
		{"tool", "body of get", `{description: d, http: {url: "https://h/", method: GET, authInject: body, authBodyKey: k}}`, "spec.http.authInject: GET request has no body"},
		{"tool", "reserved header", `{description: d, http: {url: "https://h/", headers: {txn-token: x}}}`, "spec.http.headers[txn-token]: set on each call"},
		{"tool", "idempotency", `{description: d, http: {url: "https://h/", headers: {Idempotency-Key: x}}}`, "spec.http.headers[Idempotency-Key]: approved call"},
		{"tool", "header name", `{description: d, http: {url: "https://h/", headers: {"a b": x}}}`, "spec.http.headers[a b]: not a header name"},
		{"tool", "header value", `{description: d, http: {url: "https://h/", headers: {a: "x\ny"}}}`, "spec.http.headers[a]: value is not valid"},
		{"tool", "long header", `{description: d, http: {url: "https://h/", headers: {a: "` + strings.Repeat("x", 1025) + `"}}}`, "spec.http.headers[a]: at most 1024 bytes"},
		{"tool", "schema", `{description: d, http: {url: "https://h/"}, parameters: {type: object, properties: {a: {type: nothing}}}}`, "spec.parameters: JSON Schema"},
		{"tool", "schema of a list", `{description: d, http: {url: "https://h/"}, parameters: {type: array}}`, "spec.parameters: JSON Schema of an object"},
		{"tool", "mcp", `{description: d, mcp: {substrateActor: {templateRef: {name: t}}}}`, ""},
		{"tool", "mcp of nothing", `{description: d, mcp: {}}`, "spec.mcp: exactly one"},
		{"tool", "mcp with address", `{description: d, http: {url: "https://h/"}, mcp: {remote: {url: "https://h/mcp"}}}`, "spec.http.url: comes from mcp"},
		{"tool", "mcp path", `{description: d, mcp: {path: mcp, remote: {url: "https://h/mcp"}}}`, "spec.mcp.path: must begin"},
		{"tool", "mcp port", `{description: d, mcp: {workspace: {classRef: {name: c}, port: 70000}}}`, "spec.mcp.workspace.port: less than or equal to 65535"},
		{"tool", "mcp by get", `{description: d, http: {method: GET}, mcp: {remote: {url: "https://h/mcp"}}}`, "spec.http.method: called by POST"},
		{"tool", "slow mcp", `{description: d, http: {timeout: 5m}, mcp: {remote: {url: "https://h/mcp"}}}`, "spec.http.timeout: not be longer than 2m0s"},

		{"skill", "minimal", `{description: d, content: {inline: x}}`, ""},
		{"skill", "no text", `{description: d, content: {files: {a: b}}}`, "spec.content.inline: Required"},
		{"skill", "file above", `{description: d, content: {inline: x, files: {"../a": b}}}`, "spec.content.files[../a]: relative path"},
		{"skill", "absolute file", `{description: d, content: {inline: x, files: {"/a": b}}}`, "spec.content.files[/a]: relative path"},
		{"skill", "tag twice", `{description: d, content: {inline: x}, tags: [a, a]}`, "spec.tags[1]: Duplicate"},

		{"session", "default", `{}`, ""},
		{"session", "type", `{sessionType: mail}`, "spec.sessionType: supported values"},
	} {
		t.Run(tc.kind+"/"+tc.name, func(t *testing.T) {
			text := fmt.Sprintf("apiVersion: core.platform.ai/v1alpha1\nkind: %s\nmetadata: {generateName: x-}\nspec: %s\n",
				strings.ToUpper(tc.kind[:1])+tc.kind[1:], tc.spec)
			obj, err := s.decode(text)
			if err != nil {
				t.Fatal(err)
			}
			_, err = s.create(s.user(), tc.kind+"s", obj)
			checkCause(t, err, tc.want)
		})
	}
}

func checkCause(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Error(err)
		}
		return
	}
	var status *apierrors.StatusError
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) {
		t.Errorf("%v, want invalid: %s", err, want)
		return
	}
	path, text, _ := strings.Cut(want, ": ")
	causes := status.ErrStatus.Details.Causes
	if len(causes) != 1 || causes[0].Field != path || !strings.Contains(causes[0].Message, text) {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestImmutableFields(t *testing.T) {
	s := start(t)
	s.mustApply("tasks", "apiVersion: core.platform.ai/v1alpha1\nkind: Task\nmetadata: {name: a}\nspec: {type: container}\n")
	s.mustApply("sessions", "apiVersion: core.platform.ai/v1alpha1\nkind: Session\nmetadata: {name: a}\nspec: {}\n")
	s.mustApply("agents", "apiVersion: core.platform.ai/v1alpha1\nkind: Agent\nmetadata: {name: a}\nspec: {runtime: {type: codex, contractVersion: platform.harness.v1}}\n")
	for _, tc := range []struct {
		resource string
		change   func(runtime.Object)
		want     string
	}{
		{"tasks", func(o runtime.Object) { s := &o.(*v1alpha1.Task).Spec; s.Type, s.Prompt = v1alpha1.TaskTypeAI, "p" }, "spec.type: immutable"},
		{"sessions", func(o runtime.Object) { o.(*v1alpha1.Session).Spec.SessionType = v1alpha1.SessionTypeChat }, "spec.sessionType: immutable"},
		{"agents", func(o runtime.Object) { o.(*v1alpha1.Agent).Spec.Runtime.ContractVersion = v1alpha1.HarnessV2 }, "spec.runtime.contractVersion: immutable"},
	} {
		_, err := s.update(s.user(), tc.resource, "a", tc.change)
		checkCause(t, err, tc.want)
	}
}

func TestIdentityMarksAreTheServersOwn(t *testing.T) {
	s := start(t)
	_, err := s.apply("tasks", "apiVersion: core.platform.ai/v1alpha1\nkind: Task\nmetadata: {name: a, labels: {platform.ai/transaction-id: x}}\nspec: {type: container}\n")
	checkCause(t, err, "metadata.labels[platform.ai/transaction-id]: set by the server")
}
