// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package acp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/test/acpschema"
	"github.com/platform-ai/platform/test/scriptedagent/agent"
)

// user is a Handler that remembers what it gets.
type user struct {
	dir string
	// allow decides on permissions; nil allows all. asked gets each call that it decides on.
	allow func(ctx context.Context, call *Call) Permission
	// forgets keeps nothing of what it gets.
	forgets bool
	// once makes each permission one for its call alone.
	once bool
	// offered are the calls for which the agent offers a permission for once, in the order in which it asked.
	offered []string

	mu     sync.Mutex
	events []string
	said   strings.Builder
	odds   []string
}

func (u *user) Event(e Event) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.forgets {
		return
	}
	word := string(e.Kind)
	switch {
	case e.Kind == Message:
		u.said.WriteString(e.Text)
	case e.Call != nil:
		word += fmt.Sprintf(":%s:%s", e.Call.Name(), map[bool]string{true: "failed"}[e.Call.Failed])
	case e.Kind == PlanChanged:
		word += fmt.Sprint(e.Plan)
	}
	u.events = append(u.events, word)
}

func (u *user) Permit(r Request) func(context.Context) Permission {
	if r.Once {
		u.offered = append(u.offered, r.Call.ID)
	}
	return func(ctx context.Context) Permission {
		d := Permission{Allowed: true}
		if u.allow != nil {
			d = u.allow(ctx, r.Call)
		}
		d.Once = u.once
		return d
	}
}

func (u *user) ReadTextFile(_ context.Context, path string) (string, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return "", NotFound("no such file")
	}
	return string(text), err
}

func (u *user) WriteTextFile(_ context.Context, path, text string) error {
	if !strings.HasPrefix(path, u.dir) {
		return InvalidParams("outside")
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

func (u *user) Odd(what string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.forgets {
		u.odds = append(u.odds, what)
	}
}

func (u *user) text() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.said.String()
}

// has reports whether something odd was reported that contains a text.
func (u *user) has(text string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.ContainsFunc(u.odds, func(o string) bool { return strings.Contains(o, text) })
}

// pair is a client and a scripted agent.
type pair struct {
	*user
	client  *Client
	session *Session
	errors  *bytes.Buffer
	// code gets the exit code of the agent.
	code  chan int
	close func()
}

// connect begins a session with a scripted agent. Its working folder has a README, and a FIFO "fifo".
func connect(t *testing.T, u *user, c clock.Clock) *pair {
	t.Helper()
	fromAgent, toClient, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fromClient, toAgent, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	u.dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(u.dir, "README"), []byte("one\ntwo\nthree\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(u.dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &pair{user: u, code: make(chan int, 1), errors: &bytes.Buffer{}}
	go func() {
		code := agent.Run(fromClient, toClient, p.errors)
		_, _ = toClient.Close(), fromClient.Close()
		p.code <- code
	}()
	p.close = sync.OnceFunc(func() { _ = toAgent.Close() })
	p.client = Connect(t.Context(), fromAgent, toAgent, Options{Name: "test", Version: "1", Handler: u, Clock: c, Grace: time.Minute})
	t.Cleanup(func() {
		p.close()
		<-p.client.Done()
		_ = fromAgent.Close()
	})
	if _, err := p.client.Initialize(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p.session, err = p.client.NewSession(t.Context(), u.dir); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestSession: modes and the end of a session.
func TestSession(t *testing.T) {
	p := connect(t, &user{}, clock.RealClock{})
	if err := p.session.SetMode(t.Context(), "ask"); err != nil {
		t.Error(err)
	}
	if err := p.session.SetMode(t.Context(), "yolo"); err == nil {
		t.Error("an unknown mode was set")
	}
	if err := p.session.End(t.Context()); err != nil {
		t.Error(err)
	}
	p.close()
	if code := <-p.code; code != 0 {
		t.Errorf("the agent ended with %d: %s", code, p.errors)
	}
	if _, err := p.session.Prompt(t.Context(), "x"); !errors.Is(err, ErrEnded) {
		t.Errorf("after the end: %v", err)
	}
}

// TestRefusals: what an agent can answer before its first turn that ends the conversation.
func TestRefusals(t *testing.T) {
	for _, tc := range []struct{ initialize, session, want string }{
		{`{"protocolVersion":2}`, `{}`, "version 2"},
		{`{"protocolVersion":"1"}`, `{}`, "the answer to initialize"},
		{`{"protocolVersion":1,"authMethods":[{"id":"x","name":"Sign in with X"}]}`, `-32000`, "is not done (x)"},
		{`{"protocolVersion":1}`, `-32603`, "code -32603"},
		{`{"protocolVersion":1}`, ``, "ended without"},
	} {
		fromAgent, toClient := io.Pipe()
		fromClient, toAgent := io.Pipe()
		go func() {
			in := bufio.NewReader(fromClient)
			talk := acpschema.NewConversation()
			for _, answer := range []string{tc.initialize, tc.session} {
				line, err := readLine(in)
				if err != nil || talk.Check(acpschema.Client, line) != nil || answer == "" {
					break
				}
				part := `"result":` + answer
				if strings.HasPrefix(answer, "-") {
					part = `"error":{"code":` + answer + `,"message":"no"}`
				}
				id := map[bool]string{true: "1", false: "2"}[answer == tc.initialize]
				_, _ = io.WriteString(toClient, `{"jsonrpc":"2.0","id":`+id+`,`+part+"}\n")
			}
			_ = toClient.Close()
		}()
		c := Connect(t.Context(), fromAgent, toAgent, Options{Handler: &user{}, Clock: clock.RealClock{}})
		_, err := c.Initialize(t.Context())
		if err == nil {
			_, err = c.NewSession(t.Context(), "/x")
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s, %s: %v", tc.initialize, tc.session, err)
		}
		_ = fromClient.Close()
	}
}
