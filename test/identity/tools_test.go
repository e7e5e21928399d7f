// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

// automatic are the tools that every task of type ai has.
var automatic = []string{"recall_memory", "remember", "propose_memory", "search_transcript"}

// tools is the context of a transaction that allows only these tools.
func tools(more ...string) object { return object{"allowedTools": slices.Concat(automatic, more)} }

// A transaction that allows certain tools permits no task that has others, be they named, an agent's or automatic, and no call
// of a tool that an agent got later.
func TestAllowedTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.bind("team", "platform-editor", external.GroupContextToken)
	w.apply("agents", "plain", "kind: Agent\nspec: {providerRef: {name: mine}, tools: [{name: web_fetch}, {name: web_search, enabled: false}]}", nil)
	token := func(limits object) string {
		return w.issuer.transaction("user-1", object{"scope": allScopes, "tctx": limits})
	}
	w.await(func() bool {
		code, _ := w.send(http.MethodGet, "/api/v1/tasks", "", "Txn-Token", token(nil))
		return code == http.StatusOK
	})
	const ai = `{"name":"NEW","type":"ai","prompt":"p","ai":{"providerRef":{"name":"mine"},"tools":[TOOLS]}}`
	const plain = `{"name":"NEW","type":"ai","prompt":"p","agentRef":{"name":"plain"}}`
	const coordinator = `{"name":"NEW","type":"ai","prompt":"p","agentRef":{"name":"parent"}}`
	created := 0
	create := func(limits object, body, without string) {
		t.Helper()
		created++
		body = strings.ReplaceAll(body, "NEW", "new-"+strings.Repeat("x", created))
		code, answer := w.send(http.MethodPost, "/api/v1/tasks", body, "Txn-Token", token(limits))
		if without == "" && code != http.StatusCreated || without != "" && (code != http.StatusForbidden || !strings.Contains(answer, without)) {
			t.Errorf("%v %s: %d %s, want a refusal of %q", limits, body, code, answer, without)
		}
	}
	named := func(tools string) string { return strings.ReplaceAll(ai, "TOOLS", tools) }
	create(tools(), named(""), "")
	create(tools("web_fetch"), named(`"web_fetch"`), "")
	create(tools(), named(`"web_fetch"`), "web_fetch")
	create(tools(), named(`"nothing-has-this-name"`), "nothing-has-this-name")
	create(object{"allowedTools": "web_fetch"}, named(`"web_fetch"`), "recall_memory")
	create(object{"allowedTools": []string{}}, named(""), "allows no tools")
	create(object{"allowedTools": nil}, named(`"web_fetch"`), "")
	create(tools("web_fetch"), plain, "")
	create(tools("web_search"), plain, "web_fetch")
	create(tools("parent"), coordinator, "delegate_task")
	create(tools(), `{"name":"NEW","type":"ai","prompt":"p","agentRef":{"name":"none"}}`, "does not exist")
	create(object{"allowedTools": []string{}}, `{"name":"NEW","type":"container","command":["true"]}`, "")

	all := tools("parent", "delegate_task", "wait_for_tasks", "create_container_task", "cancel_task", "send_message", "check_messages", "create_agent", "delete_agent", "update_plan",
		"create_pull_request", "check_pull_request_ci", "review_pull_request", "post_review_comment", "merge_pull_request", "auto_merge_pull_request", "list_pull_requests", "check_pr_review_marker")
	code, answer := w.send(http.MethodPost, "/api/v1/tasks", strings.ReplaceAll(coordinator, "NEW", "root"), "Txn-Token", token(all))
	if code != http.StatusCreated {
		t.Fatalf("%d %s", code, answer)
	}
	if code, answer := w.send(http.MethodPost, "/api/v1/tasks/root/fork", `{"newTaskName":"forked"}`, "Txn-Token", token(tools())); code != http.StatusForbidden {
		t.Errorf("a fork: %d %s", code, answer)
	}
	ctx := context.Background()
	root := w.publish("root", v1alpha1.TaskRunning)
	me := w.as(w.worker(root))
	child := func(agent string) error {
		_, err := me.Tasks("team").Create(ctx, &v1alpha1.Task{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "child-", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(root, v1alpha1.SchemeGroupVersion.WithKind("Task"))}},
			Spec:       v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI, Prompt: "part of it, for " + agent, AgentRef: &v1alpha1.NamespacedReference{Name: agent}},
		}, metav1.CreateOptions{})
		return err
	}
	if err := child("plain"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "web_fetch") {
		t.Errorf("a child with more tools: %v", err)
	}
	w.apply("agents", "quiet", "kind: Agent\nspec: {providerRef: {name: mine}}", nil)
	if err := child("quiet"); err != nil {
		t.Errorf("a child: %v", err)
	}
	verdict := func(tool string) v1alpha1.ToolCallStatus {
		call := &v1alpha1.ToolCall{Spec: v1alpha1.ToolCallSpec{TaskName: "root", ToolName: tool}}
		return must(me.ToolCalls("team").Create(ctx, call, metav1.CreateOptions{}))(t).Status
	}
	patch := []byte(`{"spec":{"tools":[{"name":"parent"},{"name":"web_search"}]}}`)
	must(w.api.Agents("team").Patch(ctx, "parent", types.MergePatchType, patch, metav1.PatchOptions{}))(t)
	if s := verdict("delegate_task"); s.Verdict != v1alpha1.ToolCallAllowed {
		t.Errorf("a call of an allowed tool: %+v", s)
	}
	if s := verdict("web_search"); s.Verdict != v1alpha1.ToolCallDenied || !strings.Contains(s.Findings[0].Message, "web_search") {
		t.Errorf("a call of a tool that the agent got later: %+v", s)
	}
	const stored = "/apis/core.platform.ai/v1alpha1/namespaces/team/tasks/root"
	if a := w.Ask(t, w.Anonymous(), http.MethodPatch, stored, `{"spec":{"suspend":true}}`,
		"Content-Type", string(types.MergePatchType), "Txn-Token", token(all)); a.Code != http.StatusForbidden || !strings.Contains(a.Body, "cannot change tasks") {
		t.Errorf("a change of a task: %d %s", code, answer)
	}
}

// Models are offered the tools that the caller's transaction allows, in chats and by the vendors' APIs, and what this server
// runs itself needs a scope as well.
func TestAllowedToolsOfChats(t *testing.T) {
	t.Parallel()
	parsed := must(script.Parse([]byte("models: [scripted-1]\nturns: [{match: {}, reply: {text: \"[goal: reached]\\nwell\"}}]")))(t)
	model := script.New(parsed, io.Discard)
	vendor := httptest.NewServer(model)
	t.Cleanup(vendor.Close)
	for _, mode := range []string{external.ModeOff, external.ModeAudit, external.ModeEnforce} {
		i, s := scopes(t, mode, nil)
		key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, StringData: map[string]string{"api-key": "k-1234567890"}}
		must(s.Kubernetes(t).CoreV1().Secrets("team").Create(t.Context(), key, metav1.CreateOptions{}))(t)
		must(s.Core(t).Providers("team").Create(t.Context(), &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: v1alpha1.ProviderSpec{
			Type: v1alpha1.ProviderOpenAI, BaseURL: vendor.URL + "/v1", DefaultModel: "scripted-1", SecretRef: v1alpha1.ProviderSecretReference{Name: "key", Key: "api-key"},
		}}, metav1.CreateOptions{}))(t)
		const scope = "platform:sessions:write platform:providers:use platform:tools:read"
		offered := func(path, scope string, allowed object) []string {
			t.Helper()
			body := `{"message":"hello"}`
			if strings.HasPrefix(path, "/openai") {
				body = `{"model":"scripted-1","messages":[{"role":"user","content":"hello"}]}`
			}
			code, answer := s.send(http.MethodPost, path, body, "Txn-Token", i.transaction("user-1", object{"scope": scope, "tctx": allowed}))
			if code != http.StatusOK {
				t.Fatalf("%s: %s: %d %s", mode, path, code, answer)
			}
			all := model.Exchanges()
			var names []string
			for _, o := range all[len(all)-1].Request.Tools {
				names = append(names, o.Function.Name)
			}
			return names
		}
		for _, c := range []struct {
			path, scope string
			limits      object
			want        []string // in mode enforce
		}{
			{"/api/v1/chat", scope, object{"allowedTools": []string{"list_tasks", "list_agents"}}, []string{"list_agents", "list_tasks"}},
			{"/api/v1/chat", scope, object{"allowedTools": []string{}}, nil},
			{"/openai/v1/chat/completions", scope, object{"allowedTools": []string{"list_tasks", "web_fetch"}}, []string{"list_tasks"}},
			{"/openai/v1/chat/completions", scope + " platform:tools:use", object{"allowedTools": []string{"list_tasks", "web_fetch"}}, []string{"list_tasks", "web_fetch"}},
		} {
			got := offered(c.path, c.scope, c.limits)
			if mode != external.ModeEnforce {
				if !slices.Contains(got, "create_ai_task") {
					t.Errorf("%s: %s %v: %v", mode, c.path, c.limits, got)
				}
			} else if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s %s %v (-want +got):\n%s", c.path, c.scope, c.limits, d)
			}
		}
		if got := offered("/openai/v1/chat/completions", scope, nil); slices.Contains(got, "web_search") != (mode != external.ModeEnforce) || !slices.Contains(got, "create_ai_task") {
			t.Errorf("%s: without tools:use: %v", mode, got)
		}
	}
}
