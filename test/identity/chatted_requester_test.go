// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
)

const (
	runIt           = `{"message":"run it"}`
	runInBackground = `{"message":"run it","background":true}`
	runByVendorsAPI = `{"model":"scripted-1","max_tokens":100,"messages":[{"role":"user","content":"run it"}]}`
)

// A task that a chat creates, in the foreground, in the background or through a vendor's API, names and seals whoever asked,
// like a task that they create themselves.
func TestRequesterOfChats(t *testing.T) {
	t.Parallel()
	c := newChatting(t)
	for _, a := range c.askers() {
		direct := c.direct(a)
		for way, ask := range map[string]func(){
			"as JSON":           func() { c.ask(http.StatusOK, "/api/v1/chat", runIt, append(a.header, "Accept", "application/json")...) },
			"as a stream":       func() { c.ask(http.StatusOK, "/api/v1/chat", runIt, a.header...) },
			"in the background": func() { c.awaitTurn(c.background(runInBackground, a.header...), a.header...) },
			"as a completion":   func() { c.ask(http.StatusOK, "/openai/v1/chat/completions", runByVendorsAPI, a.header...) },
			"as a message":      func() { c.ask(http.StatusOK, "/anthropic/v1/messages", runByVendorsAPI, a.header...) },
		} {
			ask()
			c.asDirectly(a.name+", "+way, c.made(), direct)
		}
	}
}

// In a session of two callers each task belongs to the one whose turn created it, not to who began the session.
func TestRequesterOfASharedSession(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	c := newChatting(t)
	askers, direct := c.askers(), map[int]*v1alpha1.Task{}
	session := ""
	for n, of := range []int{0, 1, 0} {
		a := askers[of]
		if n < len(askers) {
			direct[of] = c.direct(a)
		}
		session = c.background(`{"message":"run it","background":true,"sessionId":"`+session+`"}`, a.header...)
		c.awaitTurn(session, a.header...)
		c.asDirectly(fmt.Sprintf("turn %d, in the background, of the %s", n+1, a.name), c.made(), direct[of])
		c.ask(http.StatusOK, "/api/v1/chat", `{"message":"once more","sessionId":"`+session+`"}`, a.header...)
		c.asDirectly(fmt.Sprintf("turn %d, of the %s", n+1, a.name), c.made(), direct[of])
	}
}

// A background turn that another process carries on creates tasks for the one who asked for it.
func TestRequesterOfAResumedChat(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	for n := range 2 {
		c := newChatting(t)
		a := c.askers()[n]
		direct := c.direct(a)
		c.resumed(a.header...)
		c.asDirectly(a.name, c.made(), direct)
	}
}

// A background turn that another process carries on is still limited by the context of its transaction, whatever else is there.
func TestLimitsOfAResumedChat(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	c := newChatting(t)
	limited := object{"scope": chatScopes, "tctx": object{"allowedTools": []string{"list_tasks"}, "session_token": "Zk4Qx7hunter2"}}
	said := c.resumed("Txn-Token", c.issuer.transaction("user-2", limited))
	tasks := must(c.Core(t).Tasks("team").List(t.Context(), metav1.ListOptions{LabelSelector: v1alpha1.LabelChatSession}))(t)
	if len(tasks.Items) != 0 || !strings.Contains(said, `"errorType":"unknown_tool"`) {
		t.Errorf("%d tasks, and the turn said %s", len(tasks.Items), said)
	}
}

// resumed asks for a turn in the background, which the server begins and, started again, carries on. It returns the frames.
func (c *chatting) resumed(header ...string) string {
	c.t.Helper()
	reached, release := make(chan struct{}), make(chan struct{})
	c.t.Cleanup(func() { close(release) }) // the request to the model outlives the server that made it
	waits := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(reached)
		<-release
	})
	c.first.Store(&waits)
	session := c.background(runInBackground, header...)
	<-reached
	c.Restart(c.t)
	return c.awaitTurn(session, header...)
}
