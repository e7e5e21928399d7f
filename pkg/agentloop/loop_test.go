// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agentloop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/llm/openai"
	"github.com/platform-ai/platform/pkg/readmodel/trace"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

// recording keeps events, and checks that the API accepts each one and that none contains
// arguments or results.
type recording struct {
	t      *testing.T
	events []*v1alpha1.ExecutionEvent
}

func (r *recording) Record(e *v1alpha1.ExecutionEvent) {
	if err := event.Validate(e); err != nil {
		r.t.Errorf("%s: %v", e.Type, err)
	}
	if raw, err := json.Marshal(e); err != nil || strings.Contains(string(raw), "ARGUMENT") || strings.Contains(string(raw), "RESULT") {
		r.t.Errorf("event tells too much: %s %v", raw, err)
	}
	r.events = append(r.events, e)
}

// lines shows events as "Type key=value …", without what differs between runs.
func (r *recording) lines(keys ...string) []string {
	var out []string
	for _, e := range r.events {
		var line strings.Builder
		line.WriteString(strings.TrimPrefix(string(e.Type), "Model"))
		var c map[string]any
		if e.Content != nil && json.Unmarshal(e.Content.Raw, &c) != nil {
			r.t.Errorf("content of %s", e.Type)
		}
		for _, k := range keys {
			if v, ok := c[k]; ok {
				_, _ = fmt.Fprintf(&line, " %s=%v", k, v)
			}
		}
		out = append(out, line.String())
	}
	return out
}

func (r *recording) count(t v1alpha1.EventType) int {
	n := 0
	for _, e := range r.events {
		if e.Type == t {
			n++
		}
	}
	return n
}

type setup struct {
	model  *script.Server
	config Config
	events *recording
	calls  []string
}

type lookupArguments struct {
	Key string `json:"key"`
}

func newSetup(t *testing.T, text string) *setup {
	t.Helper()
	s, err := script.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out := &setup{model: script.New(s, t.Output()), events: &recording{t: t}}
	srv := httptest.NewServer(out.model)
	t.Cleanup(srv.Close)
	m, err := openai.New(openai.Config{APIKey: "k", BaseURL: srv.URL + "/v1", Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	tools, err := tool.NewCatalogue(
		tool.New(tool.Definition{Name: "lookup", Description: "looks up", Parameters: tool.SchemaOf[lookupArguments]()}, func(_ context.Context, a lookupArguments) (any, error) {
			out.calls = append(out.calls, a.Key)
			if a.Key == "absent" {
				return nil, tool.Errorf(tool.TypeNotFound, "ARGUMENT %s", a.Key)
			}
			return "RESULT of " + a.Key, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	out.config = Config{
		Candidates: []llm.Candidate{{Provider: "p", Name: "m", Model: m}}, Tools: tools, Recorder: out.events, AgentName: "helper",
		Policy: llm.Policy{Base: time.Millisecond, Cap: time.Millisecond}, Clock: clock.RealClock{},
	}
	return out
}

func (s *setup) run(t *testing.T, messages ...llm.Message) (Result, error) {
	t.Helper()
	if len(messages) == 0 {
		messages = []llm.Message{{Role: llm.RoleSystem, Text: "be good"}, {Role: llm.RoleUser, Text: "go"}}
	}
	r, err := Run(t.Context(), s.config, messages)
	if refused := s.model.Refused(); len(refused) > 0 {
		t.Errorf("the model refused: %v", refused)
	}
	return r, err
}

func TestToolsThenAnswer(t *testing.T) {
	s := newSetup(t, `
turns:
- match: {turn: 1}
  reply:
    text: Let me see.
    usage: {input: 10, output: 4, cached: 2}
    toolCalls: [{name: lookup, arguments: {key: ARGUMENT1}}, {name: lookup, arguments: {key: absent}}]
- match: {turn: 2, lastRole: tool}
  reply: {text: "Found {{ .Results.lookup.errorType }}.", usage: {input: 20, output: 6}}`)
	got, err := s.run(t)
	if err != nil || got.Text != "Found not_found." || got.Iterations != 2 || got.StopReason != llm.StopEnd {
		t.Errorf("%+v, %v", got, err)
	}
	if diff := cmp.Diff(Totals{InputTokens: 30, OutputTokens: 10, CachedInputTokens: 2, Attempts: 2}, got.Usage); diff != "" {
		t.Error(diff)
	}
	want := []string{
		"RequestStarted iteration=1 provider=p model=m messageCount=2 toolCount=1",
		"RequestCompleted iteration=1 provider=p model=m inputTokens=10 outputTokens=4 cachedInputTokens=2 stopReason=tool_calls toolCalls=2",
		"Message iteration=1 contentChars=11 stopReason=tool_calls toolCalls=2",
		"ToolCallStarted iteration=1 toolName=lookup toolCallID=call_1_1 argumentBytes=19",
		"ToolCallCompleted iteration=1 toolName=lookup toolCallID=call_1_1 resultLength=45",
		"ToolCallStarted iteration=1 toolName=lookup toolCallID=call_1_2 argumentBytes=16",
		"ToolCallFailed iteration=1 toolName=lookup toolCallID=call_1_2 resultLength=150 errorType=not_found",
		"RequestStarted iteration=2 provider=p model=m messageCount=5 toolCount=1",
		"RequestCompleted iteration=2 provider=p model=m inputTokens=20 outputTokens=6 stopReason=stop toolCalls=0",
		"Message iteration=2 contentChars=16 stopReason=stop toolCalls=0",
	}
	lines := s.events.lines("iteration", "provider", "model", "messageCount", "toolCount", "inputTokens", "outputTokens", "cachedInputTokens",
		"toolName", "toolCallID", "argumentBytes", "resultLength", "errorType", "contentChars", "stopReason", "toolCalls")
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
	for _, e := range s.events.events {
		if e.AgentName != "helper" {
			t.Errorf("%s has agent %q", e.Type, e.AgentName)
		}
	}
	if roles := rolesOf(got.Messages); roles != "system user assistant tool tool assistant" {
		t.Errorf("conversation: %s", roles)
	}
}

// taskMade is data that a tool returns about a task that it made.
type taskMade struct{ Text string }

func (taskMade) Child() tool.ChildTask { return tool.ChildTask{Name: "kid", Agent: "clerk"} }

// TestCreatedTaskIsNamed: the end of a call that created a task names the task, in a way that a trace understands.
func TestCreatedTaskIsNamed(t *testing.T) {
	s := newSetup(t, `
turns:
- match: {turn: 1}
  reply: {toolCalls: [{name: delegate_task, arguments: {}}]}
- match: {turn: 2}
  reply: {text: Done.}`)
	tools, err := tool.NewCatalogue(tool.New(tool.Definition{Name: "delegate_task", Description: "delegates", Parameters: tool.SchemaOf[struct{}]()}, func(context.Context, struct{}) (any, error) {
		return taskMade{"RESULT"}, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	s.config.Tools = tools
	if _, err := s.run(t); err != nil {
		t.Fatal(err)
	}
	var got []v1alpha1.TraceChildTask
	fold := trace.New("t", func(_ trace.Group, row any) {
		if c, ok := row.(*v1alpha1.TraceChildTask); ok {
			got = append(got, *c)
		}
	})
	for i, e := range s.events.events {
		e.Seq = int64(i + 1)
		fold.Add(e)
	}
	fold.End()
	if len(got) != 1 || got[0].Name != "kid" || got[0].Agent != "clerk" || got[0].Kind != v1alpha1.TraceChild || got[0].Status != v1alpha1.SpanCompleted {
		t.Errorf("child tasks: %+v", got)
	}
}

func rolesOf(messages []llm.Message) string {
	var out []string
	for _, m := range messages {
		out = append(out, string(m.Role))
	}
	return strings.Join(out, " ")
}

// TestBadCallsAreToldToTheModel: malformed arguments, arguments that break the
// schema and unknown tools become results, and ToolCallFailed events.
func TestBadCallsAreToldToTheModel(t *testing.T) {
	s := newSetup(t, `
turns:
- match: {turn: 1}
  reply:
    toolCalls:
    - {name: lookup, rawArguments: '{"key": "ARGUM'}
    - {name: lookup, arguments: {kee: x}}
    - {name: nothing, arguments: {}}
- match: {turn: 2, lastRole: tool}
  reply: {text: sorry}`)
	if got, err := s.run(t); err != nil || got.Text != "sorry" || len(s.calls) != 0 {
		t.Errorf("%+v, %v, calls %v", got, err, s.calls)
	}
	var failed []string
	for _, line := range s.events.lines("errorType") {
		if strings.HasPrefix(line, "ToolCallFailed") {
			failed = append(failed, line)
		}
	}
	want := []string{"ToolCallFailed errorType=invalid_arguments", "ToolCallFailed errorType=invalid_arguments", "ToolCallFailed errorType=unknown_tool"}
	if diff := cmp.Diff(want, failed); diff != "" {
		t.Error(diff)
	}
	results := s.model.Exchanges()[1].Request.Messages
	if text := results[3].Text(); !strings.Contains(text, "not a JSON object") || !strings.Contains(text, `"success":false`) {
		t.Errorf("the model was told %s", text)
	}
}

// TestModelErrors plays each failure of a vendor through the loop.
func TestModelErrors(t *testing.T) {
	tests := map[string]struct {
		script string
		class  llm.Class
		want   []string
	}{
		"rate limit, then fine": {
			"- {times: 1, fault: {status: 429, retryAfter: '0.001'}}\n- {reply: {text: ok}}", "",
			[]string{"RequestFailed errorClass=rate_limited", "RequestCompleted"},
		},
		"cut stream, then fine": {
			"- {times: 1, reply: {text: half}, fault: {cutAfterBytes: 250}}\n- {reply: {text: ok}}", "",
			[]string{"RequestFailed errorClass=cut_stream", "RequestCompleted"},
		},
		"cut for ever is never a success": {
			"- {reply: {text: 'a long text that will be cut'}, fault: {cutAfterBytes: 300, reset: true}}", llm.ClassCutStream,
			[]string{"RequestFailed errorClass=cut_stream", "RequestFailed errorClass=cut_stream", "RequestFailed errorClass=cut_stream", "RequestFailed errorClass=cut_stream"},
		},
		"bad key": {
			"- {fault: {status: 401, code: invalid_api_key}}", llm.ClassAuth, []string{"RequestFailed errorClass=auth"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t, "turns:\n"+tt.script)
			got, err := s.run(t)
			if llm.ClassOf(err) != tt.class || (err == nil) != (got.Text == "ok") {
				t.Errorf("%+v, %v", got, err)
			}
			var ended []string
			for _, line := range s.events.lines("errorClass") {
				if strings.HasPrefix(line, "RequestFailed") || strings.HasPrefix(line, "RequestCompleted") {
					ended = append(ended, line)
				}
			}
			if diff := cmp.Diff(tt.want, ended); diff != "" {
				t.Error(diff)
			}
			if started := s.events.count(v1alpha1.EventModelRequestStarted); started != len(tt.want) {
				t.Errorf("%d attempts began, %d ended", started, len(tt.want))
			}
		})
	}
}

func TestUnreportedUsageIsCounted(t *testing.T) {
	s := newSetup(t, `turns: [{reply: {text: ok, noUsage: true}}]`)
	got, err := s.run(t)
	if err != nil || got.Usage != (Totals{Attempts: 1, Unreported: 1}) {
		t.Errorf("%+v, %v", got.Usage, err)
	}
	for _, line := range s.events.lines("usageReported", "inputTokens", "outputTokens") {
		if strings.HasPrefix(line, "RequestCompleted") && line != "RequestCompleted usageReported=false" {
			t.Errorf("got %s", line)
		}
	}
}

func TestIterationLimit(t *testing.T) {
	s := newSetup(t, `
turns:
- {match: {noTools: true, contains: used up}, reply: {text: This is what I did.}}
- {reply: {toolCalls: [{name: lookup, arguments: {key: "ARGUMENT {{ len .Results }}"}}]}}`)
	s.config.MaxIterations = 2
	got, err := s.run(t)
	if !errors.Is(err, ErrMaxIterations) || got.Text != "This is what I did." || got.Iterations != 3 || len(s.calls) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestIterationLimitWithoutSummary(t *testing.T) {
	s := newSetup(t, `
turns:
- {match: {noTools: true}, fault: {status: 400, message: no}}
- {reply: {toolCalls: [{name: lookup, arguments: {key: k}}]}}`)
	s.config.MaxIterations = 1
	if got, err := s.run(t); !errors.Is(err, ErrMaxIterations) || llm.ClassOf(err) != llm.ClassInvalidRequest || got.Text != "" {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestRepetition: from the third equal call on, a warning and five iterations
// each; order of keys and spaces make no difference.
func TestRepetition(t *testing.T) {
	s := newSetup(t, `
turns:
- {match: {noTools: true}, reply: {text: gave up}}
- {match: {contains: "same arguments 3 times", turn: 4}, reply: {text: warned, toolCalls: [{name: lookup, arguments: {key: k}}]}}
- {reply: {toolCalls: [{name: lookup, rawArguments: '{ "key" :"k"}'}]}}`)
	got, err := s.run(t)
	// 1, 2, 3 (+5 = 8), 9 (+5 = 14): over the limit of 10, then the summary.
	if !errors.Is(err, ErrRepeated) || got.Text != "gave up" || len(s.calls) != 4 || got.Iterations != 5 {
		t.Errorf("%+v, %v, %d calls", got, err, len(s.calls))
	}
}

// TestOtherDigitsAreOtherCalls: long ids that differ in their last digits only are not one call.
func TestOtherDigitsAreOtherCalls(t *testing.T) {
	var turns strings.Builder
	for i := range 5 {
		fmt.Fprintf(&turns, "- {match: {turn: %d}, reply: {toolCalls: [{name: lookup, rawArguments: '{\"key\":\"k\",\"id\":197243595949657292%d}'}]}}\n", i+1, i)
	}
	s := newSetup(t, "turns:\n"+turns.String()+"- {reply: {text: done}}")
	if got, err := s.run(t); err != nil || got.Text != "done" || got.Iterations != 6 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestAlternation: two calls that take turns are repeated calls as well.
func TestAlternation(t *testing.T) {
	s := newSetup(t, `
turns:
- {match: {noTools: true}, reply: {text: gave up}}
- {match: {turn: 1}, reply: {toolCalls: [{name: lookup, arguments: {key: a}}]}}
- {match: {turn: 2}, reply: {toolCalls: [{name: lookup, arguments: {key: b}}]}}
- {match: {turn: 3}, reply: {toolCalls: [{name: lookup, arguments: {key: a}}]}}
- {match: {turn: 4}, reply: {toolCalls: [{name: lookup, arguments: {key: b}}]}}
- {match: {turn: 5}, reply: {toolCalls: [{name: lookup, arguments: {key: a}}]}}
- {match: {turn: 6}, reply: {toolCalls: [{name: lookup, arguments: {key: b}}]}}`)
	// The third a is turn 5 (+5 = 10): no iteration is left.
	if got, err := s.run(t); !errors.Is(err, ErrRepeated) || got.Text != "gave up" || len(s.calls) != 5 {
		t.Errorf("%+v, %v, %d calls", got, err, len(s.calls))
	}
}

// TestBegin: the start of each attempt is stored before the request is sent, and an error of that ends the run.
func TestBegin(t *testing.T) {
	s := newSetup(t, `
turns:
- {times: 1, fault: {status: 500}}
- {match: {turn: 1}, reply: {toolCalls: [{name: lookup, arguments: {key: k}}]}}
- {match: {turn: 2}, reply: {text: too late}}`)
	stop, begun := errors.New("no tokens left"), 0
	s.config.Begin = func(_ context.Context, e *v1alpha1.ExecutionEvent) error {
		if n := len(s.model.Exchanges()); n != begun || e.Type != v1alpha1.EventModelRequestStarted {
			t.Errorf("%s after %d requests of %d", e.Type, n, begun)
		}
		if begun++; begun == 3 {
			return stop
		}
		return nil
	}
	got, err := s.run(t)
	if !errors.Is(err, stop) || begun != 3 || len(s.model.Exchanges()) != 2 || len(s.calls) != 1 || got.Usage.Attempts != 2 {
		t.Errorf("%+v, %v after %d starts", got, err, begun)
	}
}

func TestBlankAnswer(t *testing.T) {
	s := newSetup(t, `
turns:
- {match: {noTools: true, contains: was empty}, reply: {text: Now then.}}
- {reply: {text: " \n"}}`)
	if got, err := s.run(t); err != nil || got.Text != "Now then." || got.Iterations != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	s = newSetup(t, `turns: [{reply: {stop: length}}]`)
	if got, err := s.run(t); !errors.Is(err, ErrBlankAnswer) || !strings.Contains(err.Error(), "length") || got.Text != "" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestContextTooLong(t *testing.T) {
	s := newSetup(t, `
turns:
- {match: {turn: 3}, times: 1, fault: {status: 400, code: context_length_exceeded}}
- {match: {turn: 1}, times: 1, reply: {toolCalls: [{name: lookup, arguments: {key: one}}]}}
- {match: {turn: 2, lastRole: tool}, times: 1, reply: {toolCalls: [{name: lookup, arguments: {key: two}}]}}
- {match: {turn: 2, lastRole: tool}, reply: {text: done}}`)
	got, err := s.run(t)
	if err != nil || got.Text != "done" {
		t.Errorf("%+v, %v", got, err)
	}
	var truncated []string
	for _, line := range s.events.lines("messageCountBefore", "messageCountAfter") {
		if strings.HasPrefix(line, "ContextTruncated") {
			truncated = append(truncated, line)
		}
	}
	if diff := cmp.Diff([]string{"ContextTruncated messageCountBefore=6 messageCountAfter=5"}, truncated); diff != "" {
		t.Error(diff)
	}
	if roles := rolesOf(got.Messages); roles != "system user user assistant tool assistant" {
		t.Errorf("conversation: %s", roles)
	}
	// Once a question, not for ever.
	s = newSetup(t, `
turns:
- {match: {turn: 1}, times: 1, reply: {toolCalls: [{name: lookup, arguments: {key: one}}]}}
- {fault: {status: 400, code: context_length_exceeded}}`)
	if _, err := s.run(t); llm.ClassOf(err) != llm.ClassContextTooLong || s.events.count(v1alpha1.EventContextTruncated) > 1 {
		t.Errorf("got %v", err)
	}
}

func TestReminder(t *testing.T) {
	s := newSetup(t, `
turns:
- {match: {contains: State your progress}, reply: {text: reminded}}
- {reply: {toolCalls: [{name: lookup, arguments: {key: "{{ len .Prompt }}"}}]}}`)
	s.config.ReminderEvery = 2
	if got, err := s.run(t); err != nil || got.Text != "reminded" || got.Iterations != 3 {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestStop ends the context inside of a tool: the call gets its event, and no
// other question is asked.
func TestStop(t *testing.T) {
	s := newSetup(t, `turns: [{reply: {toolCalls: [{name: wait, arguments: {}}, {name: wait, arguments: {}}]}}]`)
	ctx, cancel := context.WithCancel(t.Context())
	tools, err := tool.NewCatalogue(tool.New(tool.Definition{Name: "wait", Parameters: tool.SchemaOf[struct{}]()}, func(ctx context.Context, _ struct{}) (any, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	if err != nil {
		t.Fatal(err)
	}
	s.config.Tools = tools
	_, err = Run(ctx, s.config, []llm.Message{{Role: llm.RoleUser, Text: "go"}})
	if llm.ClassOf(err) != llm.ClassCanceled || len(s.model.Exchanges()) != 1 {
		t.Errorf("got %v", err)
	}
	last := s.events.lines("errorType")
	if last[len(last)-1] != "ToolCallFailed errorType=cancelled" || s.events.count(v1alpha1.EventToolCallStarted) != 1 {
		t.Errorf("events %v", last)
	}
}
