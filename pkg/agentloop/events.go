// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agentloop

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/tool"
)

// Recorder receives the events of a run, in order. It neither fails nor blocks: a lost event
// never fails a run.
type Recorder interface {
	Record(e *v1alpha1.ExecutionEvent)
}

// content is the structured payload of an event. It contains sizes, counts and names, never
// arguments or results.
type content map[string]any

func (l *loop) record(e *v1alpha1.ExecutionEvent) {
	if l.c.Recorder == nil {
		return
	}
	e.AgentName = l.c.AgentName
	l.c.Recorder.Record(e)
}

func (l *loop) modelContent(a llm.Attempt) content {
	return content{"iteration": l.asked, "provider": a.Provider, "model": a.Model, "attempt": a.Number}
}

// requestStart returns the event for the start of an attempt.
func (l *loop) requestStart(a llm.Attempt, req *llm.Request) *v1alpha1.ExecutionEvent {
	c := l.modelContent(a)
	c["messageCount"], c["toolCount"], c["maxInputTokens"] = len(req.Messages), len(req.Tools), (&llm.Request{Messages: req.Messages, Tools: req.Tools}).MaxInput()
	e := event.New(v1alpha1.EventModelRequestStarted, v1alpha1.SeverityInfo, "", fmt.Sprintf("asking %s (%d messages)", a.Model, len(req.Messages)), c)
	e.Recording = l.c.Recording.request(req)
	return e
}

// requestEnded records an attempt with the usage that was reported, if any. A failed attempt
// may also have used tokens.
func (l *loop) requestEnded(a llm.Attempt) {
	c := l.modelContent(a)
	c["durationMs"] = a.Duration.Milliseconds()
	NoteUsage(c, a.Response.Usage)
	if a.Err != nil {
		c["errorClass"] = llm.ClassOf(a.Err)
		if e, ok := errors.AsType[*llm.Error](a.Err); ok && e.RetryAfter > 0 {
			c["retryAfterMs"] = e.RetryAfter.Milliseconds()
		}
		if unsent(a.Err) {
			c["unsent"] = true
		}
		severity := v1alpha1.SeverityError
		if llm.ClassOf(a.Err) == llm.ClassCanceled {
			severity = v1alpha1.SeverityInfo
		}
		if a.RetryIn > 0 {
			severity = v1alpha1.SeverityWarning
			c["retryInMs"] = a.RetryIn.Milliseconds()
		}
		l.record(event.New(v1alpha1.EventModelRequestFailed, severity, "", a.Err.Error(), c))
		return
	}
	c["stopReason"], c["toolCalls"] = a.Response.StopReason, len(a.Response.ToolCalls)
	e := event.New(v1alpha1.EventModelRequestCompleted, v1alpha1.SeverityInfo, "", UsageText(a.Model, a.Response.Usage), c)
	e.Recording = l.c.Recording.answer(&a.Response)
	l.record(e)
}

// unsent reports whether the vendor did not get the request.
func unsent(err error) bool {
	e, ok := errors.AsType[*llm.Error](err)
	return ok && e.Unsent
}

// NoteUsage adds to the content of an event what a vendor reported of a request that has ended.
func NoteUsage(content map[string]any, u llm.Usage) {
	content["usageReported"] = u.Known()
	for name, n := range map[string]*int64{
		"inputTokens": u.InputTokens, "outputTokens": u.OutputTokens, "cachedInputTokens": u.CachedInputTokens, "cacheWriteInputTokens": u.CacheWriteInputTokens,
	} {
		if n != nil {
			content[name] = *n
		}
	}
}

// UsageText says in a line what an answer of a model used.
func UsageText(model string, u llm.Usage) string {
	if !u.Known() {
		return model + " answered, usage not reported"
	}
	return fmt.Sprintf("%s answered, %d tokens in, %d out", model, *u.InputTokens, *u.OutputTokens)
}

func (l *loop) message(r llm.Response) {
	e := event.New(v1alpha1.EventModelMessage, v1alpha1.SeverityInfo, "", headline(r), content{
		"iteration": l.asked, "contentChars": utf8.RuneCountInString(r.Text), "toolCalls": len(r.ToolCalls), "stopReason": r.StopReason,
	})
	e.ContentText = r.Text
	l.record(e)
}

// headlineChars is the maximum length of a message's one-line summary, in characters.
const headlineChars = 120

// headline returns the beginning of a message, on one line.
func headline(r llm.Response) string {
	text := strings.Join(strings.Fields(r.Text), " ")
	if text == "" {
		return fmt.Sprintf("no text, %d tool calls", len(r.ToolCalls))
	}
	n := 0
	for i := range text {
		if n == headlineChars {
			return text[:i] + "…"
		}
		n++
	}
	return text
}

func (l *loop) contextTruncated(before int) {
	l.record(event.New(v1alpha1.EventContextTruncated, v1alpha1.SeverityWarning, "", fmt.Sprintf("the conversation was too long: %d messages became %d", before, len(l.messages)),
		content{"iteration": l.asked, "messageCountBefore": before, "messageCountAfter": len(l.messages)}))
}

func (l *loop) toolStarted(call llm.ToolCall) { l.record(l.toolStart(call, "")) }

// toolStart returns the event for the start of a call. If the call was approved, this event and
// the one for its end name the approval.
func (l *loop) toolStart(call llm.ToolCall, approvalID string) *v1alpha1.ExecutionEvent {
	e := l.toolEvent(v1alpha1.EventToolCallStarted, v1alpha1.SeverityInfo, call, approvalID, "calling "+call.Name, content{"argumentBytes": len(call.Arguments)})
	e.Recording = l.c.Recording.call(call)
	return e
}

func (l *loop) toolEnded(call llm.ToolCall, approvalID string, r tool.Result, took time.Duration) {
	c := content{"resultLength": len(r.Text), "durationMs": took.Milliseconds()}
	if r.Failed() {
		// The error's text may repeat arguments; its type does not.
		c["errorType"] = r.ErrorType
		text := fmt.Sprintf("%s failed: %s", call.Name, r.ErrorType)
		if r.ErrorType == tool.TypeOutcomeUnknown {
			text = call.Name + " may have been carried out: its outcome is unknown"
		}
		e := l.toolEvent(v1alpha1.EventToolCallFailed, v1alpha1.SeverityWarning, call, approvalID, text, c)
		e.Recording = l.c.Recording.result(call, r)
		l.record(e)
		return
	}
	if r.Program != "" {
		c["programFailure"] = r.Program
	}
	if r.Child.Name != "" { // a trace finds the task by it
		c["childTask"] = r.Child.Name
		if r.Child.Agent != "" {
			c["agent"] = r.Child.Agent
		}
	}
	e := l.toolEvent(v1alpha1.EventToolCallCompleted, v1alpha1.SeverityInfo, call, approvalID, call.Name+" completed", c)
	e.Recording = l.c.Recording.result(call, r)
	l.record(e)
}

func (l *loop) toolEvent(t v1alpha1.EventType, s v1alpha1.EventSeverity, call llm.ToolCall, approvalID, summary string, c content) *v1alpha1.ExecutionEvent {
	c["iteration"], c["toolName"], c["toolCallID"] = l.asked, call.Name, call.ID
	if approvalID != "" {
		c["approvalID"] = approvalID
	}
	e := event.New(t, s, "", summary, c)
	e.ToolName, e.ToolCallID = call.Name, call.ID
	return e
}
