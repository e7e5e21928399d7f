// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conversation turns what a coding agent says and asks into what the platform records and decides: events of messages and tool
// calls, the plan of the task, approvals. It is the same for an agent that the platform runs and for one that runs elsewhere; both
// arrive as events and requests of package acp.
//
// Permission requests hold what the agent asks for, by the names that the agent gives its tools: an agent that does not ask is not held
// by them. A request is decided by the lists of the task and its Agent, then by the server's policies, and then, where one of these
// demands it, by people (permit.go). Files that the worker reads or writes for the agent are decided in the same way (files.go).
package conversation

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/worker/acp"
	"github.com/platform-ai/platform/pkg/worker/runner"
	"github.com/platform-ai/platform/pkg/worker/tool/file"
)

const (
	// maxMessage is how much of one message is kept, in bytes. The last message is the result.
	maxMessage = 5 << 20
	// maxEvents is how many events an agent can cause, and maxOdd how many lines of the log with what it did wrong.
	maxEvents = 20_000
	maxOdd    = 100
	// maxHeadline is the length of a message's summary, in bytes.
	maxHeadline = 120
	// maxEventText is how much of a message an event gets. The server shortens it further.
	maxEventText = 128 << 10
)

// Talk is what a coding agent says and asks in a run. Events arrive one after the other; the other methods are called at any time and use
// only what does not change, and the calls. It is an acp.Handler.
type Talk struct {
	*runner.Run
	agent string
	rules rules
	roots *file.Roots
	desk  desk
	calls
	platform platform
	// accesses counts the files that the worker read and wrote for the agent.
	accesses int

	message clip.Writer
	id      string
	// last is the last message that is not blank.
	last       string
	used, size uint64

	// events and odds count what was recorded and logged.
	events, odds atomic.Int32

	plans   chan []acp.Step
	planned chan struct{}
}

var _ acp.Handler = (*Talk)(nil)

// New returns the conversation of a run. roots are the files that the worker may read and write for the agent; nil if it does neither.
func New(r *runner.Run, p *plan.Plan, roots *file.Roots) *Talk {
	return &Talk{
		Run: r, agent: p.Agent.Name, rules: rulesOf(r.Task, p), roots: roots, message: clip.Writer{Limit: maxMessage}, calls: calls{open: map[string]*call{}},
		plans: make(chan []acp.Step, 1), planned: make(chan struct{}),
	}
}

// Record records an event of the agent, unless there are too many.
func (t *Talk) Record(e *v1alpha1.ExecutionEvent) {
	if n := t.events.Add(1); n > maxEvents {
		if n == maxEvents+1 {
			t.Log.Line("the coding agent did more than %d things that are recorded; the rest is left out", maxEvents)
		}
		return
	}
	e.AgentName = t.agent
	t.Recorder.Record(e)
}

// Event implements acp.Handler.
func (t *Talk) Event(e acp.Event) {
	if e.Kind != acp.Message || e.MessageID != t.id {
		t.said()
	}
	switch e.Kind {
	case acp.Message:
		t.id = e.MessageID
		_, _ = t.message.Write([]byte(e.Text)) // never fails
	case acp.CallStarted, acp.CallChanged:
		t.called(e.Call)
	case acp.CallEnded:
		t.ended(e.Call)
	case acp.PlanChanged:
		select { // only the newest plan matters
		case <-t.plans:
		default:
		}
		t.plans <- e.Plan
	case acp.ModeChanged:
		t.Log.Line("the coding agent is in mode %s", e.Mode)
	case acp.ContextChanged:
		t.used, t.size = e.Used, e.Size
	case acp.Thought, acp.CommandsChanged: // nobody is shown them
	}
}

// said records the message that is complete.
func (t *Talk) said() {
	text := t.message.Text()
	t.message, t.id = clip.Writer{Limit: maxMessage}, ""
	if strings.TrimSpace(text) == "" {
		return
	}
	t.last = text
	headline := strings.Join(strings.Fields(clip.Text(text, 4*maxHeadline)), " ")
	e := event.New(v1alpha1.EventModelMessage, v1alpha1.SeverityInfo, "", clip.Marked(headline, maxHeadline), map[string]any{"contentChars": utf8.RuneCountInString(text)})
	e.ContentText = clip.Text(text, maxEventText)
	t.Record(e)
}

// RecordPrompt records that the agent has what it is asked.
func (t *Talk) RecordPrompt(texts []string) {
	chars := 0
	for _, text := range texts {
		chars += utf8.RuneCountInString(text)
	}
	t.Record(event.New(v1alpha1.EventAgentRuntimeCommandStarted, v1alpha1.SeverityInfo, "", "the coding agent has its prompt", map[string]any{"promptChars": chars}))
}

// Prepare makes everything ready for the agent. The caller must call Finish.
func (t *Talk) Prepare(ctx context.Context, p *plan.Plan) {
	t.desk.open(ctx, t.Run, p)
	t.startPlans(ctx)
}

// Finish records what is still open when the agent has ended.
func (t *Talk) Finish(stopped bool) {
	t.desk.close()
	t.platform.close()
	t.said()
	t.closeAll(stopped)
	if t.size > 0 {
		t.Record(event.New(v1alpha1.EventModelContextUpdated, v1alpha1.SeverityInfo, "", fmt.Sprintf("%d of %d tokens of the context are used", t.used, t.size),
			map[string]any{"contextUsed": t.used, "contextSize": t.size}))
	}
	close(t.plans)
	<-t.planned
}

// Odd implements acp.Handler.
func (t *Talk) Odd(what string) {
	if t.odds.Add(1) <= maxOdd {
		t.Log.Line("the coding agent sent %s", what)
	}
}
