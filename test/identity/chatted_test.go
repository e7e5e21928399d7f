// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

// creating is a model that creates a task in each turn.
const creating = `
models: [scripted-1]
turns:
- match: {lastRole: tool}
  reply: {text: "[goal: reached]\nDone."}
- match: {contains: have not ended}
  reply: {text: "[goal: reached]\nDone."}
- match: {contains: once more}
  reply: {toolCalls: [{name: create_container_task, arguments: {name: more, command: ["true"]}}]}
- match: {contains: run it}
  reply: {toolCalls: [{name: create_container_task, arguments: {name: made, command: ["true"]}}]}
`

// chatScopes are what a transaction needs to create tasks in chats.
const chatScopes = "platform:sessions:write platform:sessions:read platform:providers:use platform:tasks:create platform:secrets:credentials:read"

// chatting is a server whose namespace team has a model that creates tasks.
type chatting struct {
	*server

	issuer *issuer
	seal   *external.Seal
	// first, if it is set, answers the first request to the model.
	first atomic.Pointer[http.HandlerFunc]
}

func newChatting(t *testing.T) *chatting {
	t.Helper()
	c := &chatting{}
	c.issuer, c.server = scopes(t, external.ModeEnforce, nil)
	c.seal = must(external.OpenSeal(filepath.Join(c.DataDir, "pki", "requester.key")))(t)
	model := script.New(must(script.Parse([]byte(creating)))(t), io.Discard)
	vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if first := c.first.Swap(nil); first != nil {
			(*first)(w, r)
			return
		}
		model.ServeHTTP(w, r)
	}))
	t.Cleanup(vendor.Close)
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, StringData: map[string]string{"api-key": "k-1234567890"}}
	must(c.Kubernetes(t).CoreV1().Secrets("team").Create(t.Context(), key, metav1.CreateOptions{}))(t)
	must(c.Core(t).Providers("team").Create(t.Context(), &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "default"}, Spec: v1alpha1.ProviderSpec{
		Type: v1alpha1.ProviderOpenAI, BaseURL: vendor.URL + "/v1", DefaultModel: "scripted-1", SecretRef: v1alpha1.ProviderSecretReference{Name: "key", Key: "api-key"},
	}}, metav1.CreateOptions{}))(t)
	return c
}

// asker is a caller of one kind.
type asker struct {
	name   string
	header []string
	// requester is what its tasks record.
	requester *v1alpha1.TaskRequester
}

// askers are callers of both kinds, whose claims have characters that headers and JSON treat in a special way, and words that
// are removed from texts as secrets.
func (c *chatting) askers() []asker {
	person := object{"preferred_username": "Änne Ø", "email": "ann@example.com", "groups": []string{"dev", "größe, 2"}, "roles": []string{"r1", "r2"}}
	transaction := object{"scope": chatScopes, "preferred_username": "bob", "tctx": object{"grund": "größer < 1\n", "session_token": "Zk4Qx7hunter2"}, "rctx": object{"ip": "192.0.2.1"}}
	return []asker{
		{"person", []string{"Authorization", "Bearer " + c.issuer.token("user-1", person)}, &v1alpha1.TaskRequester{
			Subject: "user-1", Issuer: c.issuer.URL, Username: "Änne Ø", Email: "ann@example.com", Groups: []string{"dev", "größe, 2"}, Roles: []string{"r1", "r2"},
		}},
		{"transaction", []string{"Txn-Token", c.issuer.transaction("user-2", transaction)}, &v1alpha1.TaskRequester{
			Subject: "user-2", Issuer: c.issuer.URL, Username: "bob",
		}},
	}
}

// direct returns a task that the caller creates without a chat.
func (c *chatting) direct(a asker) *v1alpha1.Task {
	c.t.Helper()
	task := c.create("direct-"+a.name, a.header...)
	if d := cmp.Diff(a.requester, task.Spec.RequestedBy); d != "" || (task.Spec.Transaction != nil) != (a.name == "transaction") {
		c.t.Fatalf("%s: (-want +got):\n%s%+v", a.name, d, task.Spec.Transaction)
	}
	return task
}

// ask makes a request and returns its answer, which must have a code.
func (c *chatting) ask(code int, path, body string, header ...string) string {
	c.t.Helper()
	got, answer := c.send(http.MethodPost, path, body, header...)
	if got != code {
		c.t.Fatalf("%s %s: %d %s, want %d", path, body, got, answer, code)
	}
	return answer
}

// background begins a background turn and returns its session.
func (c *chatting) background(body string, header ...string) string {
	c.t.Helper()
	var started struct{ SessionID string }
	answer := c.ask(http.StatusAccepted, "/api/v1/chat", body, append(header, "Accept", "application/json")...)
	if err := json.Unmarshal([]byte(answer), &started); err != nil {
		c.t.Fatal(err)
	}
	return started.SessionID
}

// awaitTurn returns the frames of a session's background turn, when it has ended.
func (c *chatting) awaitTurn(session string, header ...string) string {
	c.t.Helper()
	code, frames := c.send(http.MethodGet, "/api/v1/chat/"+session+"/stream", "", header...)
	if code != http.StatusOK {
		c.t.Fatalf("stream: %d %s", code, frames)
	}
	return frames
}

// made returns the only task that chats have created, and removes it.
func (c *chatting) made() *v1alpha1.Task {
	c.t.Helper()
	tasks := c.Core(c.t).Tasks("team")
	list := must(tasks.List(c.t.Context(), metav1.ListOptions{LabelSelector: v1alpha1.LabelCreatedBy + "=" + v1alpha1.CreatedByOrchestrator}))(c.t)
	if len(list.Items) != 1 {
		c.t.Fatalf("chats have created %d tasks", len(list.Items))
	}
	if err := tasks.Delete(c.t.Context(), list.Items[0].Name, metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
	return &list.Items[0]
}

// asDirectly checks that a task of a chat names the same requester as one that the caller creates directly.
func (c *chatting) asDirectly(what string, got, direct *v1alpha1.Task) {
	c.t.Helper()
	if d := cmp.Diff(direct.Spec.RequestedBy, got.Spec.RequestedBy) + cmp.Diff(direct.Spec.Transaction, got.Spec.Transaction); d != "" {
		c.t.Errorf("%s (-created directly +created by a chat):\n%s", what, d)
	}
	if !c.seal.Verified(got) || got.Annotations[v1alpha1.AnnotationRequestedByStamp] == direct.Annotations[v1alpha1.AnnotationRequestedByStamp] {
		c.t.Errorf("%s: it has no seal of its own: %v", what, got.Annotations)
	}
	for key, want := range direct.Annotations {
		if key != v1alpha1.AnnotationRequestedByStamp && got.Annotations[key] != want {
			c.t.Errorf("%s: annotation %s is %q, want %q", what, key, got.Annotations[key], want)
		}
	}
	for key, want := range direct.Labels {
		if got.Labels[key] != want {
			c.t.Errorf("%s: label %s is %q, want %q", what, key, got.Labels[key], want)
		}
	}
}
