// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/sse"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// openChat begins a turn as a stream and returns a func that reads the next frame; "" is the end of the stream.
func openChat(c *standalone.Client, ctx context.Context, body map[string]any) (next func() (string, chatEnvelope), code int) {
	c.T.Helper()
	raw := kit.Must[[]byte](c.T)(json.Marshal(body)) //nolint:errchkjson // must checks it
	resp := c.Open(ctx, http.MethodPost, "/api/v1/chat", string(raw))
	c.T.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		return nil, resp.StatusCode
	}
	in := sse.NewReader(resp.Body, sse.Options{})
	return func() (string, chatEnvelope) {
		var f chatEnvelope
		e, err := in.Next()
		if err != nil {
			return "", f
		}
		if err := json.Unmarshal([]byte(e.Data), &f); err != nil {
			c.T.Errorf("frame %s: %v", e.Data, err)
		}
		return e.Type, f
	}, resp.StatusCode
}

// waitingModel is a model that waits for a task that never ends.
const waitingModel = `
models: [scripted-1]
turns:
- match: {contains: wait for it}
  reply: {toolCalls: [{name: wait_for_task, arguments: {name: forever, timeout: 60}}]}
- match: {contains: hello}
  reply: {text: Hello.}
`

// TestChatCancel: while a turn runs, its session is busy and its slot taken; deleting the chat ends it.
func TestChatCancel(t *testing.T) {
	t.Parallel()
	p, _ := standalone.WithChat(t, waitingModel, func(o *standalone.Options) { o.Chat.MaxConcurrent = 2 })
	neverEnds(p, "forever")
	c := p.REST(t, "default", "editor", "platform-editor")
	next, _ := openChat(c, t.Context(), map[string]any{"message": "wait for it", "sessionId": "mine"})
	for kind := ""; kind != "tool_call"; kind, _ = next() {
	}
	c.Chat(map[string]any{"message": "hello", "sessionId": "mine"}, http.StatusConflict)
	other, cancel := context.WithCancel(t.Context())
	if second, _ := openChat(c, other, map[string]any{"message": "wait for it"}); second == nil {
		t.Fatal("the second slot is not free")
	}
	busy := c.With("Accept", "application/json").Do(http.MethodPost, "/api/v1/chat", `{"message":"hello"}`)
	if busy.Code != http.StatusTooManyRequests || busy.Header.Get("Retry-After") != "5" {
		t.Errorf("with all slots taken: %d, Retry-After %q", busy.Code, busy.Header.Get("Retry-After"))
	}
	cancel() // the client disconnects, which frees its slot
	kit.Await(t, "slot of a client that left", func() bool {
		return c.With("Accept", "application/json").Do(http.MethodPost, "/api/v1/chat", `{"message":"hello"}`).Code == http.StatusOK
	})
	endChat(c, "mine")
	kind, f := next()
	for kind == "tool_result" || kind == "message" {
		kind, f = next()
	}
	if kind != "error" || f.Error == nil || f.Error.Code != "cancelled" {
		t.Errorf("the last frame is %s %+v", kind, f.Error)
	}
	if _, err := p.Sessions().Get(t.Context(), "mine", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the session after its chat was deleted: %v", err)
	}
	if got := c.Do(http.MethodDelete, "/api/v1/chat/mine", ""); got.Code != http.StatusNotFound {
		t.Errorf("cancel again: %d", got.Code)
	}
	if now, err := p.Tasks().Get(t.Context(), "forever", metav1.GetOptions{}); err != nil || now.Status.Phase.Terminal() {
		t.Errorf("the task: %v, %v; tasks go on", now.Status.Phase, err)
	}
}

// TestChatStuck: a model that repeats a call is warned, loses iterations and has to sum up.
func TestChatStuck(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p, model := standalone.WithChat(t, `
models: [scripted-1]
turns:
- match: {noTools: true}
  reply: {text: I got stuck.}
- reply: {toolCalls: [{name: list_tasks, arguments: {}}]}`, func(o *standalone.Options) { o.Chat.MaxIterations = 20 })
	c := p.REST(t, "default", "editor", "platform-editor")
	got := c.Chat(map[string]any{"message": "go"}, http.StatusOK)
	if got.Message != "I got stuck." || got.Outcome != "IterationLimit" || len(got.ToolCalls) != 5 {
		t.Errorf("%d calls: %+v", len(got.ToolCalls), got)
	}
	warned := 0
	last := model.Exchanges()
	for _, m := range last[len(last)-1].Request.Messages {
		if strings.Contains(m.Text(), "with the same arguments") {
			warned++
		}
	}
	if warned != 3 {
		t.Errorf("the model was warned %d times", warned)
	}
}

// TestChatIsAskedForProgress: after every fifth iteration the model is asked to state its progress.
func TestChatIsAskedForProgress(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	p, _ := standalone.WithChat(t, `
models: [scripted-1]
turns:
- match: {contains: State your progress, turn: 6}
  reply: {text: Five lists were read.}
- match: {turn: 1}
  reply: {toolCalls: [{name: list_tasks, arguments: {limit: 1}}]}
- match: {turn: 2}
  reply: {toolCalls: [{name: list_tasks, arguments: {limit: 2}}]}
- match: {turn: 3}
  reply: {toolCalls: [{name: list_tasks, arguments: {limit: 3}}]}
- match: {turn: 4}
  reply: {toolCalls: [{name: list_tasks, arguments: {limit: 4}}]}
- match: {turn: 5}
  reply: {toolCalls: [{name: list_tasks, arguments: {limit: 5}}]}
- reply: {text: Nobody asked.}`)
	c := p.REST(t, "default", "editor", "platform-editor")
	if got := c.Chat(map[string]any{"message": "go"}, http.StatusOK); got.Message != "Five lists were read." || len(got.ToolCalls) != 5 {
		t.Errorf("%d calls: %+v", len(got.ToolCalls), got)
	}
}

// TestChatManages: tools that manage objects are offered on demand, act as the caller, and cannot leave the namespace.
func TestChatManages(t *testing.T) {
	t.Parallel()
	p, _ := standalone.WithChat(t, `
models: [scripted-1]
turns:
- match: {contains: create an agent, offered: [create_agent, create_tool]}
  reply:
    toolCalls:
    - {name: create_agent, arguments: {name: helper, systemPrompt: Be short., tools: [web_fetch]}}
    - {name: create_agent, arguments: {name: helper, namespace: kube-system}}
    - {name: create_tool, arguments: {name: lookup, description: looks up, url: "https://example.com/"}}
- match: {contains: change the agent, offered: [update_agent]}
  reply: {toolCalls: [{name: update_agent, arguments: {name: helper, systemPrompt: Be long.}}]}
- match: {contains: delete the agent, offered: [delete_agent]}
  reply: {toolCalls: [{name: delete_agent, arguments: {name: helper}}, {name: delete_agent, arguments: {name: absent}}]}
- match: {lastRole: tool}
  reply: {text: done}
- match: {contains: what is there}
  reply: {toolCalls: [{name: delete_agent, arguments: {name: helper}}]}`)
	c := p.REST(t, "default", "editor", "platform-editor")
	results := func(r standalone.ChatReply) (out string) {
		for _, call := range r.ToolCalls {
			out += fmt.Sprintf("%s:%v%s ", call.Name, call.Result.Success, call.Result.ErrorType)
		}
		return out
	}
	first := c.Chat(map[string]any{"message": "create an agent"}, http.StatusOK)
	if got := results(first); got != "create_agent:true create_agent:falsepermission_denied create_tool:true " {
		t.Error(got)
	}
	agents := p.API().Agents("default")
	agent, err := agents.Get(t.Context(), "helper", metav1.GetOptions{})
	if err != nil || agent.Labels[v1alpha1.LabelChatSession] != first.SessionID || agent.Spec.SystemPrompt.Inline != "Be short." {
		t.Fatalf("%+v, %v", agent, err)
	}
	if got := results(c.Chat(map[string]any{"message": "what is there?"}, http.StatusOK)); got != "delete_agent:falseunknown_tool " {
		t.Errorf("a tool that was not offered: %s", got)
	}
	c.Chat(map[string]any{"message": "change the agent"}, http.StatusOK)
	if agent, err = agents.Get(t.Context(), "helper", metav1.GetOptions{}); err != nil || agent.Spec.SystemPrompt.Inline != "Be long." || len(agent.Spec.Tools) != 1 {
		t.Errorf("%+v, %v", agent.Spec, err)
	}
	if got := results(c.Chat(map[string]any{"message": "delete the agent"}, http.StatusOK)); got != "delete_agent:true delete_agent:falsenot_found " {
		t.Error(got)
	}
}

// TestChatTurnsAtOnce: of 200 turns, ten at a time, every fifth client leaves, and half of the clients may do nothing but chat.
// Each denial is data of its turn. No slot is lost, sessions have nothing of each other, and in each a question and what was
// said to it alternate.
func TestChatTurnsAtOnce(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	metrics := prometheus.NewRegistry()
	running := func() float64 { return standalone.Measured(t, metrics, "platform_chat_turns_running") }
	p, _ := standalone.WithChat(t, `
models: [scripted-1]
turns:
- match: {contains: wait for it}
  reply: {toolCalls: [{name: wait_for_task, arguments: {name: forever, timeout: 60}}]}
- match: {lastRole: tool}
  reply: {text: "end {{ .LastWord }}"}
- match: {contains: list}
  reply: {text: "I list {{ .LastWord }}.", toolCalls: [{name: list_tasks, arguments: {}}]}
- reply: {text: "echo {{ .LastWord }}"}`, func(o *standalone.Options) { o.Metrics = metrics })
	chatOnly(p)
	c, talker := p.REST(t, "default", "editor", "platform-editor"), p.REST(t, "default", "talker", "chat-on")
	const workers, turns = 10, 20
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			as, may := c, w%2 == 0
			if !may {
				as = talker
			}
			for n := range turns {
				word, session, leaves := fmt.Sprintf("w%dn%d", w, n), fmt.Sprintf("session-%d", w), n%5 == 3
				body := map[string]any{"sessionId": session, "message": "say " + word}
				if n%2 == 0 {
					body["message"] = "list and say " + word
				}
				text, denials := turn(p, as, body, leaves)
				if !leaves && !strings.HasSuffix(text, word) {
					t.Errorf("turn %s was answered %q", word, text)
				}
				if denied := !may && n%2 == 0; !leaves && denied != (denials == 1) {
					t.Errorf("turn %s shows %d denials", word, denials)
				}
			}
		})
	}
	all.Wait()
	kit.Await(t, "end of the turns whose clients left", func() bool { return running() == 0 })
	for w := range workers {
		alternates(p, fmt.Sprintf("session-%d", w), fmt.Sprintf("w%dn", w))
	}
	// All ten slots are free again, and no more than these.
	neverEnds(p, "forever")
	for i := range workers {
		next, code := openChat(c, t.Context(), map[string]any{"message": "wait for it", "sessionId": fmt.Sprintf("open-%d", i)})
		if next == nil {
			t.Fatalf("slot %d is not free: %d", i, code)
		}
		for kind := ""; kind != "tool_call"; kind, _ = next() {
		}
	}
	if n := running(); n != workers {
		t.Errorf("%v turns run", n)
	}
	busy := c.With("Accept", "application/json").Do(http.MethodPost, "/api/v1/chat", `{"message":"say more"}`)
	if busy.Code != http.StatusTooManyRequests || busy.Header.Get("Retry-After") != "5" {
		t.Errorf("with all slots taken: %d, Retry-After %q", busy.Code, busy.Header.Get("Retry-After"))
	}
	for i := range workers {
		endChat(c, fmt.Sprintf("open-%d", i))
	}
	kit.Await(t, "end of the turns that were cancelled", func() bool { return running() == 0 })
}

// alternates checks that a session consists of turns: one question each, and what was said to it.
func alternates(p *standalone.Platform, session, mark string) {
	p.T.Helper()
	question, answers := "", 1
	for i, m := range p.Transcript(session, 500) {
		words := strings.Fields(m.Content)
		switch m.Role {
		case v1alpha1.RoleUser:
			if answers == 0 {
				p.T.Errorf("message %d of %s, %q, follows the question %q", i, session, m.Content, question)
			}
			question, answers = words[len(words)-1], 0
			if !strings.HasPrefix(question, mark) {
				p.T.Errorf("message %d of %s is %q", i, session, m.Content)
			}
		case v1alpha1.RoleAssistant:
			answers++
			if !strings.HasPrefix(m.Content, "[") && len(words) > 0 && strings.TrimSuffix(words[len(words)-1], ".") != question {
				p.T.Errorf("message %d of %s is %q, to the question %q", i, session, m.Content, question)
			}
		}
	}
	if question == "" {
		p.T.Errorf("session %s has no question", session)
	}
}

// turn has a turn, again while its session or all slots are taken, and returns the last text and how many calls were denied. A
// client that leaves does so after the first frame.
func turn(p *standalone.Platform, c *standalone.Client, body map[string]any, leave bool) (text string, denials int) {
	ctx, cancel := context.WithCancel(p.T.Context())
	defer cancel()
	for {
		raw, err := json.Marshal(body)
		if err != nil {
			p.T.Error(err)
			return "", 0
		}
		resp := c.Open(ctx, http.MethodPost, "/api/v1/chat", string(raw))
		if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusConflict {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			continue // the turn of a client that left ends in a moment
		}
		if resp.StatusCode != http.StatusOK {
			p.T.Errorf("turn: %d", resp.StatusCode)
			return "", 0
		}
		in := sse.NewReader(resp.Body, sse.Options{})
		for {
			e, err := in.Next()
			if err != nil {
				p.T.Errorf("turn: %v", err)
				break
			}
			if leave {
				cancel()
				break
			}
			var f chatEnvelope
			if err := json.Unmarshal([]byte(e.Data), &f); err != nil {
				p.T.Error(err)
			}
			text += f.Content
			if e.Type == "tool_result" {
				denials += strings.Count(e.Data, `"permission_denied"`)
			}
			if e.Type == "done" {
				break
			}
		}
		_ = resp.Body.Close()
		return text, denials
	}
}
