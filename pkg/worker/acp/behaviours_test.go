// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package acp

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/scriptedagent/agent"
)

// behaviour is something that agents do, good or bad, and what must come of it.
type behaviour struct {
	name string
	// do are steps of package agent, which ends with agent.ExitStrict when the client sends anything that the official schema does not
	// allow.
	do string
	// said is all that the agent says, odd a part of what is reported, and stop why the turn ended: end_turn if it is empty.
	said, odd string
	stop      StopReason
	// err is a part of the error of a turn that fails. Nothing else is looked at then but events.
	err string
	// events are all kinds of events, in their order; nil if they do not matter.
	events []string
	// cancel cancels the turn once the agent has asked or said something. hold is set if no permission is decided on before the turn is
	// over, which cancel includes.
	cancel, hold bool
	// once makes permissions hold for one call alone. asked are then the calls in the order of their requests.
	once  bool
	asked string
	// ended is set if the agent ends after its answer. All others without err must do their next turn as if nothing had happened. code is
	// how the agent exits; agent.ExitStrict if the schema does not allow what it is told.
	ended bool
	code  int
	// unclosed is a part of the error of the end of the session; empty if it can be ended.
	unclosed string
}

// behaviours of a conversation. Those of processes and of runs are in package codingagent.
//
//nolint:gochecknoglobals // a table
var behaviours = []behaviour{
	// What agents say and do.
	{name: "answers", do: "hello", said: "done"},
	{name: "answers in parts", do: "do: say a\ndo: say b", said: "ab"},
	{name: "thinks", do: "do: think hm\ndo: say a", said: "a", events: []string{"thought", "message"}},
	{name: "plans", do: "do: plan a+,b", events: []string{"planChanged[{a completed} {b pending}]"}},
	{name: "calls a tool", do: "do: tool execute ls", events: []string{"callStarted:execute:", "callEnded:execute:"}},
	{name: "calls a tool, which fails", do: "do: tool-failed read", events: []string{"callStarted:read:", "callEnded:read:failed"}},
	{name: "leaves a call open", do: "do: tool-open fetch", events: []string{"callStarted:fetch:"}},
	{name: "ends a call that it did not announce", do: "do: tool-ended x", events: []string{"callStarted:other:", "callEnded:other:"}},
	{name: "ends a call twice, with fields of other types", do: "do: strange-tool", events: []string{"callStarted:other:", "callEnded:other:"}},
	{name: "calls a tool of no known kind", do: "do: tool juggle x", err: "ended without", code: agent.ExitStrict},
	{name: "calls more tools than are recorded", do: "do: tools 16400\ndo: say a", said: "a", odd: "beyond the number"},
	{name: "changes a file", do: "do: diff x.go", events: []string{"callStarted:edit:", "callEnded:edit:"}},
	{name: "reports its context", do: "do: usage", events: []string{"contextChanged"}},
	{name: "changes its mode", do: "do: mode ask", events: []string{"modeChanged"}},
	{name: "has commands", do: "do: commands init", events: []string{"commandsChanged"}},
	{name: "is silent for twenty minutes, and then done", do: "do: silent fifo\ndo: say a", said: "a"},

	// Files.
	{name: "reads a file", do: "do: read README", said: "one\ntwo\nthree\n"},
	{name: "reads a line of a file", do: "do: read-line README", said: `{"content":"two\n"}`},
	{name: "reads a file that is not there", do: "do: read gone", said: "error -32002"},
	{name: "writes a file", do: "do: write new x", said: "{}"},
	{name: "writes a file that it must not write", do: "do: write /etc/passwd x", said: "error -32602"},

	// Permissions.
	{name: "asks, and may", do: "do: permit read a", said: "yes"},
	{name: "asks, and may not", do: "do: permit execute a", said: "no"},
	{name: "asks by the name of a tool, and may not", do: "do: permit-tool Bash", said: "no"},
	{name: "asks by the name of a tool, and may", do: "do: permit-tool Read", said: "yes"},
	{name: "asks for one call", do: "do: permit read a", said: "yes", once: true, asked: "c1"},
	{name: "asks for all calls at once, and may make one", do: "do: permit-always read a", said: "cancelled", once: true},
	{name: "asks without offering an answer", do: "do: permit-none read", said: "cancelled"},
	{name: "asks about two calls with one id", do: "do: permit-twice", said: "error -32600 cancelled"},
	{name: "gives up what it asked", do: "do: permit-abandoned", said: `{"outcome":{"outcome":"cancelled"}}`},
	{name: "reads a file while it asks", do: "do: permit-open execute x\ndo: read README", said: "one\ntwo\nthree\n"},
	{name: "asks 12 times at once, and is decided on in its order", do: "do: flood 12", said: "yes=12", once: true, asked: "f0 f1 f2 f3 f4 f5 f6 f7 f8 f9 f10 f11"},
	{name: "asks 100 times at once", do: "do: flood 100", said: "yes=100"},
	{name: "asks 900 times at once", do: "do: flood 900", said: "yes=900"},

	// Ends of turns.
	{name: "has no tokens left", do: "do: end max_tokens", stop: StopMaxTokens},
	{name: "has no turns left", do: "do: end max_turn_requests", stop: StopMaxTurns},
	{name: "refuses", do: "do: end refusal", stop: StopRefusal},
	{name: "cancels its turn by itself", do: "do: end cancelled", stop: StopCancelled},
	{name: "answers that the request was cancelled, -32800", do: "do: error -32800", stop: StopCancelled},
	{name: "fails", do: "do: error -32603", err: "the agent failed (code -32603)"},
	{name: "wants to be signed in to in the middle", do: "do: error -32000", err: "code -32000"},
	{name: "ends for a reason that does not exist", do: `do: answer {"stopReason":"bored"}`, err: `unknown reason "bored"`},
	{name: "ends for a reason that is no text", do: `do: answer {"stopReason":7}`, err: "the answer to session/prompt"},
	{name: "ends without a reason", do: `do: answer null`, err: `unknown reason ""`},
	{name: "answers with neither result nor error", do: `do: answer-with `, err: `unknown reason ""`},
	{name: "answers with result and error", do: `do: answer-with ,"result":{"stopReason":"end_turn"},"error":{"code":-32603,"message":"both"}`, err: "both (code -32603)"},
	{name: "ends its turn twice", do: "do: stop-twice", odd: "an answer that nothing waits for"},
	{name: "goes on after the end", do: "do: late afterwards", said: "afterwards"},
	{name: "exits, 0, without an answer", do: "do: exit 0", err: "ended without an answer"},
	{name: "exits, 3, without an answer", do: "do: exit 3", err: "ended without an answer", code: 3},
	{name: "exits in the middle of a call", do: "do: tool-open execute\ndo: exit 0", err: "ended without an answer", events: []string{"callStarted:execute:"}},
	{name: "exits in the middle of its answer", do: "do: half 0", err: "ended without an answer"},
	{name: "exits after its answer", do: "do: say a\ndo: end end_turn\ndo: exit 0", said: "a", ended: true},
	{name: "closes its output", do: "do: close-output", err: "ended without an answer"},

	// Messages that nobody knows.
	{name: "sends an unknown request", do: "do: unknown-request x/y", said: "error -32601", odd: "x/y"},
	{name: "wants a terminal, which it was not offered", do: "do: terminal ls", said: "error -32601", odd: "terminal/create"},
	{name: "wants a form, which it was not offered", do: "do: elicit", said: "error -32601", odd: "elicitation/create"},
	{name: "sends an unknown notification", do: "do: unknown-notification x/y", odd: "x/y"},
	{name: "sends an unknown notification of the protocol", do: "do: unknown-notification $/odd", odd: "$/odd"},
	{name: "sends an extension", do: "do: unknown-notification _x/y\ndo: say a", said: "a"},
	{name: "sends 5000 unknown notifications", do: "do: notifications 5000\ndo: say a", said: "a", odd: "x/4999"},
	{name: "sends an unknown update", do: "do: unknown-update juggle", odd: "juggle"},
	{name: "sends an update that cannot be read", do: "do: broken-update", odd: "cannot be read"},
	{name: "speaks in another session", do: "do: foreign elsewhere\ndo: say a", said: "a", odd: `another session, "another"`},
	{name: "does not know a method itself", do: "do: unsupported session/close", unclosed: "not offered (code -32601)"},

	// Output that is no message.
	{name: "prints a line", do: "do: bare Loading…", odd: "Loading…"},
	{name: "prints an empty line", do: "do: bare \ndo: say a", said: "a"},
	{name: "sends a batch", do: "do: bare []", odd: "no message"},
	{name: "sends an empty object", do: "do: bare {}", odd: "no message"},
	{name: "sends null", do: "do: bare null", odd: "no message"},
	{name: "answers what was not asked", do: `do: bare {"id":99,"result":{}}`, odd: "nothing waits for"},
	{name: "answers what was asked under another id", do: `do: bare {"id":"3","result":{"stopReason":"end_turn"}}`, odd: "nothing waits for"},
	{name: "could not read a request", do: `do: bare {"id":null,"error":{"code":-32700,"message":"m"}}`, odd: "nothing waits for"},
	{name: "nests arrays without an end", do: "do: bare " + strings.Repeat("[", 20000), odd: "no message"},
	{name: "prints 900 kB", do: "do: noise 900000\ndo: say a", said: "a", odd: "xxx"},
	{name: "prints 3 MB", do: "do: noise 3000000", err: "no messages"},
	{name: "writes 3 MB of errors", do: "do: stderr 3000000\ndo: say a", said: "a"},
	{name: "writes a character in two parts", do: "do: split €uro", said: "€uro"},
	{name: "writes half a character", do: "do: bad-utf8", said: "a\uFFFD\uFFFD"},
	{name: "says 1 MiB at once", do: "do: long-line 1000000", said: strings.Repeat("y", 1<<20)},
	{name: "says 64 MiB at once", do: "do: long-line 67108864", err: "more than 16777216 bytes"},

	// Cancelled turns, after which the session goes on.
	{name: "ends its cancelled turn", do: "do: await-cancel a", said: "a", stop: StopCancelled, cancel: true},
	{name: "is permitted too late", do: "do: permit execute x", said: "cancelled", stop: StopCancelled, cancel: true},
	{name: "is permitted 100 calls too late", do: "do: flood 100", said: "cancelled=100", stop: StopCancelled, cancel: true},
	{name: "asks after it was cancelled", do: "do: say a\ndo: permit-late", said: "acancelled", stop: StopCancelled, cancel: true},
	{name: "answers a cancellation with -32800", do: "do: await-cancel a\ndo: error -32800", said: "a", stop: StopCancelled, cancel: true},
	{name: "is done when it is cancelled", do: "do: await-cancel a\ndo: end end_turn", said: "a", stop: StopEndTurn, cancel: true},
	{name: "goes on after a cancellation", do: "do: await-cancel a\ndo: late b\ndo: say c", said: "abc", stop: StopEndTurn, cancel: true},
	{name: "ends its cancelled turn twice", do: "do: await-cancel a\ndo: end cancelled\ndo: stop-twice", said: "a", odd: "an answer that nothing waits for", stop: StopCancelled, cancel: true},
	{name: "ends its cancelled turn twice, for two reasons", do: "do: await-cancel a\ndo: stop-twice", said: "a", odd: "an answer that nothing waits for", stop: StopEndTurn, cancel: true},
	{name: "begins a call when it is cancelled", do: "do: await-cancel a\ndo: tool-open execute", said: "a", stop: StopCancelled, cancel: true},
	{name: "sends an unknown request when it is cancelled", do: "do: await-cancel a\ndo: unknown-request x", said: "aerror -32601", odd: "an unknown request: x", stop: StopCancelled, cancel: true},
	{name: "prints when it is cancelled", do: "do: await-cancel a\ndo: noise 200", said: "a", odd: "xxx", stop: StopCancelled, cancel: true},
	// Too much.
	{name: "asks 2000 times at once", do: "do: flood 2000", err: "more than 1024 requests at once", hold: true},
}

// TestBehaviours: whatever an agent does, the turn has the right outcome, and nobody is left waiting.
func TestBehaviours(t *testing.T) {
	names := map[string]bool{}
	for _, b := range behaviours {
		if names[b.name] {
			t.Errorf("there are two behaviours %q", b.name)
		}
		names[b.name] = true
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			b.check(t)
		})
	}
	if len(names) < 60 {
		t.Errorf("there are %d behaviours", len(names))
	}
}

func (b behaviour) check(t *testing.T) {
	c, asked := clocktesting.NewFakeClock(time.Now()), make(chan struct{}, 3000)
	p := connect(t, &user{once: b.once, allow: func(ctx context.Context, call *Call) Permission {
		asked <- struct{}{}
		if b.cancel || b.hold || call.ID == "held" {
			<-ctx.Done()
			return Permission{Allowed: true}
		}
		return Permission{Allowed: call.Kind != KindExecute && call.Tool != "Bash", Reason: "not allowed"}
	}}, c)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	switch {
	case b.cancel:
		go func() {
			kit.Await(t, "the turn is going on", func() bool { return len(asked) > 0 || p.text() != "" })
			cancel()
		}()
	case strings.HasPrefix(b.do, "do: silent"):
		go p.wake(t, c)
	}
	stop, err := p.session.Prompt(ctx, "be strict", b.do)
	if b.err != "" {
		if err == nil || !strings.Contains(err.Error(), b.err) {
			t.Errorf("error %v, want %s", err, b.err)
		}
	} else if want := cmp.Or(b.stop, StopEndTurn); err != nil || stop != want {
		t.Fatalf("%s, %v, want %s; the agent says %s", stop, err, want, p.errors)
	} else if !b.ended {
		p.next(t)
		if err := p.session.End(t.Context()); (err != nil) != (b.unclosed != "") || err != nil && !strings.Contains(err.Error(), b.unclosed) {
			t.Errorf("the end of the session: %v, want %q", err, b.unclosed)
		}
	}
	p.close()
	<-p.client.Done() // everything that came late was handled
	if code := <-p.code; code != b.code {
		t.Errorf("the agent ended with %d: %s", code, p.errors)
	}
	b.compare(t, p.user)
}

// wake lets twenty minutes pass before the agent that is silent goes on.
func (p *pair) wake(t *testing.T, c *clocktesting.FakeClock) {
	f, err := os.OpenFile(filepath.Join(p.dir, "fifo"), os.O_WRONLY, 0) // waits for the agent
	if err != nil {
		t.Error(err)
		return
	}
	if c.HasWaiters() {
		t.Error("something is to end the turn of a silent agent")
	}
	c.Step(20 * time.Minute)
	_ = f.Close()
}

// next has the agent do another turn, whose words are marked.
func (p *pair) next(t *testing.T) {
	if stop, err := p.session.Prompt(t.Context(), "do: say "+nextTurn); err != nil || stop != StopEndTurn {
		t.Errorf("the next turn: %s, %v; the agent says %s", stop, err, p.errors)
	}
}

// nextTurn is what an agent says in its next turn.
const nextTurn = "[next]"

// compare looks at what the user of the client has got.
func (b behaviour) compare(t *testing.T, u *user) {
	events := u.events
	if b.err == "" && !b.ended {
		events = events[:len(events)-1] // of the next turn
	}
	if b.events != nil && !slices.Equal(events, b.events) {
		t.Errorf("events %q, want %q", events, b.events)
	}
	if b.err != "" {
		return
	}
	if got := strings.ReplaceAll(u.text(), nextTurn, ""); got != b.said {
		t.Errorf("it said %.200q, want %.200q", got, b.said)
	}
	if b.odd != "" && !u.has(b.odd) || b.odd == "" && len(u.odds) > 0 {
		t.Errorf("reported: %q, want %q", u.odds, b.odd)
	}
	if got := strings.Join(u.offered, " "); b.once && got != b.asked {
		t.Errorf("permissions for once were asked for %s, want %s", got, b.asked)
	}
}

// TestSilence: an agent that does not end its turn after it was cancelled is given up when its time is over, and not before.
func TestSilence(t *testing.T) {
	c := clocktesting.NewFakeClock(time.Now())
	p := connect(t, &user{}, c)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := p.session.Prompt(ctx, "do: ignore-cancel")
		ended <- err
	}()
	kit.Await(t, "the agent has its time", c.HasWaiters)
	c.Step(time.Minute - 1)
	select {
	case err := <-ended:
		t.Fatalf("given up too early: %v", err)
	default:
	}
	c.Step(1)
	if err := <-ended; !errors.Is(err, ErrSilent) {
		t.Error(err)
	}
}

// TestLongestLine: of a line that does not end, no more is read than a message may have.
func TestLongestLine(t *testing.T) {
	in := &endless{}
	if _, err := readLine(bufio.NewReader(in)); !errors.Is(err, bufio.ErrTooLong) || in.read > maxLine+64<<10 {
		t.Errorf("%v after %d bytes", err, in.read)
	}
}

// endless is a line without an end.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'y'
	}
	e.read += len(p)
	return len(p), nil
}

// TestMemory: after agents that send too much, the client keeps little of it.
func TestMemory(t *testing.T) { //nolint:paralleltest // it measures the memory of this process
	for _, do := range []string{
		"do: long-line 67108864", "do: long-line 16000000\ndo: long-line 16000000\ndo: long-line 16000000", "do: tools 20000", "do: notifications 20000",
	} {
		before := heap()
		p := connect(t, &user{forgets: true}, clock.RealClock{})
		_, _ = p.session.Prompt(t.Context(), do) // its outcome is that of a behaviour
		p.close()
		<-p.client.Done()
		<-p.code
		if kept := heap() - before; kept > 16<<20 {
			t.Errorf("%s: %d MiB are kept", do, kept>>20)
		}
		runtime.KeepAlive(p)
	}
}

// heap returns how much memory is in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
