// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// passing is the real clock, except that the time for a turn, or for a call of a tool, passes as soon as a call waits for a task.
type passing struct {
	clock.RealClock

	limit, wait time.Duration
	end         atomic.Pointer[func()] // ends the turn or the call
}

func (c *passing) AfterFunc(d time.Duration, f func()) clock.Timer {
	switch {
	case c.limit-time.Minute < d && d <= c.limit: // a turn began a moment ago
		c.end.Store(&f)
	case d == c.wait:
		if end := c.end.Load(); end != nil {
			(*end)()
		}
	}
	return c.RealClock.AfterFunc(d, f)
}

// TestChatToolTimeout: a call that takes longer than --chat-tool-timeout ends with an error that the model reads and that the
// session keeps. The turn goes on, and its next call has the whole time again.
func TestChatToolTimeout(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	now := &passing{limit: 7*time.Minute + 13*time.Second, wait: 41 * time.Second}
	p, model := standalone.WithChat(t, `
models: [scripted-1]
turns:
- match: {contains: wait for it, lastRole: user}
  reply: {toolCalls: [{name: wait_for_task, arguments: {name: forever, timeout: 41}}]}
- match: {contains: '"errorType":"timeout"', lastRole: tool}
  reply: {text: I look once., toolCalls: [{name: check_task_progress, arguments: {name: forever}}]}
- match: {contains: '"phase":"Pending"', lastRole: tool}
  reply: {text: It waits.}
`, func(o *standalone.Options) {
		o.Clock = now
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		o.AddFlags(flags)
		if err := flags.Parse([]string{"--chat-tool-timeout=" + now.limit.String()}); err != nil {
			t.Fatal(err)
		}
	})
	neverEnds(p, "forever")
	c := p.REST(t, "default", "editor", "platform-editor")
	var frames []string
	session := ""
	for _, f := range chatStream(c, t.Context(), map[string]any{"message": "wait for it"}) {
		session, frames = f.SessionID, append(frames, f.event+" "+f.data)
	}
	tookTooLong(p, "a stream", session, frames)
	session, frames = c.StartChat("wait for it"), nil
	for _, f := range framesOf(c, session, "") {
		frames = append(frames, f.Type+" "+f.Data)
	}
	tookTooLong(p, "in the background", session, frames)
	if refused := model.Refused(); len(refused) > 0 {
		t.Errorf("the model refused %v", refused)
	}
}

// tookTooLong checks a turn whose first call took too long. A frame is its type and its data.
func tookTooLong(p *standalone.Platform, name, session string, frames []string) {
	p.T.Helper()
	var kinds []string
	var results []toolResult
	for _, f := range frames {
		kind, data, _ := strings.Cut(f, " ")
		kinds = append(kinds, kind)
		if kind == "tool_result" {
			results = append(results, toolResultOf(p.T, data))
		}
	}
	if got := strings.Join(slices.Compact(kinds), " "); got != "status tool_call tool_result message tool_call tool_result message done" {
		p.T.Fatalf("%s: %s", name, strings.Join(frames, "\n"))
	}
	if r := results[0]; r.Success || r.ErrorType != "timeout" || r.Suggestion == "" || !strings.Contains(r.Error, "7m13s") || !strings.Contains(r.Error, "--chat-tool-timeout") {
		p.T.Errorf("%s: the call that took too long: %+v", name, r)
	}
	if !results[1].Success {
		p.T.Errorf("%s: the next call: %+v", name, results[1])
	}
	if kept := jsonText(p.T, p.Transcript(session, 100)); !strings.Contains(kept, "--chat-tool-timeout") || !strings.Contains(kept, "It waits.") {
		p.T.Errorf("%s: the session has %s", name, kept)
	}
}

// toolResult is the result of a call as a model reads it.
type toolResult struct {
	Success                      bool
	Error, ErrorType, Suggestion string
}

// toolResultOf returns the result in a frame.
func toolResultOf(t *testing.T, frame string) (r toolResult) {
	t.Helper()
	var f chatEnvelope
	if err := json.Unmarshal([]byte(frame), &f); err != nil || f.ToolCall == nil || f.ToolCall.Result == nil {
		t.Fatalf("frame %s: %v", frame, err)
	}
	if err := json.Unmarshal(f.ToolCall.Result.Raw, &r); err != nil {
		t.Fatalf("result %s: %v", f.ToolCall.Result.Raw, err)
	}
	return r
}
