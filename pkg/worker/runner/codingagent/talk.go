// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codingagent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/tool"
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
	// maxFile is how large a file may be that the agent reads through the worker, in bytes.
	maxFile = 8 << 20
)

// talk is what an agent says and asks in a run. Events arrive one after the other; the other methods are called at any time and use
// only what does not change.
type talk struct {
	*runner.Run
	agent string
	rules rules
	roots *file.Roots

	message clip.Writer
	id      string
	// last is the last message that is not blank.
	last string
	// calls counts the tool calls, and open are those that have not ended, with their start.
	calls      int
	open       map[string]openCall
	used, size uint64

	// events and odds count what was recorded and logged.
	events, odds atomic.Int32

	plans   chan []acp.Step
	planned chan struct{}
}

type openCall struct {
	call  *acp.Call
	began time.Time
}

var _ acp.Handler = (*talk)(nil)

func newTalk(r *runner.Run, p *plan.Plan, roots *file.Roots) *talk {
	return &talk{
		Run: r, agent: p.Agent.Name, rules: rulesOf(r.Task, p), roots: roots, message: clip.Writer{Limit: maxMessage}, open: map[string]openCall{},
		plans: make(chan []acp.Step, 1), planned: make(chan struct{}),
	}
}

func (t *talk) record(e *v1alpha1.ExecutionEvent) {
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
func (t *talk) Event(e acp.Event) {
	if e.Kind != acp.Message || e.MessageID != t.id {
		t.said()
	}
	switch e.Kind {
	case acp.Message:
		t.id = e.MessageID
		_, _ = t.message.Write([]byte(e.Text)) // never fails
	case acp.CallStarted:
		t.calls++
		t.open[e.Call.ID] = openCall{e.Call, t.Clock.Now()}
		t.Log.Line("%s: %s", e.Call.Name(), e.Call.Title)
		t.tool(v1alpha1.EventToolCallStarted, v1alpha1.SeverityInfo, e.Call, "calling "+e.Call.Name(), map[string]any{"argumentBytes": e.Call.ArgumentBytes})
	case acp.CallEnded:
		t.callEnded(e.Call)
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
	case acp.Thought, acp.CallChanged, acp.CommandsChanged: // nobody is shown them
	}
}

// said records the message that is complete.
func (t *talk) said() {
	text := t.message.Text()
	t.message, t.id = clip.Writer{Limit: maxMessage}, ""
	if strings.TrimSpace(text) == "" {
		return
	}
	t.last = text
	headline := strings.Join(strings.Fields(clip.Text(text, 4*maxHeadline)), " ")
	e := event.New(v1alpha1.EventModelMessage, v1alpha1.SeverityInfo, "", clip.Marked(headline, maxHeadline), map[string]any{"contentChars": utf8.RuneCountInString(text)})
	e.ContentText = clip.Text(text, maxEventText)
	t.record(e)
}

func (t *talk) callEnded(c *acp.Call) {
	content := map[string]any{"resultLength": c.ResultBytes}
	if o, ok := t.open[c.ID]; ok {
		content["durationMs"] = t.Clock.Since(o.began).Milliseconds()
		delete(t.open, c.ID)
	}
	if len(c.Diffs) > 0 {
		content["changedFiles"] = len(c.Diffs)
	}
	if c.Failed {
		content["errorType"] = tool.TypeUnavailable
		t.tool(v1alpha1.EventToolCallFailed, v1alpha1.SeverityWarning, c, c.Name()+" failed", content)
		return
	}
	t.tool(v1alpha1.EventToolCallCompleted, v1alpha1.SeverityInfo, c, c.Name()+" completed", content)
}

// tool records an event of a tool call. Titles are not in it, because agents put arguments there.
func (t *talk) tool(kind v1alpha1.EventType, severity v1alpha1.EventSeverity, c *acp.Call, summary string, content map[string]any) {
	content["toolName"], content["toolCallID"], content["kind"] = c.Name(), c.ID, c.Kind
	if len(c.Paths) > 0 {
		content["files"] = len(c.Paths)
	}
	e := event.New(kind, severity, "", summary, content)
	e.ToolName, e.ToolCallID = c.Name(), c.ID
	t.record(e)
}

// finish records what is still open when the agent has ended.
func (t *talk) finish(stopped bool) {
	t.said()
	for _, o := range t.open {
		kind, text := tool.TypeOutcomeUnknown, " may have been carried out: its outcome is unknown"
		if stopped {
			kind, text = tool.TypeCancelled, " was stopped"
		}
		t.tool(v1alpha1.EventToolCallFailed, v1alpha1.SeverityWarning, o.call, o.call.Name()+text,
			map[string]any{"resultLength": 0, "durationMs": t.Clock.Since(o.began).Milliseconds(), "errorType": kind})
	}
	if t.size > 0 {
		t.record(event.New(v1alpha1.EventModelContextUpdated, v1alpha1.SeverityInfo, "", fmt.Sprintf("%d of %d tokens of the context are used", t.used, t.size),
			map[string]any{"contextUsed": t.used, "contextSize": t.size}))
	}
	close(t.plans)
	<-t.planned
}

// Odd implements acp.Handler.
func (t *talk) Odd(what string) {
	if t.odds.Add(1) <= maxOdd {
		t.Log.Line("the coding agent sent %s", what)
	}
}

// ReadTextFile implements acp.Handler.
func (t *talk) ReadTextFile(path string) (string, error) {
	text, err := t.roots.ReadText(path, maxFile)
	return text, forAgent(err)
}

// WriteTextFile implements acp.Handler.
func (t *talk) WriteTextFile(path, text string) error { return forAgent(t.roots.WriteText(path, text)) }

// forAgent returns the error of a file for the agent.
func forAgent(err error) error {
	failed, ok := errors.AsType[*tool.Error](err)
	switch {
	case err == nil:
		return nil
	case ok && failed.Type == tool.TypeNotFound:
		return acp.NotFound(failed.Message)
	case ok && failed.Type != tool.TypeUnavailable:
		return acp.InvalidParams(failed.Message)
	}
	return err
}

// Permit implements acp.Handler.
func (t *talk) Permit(_ context.Context, c *acp.Call) acp.Permission {
	if why := t.rules.refuse(c); why != "" {
		t.Log.Line("%s: not permitted: %s", c.Name(), why)
		return acp.Permission{Reason: why}
	}
	t.Log.Line("%s: permitted", c.Name())
	return acp.Permission{Allowed: true}
}
