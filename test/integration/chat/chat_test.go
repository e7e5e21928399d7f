// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
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
)

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
func chatStream(c *standalone.Client, ctx context.Context, body map[string]any) []frame {
	c.T.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		c.T.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Base+"/api/v1/chat", bytes.NewReader(raw))
	if err != nil {
		c.T.Fatal(err)
	}
	req.Header = c.Header.Clone()
	resp, err := c.HTTP.Do(req)
	if err != nil {
		c.T.Fatal(err)
	}
	defer resp.Body.Close()
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || kind != sse.ContentType {
		c.T.Fatalf("stream: %d %s", resp.StatusCode, kind)
	}
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		c.T.Fatal(err)
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
			c.T.Fatalf("%q: %v", text, err)
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
	p, model := standalone.WithChat(t, orchestrator)
	c := p.REST(t, "default", "editor", "platform-editor")
	first := c.Chat(map[string]any{"message": "run it"}, http.StatusOK)
	if !strings.HasPrefix(first.SessionID, "chat-session-") || first.Outcome != "Completed" || len(first.ToolCalls) != 1 || !first.ToolCalls[0].Result.Success ||
		first.Usage.LLMCalls != 3 || first.Usage.TasksCreated != 1 || first.Usage.InputTokens == 0 {
		t.Fatalf("%+v", first)
	}
	name := strings.TrimPrefix(first.Message, "Done: ")
	task, err := p.Tasks().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(name, "chat-") || !strings.HasSuffix(name, "-build-it") || task.Labels[v1alpha1.LabelCreatedBy] != "orchestrator" ||
		task.Labels[v1alpha1.LabelChatSession] != first.SessionID || task.Annotations[v1alpha1.AnnotationRequestedBy] != "system:serviceaccount:default:editor" {
		t.Errorf("task %s: %v %v", name, task.Labels, task.Annotations)
	}
	second := c.Chat(map[string]any{"message": "what did I say first?", "sessionId": first.SessionID}, http.StatusOK)
	if second.Message != "You said run it." || second.SessionID != first.SessionID || len(second.ToolCalls) != 0 {
		t.Errorf("%+v", second)
	}
	s := p.Session(first.SessionID)
	if s.Spec.SessionType != v1alpha1.SessionTypeChat || s.Status.MessageCount != 6 || s.Status.InputTokens == nil || *s.Status.InputTokens != first.Usage.InputTokens+second.Usage.InputTokens {
		t.Errorf("session: %+v", s.Status)
	}
	native, err := p.API().Chats("default").Create(t.Context(), &v1alpha1.Chat{Spec: v1alpha1.ChatSpec{Message: "hello"}}, metav1.CreateOptions{})
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
	p, _ := standalone.WithChat(t, orchestrator)
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
			"--server", p.URL, "--certificate-authority", ca, "--token", p.Token(t, "default", "editor", "platform-editor"))
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
	p, _ := standalone.WithChat(t, orchestrator)
	c := p.REST(t, "default", "editor", "platform-editor")
	frames := chatStream(c, t.Context(), map[string]any{"message": "run it"})
	for i, f := range frames {
		if f.id != jsonText(t, i+1) {
			t.Errorf("frame %d has id %s", i+1, f.id)
		}
	}
	last := ""
	frames = slices.DeleteFunc(frames, func(f frame) bool { // how a text is divided is the server's choice
		again := f.event == last
		last = f.event
		return again
	})
	var got []string
	for _, f := range frames {
		got = append(got, f.event)
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
	return string(kit.Must[[]byte](t)(json.Marshal(v)))
}

// chatOnly makes two roles: chat-only permits chats and nothing else, chat-on also to go on with sessions.
func chatOnly(p *standalone.Platform) {
	p.T.Helper()
	chat := []rbacv1.PolicyRule{
		{Verbs: []string{"create"}, APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"chats"}},
		{Verbs: []string{"list"}, APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"providers"}},
	}
	goOn := rbacv1.PolicyRule{Verbs: []string{"get", "update"}, APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"sessions"}}
	for _, role := range []*rbacv1.ClusterRole{
		{ObjectMeta: metav1.ObjectMeta{Name: "chat-only"}, Rules: chat}, {ObjectMeta: metav1.ObjectMeta{Name: "chat-on"}, Rules: append(chat, goOn)},
	} {
		if _, err := p.Kubernetes(p.T).RbacV1().ClusterRoles().Create(p.T.Context(), role, metav1.CreateOptions{}); err != nil {
			p.T.Fatal(err)
		}
	}
}

// TestChatAloneCreatesNothing: a caller who may only chat gets no task, and the model reads the refusal.
func TestChatAloneCreatesNothing(t *testing.T) {
	t.Parallel()
	p, _ := standalone.WithChat(t, orchestrator)
	chatOnly(p)
	c := p.REST(t, "default", "talker", "chat-only")
	got := c.Chat(map[string]any{"message": "run it"}, http.StatusOK)
	if len(got.ToolCalls) != 1 || got.ToolCalls[0].Result.Success || got.ToolCalls[0].Result.ErrorType != "permission_denied" || got.Message != "Refused: permission_denied" {
		t.Errorf("%+v", got)
	}
	list, err := p.Tasks().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("%d tasks, %v", len(list.Items), err)
	}
	c.Chat(map[string]any{"message": "hello", "sessionId": got.SessionID}, http.StatusForbidden) // needs get and update on it
}

// TestChatRefusals: what is refused before a model is asked.
func TestChatRefusals(t *testing.T) {
	t.Parallel()
	p, model := standalone.WithChat(t, orchestrator)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	if _, err := p.Kubernetes(t).CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, kind := range map[string]v1alpha1.SessionType{"of-task": v1alpha1.SessionTypeTask, "of-gateway": v1alpha1.SessionTypeGateway} {
		s := &v1alpha1.Session{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.SessionSpec{SessionType: kind}}
		if _, err := p.Sessions().Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	editor := p.REST(t, "default", "editor", "platform-editor")
	viewer := p.REST(t, "default", "viewer", "platform-viewer")
	for name, tt := range map[string]struct {
		as   *standalone.Client
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
		tt.as.Chat(tt.body, tt.code)
	}
	for _, blocked := range []string{"kube-system", "kube-public", "platform-system"} {
		_, err := p.API().Chats(blocked).Create(t.Context(), &v1alpha1.Chat{Spec: v1alpha1.ChatSpec{Message: "hello"}}, metav1.CreateOptions{})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "chats are not allowed in namespace") {
			t.Errorf("%s, for the administrator: %v", blocked, err)
		}
	}
	if n := len(model.Exchanges()); n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
	var config v1alpha1.ChatConfig
	got := viewer.Do(http.MethodGet, "/api/v1/chat/config", "")
	if err := json.Unmarshal([]byte(got.Body), &config); got.Code != 200 || err != nil || !config.Enabled || config.MaxIterations != 50 || config.MaxConcurrent != 10 || len(config.AvailableTools) < 10 {
		t.Errorf("config: %d %s", got.Code, got.Body)
	}
}
