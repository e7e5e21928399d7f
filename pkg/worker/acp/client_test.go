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
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/test/acpschema"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/scriptedagent/agent"
)

// user is a Handler that remembers what it gets.
type user struct {
	dir string
	// allow decides on permissions; nil allows all. asked gets each call that it decides on.
	allow func(ctx context.Context, call *Call) Permission
	// offered are the calls for which the agent offers a permission for once, in the order in which it asked.
	offered []string

	mu     sync.Mutex
	events []string
	text   string
	odds   []string
}

func (u *user) Event(e Event) {
	u.mu.Lock()
	defer u.mu.Unlock()
	word := string(e.Kind)
	switch {
	case e.Kind == Message:
		u.text += e.Text
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
		if u.allow != nil {
			return u.allow(ctx, r.Call)
		}
		return Permission{Allowed: true}
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
	u.odds = append(u.odds, what)
}

func (u *user) said() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.text
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

func connect(t *testing.T, u *user) *pair {
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
	p := &pair{user: u, code: make(chan int, 1), errors: &bytes.Buffer{}}
	go func() {
		code := agent.Run(fromClient, toClient, p.errors)
		_, _ = toClient.Close(), fromClient.Close()
		p.code <- code
	}()
	p.close = sync.OnceFunc(func() { _ = toAgent.Close() })
	p.client = Connect(t.Context(), fromAgent, toAgent, Options{Name: "test", Version: "1", Handler: u, Clock: clock.RealClock{}, Grace: time.Minute})
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

// TestBehaviours: what agents do, good and bad, leaves the client with the right outcome, and nobody waiting. Each step is described in
// package agent, which ends when the client sends anything that the official schema does not allow.
func TestBehaviours(t *testing.T) {
	for prompt, want := range map[string]struct {
		// text is what the agent says, and odd a part of what is reported; stop is end_turn if it is empty.
		text, odd string
		stop      StopReason
		events    []string
		err       string
	}{
		"hello":                          {text: "done"},
		"do: say a\ndo: say b":           {text: "ab"},
		"do: think hm\ndo: say a":        {text: "a", events: []string{"thought", "message"}},
		"do: plan a+,b":                  {events: []string{"planChanged[{a completed} {b pending}]"}},
		"do: tool execute ls":            {events: []string{"callStarted:execute:", "callEnded:execute:"}},
		"do: tool-failed read":           {events: []string{"callStarted:read:", "callEnded:read:failed"}},
		"do: tool-open fetch":            {events: []string{"callStarted:fetch:"}},
		"do: tool juggle x":              {err: "ended without"}, // the agent notices that the schema has no such kind
		"do: diff x.go":                  {events: []string{"callStarted:edit:", "callEnded:edit:"}},
		"do: strange-tool":               {odd: "", events: []string{"callStarted:other:", "callEnded:other:"}},
		"do: usage":                      {events: []string{"contextChanged"}},
		"do: mode ask":                   {events: []string{"modeChanged"}},
		"do: commands init":              {events: []string{"commandsChanged"}},
		"do: read README":                {text: "one\ntwo\nthree\n"},
		"do: read-line README":           {text: `{"content":"two\n"}`},
		"do: read gone":                  {text: "error -32002"},
		"do: write new x":                {text: "{}"},
		"do: write /etc/passwd x":        {text: "error -32602"},
		"do: permit read a":              {text: "yes"},
		"do: permit execute a":           {text: "no"},
		"do: permit-tool Bash":           {text: "no"},
		"do: permit-tool Read":           {text: "yes"},
		"do: permit-abandoned":           {text: `{"outcome":{"outcome":"cancelled"}}`},
		"do: flood 100":                  {text: "yes=100"},
		"do: flood 900":                  {text: "yes=900"},
		"do: end max_tokens":             {stop: StopMaxTokens},
		"do: end max_turn_requests":      {stop: StopMaxTurns},
		"do: end refusal":                {stop: StopRefusal},
		"do: end cancelled":              {stop: StopCancelled},
		"do: error -32800":               {stop: StopCancelled},
		"do: error -32603":               {err: "the agent failed (code -32603)"},
		"do: error -32000":               {err: "code -32000"},
		"do: stop-strange bored":         {err: `unknown reason "bored"`},
		"do: stop-twice":                 {odd: "an answer that nothing waits for"},
		"do: late afterwards":            {text: "afterwards"},
		"do: unknown-request x/y":        {text: "error -32601", odd: "x/y"},
		"do: terminal ls":                {text: "error -32601", odd: "terminal/create"},
		"do: elicit":                     {text: "error -32601", odd: "elicitation/create"},
		"do: unknown-notification x/y":   {odd: "x/y"},
		"do: unknown-notification $/odd": {odd: "$/odd"},
		"do: unknown-update juggle":      {odd: "juggle"},
		"do: broken-update":              {odd: "cannot be read"},
		"do: bare Loading…":              {odd: "Loading…"},
		"do: bare []":                    {odd: "no message"},
		"do: bare {}":                    {odd: "no message"},
		"do: bare null":                  {odd: "no message"},
		`do: bare {"id":99,"result":{}}`: {odd: "nothing waits for"},
		`do: bare {"id":null,"error":{"code":-32700,"message":"m"}}`: {odd: "nothing waits for"},
		"do: bare " + strings.Repeat("[", 20000):                     {odd: "no message"},
		"do: bare \ndo: say a":                                       {text: "a"},
		"do: noise 900000\ndo: say a":                                {text: "a"},
		"do: noise 3000000":                                          {err: "no messages"},
		"do: stderr 3000000\ndo: say a":                              {text: "a"},
		"do: split €uro":                                             {text: "€uro"},
		"do: bad-utf8":                                               {text: "a\uFFFD\uFFFD"},
		"do: long-line 1000000":                                      {text: strings.Repeat("y", 1<<20)},
		"do: long-line 67108864":                                     {err: "more than 16777216 bytes"},
		"do: exit 0":                                                 {err: "ended without an answer"},
		"do: exit 3":                                                 {err: "ended without an answer"},
		"do: tool-open execute\ndo: exit 0":                          {err: "ended without an answer", events: []string{"callStarted:execute:"}},
		"do: say a\ndo: end end_turn\ndo: exit 0":                    {text: "a"},
	} {
		t.Run(fmt.Sprintf("%.40s", prompt), func(t *testing.T) {
			t.Parallel()
			p := connect(t, &user{allow: func(ctx context.Context, call *Call) Permission {
				if call.ID == "held" {
					<-ctx.Done()
				}
				return Permission{Allowed: call.Kind != KindExecute && call.Tool != "Bash", Reason: "not allowed"}
			}})
			stop, err := p.session.Prompt(t.Context(), "be strict", prompt)
			switch {
			case want.err != "" && (err == nil || !strings.Contains(err.Error(), want.err)):
				t.Fatalf("error %v, want %s", err, want.err)
			case want.err != "":
			case err != nil:
				t.Fatalf("%v; the agent says %s", err, p.errors)
			case stop != want.stop && (want.stop != "" || stop != StopEndTurn):
				t.Errorf("stop reason %s, want %s", stop, want.stop)
			}
			p.close()
			<-p.client.Done() // everything that came late was handled
			if got := p.said(); got != want.text && want.err == "" {
				t.Errorf("it said %.200q, want %.200q", got, want.text)
			}
			if want.odd != "" && !p.has(want.odd) || want.odd == "" && want.err == "" && !strings.Contains(prompt, "noise") && len(p.odds) > 0 {
				t.Errorf("reported: %q, want %q", p.odds, want.odd)
			}
			if want.events != nil && !slices.Equal(p.events, want.events) {
				t.Errorf("events %q, want %q", p.events, want.events)
			}
		})
	}
}

// TestCancel: a cancelled turn ends as one, pending permissions end with it, late ones are cancelled, and the session goes on.
func TestCancel(t *testing.T) {
	for prompt, want := range map[string]struct {
		text string
		stop StopReason
	}{
		"do: await-cancel waiting":                   {"waiting", StopCancelled},
		"do: permit execute x":                       {"cancelled", StopCancelled},
		"do: flood 100":                              {"cancelled=100", StopCancelled},
		"do: say a\ndo: permit-late":                 {"acancelled", StopCancelled},
		"do: await-cancel a\ndo: error -32800":       {"a", StopCancelled},
		"do: await-cancel a\ndo: end end_turn":       {"a", StopEndTurn},
		"do: await-cancel a\ndo: late b\ndo: say c":  {"abc", StopEndTurn},
		"do: await-cancel a\ndo: stop-twice":         {"a", StopEndTurn},
		"do: await-cancel a\ndo: tool-open execute":  {"a", StopCancelled},
		"do: await-cancel a\ndo: unknown-request x":  {"aerror -32601", StopCancelled},
		"do: await-cancel a\ndo: noise 200\ndo: say": {"a", StopCancelled},
	} {
		t.Run(prompt, func(t *testing.T) {
			t.Parallel()
			held := make(chan struct{}, 1000)
			p := connect(t, &user{allow: func(ctx context.Context, _ *Call) Permission {
				held <- struct{}{}
				<-ctx.Done()
				return Permission{Allowed: true}
			}})
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				kit.Await(t, "the turn is going on", func() bool { return len(held) > 0 || p.said() != "" })
				cancel()
			}()
			stop, err := p.session.Prompt(ctx, prompt)
			if err != nil || stop != want.stop {
				t.Fatalf("%s, %v; want %s; the agent says %s", stop, err, want.stop, p.errors)
			}
			if stop, err = p.session.Prompt(t.Context(), "do: say ."); err != nil || stop != StopEndTurn {
				t.Errorf("the next turn: %s, %v; the agent says %s", stop, err, p.errors)
			}
			kit.Await(t, "all was said", func() bool {
				return strings.ReplaceAll(p.said(), ".", "") == want.text && strings.Contains(p.said(), ".")
			})
		})
	}
}

// TestSilence: an agent that does not end its turn after it was cancelled is given up.
func TestSilence(t *testing.T) {
	p := connect(t, &user{})
	p.client.o.Grace = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.session.Prompt(ctx, "do: ignore-cancel"); !errors.Is(err, ErrSilent) {
		t.Error(err)
	}
}

// TestSession: modes and the end of a session.
func TestSession(t *testing.T) {
	p := connect(t, &user{})
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

// TestOnce: a permission for one call is none for others, and requests are seen in the order in which the agent sent them.
func TestOnce(t *testing.T) {
	for prompt, want := range map[string]struct{ text, offered string }{
		"do: permit read a":           {"yes", "c1"},
		"do: permit-always execute a": {"cancelled", ""},
		"do: flood 12":                {"yes=12", "f0 f1 f2 f3 f4 f5 f6 f7 f8 f9 f10 f11"},
	} {
		p := connect(t, &user{allow: func(context.Context, *Call) Permission { return Permission{Allowed: true, Once: true} }})
		if _, err := p.session.Prompt(t.Context(), prompt); err != nil || p.said() != want.text {
			t.Errorf("%q: %q, %v", prompt, p.said(), err)
		}
		if got := strings.Join(p.offered, " "); got != want.offered {
			t.Errorf("%q: %s", prompt, got)
		}
	}
}
