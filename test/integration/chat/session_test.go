// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestChatSessionDeleted: deleting the session of a turn cancels the turn, whose client learns why, and leaves no session.
func TestChatSessionDeleted(t *testing.T) {
	t.Parallel()
	p, _ := standalone.WithChat(t, waitingModel)
	neverEnds(p, "forever")
	c := p.REST(t, "default", "editor", "platform-editor")
	next, _ := openChat(c, t.Context(), map[string]any{"message": "wait for it", "sessionId": "doomed"})
	for kind, _ := next(); kind != "tool_call"; kind, _ = next() {
		if kind == "" {
			t.Fatal("the turn ended before it called a tool")
		}
	}
	sessions := p.API().Sessions("default")
	if err := sessions.Delete(t.Context(), "doomed", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	var last chatEnvelope
	for kind, f := next(); kind != ""; kind, f = next() {
		last = f
	}
	if last.Error == nil || last.Error.Code != "cancelled" {
		t.Errorf("the last frame is %+v: %+v", last, last.Error)
	}
	if list, err := sessions.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) > 0 {
		t.Errorf("%d sessions are left: %v", len(list.Items), err)
	}
}

// TestChatRateLimited: a turn that a rate limit of its Provider refuses ends with rate_limited, as JSON with 429 and the time
// after which to try again. The vendor is not asked.
func TestChatRateLimited(t *testing.T) {
	t.Parallel()
	p, model := standalone.WithChat(t, orchestrator)
	patch := []byte(`{"spec":{"rateLimit":{"requestsPerMinute":1}}}`)
	if _, err := p.API().Providers("default").Patch(t.Context(), "default", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	c := p.REST(t, "default", "editor", "platform-editor")
	c.Chat(map[string]any{"message": "hello"}, http.StatusOK)
	asked := len(model.Exchanges())
	frames := chatStream(c, t.Context(), map[string]any{"message": "hello again"})
	if last := frames[len(frames)-1]; last.event != "error" || last.Error == nil || last.Error.Code != "rate_limited" || !strings.Contains(last.Error.Message, "Provider") {
		t.Errorf("the last frame is %s %s", last.event, last.data)
	}
	got := c.With("Accept", "application/json").Do(http.MethodPost, "/api/v1/chat", `{"message":"hello again"}`)
	if got.Code != http.StatusTooManyRequests || got.Header.Get("Retry-After") == "" {
		t.Errorf("%d %v %s", got.Code, got.Header, got.Body)
	}
	if n := len(model.Exchanges()); n != asked {
		t.Errorf("the vendor was asked %d times more", n-asked)
	}
}

// TestChatTruncates: a session keeps the first message of its user and the newest messages, in the size that is configured.
func TestChatTruncates(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	const size, turns = 2000, 25
	p, _ := standalone.WithChat(t, orchestrator, func(o *standalone.Options) { o.Chat.MaxSessionBytes = size })
	c := p.REST(t, "default", "editor", "platform-editor")
	for n := range turns {
		c.Chat(map[string]any{"sessionId": "long", "message": fmt.Sprintf("hello %d %s", n, strings.Repeat("x", 100))}, http.StatusOK)
	}
	kept, total := p.Transcript("long", 100), 0
	for _, m := range kept {
		total += len(m.Content)
	}
	first, last := kept[0], kept[len(kept)-2]
	if !strings.HasPrefix(first.Content, "hello 0 ") || !strings.HasPrefix(last.Content, fmt.Sprintf("hello %d ", turns-1)) {
		t.Errorf("the first message is %.20q, the last one %.20q", first.Content, last.Content)
	}
	if len(kept) >= 2*turns || total > size {
		t.Errorf("%d messages with %d bytes are kept", len(kept), total)
	}
}

// TestChatLongMessage: a message and instructions may be as long as a request, and the session goes on.
func TestChatLongMessage(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p, model := standalone.WithChat(t, orchestrator)
	c := p.REST(t, "default", "editor", "platform-editor")
	long := strings.Repeat("a long text ", 7<<20/12)
	first := c.Chat(map[string]any{"message": long + "hello", "systemPrompt": long}, http.StatusOK)
	asked := model.Exchanges()[0].Request.Messages
	if first.Message != "Hello." || len(asked[0].Text()) < len(long) || asked[1].Text() != long+"hello" {
		t.Errorf("%.300s: the model read %d and %d bytes", first.Message, len(asked[0].Text()), len(asked[1].Text()))
	}
	if second := c.Chat(map[string]any{"message": "hello", "sessionId": first.SessionID}, http.StatusOK); second.Message != "Hello." {
		t.Errorf("the next turn: %+v", second)
	}
	if got := c.Get("/api/v1/sessions/" + first.SessionID); got.Code != http.StatusOK || len(got.Body) < len(long) {
		t.Errorf("the session: %d, %d bytes", got.Code, len(got.Body))
	}
}

// TestChatRemembersSecrets: a secret that a message identifies is removed where the model repeats it alone, in the same turn and in
// the next one, as JSON, as a stream and in the transcript.
func TestChatRemembersSecrets(t *testing.T) {
	t.Parallel()
	const secret = "Zk4Qx7hunter2"
	p, _ := standalone.WithChat(t, `
models: [scripted-1]
turns:
- match: {contains: once more}
  reply: {text: "Again it was `+secret+` that worked, and nothing else did on any of the other machines of the team."}
- match: {contains: log in}
  reply: {text: "I used `+secret+` to log in."}
`)
	c := p.REST(t, "default", "editor", "platform-editor")
	first := c.Chat(map[string]any{"message": "log in with password=" + secret}, http.StatusOK)
	if first.Message != "I used [REDACTED] to log in." {
		t.Errorf("the first answer: %q", first.Message)
	}
	shown := ""
	for _, f := range chatStream(c, t.Context(), map[string]any{"message": "once more", "sessionId": first.SessionID}) {
		shown += f.Content
	}
	if !strings.HasPrefix(shown, "Again it was [REDACTED] that worked") {
		t.Errorf("the stream of the second turn: %q", shown)
	}
	for _, m := range p.Transcript(first.SessionID, 100) {
		if strings.Contains(m.Content, secret) {
			t.Errorf("the transcript has %s: %q", m.Role, m.Content)
		}
	}
}
