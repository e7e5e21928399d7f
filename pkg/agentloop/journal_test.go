// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agentloop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/llm/openai"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

// TestRunContinues interrupts a run at each of its steps, before and after the step is stored, and continues it with what
// was stored. Every call is made once, except the one that may have been under way, and the end is the same.
func TestRunContinues(t *testing.T) {
	t.Parallel()
	parsed, err := script.Parse([]byte(`
models: [m]
turns:
- match: {turn: 1}
  reply: {toolCalls: [{name: note, arguments: {number: 1}}, {name: note, arguments: {number: 2}}]}
- match: {turn: 2}
  reply: {text: more, toolCalls: [{name: note, arguments: {number: 1}}]}
- match: {turn: 3}
  reply: {toolCalls: [{name: note, arguments: {number: 1}}]}
- match: {turn: 4}
  reply: {text: the end}`))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(script.New(parsed, io.Discard))
	defer server.Close()
	model, err := openai.New(openai.Config{APIKey: "k", BaseURL: server.URL + "/v1", Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	crash := errors.New("crash")
	type outcome struct {
		text  string
		calls []string
		steps []Step
		usage Totals
		again []string
	}
	type arguments struct {
		N int `json:"number"`
	}
	// run runs until the end, with a crash at each given step: before it is stored, or after it.
	run := func(at int, stored bool) (o outcome) {
		for past, crashed := ([]Step)(nil), false; ; {
			note := tool.New(tool.Definition{Name: "note", Description: "notes", Parameters: tool.SchemaOf[arguments]()}, func(_ context.Context, a arguments) (any, error) {
				o.calls = append(o.calls, fmt.Sprint(a.N))
				return "noted", nil
			})
			catalogue, err := tool.NewCatalogue(note)
			if err != nil {
				t.Fatal(err)
			}
			result, err := Run(t.Context(), Config{
				Candidates: []llm.Candidate{{Provider: "p", Name: "m", Model: model}}, Tools: catalogue, Clock: clock.RealClock{}, Past: past, ReminderEvery: 2,
				Interrupted: func(c llm.ToolCall, begun bool) (tool.Result, bool) {
					o.again = append(o.again, fmt.Sprintf("%s %v", c.Arguments, begun))
					return tool.Result{}, false
				},
				Journal: func(_ context.Context, s Step) error {
					last := !crashed && len(o.steps) == at
					if !last || stored {
						raw, err := json.Marshal(s) // as a store does
						if err != nil {
							return err
						}
						var copied Step
						if err := json.Unmarshal(raw, &copied); err != nil {
							return err
						}
						o.steps = append(o.steps, copied)
					}
					if last {
						crashed = true
						return crash
					}
					return nil
				},
			}, []llm.Message{{Role: llm.RoleUser, Text: "go"}})
			if errors.Is(err, crash) {
				past = append([]Step{}, o.steps...)
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			o.text, o.usage = result.Text, result.Usage
			return o
		}
	}
	whole := run(-1, false)
	if d := cmp.Diff([]string{"1", "2", "1", "1"}, whole.calls); d != "" || whole.text != "the end" || whole.usage.Unreported != 0 {
		t.Fatalf("uninterrupted: %+v %s", whole, d)
	}
	for at := range whole.steps {
		for _, stored := range []bool{false, true} {
			got := run(at, stored)
			if d := cmp.Diff(messages(whole.steps), messages(got.steps)); d != "" || got.text != whole.text {
				t.Errorf("interrupted at step %d (stored: %v): %q %s", at, stored, got.text, d)
			}
			// A result that was not stored is that of a call which is made again.
			isResult := whole.steps[at].Messages[0].Role == llm.RoleTool
			if extra := len(got.calls) - len(whole.calls); (extra == 1) != (isResult && !stored) || extra < 0 || extra > 1 {
				t.Errorf("interrupted at step %d (stored: %v): calls %v", at, stored, got.calls)
			}
		}
	}
	if got := run(0, true); !cmp.Equal(got.again, []string{`{"number":1} true`, `{"number":2} false`}) {
		t.Errorf("calls without a result: %v", got.again)
	}
}

func messages(steps []Step) (out []llm.Message) {
	for _, s := range steps {
		out = append(out, s.Messages...)
	}
	return out
}
