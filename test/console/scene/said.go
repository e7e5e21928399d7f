// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"fmt"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Step is what a model answers to a request: a text, and a call with what it returns.
type Step struct {
	Text            string
	Tool, Arguments string // a call; none without a tool
	Result          string
	Failed          bool
}

// Converse appends what a run says and does in an attempt, recorded as a worker records it: each request has the whole conversation
// before it.
func (s *Scene) Converse(task string, attempt int32, prompt string, steps ...Step) {
	s.t.Helper()
	c := conversation{attempt: attempt, parts: []v1alpha1.RecordedPart{said("system", "You are careful."), said("user", prompt)}}
	for i, step := range steps {
		c.event(v1alpha1.ExecutionEvent{Type: v1alpha1.EventModelRequestStarted, Summary: "asked the model"}, v1alpha1.EventRecording{
			Conversation: []v1alpha1.RecordedRange{{From: 0, To: int32(len(c.parts)) - 1}}, Parameters: &v1alpha1.RecordedParameters{MaxTokens: 1000},
		})
		id := fmt.Sprintf("call-%d-%d", attempt, i)
		answer := said("assistant", step.Text)
		if step.Tool != "" {
			answer.Message.ToolCalls = []v1alpha1.RecordedToolCall{{ID: id, Name: step.Tool, Arguments: step.Arguments}}
		}
		n := c.part(answer)
		c.event(v1alpha1.ExecutionEvent{Type: v1alpha1.EventModelRequestCompleted, Summary: "the model answered"}, v1alpha1.EventRecording{Message: &n})
		if step.Text != "" {
			c.events = append(c.events, v1alpha1.ExecutionEvent{Type: v1alpha1.EventModelMessage, Attempt: attempt, Summary: "said", ContentText: step.Text})
		}
		if step.Tool == "" {
			continue
		}
		call := v1alpha1.ExecutionEvent{Type: v1alpha1.EventToolCallStarted, ToolName: step.Tool, ToolCallID: id, Summary: "calling " + step.Tool}
		c.event(call, v1alpha1.EventRecording{Message: &n, ToolCallID: id})
		result := said("tool", step.Result)
		result.Message.ToolCallID, result.Message.Failed = id, step.Failed
		r := c.part(result)
		call.Type, call.Summary = v1alpha1.EventToolCallCompleted, step.Tool+" returned"
		if step.Failed {
			call.Type, call.Severity, call.Summary = v1alpha1.EventToolCallFailed, v1alpha1.SeverityError, step.Tool+" failed"
		}
		c.event(call, v1alpha1.EventRecording{Message: &r, ToolCallID: id})
	}
	s.Post(task, c.events...)
}

// conversation numbers the parts of an attempt, and sends each once.
type conversation struct {
	attempt int32
	parts   []v1alpha1.RecordedPart
	sent    int
	events  []v1alpha1.ExecutionEvent
}

func said(role, text string) v1alpha1.RecordedPart {
	return v1alpha1.RecordedPart{Message: &v1alpha1.RecordedMessage{Role: role, Text: text}}
}

// part returns the number of a new part.
func (c *conversation) part(p v1alpha1.RecordedPart) int32 {
	c.parts = append(c.parts, p)
	return int32(len(c.parts)) - 1
}

func (c *conversation) event(e v1alpha1.ExecutionEvent, r v1alpha1.EventRecording) {
	r.First, r.Parts = int32(c.sent), c.parts[c.sent:]
	c.sent = len(c.parts)
	e.Attempt, e.Recording = c.attempt, &r
	c.events = append(c.events, e)
}
