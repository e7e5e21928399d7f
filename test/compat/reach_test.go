// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// endpoint is a web server whose requests a test counts.
type endpoint struct {
	*httptest.Server

	mu  sync.Mutex
	got []string
}

// newEndpoint answers every request with what it got.
func newEndpoint(t *testing.T, says string) *endpoint {
	t.Helper()
	e := &endpoint{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		line := fmt.Sprint(r.URL.RequestURI(), " ", r.Header.Get("Authorization"), " ", string(body))
		e.mu.Lock()
		e.got = append(e.got, line)
		e.mu.Unlock()
		if r.URL.Path == "/search" {
			_, _ = fmt.Fprintf(w, `[{"title":"About %s","url":"https://example.com","snippet":""}]`, r.URL.Query().Get("q"))
			return
		}
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, says+" "+line)
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) requests() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.got)
}

func (e *endpoint) host() string { return strings.TrimPrefix(e.URL, "http://") }

const toolKey = "tool-key-0123456789"

// reaching is a server with tools that reach something: an open page, a closed one, and Tools of the namespace.
type reaching struct {
	*server

	test *testing.T

	v                    *vendor
	open, closed, orders *endpoint
	audit                string
}

// calling makes the model call one tool when a message of the user begins with the word, and then repeat the result.
func calling(word, tool, arguments string) string {
	return fmt.Sprintf("- match: {contains: %q, lastRole: user, offered: [%s]}\n  reply: {toolCalls: [{name: %s, arguments: %s}]}\n", word, tool, tool, arguments)
}

func newReaching(t *testing.T, configure ...func(*standalone.Options)) *reaching {
	t.Helper()
	r := &reaching{test: t, open: newEndpoint(t, "open page"), closed: newEndpoint(t, "closed page"), orders: newEndpoint(t, "ordered")}
	found := sdk.NewServer(&sdk.Implementation{Name: "docs"}, nil)
	found.AddTool(&sdk.Tool{Name: "docs", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "found by MCP " + string(req.Params.Arguments)}}}, nil
	})
	docs := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return found }, &sdk.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(docs.Close)
	dir := t.TempDir()
	r.audit = filepath.Join(dir, "audit")
	policy := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(policy, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	turns := "turns:\n" +
		calling("read the open", "web_fetch", `{url: "`+r.open.URL+`/page"}`) +
		calling("read the closed", "web_fetch", `{url: "`+r.closed.URL+`/page"}`) +
		calling("search", "web_search", `{query: tides}`) +
		calling("order", "orders", `{amount: 5}`) +
		calling("leak", "leaks", `{}`) +
		calling("docs", "docs", `{q: tides}`) +
		calling("file_read", "file_read", `{path: /etc/passwd}`) +
		calling("pull request", "create_pull_request", `{task_name: gone, head_branch: a, base_branch: b, title: x}`) +
		calling("run", "code_exec", `{language: sh, code: "echo it ran; echo oops >&2"}`) +
		calling("fail", "code_exec", `{language: sh, code: "echo it ran; echo oops >&2; exit 3"}`) +
		calling("destroy", "code_exec", `{language: sh, code: "rm -rf /"}`) +
		"- match: {lastRole: tool}\n  reply: {text: \"[goal: reached]\\n{{ .Results }}\"}\n" +
		"- match: {}\n  reply: {text: \"[goal: reached]\\nnot offered\"}\n"
	r.server, r.v = onTools(t, turns, append(configure, func(o *standalone.Options) {
		o.WebFetchAllow = []string{r.open.host(), strings.TrimPrefix(docs.URL, "http://")}
		o.SearchURL, o.AuditLog, o.AuditPolicy = r.open.URL+"/search", r.audit, policy
	})...)
	r.role("chat-tools", []string{"chats", "tasks"}, []string{"create"}, []string{"tasks", "tasks/result", "tasks/log"}, []string{"get", "list"}, []string{"providers", "tools"}, []string{"list"})
	for name, hosts := range map[string]string{"tool-key": "", "bound-key": "api.example.com"} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"token": toolKey}}
		if hosts != "" {
			secret.Annotations = map[string]string{v1alpha1.AnnotationAllowedHosts: hosts}
		}
		if _, err := r.Kubernetes(t).CoreV1().Secrets("team").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	schema := &apiextensionsv1.JSON{Raw: []byte(`{"type":"object"}`)}
	key := func(name string) *v1alpha1.KeyReference {
		return &v1alpha1.KeyReference{Name: name, Key: "token"}
	}
	for name, spec := range map[string]v1alpha1.ToolSpec{
		"orders":    {Description: "Orders.", Parameters: schema, HTTP: &v1alpha1.ToolHTTP{URL: r.orders.URL + "/orders", AuthSecretRef: key("tool-key")}},
		"leaks":     {Description: "Leaks.", Parameters: schema, HTTP: &v1alpha1.ToolHTTP{URL: r.closed.URL, AuthSecretRef: key("bound-key")}},
		"docs":      {Description: "Docs.", Parameters: schema, MCP: &v1alpha1.ToolMCP{Remote: &v1alpha1.ToolMCPRemote{URL: docs.URL}}},
		"unknown":   {Description: "No parameters.", HTTP: &v1alpha1.ToolHTTP{URL: r.orders.URL}},
		"web-stuff": {Description: "Fine.", Parameters: schema, HTTP: &v1alpha1.ToolHTTP{URL: r.orders.URL}},
	} {
		if _, err := r.admin.Tools("team").Create(t.Context(), &v1alpha1.Tool{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// role makes a ClusterRole from pairs of resources and verbs.
func (s *server) role(name string, rules ...[]string) {
	s.t.Helper()
	var all []rbacv1.PolicyRule
	for i := 0; i < len(rules); i += 2 {
		all = append(all, rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupName}, Resources: rules[i], Verbs: rules[i+1]})
	}
	s.Role(s.t, name, all...)
}

// asks sends a prompt in one of the forms, and returns what the answer says.
func (r *reaching) asks(a api, stream bool, prompt, token string) string {
	r.t.Helper()
	got := r.post(a.path, a.body(stream, prompt), "Authorization", "Bearer "+token, "X-Platform-Tools", a.header)
	if got.Code != http.StatusOK {
		r.t.Fatalf("%s: %d %s", prompt, got.Code, got.Body)
	}
	return said(r.test, got.Body)
}

// A model reads the web, searches it, and calls the Tools of the namespace, within the rules that hold for runs: of addresses,
// and of the hosts to which a Secret may be sent. What this server lacks is refused with the reason.
func TestServerToolsReach(t *testing.T) {
	t.Parallel()
	r := newReaching(t)
	token := r.Token(t, "team", "client", "chat-tools")
	for name, a := range apis() {
		for _, tt := range []struct{ prompt, want, never string }{
			{"read the open one", "open page /page", ""},
			{"read the closed one", string("permission_denied"), "closed page"},
			{"search the web", "About tides", ""},
			{"order five", "ordered /orders Bearer [REDACTED]", toolKey},
			{"leak it", "may not be sent", toolKey},
			{"docs please", "found by MCP", ""},
			{"use file_read", "a conversation has no files", "root:"},
			{"open a pull request", string("permission_denied"), ""},
			{"destroy it", "the program was not run", ""},
			{"what about files", "not offered", ""},
		} {
			for _, stream := range []bool{false, true} {
				if text := r.asks(a, stream, tt.prompt, token); !strings.Contains(text, tt.want) || tt.never != "" && strings.Contains(text, tt.never) {
					t.Errorf("%s, stream %v, %s: %q, want %q", name, stream, tt.prompt, text, tt.want)
				}
			}
		}
		last, _ := r.v.last()
		if !strings.Contains(last.body, "The Tool unknown of the namespace is not offered to you: it does not declare its parameters.") {
			t.Errorf("%s: the model is not told about a Tool without parameters: %s", name, last.body)
		}
	}
	if got := r.closed.requests(); len(got) != 0 {
		t.Errorf("the closed server was asked: %q", got)
	}
	if got := r.orders.requests(); len(got) != 2*len(apis()) || !strings.Contains(got[0], "Bearer "+toolKey) || !strings.Contains(got[0], `{"amount":5}`) {
		t.Errorf("orders got %q", got)
	}
	log, err := os.ReadFile(r.audit)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(log), `"toolcalls.core.platform.ai/1":"orders: Allowed"`) || strings.Contains(string(log), toolKey) {
		t.Error("the audit log lacks a call, or has the credential")
	}
}

// Whoever may not create tasks calls none of these tools, and who may not list Tools is told that there are none.
func TestServerToolsReachDenied(t *testing.T) {
	t.Parallel()
	r := newReaching(t)
	r.role("chat-list", []string{"chats"}, []string{"create"}, []string{"providers", "tools"}, []string{"list"})
	chats, lists := r.Token(t, "team", "chats", "chat"), r.Token(t, "team", "lists", "chat-list")
	for name, a := range apis() {
		for _, prompt := range []string{"read the open one", "search the web", "order five", "docs please", "run it"} {
			if text := r.asks(a, false, prompt, lists); !strings.Contains(text, "permission_denied") || !strings.Contains(text, "create on tasks") {
				t.Errorf("%s, %s: %q", name, prompt, text)
			}
		}
		if text := r.asks(a, false, "order five", chats); text != "not offered" {
			t.Errorf("%s: a Tool was offered to who may not list Tools: %q", name, text)
		}
		if last, _ := r.v.last(); !strings.Contains(last.body, "may not list the Tools of the namespace") {
			t.Errorf("%s: the model is not told why there are no Tools: %s", name, last.body)
		}
	}
	for _, e := range []*endpoint{r.open, r.closed, r.orders} {
		if got := e.requests(); len(got) != 0 {
			t.Errorf("asked without permission: %q", got)
		}
	}
}

// Policies on calls of tools judge these calls like those of runs, and know who makes them.
func TestServerToolsReachJudged(t *testing.T) {
	t.Parallel()
	r := newReaching(t)
	for name, p := range map[string]struct {
		expression, message string
		hold                bool
	}{
		"host":   {"!has(object.spec.webFetch) || object.spec.webFetch.host != '127.0.0.1' || request.userInfo.username.endsWith(':trusted')", "not this host", false},
		"amount": {"!('amount' in object.spec.numbers) || object.spec.numbers['amount'] < 3.0 || object.spec.task.createdBy.endsWith(':trusted')", "five is a lot", true},
	} {
		policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{v1alpha1.GroupName}, APIVersions: []string{"v1alpha1"}, Resources: []string{"toolcalls"}},
			}}}},
			Validations: []admissionv1.Validation{{Expression: p.expression, Message: p.message}},
		}}
		action := admissionv1.Deny
		if p.hold {
			policy.Labels, action = map[string]string{v1alpha1.LabelRequireApproval: "true"}, admissionv1.Audit
		}
		binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{action},
		}}
		c := r.Kubernetes(t).AdmissionregistrationV1()
		if _, err := c.ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	token, trusted := r.Token(t, "team", "client", "chat-tools"), r.Token(t, "team", "trusted", "chat-tools")
	chats := apis()["chat"]
	await := func(prompt, want string) {
		t.Helper()
		kit.Await(t, fmt.Sprintf("%s: %q", prompt, want), func() bool { return strings.Contains(r.asks(chats, false, prompt, token), want) })
	}
	await("read the open one", "not this host") // the policies are in force
	await("order five", "for which only a task can wait")
	pages, orders := len(r.open.requests()), len(r.orders.requests())
	for name, a := range apis() {
		if text := r.asks(a, true, "read the open one", token); !strings.Contains(text, "policy_denied") {
			t.Errorf("%s: %q", name, text)
		}
		if text := r.asks(a, true, "order five", token); !strings.Contains(text, "policy_denied") {
			t.Errorf("%s: %q", name, text)
		}
	}
	if len(r.open.requests()) != pages || len(r.orders.requests()) != orders {
		t.Error("a call was made that a policy held back")
	}
	if text := r.asks(chats, false, "read the open one", trusted); !strings.Contains(text, "open page") {
		t.Errorf("a caller whom the policy names: %q", text)
	}
	if text := r.asks(chats, false, "order five", trusted); !strings.Contains(text, "ordered") {
		t.Errorf("a caller whom the policy names: %q", text)
	}
	log, err := os.ReadFile(r.audit)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"web_fetch: Denied (host)"`, `"orders: ApprovalRequired (amount)"`} {
		if !strings.Contains(string(log), want) {
			t.Errorf("the audit log lacks %s", want)
		}
	}
}

// Programs run as tasks of the caller, if the operator allows such tasks.
func TestServerToolsCode(t *testing.T) {
	t.Parallel()
	worker := kit.Bin(t, "platform-worker")
	for _, allowed := range []bool{true, false} {
		r := newReaching(t, func(o *standalone.Options) { o.Controllers, o.WorkerBinary, o.AllowHostCommands = nil, worker, allowed })
		token := r.Token(t, "team", "client", "chat-tools")
		for name, a := range apis() {
			want := map[string][]string{"run it": {"it ran"}, "fail now": {"it ran", "exit code 3", "oops"}}
			if !allowed {
				want = map[string][]string{"run it": {"unavailable", "was not run", "--allow-host-commands"}}
			}
			for prompt, all := range want {
				text := r.asks(a, false, prompt, token)
				for _, part := range all {
					if !strings.Contains(text, part) {
						t.Errorf("%s, %s: %q lacks %q", name, prompt, text, part)
					}
				}
			}
		}
		tasks, err := r.admin.Tasks("team").List(t.Context(), metav1.ListOptions{LabelSelector: v1alpha1.LabelCreatedBy + "=" + v1alpha1.CreatedByOrchestrator})
		if err != nil || len(tasks.Items) == 0 {
			t.Errorf("%d tasks, %v", len(tasks.Items), err)
		}
		for _, task := range tasks.Items {
			if by := task.Annotations[v1alpha1.AnnotationRequestedBy]; by != "system:serviceaccount:team:client" {
				t.Errorf("task %s was created by %q", task.Name, by)
			}
		}
	}
}
