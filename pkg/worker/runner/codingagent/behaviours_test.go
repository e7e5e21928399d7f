// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codingagent

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
)

// behaviour is something that a coding agent does, good or bad, and how its run must end.
type behaviour struct {
	name string
	// do are steps of the scripted agent; see package agent.
	do string
	// change changes the task and its Agent, and prepare the run.
	change  func(*v1alpha1.TaskSpec, *v1alpha1.AgentSpec)
	prepare func(t *testing.T, o *outcome)
	// meanwhile is called in the middle of the run, and cancel cancels the run when it returns.
	meanwhile func(t *testing.T, o *outcome)
	cancel    bool
	// result is what the run produced, and reason why it failed; empty if it did not.
	result, reason string
	// events are the types of all events without the prefix AgentRuntime; nothing if only the last one matters. message is a part of the
	// error, log of the log, and calls what the events say of calls and approvals.
	events, message, log, calls string
	// also is what else must hold.
	also func(t *testing.T, o *outcome)
}

// behaviours of agents that a run has to do with as a program. Those of the conversation alone are in package acp. What becomes of a run
// that changes nothing although it should, and of one whose process numbers are given to others, is in test/integration/task.
//
//nolint:gochecknoglobals // a table
var behaviours = []behaviour{
	// What agents say and do.
	{name: "gets the instructions and the prompt", do: "do: echo", result: "Be brief.|do: echo", events: "Started CommandStarted ModelMessage Completed"},
	{name: "ends with its last message", do: "do: say a\ndo: tool execute ls\ndo: say b", result: "b", events: "Started CommandStarted ModelMessage ToolCallStarted ToolCallCompleted ModelMessage Completed"},
	{name: "goes on after a call that failed", do: "do: say a\ndo: tool-failed read", result: "a", events: "Started CommandStarted ModelMessage ToolCallStarted ToolCallFailed Completed"},
	{name: "reports its context, which is no usage", do: "do: usage\ndo: say a", result: "a", events: "Started CommandStarted ModelMessage ModelContextUpdated Completed"},
	{name: "says the last thing after its end", do: "do: late after", result: "after"},
	{name: "says more than is kept", do: "do: long-line 6000000", result: strings.Repeat("y", 5<<20), also: func(t *testing.T, o *outcome) {
		if text := o.Events()[2].ContentText; len(text) > 128<<10 {
			t.Errorf("the event has %d bytes", len(text))
		}
	}},
	{name: "does more than is recorded", do: "do: tools 16000\ndo: say a", result: "a", log: "more than 20000 things that are recorded", also: func(t *testing.T, o *outcome) {
		if n := len(o.Events()); n > 20_001 {
			t.Errorf("%d events", n)
		}
	}},
	{name: "sends 5000 unknown notifications", do: "do: notifications 5000\ndo: say a", result: "a", also: func(t *testing.T, o *outcome) {
		if n := strings.Count(o.Logged(), "the coding agent sent"); n != 100 {
			t.Errorf("%d lines of the log", n)
		}
	}},
	{name: "writes 3 MB of errors", do: "do: stderr 3000000\ndo: say a", result: "a", log: "it wrote more, which is left out", also: func(t *testing.T, o *outcome) {
		if n := len(o.Logged()); n > 70<<10 {
			t.Errorf("the log has %d bytes", n)
		}
	}},
	{name: "is silent, and then done", do: "do: silent fifo\ndo: say a", result: "a", meanwhile: wake},

	// Files.
	{name: "reads a file", do: "do: read README", result: "about\n"},
	{name: "reads a file of the machine", do: "do: read /etc/hostname", result: "error -32602"},
	{name: "reads a file that is too large", do: "do: shell head -c 9000000 /dev/zero > large\ndo: think .\ndo: read large", result: "error -32602"},
	{name: "writes a file", do: "do: write new/x y\ndo: shell cat new/x", result: "{}y"},
	{name: "writes a file outside", do: "do: write ../x y", result: "error -32602"},
	{name: "writes through a link that leads outside", do: "do: shell ln -s /tmp out\ndo: think .\ndo: write out/x y", result: "error -32602"},

	// Turns that end well and are no success, or the other way round.
	{name: "ends its turn without a word, as if its model had not failed", do: "do: end end_turn", reason: v1alpha1.ReasonBlankAnswer, events: "Started CommandStarted Failed"},
	{name: "calls a tool and says nothing", do: "do: tool read x", reason: v1alpha1.ReasonBlankAnswer, events: "Started CommandStarted ToolCallStarted ToolCallCompleted Failed"},
	{name: "says blanks", do: "do: say \\n", reason: v1alpha1.ReasonBlankAnswer},
	{name: "says nothing, where a change counts", do: "do: end end_turn", change: writes, events: "Started CommandStarted Completed"},
	{name: "refuses", do: "do: end refusal", reason: v1alpha1.ReasonAgentRefused, events: "Started CommandStarted Failed"},
	{name: "has no tokens left", do: "do: end max_tokens", reason: v1alpha1.ReasonAgentLimitReached},
	{name: "has no turns left", do: "do: end max_turn_requests", reason: v1alpha1.ReasonAgentLimitReached},
	{name: "cancels its turn by itself", do: "do: end cancelled", reason: v1alpha1.ReasonAgentFailed, message: "nobody had cancelled it"},
	{name: "answers that the request was cancelled, -32800, and nobody did", do: "do: error -32800", reason: v1alpha1.ReasonAgentFailed, message: "nobody had cancelled it"},
	{name: "fails after it said something", do: "do: say a\ndo: error -32603", result: "a", reason: v1alpha1.ReasonAgentFailed, message: "code -32603"},
	{name: "breaks the protocol", do: `do: answer {"stopReason":"bored"}`, reason: v1alpha1.ReasonAgentFailed, message: `unknown reason "bored"`},

	// Processes.
	{name: "exits, 0, without an answer", do: "do: exit 0", reason: v1alpha1.ReasonAgentFailed, message: "ended without an answer (exit code 0)"},
	{name: "exits, 3, in the middle of a call", do: "do: tool-open execute\ndo: exit 3", reason: v1alpha1.ReasonAgentFailed, message: "(exit code 3)", calls: "Started execute; Failed execute outcome_unknown"},
	{name: "exits in the middle of its answer", do: "do: half 0", reason: v1alpha1.ReasonAgentFailed, message: "ended without an answer"},
	{name: "exits, 3, after its answer", do: "do: say a\ndo: end end_turn\ndo: exit 3", result: "a"},
	{name: "is killed by a signal", do: "do: shell kill -9 $PPID", reason: v1alpha1.ReasonAgentFailed, message: "(exit code 137)"},
	{name: "closes its output and stays", do: "do: close-output", reason: v1alpha1.ReasonAgentFailed, message: "ended without an answer"},
	{name: "stays after its session", do: "do: immortal\ndo: say a", result: "a"},
	{name: "leaves a process behind", do: "do: shell setsid sleep 1000 >/dev/null 2>&1 &\ndo: say a", result: "a"},
	{name: "leaves a process behind, and exits", do: "do: shell setsid sleep 1000 >/dev/null 2>&1 &\ndo: exit 0", reason: v1alpha1.ReasonAgentFailed},
	{name: "prints 3 MB", do: "do: noise 3000000", reason: v1alpha1.ReasonAgentFailed, message: "no messages"},
	{name: "says 64 MiB at once", do: "do: long-line 67108864", reason: v1alpha1.ReasonAgentFailed, message: "more than 16777216 bytes"},
	{name: "is no agent and ends", prepare: instead("/bin/true"), reason: v1alpha1.ReasonAgentFailed, events: "Failed", message: "initialize: the agent ended without an answer (exit code 0)"},
	{name: "is no agent and says what it is told", prepare: instead("/bin/cat"), reason: v1alpha1.ReasonAgentFailed, events: "Failed", message: "initialize: "},

	// Permissions.
	{name: "works while people are asked", do: "do: permit-open execute ls\ndo: read README", change: gated("execute"), result: "about\n"},
	{name: "exits while people are asked", do: "do: permit-open execute ls\ndo: silent fifo\ndo: exit 0", change: gated("execute"), meanwhile: func(t *testing.T, o *outcome) {
		o.server.asked(1)
		wake(t, o)
	}, reason: v1alpha1.ReasonAgentFailed, calls: "ApprovalRequested execute 1", also: approvedTooLate},
	{name: "is cancelled while people are asked", do: "do: permit execute ls", change: gated("execute"), cancel: true, meanwhile: func(_ *testing.T, o *outcome) {
		o.server.asked(1)
	}, reason: v1alpha1.ReasonWorkerStopped, events: "Started CommandStarted ApprovalRequested ModelMessage Cancelled", result: "cancelled", also: approvedTooLate},
	{name: "asks about a call that has ended", do: "do: permit-ended execute", result: "no"},

	// Cancelled runs, which are never failures of the agent.
	{name: "ends its cancelled turn", do: "do: say a\ndo: silent fifo\ndo: await-cancel", meanwhile: wake, cancel: true, result: "a", reason: v1alpha1.ReasonWorkerStopped, events: "Started CommandStarted ModelMessage Cancelled"},
	{name: "answers a cancellation with -32800", do: "do: say a\ndo: silent fifo\ndo: await-cancel\ndo: error -32800", meanwhile: wake, cancel: true, result: "a", reason: v1alpha1.ReasonWorkerStopped, events: "Started CommandStarted ModelMessage Cancelled"},
	{name: "answers a cancellation with a failure", do: "do: say a\ndo: silent fifo\ndo: await-cancel\ndo: error -32603", meanwhile: wake, cancel: true, result: "a", reason: v1alpha1.ReasonWorkerStopped, events: "Started CommandStarted ModelMessage Cancelled"},
	{name: "answers a cancellation twice", do: "do: say a\ndo: silent fifo\ndo: await-cancel\ndo: stop-twice", meanwhile: wake, cancel: true, result: "a", reason: v1alpha1.ReasonWorkerStopped, events: "Started CommandStarted ModelMessage Cancelled"},
	{name: "exits when it is cancelled", do: "do: say a\ndo: silent fifo\ndo: await-cancel\ndo: exit 1", meanwhile: wake, cancel: true, result: "a", reason: v1alpha1.ReasonWorkerStopped, events: "Started CommandStarted ModelMessage Cancelled"},
	{name: "is cancelled in the middle of a call", do: "do: tool-open execute\ndo: silent fifo\ndo: await-cancel", meanwhile: wake, cancel: true, reason: v1alpha1.ReasonWorkerStopped, calls: "Started execute; Failed execute cancelled"},
	{name: "does not hear that it is cancelled", do: "do: say a\ndo: silent fifo\ndo: ignore-cancel", meanwhile: wake, cancel: true, result: "a", reason: v1alpha1.ReasonWorkerStopped, events: "Started CommandStarted ModelMessage Cancelled"},
	{name: "hears nothing, not even SIGTERM", do: "do: immortal\ndo: say a\ndo: silent fifo\ndo: ignore-cancel", meanwhile: wake, cancel: true, result: "a", reason: v1alpha1.ReasonWorkerStopped, events: "Started CommandStarted ModelMessage Cancelled"},
	{name: "has started what hears nothing", do: "do: shell setsid sh -c 'trap \"\" TERM HUP INT; sleep 1000; sleep 1000' >/dev/null 2>&1 &\ndo: say a\ndo: silent fifo\ndo: await-cancel", meanwhile: wake, cancel: true, result: "a", reason: v1alpha1.ReasonWorkerStopped},
}

// writes makes what the run changes its result.
func writes(s *v1alpha1.TaskSpec, _ *v1alpha1.AgentSpec) {
	s.Workspace = &v1alpha1.TaskWorkspace{
		GitRepo: "https://example.com/x.git", Intent: v1alpha1.WorkspaceWrite, PublicationCredentialRef: &v1alpha1.WorkspaceCredentialReference{Name: "pusher"},
	}
}

// instead makes another program the agent.
func instead(path string) func(*testing.T, *outcome) {
	return func(_ *testing.T, o *outcome) { o.Agents.Given[v1alpha1.RuntimeCodex] = path }
}

// wake lets an agent that is silent go on.
func wake(t *testing.T, o *outcome) {
	f, err := os.OpenFile(filepath.Join(o.WorkDir, "fifo"), os.O_WRONLY, 0) // waits for the agent
	if err != nil {
		t.Error(err)
		return
	}
	_ = f.Close()
}

// approvedTooLate approves the call for which nothing waits any more, which has no effect.
func approvedTooLate(t *testing.T, o *outcome) {
	o.server.decideOn(o.server.approvals()[0].Name, v1alpha1.EventApprovalApproved, "")
	if o.told() != "ApprovalRequested execute 1" || o.outcomes() != "approved not_started" {
		t.Errorf("%s; %s", o.told(), o.outcomes())
	}
}

// TestBehaviours: whatever an agent does, its run ends for the right reason, with one event that says so, and nothing of it is left.
func TestBehaviours(t *testing.T) {
	long := []string{"says more than is kept", "does more than is recorded", "stays after its session", "does not hear that it is cancelled"}
	for _, b := range behaviours {
		t.Run(b.name, func(t *testing.T) {
			if slices.Contains(long, b.name) {
				kit.Needs(t, kit.Minutes)
			}
			b.check(t)
		})
	}
}

func (b behaviour) check(t *testing.T) {
	var change []func(*v1alpha1.TaskSpec, *v1alpha1.AgentSpec)
	if b.change != nil {
		change = append(change, b.change)
	}
	o := prepared(t, cmp.Or(b.do, "hello"), change...)
	if err := syscall.Mkfifo(filepath.Join(o.WorkDir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b.prepare != nil {
		b.prepare(t, o)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.run(ctx)
	}()
	if b.meanwhile != nil {
		b.meanwhile(t, o)
	}
	if b.cancel {
		cancel()
	}
	<-done
	if got := o.reason(); o.result.Text != b.result || got != cmp.Or(b.reason, "<nil>") {
		t.Errorf("%.100q, %s: %v; want %.100q, %s; the log is %.5000s", o.result.Text, got, o.err, b.result, b.reason, o.Logged())
	}
	b.compare(t, o)
	if left := o.processes(); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	if b.also != nil {
		b.also(t, o)
	}
}

// compare looks at what was recorded.
func (b behaviour) compare(t *testing.T, o *outcome) {
	types := o.types()
	end := map[string]string{"": "Completed", v1alpha1.ReasonWorkerStopped: "Cancelled"}[b.reason]
	if end = cmp.Or(end, "Failed"); !strings.HasSuffix(" "+types, " "+end) || b.events != "" && types != b.events {
		t.Errorf("events %.1000s, want %s at the end: %s", types, end, b.events)
	}
	if b.message != "" && (o.err == nil || !strings.Contains(o.err.Error(), b.message)) {
		t.Errorf("error %v, want %s", o.err, b.message)
	}
	if b.log != "" && !strings.Contains(o.Logged(), b.log) {
		t.Errorf("the log lacks %q: %.1000s", b.log, o.Logged())
	}
	if b.calls != "" && o.told() != b.calls {
		t.Errorf("calls: %s", o.told())
	}
}

// processes returns the programs that work in a folder of the run.
func (o *outcome) processes() []string {
	var list []string
	all, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range all {
		if dir, err := os.Readlink(link); err == nil && strings.HasPrefix(dir, o.WorkDir) {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "cmdline"))
			list = append(list, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return list
}
