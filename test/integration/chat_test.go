// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/sse"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

// withChat returns a server without controllers whose namespaces have a Provider "default" on a scripted model.
func withChat(t *testing.T, text string, configure ...func(*standalone.Options)) (*platform, *script.Server) {
	t.Helper()
	parsed, err := script.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	model := script.New(parsed, io.Discard)
	server := httptest.NewServer(model)
	t.Cleanup(server.Close)
	p := &platform{t: t, Server: standalone.Start(t, configure...)}
	p.answers("default", server.URL)
	return p, model
}

// answers gives a namespace a Provider "default".
func (p *platform) answers(ns, url string) {
	p.t.Helper()
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, StringData: map[string]string{"api-key": "k-1234567890"}}
	if _, err := p.Kubernetes(p.t).CoreV1().Secrets(ns).Create(p.t.Context(), key, metav1.CreateOptions{}); err != nil {
		p.t.Fatal(err)
	}
	provider := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: v1alpha1.ProviderSpec{
		Type: v1alpha1.ProviderOpenAI, BaseURL: url + "/v1", DefaultModel: "scripted-1",
		SecretRef: v1alpha1.ProviderSecretReference{Name: "key", Key: "api-key"},
	}}
	if _, err := p.api().Providers(ns).Create(p.t.Context(), provider, metav1.CreateOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

// chatReply is the JSON answer of a turn.
type chatReply struct {
	SessionID string `json:"sessionId"`
	Message   string `json:"message"`
	Outcome   string `json:"outcome"`
	ToolCalls []struct {
		Name   string         `json:"name"`
		Args   map[string]any `json:"args"`
		Result struct {
			Success   bool   `json:"success"`
			Error     string `json:"error"`
			ErrorType string `json:"errorType"`
			Data      any    `json:"data"`
		} `json:"result"`
	} `json:"toolCalls"`
	Usage struct {
		InputTokens, OutputTokens, LLMCalls, TasksCreated int64
	} `json:"usage"`
}

// chat asks for a turn as JSON.
func (c *restClient) chat(body map[string]any, code int) chatReply {
	c.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	got := c.with("Accept", "application/json").do(http.MethodPost, "/api/v1/chat", string(raw))
	if got.code != code {
		c.t.Fatalf("chat %.200s: %d %s, want %d", raw, got.code, got.body, code)
	}
	var out chatReply
	if code == http.StatusOK {
		if err := json.Unmarshal([]byte(got.body), &out); err != nil {
			c.t.Fatal(err)
		}
	}
	return out
}

// frame is one event of a chat's stream.
type frame struct {
	id, event, data string
	chatEnvelope
}

type chatEnvelope struct {
	SessionID, Provider, Model, Content, Outcome string
	ToolCall                                     *v1alpha1.ChatToolCall
	Error                                        *struct{ Code, Message string }
	Usage                                        *v1alpha1.ChatUsage
}

// chatStream asks for a turn as a stream and returns its frames.
func (c *restClient) chatStream(ctx context.Context, body map[string]any) []frame {
	c.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		c.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/api/v1/chat", bytes.NewReader(raw))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header = c.header.Clone()
	resp, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || kind != sse.ContentType {
		c.t.Fatalf("stream: %d %s", resp.StatusCode, kind)
	}
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	var frames []frame
	for text := range strings.SplitSeq(strings.TrimSpace(string(all)), "\n\n") {
		if strings.HasPrefix(text, ":") {
			continue
		}
		var f frame
		for line := range strings.SplitSeq(text, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			switch name {
			case "id":
				f.id = value
			case "event":
				f.event = value
			case "data":
				f.data = value
			}
		}
		if err := json.Unmarshal([]byte(f.data), &f.chatEnvelope); err != nil {
			c.t.Fatalf("%q: %v", text, err)
		}
		frames = append(frames, f)
	}
	return frames
}

const orchestrator = `
models: [scripted-1]
turns:
- name: create
  match: {contains: run it, system: <available_tools>}
  reply: {text: "I create it.", toolCalls: [{name: create_container_task, arguments: {name: Build It, command: ["true"]}}]}
- name: created
  match: {lastRole: tool, contains: '"success":true'}
  reply: {text: "Done: {{ .Results.create_container_task.data.name }}"}
- name: refused
  match: {lastRole: tool, contains: '"success":false'}
  reply: {text: "Refused: {{ .Results.create_container_task.errorType }}"}
- name: unfinished again
  match: {contains: have not ended, turn: 4}
  reply: {text: You said run it.}
- name: unfinished
  match: {contains: have not ended}
  reply: {text: "Done: {{ .Results.create_container_task.data.name }}"}
- name: again
  match: {contains: what did I say first, turn: 3}
  reply: {text: You said run it.}
- name: hello
  match: {contains: hello}
  reply: {text: Hello.}
`

// TestChat: a turn creates a task as the caller, with labels and a name of its session; the next turn knows the one before;
// the session counts messages and tokens.
func TestChat(t *testing.T) {
	t.Parallel()
	p, model := withChat(t, orchestrator)
	c := restAs(t, p.Server, "default", "editor", "platform-editor")
	first := c.chat(map[string]any{"message": "run it"}, http.StatusOK)
	if !strings.HasPrefix(first.SessionID, "chat-session-") || first.Outcome != "Completed" || len(first.ToolCalls) != 1 || !first.ToolCalls[0].Result.Success ||
		first.Usage.LLMCalls != 3 || first.Usage.TasksCreated != 1 || first.Usage.InputTokens == 0 {
		t.Fatalf("%+v", first)
	}
	name := strings.TrimPrefix(first.Message, "Done: ")
	task, err := p.tasks().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(name, "chat-") || !strings.HasSuffix(name, "-build-it") || task.Labels[v1alpha1.LabelCreatedBy] != "orchestrator" ||
		task.Labels[v1alpha1.LabelChatSession] != first.SessionID || task.Annotations[v1alpha1.AnnotationRequestedBy] != "system:serviceaccount:default:editor" {
		t.Errorf("task %s: %v %v", name, task.Labels, task.Annotations)
	}
	second := c.chat(map[string]any{"message": "what did I say first?", "sessionId": first.SessionID}, http.StatusOK)
	if second.Message != "You said run it." || second.SessionID != first.SessionID || len(second.ToolCalls) != 0 {
		t.Errorf("%+v", second)
	}
	s := p.session(first.SessionID)
	if s.Spec.SessionType != v1alpha1.SessionTypeChat || s.Status.MessageCount != 6 || s.Status.InputTokens == nil || *s.Status.InputTokens != first.Usage.InputTokens+second.Usage.InputTokens {
		t.Errorf("session: %+v", s.Status)
	}
	native, err := p.api().Chats("default").Create(t.Context(), &v1alpha1.Chat{Spec: v1alpha1.ChatSpec{Message: "hello"}}, metav1.CreateOptions{})
	if err != nil || native.Status.Message != "Hello." || native.Status.Outcome != v1alpha1.ChatCompleted {
		t.Errorf("%+v, %v", native, err)
	}
	if refused := model.Refused(); len(refused) > 0 {
		t.Errorf("the model refused %v", refused)
	}
}

// TestChatByKubectl: kubectl create with its default validation prints the answer, for a user of one namespace, too.
// What a Chat does not have is refused by name.
func TestChatByKubectl(t *testing.T) {
	t.Parallel()
	p, _ := withChat(t, orchestrator)
	dir := t.TempDir()
	kubectl := func(spec string) kit.Result {
		manifest := filepath.Join(dir, "chat.yaml")
		if err := os.WriteFile(manifest, []byte("apiVersion: core.platform.ai/v1alpha1\nkind: Chat\nspec: "+spec), 0o600); err != nil {
			t.Fatal(err)
		}
		ca := filepath.Join(dir, "ca.crt")
		if err := os.WriteFile(ca, p.Admin.CAData, 0o600); err != nil {
			t.Fatal(err)
		}
		return kit.Run(t, append(os.Environ(), "HOME="+dir, "KUBECONFIG="), kit.Bin(t, "kubectl"), "create", "-f", manifest, "-o", "yaml",
			"--server", p.URL, "--certificate-authority", ca, "--token", accountToken(t, p.Server, "default", "editor", "platform-editor"))
	}
	if r := kubectl("{message: hello}"); r.Code != 0 || !strings.Contains(r.Output, "message: Hello.") {
		t.Errorf("kubectl create: %d %s", r.Code, r.Output)
	}
	if r := kubectl("{message: hello, volume: loud}"); r.Code == 0 || !strings.Contains(r.Output, "volume") {
		t.Errorf("an unknown field: %d %s", r.Code, r.Output)
	}
}

// TestChatStream: the frames of a turn, in order, with ids.
func TestChatStream(t *testing.T) {
	t.Parallel()
	p, _ := withChat(t, orchestrator)
	c := restAs(t, p.Server, "default", "editor", "platform-editor")
	frames := c.chatStream(t.Context(), map[string]any{"message": "run it"})
	var got []string
	for i, f := range frames {
		got = append(got, f.event)
		if f.id != jsonText(t, i+1) {
			t.Errorf("frame %d has id %s", i+1, f.id)
		}
	}
	if want := "status message tool_call tool_result message done"; strings.Join(got, " ") != want {
		t.Fatalf("%v, want %s", got, want)
	}
	if f := frames[0]; f.Provider != "default" || f.Model != "scripted-1" || f.SessionID == "" {
		t.Errorf("status: %s", f.data)
	}
	if f := frames[2]; f.ToolCall.Name != "create_container_task" || !strings.Contains(string(f.ToolCall.Args.Raw), "Build It") {
		t.Errorf("tool_call: %s", f.data)
	}
	if f := frames[3]; !strings.Contains(string(f.ToolCall.Result.Raw), `"success":true`) {
		t.Errorf("tool_result: %s", f.data)
	}
	if f := frames[5]; f.Usage == nil || f.Usage.LLMCalls != 3 || f.Outcome != "Completed" {
		t.Errorf("done: %s", f.data)
	}
}

func jsonText(t *testing.T, v any) string {
	t.Helper()
	return string(must[[]byte](t)(json.Marshal(v)))
}

// chatOnly makes two roles: chat-only permits chats and nothing else, chat-on also to go on with sessions.
func (p *platform) chatOnly() {
	p.t.Helper()
	chat := []rbacv1.PolicyRule{
		{Verbs: []string{"create"}, APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"chats"}},
		{Verbs: []string{"list"}, APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"providers"}},
	}
	goOn := rbacv1.PolicyRule{Verbs: []string{"get", "update"}, APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"sessions"}}
	for _, role := range []*rbacv1.ClusterRole{
		{ObjectMeta: metav1.ObjectMeta{Name: "chat-only"}, Rules: chat}, {ObjectMeta: metav1.ObjectMeta{Name: "chat-on"}, Rules: append(chat, goOn)},
	} {
		if _, err := p.Kubernetes(p.t).RbacV1().ClusterRoles().Create(p.t.Context(), role, metav1.CreateOptions{}); err != nil {
			p.t.Fatal(err)
		}
	}
}

// TestChatAloneCreatesNothing: a caller who may only chat gets no task, and the model reads the refusal.
func TestChatAloneCreatesNothing(t *testing.T) {
	t.Parallel()
	p, _ := withChat(t, orchestrator)
	p.chatOnly()
	c := restAs(t, p.Server, "default", "talker", "chat-only")
	got := c.chat(map[string]any{"message": "run it"}, http.StatusOK)
	if len(got.ToolCalls) != 1 || got.ToolCalls[0].Result.Success || got.ToolCalls[0].Result.ErrorType != "permission_denied" || got.Message != "Refused: permission_denied" {
		t.Errorf("%+v", got)
	}
	list, err := p.tasks().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("%d tasks, %v", len(list.Items), err)
	}
	c.chat(map[string]any{"message": "hello", "sessionId": got.SessionID}, http.StatusForbidden) // needs get and update on it
}

// TestChatRefusals: what is refused before a model is asked.
func TestChatRefusals(t *testing.T) {
	t.Parallel()
	p, model := withChat(t, orchestrator)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	if _, err := p.Kubernetes(t).CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, kind := range map[string]v1alpha1.SessionType{"of-task": v1alpha1.SessionTypeTask, "of-gateway": v1alpha1.SessionTypeGateway} {
		s := &v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.SessionSpec{SessionType: kind}}
		if _, err := p.sessions().Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	editor := restAs(t, p.Server, "default", "editor", "platform-editor")
	viewer := restAs(t, p.Server, "default", "viewer", "platform-viewer")
	for name, tt := range map[string]struct {
		as   *restClient
		body map[string]any
		code int
	}{
		"no message":         {editor, map[string]any{}, 400},
		"blank message":      {editor, map[string]any{"message": " "}, 400},
		"long message":       {editor, map[string]any{"message": strings.Repeat("a", 15<<20)}, 413},
		"long instructions":  {editor, map[string]any{"message": "hello", "systemPrompt": strings.Repeat("a", 15<<20)}, 413},
		"unknown member":     {editor, map[string]any{"message": "hello", "mesage": "x"}, 400},
		"unknown provider":   {editor, map[string]any{"message": "hello", "provider": "nothing"}, 400},
		"hot":                {editor, map[string]any{"message": "hello", "temperature": 3}, 400},
		"session of a task":  {editor, map[string]any{"message": "hello", "sessionId": "of-task"}, 400},
		"session of gateway": {editor, map[string]any{"message": "hello", "sessionId": "of-gateway"}, 404},
		"a viewer":           {viewer, map[string]any{"message": "hello"}, 403},
		"another namespace":  {editor, map[string]any{"message": "hello", "namespace": "other"}, 403},
		"blocked namespace":  {editor, map[string]any{"message": "hello", "namespace": "kube-system"}, 403},
	} {
		t.Log(name)
		tt.as.chat(tt.body, tt.code)
	}
	for _, blocked := range []string{"kube-system", "kube-public", "platform-system"} {
		_, err := p.api().Chats(blocked).Create(t.Context(), &v1alpha1.Chat{Spec: v1alpha1.ChatSpec{Message: "hello"}}, metav1.CreateOptions{})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "chats are not allowed in namespace") {
			t.Errorf("%s, for the administrator: %v", blocked, err)
		}
	}
	if n := len(model.Exchanges()); n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
	var config v1alpha1.ChatConfig
	got := viewer.do(http.MethodGet, "/api/v1/chat/config", "")
	if err := json.Unmarshal([]byte(got.body), &config); got.code != 200 || err != nil || !config.Enabled || config.MaxIterations != 50 || config.MaxConcurrent != 10 || len(config.AvailableTools) < 10 {
		t.Errorf("config: %d %s", got.code, got.body)
	}
}
