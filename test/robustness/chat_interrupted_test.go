// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/sse"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

const interruptedScript = `
models: [scripted-1]
turns:
- match: {contains: do it}
  reply:
    text: I do it.
    toolCalls:
    - {name: create_tool, arguments: {name: made, description: d, url: "https://example.com/"}}
    - {name: wait_for_task, arguments: {name: later, timeout: 60}}
    - {name: delete_tool, arguments: {name: made}}
- match: {contains: what happened}
  reply: {text: You were cut off.}
`

// TestTurnKilledInATool kills the server while a tool of an ordinary turn runs. The model of the next turn reads what was
// done, that the outcome of the call under way is not known, and that the turn was interrupted. The call after it was not
// made.
func TestTurnKilledInATool(t *testing.T) {
	parsed, err := script.Parse([]byte(interruptedScript))
	if err != nil {
		t.Fatal(err)
	}
	model := script.New(parsed, io.Discard)
	vendor := httptest.NewServer(model)
	defer vendor.Close()
	s := kit.StartServer(t, t.TempDir())
	c := newChatClient(t, s.Kubeconfig)
	c.answers(t, vendor.URL)
	task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "later"}, Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI, Prompt: "x", Schedule: "0 0 1 1 *"}}
	if _, err := c.api.CoreV1alpha1().Tasks("default").Create(t.Context(), task, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	said := v1alpha1.Chat{Spec: v1alpha1.ChatSpec{SessionID: "cut", Message: "do it: create and delete a tool"}}
	said.APIVersion, said.Kind = v1alpha1.SchemeGroupVersion.String(), "Chat"
	stream, err := c.api.CoreV1alpha1().RESTClient().Post().Namespace("default").Resource("chats").SetHeader("Accept", sse.ContentType).Body(&said).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	in := sse.NewReader(stream, sse.Options{})
	for {
		e, err := in.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == "tool_call" && strings.Contains(e.Data, "wait_for_task") {
			break
		}
	}
	s.Kill()
	s.Restart(t)
	next, err := c.api.CoreV1alpha1().Chats("default").Create(t.Context(), &v1alpha1.Chat{Spec: v1alpha1.ChatSpec{SessionID: "cut", Message: "what happened?"}}, metav1.CreateOptions{})
	if err != nil || next.Status.Message != "You were cut off." {
		t.Fatalf("%+v, %v; the model refused %v", next, err, model.Refused())
	}
	all := model.Exchanges()
	var read []string
	for _, m := range all[len(all)-1].Request.Messages[1:] {
		line := m.Role + ": " + m.Text()
		for _, call := range m.ToolCalls {
			line += " " + call.Function.Name
		}
		read = append(read, line)
	}
	for i, want := range []string{
		"user: do it", "assistant: I do it. create_tool wait_for_task", `tool: {"success":true`, "tool: " + `{"success":false,"error":"the server stopped during this call, which may or may not`,
		"assistant: [this turn was interrupted", "user: what happened?",
	} {
		if i >= len(read) || !strings.HasPrefix(read[i], want) {
			t.Fatalf("message %d is not %q:\n%s", i+1, want, strings.Join(read, "\n"))
		}
	}
	if len(read) != 6 || strings.Contains(strings.Join(read, ""), "delete_tool") {
		t.Errorf("the model read more:\n%s", strings.Join(read, "\n"))
	}
	if _, err := c.api.CoreV1alpha1().Tools("default").Get(t.Context(), "made", metav1.GetOptions{}); err != nil {
		t.Errorf("the call after the interruption was made: %v", err)
	}
}
