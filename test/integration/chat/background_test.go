// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/sse"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// frames reads the stream of a session's background turn until it ends.
func framesOf(c *standalone.Client, session, query string) (all []sse.Event) {
	c.T.Helper()
	resp := c.Open(c.T.Context(), http.MethodGet, "/api/v1/chat/"+session+"/stream"+query, "")
	defer resp.Body.Close()
	in := sse.NewReader(resp.Body, sse.Options{})
	for {
		e, err := in.Next()
		if err != nil {
			return all
		}
		all = append(all, *e)
	}
}

// kinds returns the types of frames. A text in several frames is one: how it is divided is the server's choice.
func kinds(frames []sse.Event) string {
	var out []string
	for _, f := range frames {
		if f.Type != "message" || len(out) == 0 || out[len(out)-1] != f.Type {
			out = append(out, f.Type)
		}
	}
	return strings.Join(out, " ")
}

// TestChatBackground: a background turn goes on without its client. Its frames are read at any time, after any of them, by
// whoever may read the session; they stay until the next background turn, whose frames have higher numbers.
func TestChatBackground(t *testing.T) {
	t.Parallel()
	p, _ := standalone.WithChat(t, orchestrator)
	c := p.REST(t, "default", "editor", "platform-editor")
	session := c.StartChat("run it")
	all := framesOf(c, session, "")
	if got := kinds(all); !strings.HasPrefix(got, "status message tool_call tool_result") || !strings.HasSuffix(got, "done") {
		t.Fatalf("frames: %s", got)
	}
	if rest := framesOf(c, session, "?after=3"); len(rest) != len(all)-3 || kinds(rest) != kinds(all[3:]) || rest[0].ID != "4" || rest[0].Data != all[3].Data {
		t.Errorf("after 3: %v", rest)
	}
	end := all[len(all)-1].ID // a browser that reconnects with everything is told not to come back
	c.With(sse.LastEventID, end).Get("/api/v1/chat/"+session+"/stream").Want(t, http.StatusNoContent)
	if native := rawBody(p, "/apis/core.platform.ai/v1alpha1/namespaces/default/sessions/"+session+"/turn?after=1"); !strings.HasPrefix(native, "id: 2\n") {
		t.Errorf("the native path: %s", native)
	}
	next, _ := openChat(c, t.Context(), map[string]any{"message": "hello", "sessionId": session, "background": true})
	last := ""
	for kind, _ := next(); kind != ""; kind, _ = next() {
		last = kind
	}
	if last != "done" {
		t.Errorf("the POST of a client that accepts a stream ends with %q", last)
	}
	second := framesOf(c, session, "")
	if second[0].ID == "1" || second[0].Type != "status" {
		t.Errorf("the next turn begins with %+v", second[0])
	}
	other(p, "elsewhere")
	foreign := p.REST(t, "elsewhere", "editor", "platform-editor")
	viewer := p.REST(t, "default", "viewer", "platform-viewer")
	for name, tt := range map[string]struct {
		as           *standalone.Client
		method, path string
		code         int
	}{
		"beyond the end":      {c, http.MethodGet, session + "/stream?after=1000", 400},
		"negative":            {c, http.MethodGet, session + "/stream?after=-1", 400},
		"not a number":        {c, http.MethodGet, session + "/stream?after=x", 400},
		"empty":               {c, http.MethodGet, session + "/stream?after=", 400},
		"of the turn before":  {c, http.MethodGet, session + "/stream?after=1", 410},
		"another session":     {c, http.MethodGet, "nothing/stream", 404},
		"another tenant":      {foreign, http.MethodGet, session + "/stream?namespace=default", 403},
		"cancelled by it":     {foreign, http.MethodDelete, session + "?namespace=default", 403},
		"cancelled by reader": {viewer, http.MethodDelete, session, 403},
		"a reader":            {viewer, http.MethodGet, session + "/stream", 200},
	} {
		if got := tt.as.Do(tt.method, "/api/v1/chat/"+tt.path, ""); got.Code != tt.code {
			t.Errorf("%s: %d %s, want %d", name, got.Code, got.Body, tt.code)
		}
	}
	if n := len(p.Transcript(session, 100)); n != 6 {
		t.Errorf("the session has %d messages", n)
	}
}

// other makes a namespace.
func other(p *standalone.Platform, name string) {
	p.T.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := p.Kubernetes(p.T).CoreV1().Namespaces().Create(p.T.Context(), ns, metav1.CreateOptions{}); err != nil {
		p.T.Fatal(err)
	}
}

// raw reads a path of the API as the administrator.
func rawBody(p *standalone.Platform, path string) string {
	p.T.Helper()
	raw, err := p.API().RESTClient().Get().RequestURI(path).Do(p.T.Context()).Raw()
	if err != nil {
		p.T.Fatal(err)
	}
	return string(raw)
}

// TestChatBackgroundAlone: a background turn keeps its slot and its session when its client leaves. A caller who has lost
// their rights meanwhile gets no further answer of a model, and another client cancels a turn.
func TestChatBackgroundAlone(t *testing.T) {
	t.Parallel()
	p, _ := standalone.WithChat(t, waitingModel, func(o *standalone.Options) { o.Chat.MaxConcurrent = 1 })
	neverEnds(p, "forever")
	c := p.REST(t, "default", "editor", "platform-editor")
	session := leave(c, map[string]any{"message": "wait for it", "background": true})
	if got := c.With("Accept", "application/json").Do(http.MethodPost, "/api/v1/chat", `{"message":"hello"}`); got.Code != http.StatusTooManyRequests {
		t.Errorf("the slot of a background turn: %d %s", got.Code, got.Body)
	}
	endChat(p.REST(t, "default", "colleague", "platform-editor"), session)
	c.Chat(map[string]any{"message": "hello"}, http.StatusOK)

	session = leave(c, map[string]any{"message": "wait for it", "background": true})
	admin := p.Kubernetes(t).CoreV1().ServiceAccounts("default")
	if err := admin.Delete(t.Context(), "editor", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.API().Tasks("default").Cancel(t.Context(), "forever", &v1alpha1.TaskCancellation{}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := p.Tasks().Delete(t.Context(), "forever", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	all := framesOf(p.REST(t, "default", "viewer", "platform-viewer"), session, "")
	if last := all[len(all)-1]; last.Type != "error" || !strings.Contains(last.Data, "permission_denied") {
		t.Errorf("the turn of a caller who was deleted ends with %+v", last)
	}
}

// leave begins a turn and disconnects at its first call of a tool. It returns the session.
func leave(c *standalone.Client, body map[string]any) (session string) {
	c.T.Helper()
	ctx, cancel := context.WithCancel(c.T.Context())
	defer cancel()
	next, code := openChat(c, ctx, body)
	if next == nil {
		c.T.Fatalf("turn: %d", code)
	}
	for kind, f := next(); kind != "tool_call"; kind, f = next() {
		if session == "" {
			session = f.SessionID
		}
	}
	return session
}
