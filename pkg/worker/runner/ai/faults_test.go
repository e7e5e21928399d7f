// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/agentloop"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/llm/vendors"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/worker/runner"
	"github.com/platform-ai/platform/test/modelfaults"
)

var rewrite = flag.Bool("rewrite", false, "write the table of faults anew")

// stepClock is a fake clock that advances by itself for each wait.
type stepClock struct{ *clocktesting.FakeClock }

func (c stepClock) NewTimer(d time.Duration) clock.Timer {
	t := c.FakeClock.NewTimer(d)
	c.Step(d)
	return t
}

// attentive is a clock on which a patience with a stream ends once the client has read what the server has to say, and only while the
// server has faults left. All else keeps its time, so that a busy machine ends nothing that should go on.
type attentive struct {
	clock.RealClock
	patience time.Duration
	faulty   func() bool
	events   int // of an answer
	left     int // that the client has yet to read of this answer
	end      func()
}

// idle is the patience of all clients with a stream on which nothing arrives. Each event begins it anew.
const idle = 5 * time.Minute

func (c *attentive) AfterFunc(d time.Duration, f func()) clock.Timer {
	timer := c.RealClock.AfterFunc(d, f)
	if c.patience == 0 || !c.faulty() {
		return timer
	}
	if d == c.patience {
		c.end = f
	}
	if d != idle {
		return timer
	}
	if c.left = c.events; c.patience != idle {
		c.left += 3 // the last event again and again
	}
	return reading{timer, c}
}

// reading is the timer of a stream.
type reading struct {
	clock.Timer
	clock *attentive
}

func (r reading) Reset(d time.Duration) bool {
	active := r.Timer.Reset(d)
	if r.clock.left--; r.clock.left == 0 {
		r.clock.end()
	}
	return active
}

// noted keeps events, as their summaries and contents.
type noted struct {
	t      *testing.T
	events []*v1alpha1.ExecutionEvent
}

func (n *noted) Record(e *v1alpha1.ExecutionEvent) {
	raw, err := json.Marshal(e)
	if err == nil {
		err = event.Validate(e)
	}
	if err != nil || strings.Contains(string(raw), modelfaults.Key) {
		n.t.Errorf("%v: %s", err, raw)
	}
	n.events = append(n.events, e)
}

func (n *noted) first(types ...v1alpha1.EventType) (*v1alpha1.ExecutionEvent, map[string]any) {
	for _, e := range n.events {
		if slices.Contains(types, e.Type) {
			var c map[string]any
			if err := json.Unmarshal(e.Content.Raw, &c); err != nil {
				n.t.Error(err)
			}
			return e, c
		}
	}
	return &v1alpha1.ExecutionEvent{}, nil
}

// meet runs an agent whose first n requests meet a fault.
func meet(t *testing.T, protocol string, row modelfaults.Row, n int) (agentloop.Result, *noted, *modelfaults.Server, error) {
	t.Helper()
	server := modelfaults.Serve(t, protocol, row, n)
	vendor, ok := vendors.Find(v1alpha1.ProviderType(protocol))
	if !ok {
		t.Fatalf("there is no vendor %s", protocol)
	}
	attentive := &attentive{patience: row.Patience(), faulty: func() bool { return server.Asked() <= n }, events: server.Events()}
	model, err := vendor.New(llm.Endpoint{Spec: &v1alpha1.ProviderSpec{BaseURL: server.URL + "/v1"}, Key: modelfaults.Key, Clock: attentive})
	if err != nil {
		t.Fatal(err)
	}
	type arguments struct {
		Key string `json:"key"`
	}
	tools, err := tool.NewCatalogue(tool.New(tool.Definition{Name: "lookup", Description: "looks up", Parameters: tool.SchemaOf[arguments]()}, func(context.Context, arguments) (any, error) {
		t.Error("the tool was called")
		return nil, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	events := &noted{t: t}
	result, err := agentloop.Run(t.Context(), agentloop.Config{
		Candidates: []llm.Candidate{{Provider: "p", Name: "m", Model: model}}, Tools: tools, Recorder: events,
		Policy:        llm.Policy{MaxAttempts: 2, Jitter: func() float64 { return 0 }},
		MaxIterations: 2, Clock: stepClock{clocktesting.NewFakeClock(time.Unix(1, 0))},
	}, []llm.Message{{Role: llm.RoleUser, Text: "How is it?"}})
	err = failure(err)
	if err != nil && (strings.Contains(err.Error(), modelfaults.Key) || strings.Contains(err.Error(), server.URL)) {
		t.Errorf("the error says too much: %v", err)
	}
	return result, events, server, err
}

// describe returns a line of the table: what a run says about a fault that goes away, and how it ends with one that
// stays.
func describe(t *testing.T, protocol string, row modelfaults.Row) (line, usage string) {
	t.Helper()
	result, events, _, err := meet(t, protocol, row, 1)
	e, c := events.first(v1alpha1.EventModelRequestFailed, v1alpha1.EventModelRequestCompleted)
	class, then := "an answer", "goes on"
	if c["errorClass"] != nil {
		class = fmt.Sprint(c["errorClass"])
		then = "ends"
	}
	if ms, ok := c["retryInMs"].(float64); ok {
		then = fmt.Sprintf("asks again after %v", time.Duration(ms*1e6))
	}
	if (err == nil) != (then != "ends") || err == nil && result.Text != modelfaults.FineText {
		t.Errorf("%s: %q, %v after %q", protocol, result.Text, err, then)
	}
	said := e.Summary
	if call, content := events.first(v1alpha1.EventToolCallFailed); content != nil {
		said += "; " + call.Summary
	}
	reason := "Succeeded"
	_, _, server, err := meet(t, protocol, row, 100)
	if f, ok := errors.AsType[*runner.Error](err); ok {
		reason = f.Reason
	} else if err != nil {
		t.Errorf("%s: %v has no reason", protocol, err)
	}
	known := "unknown"
	if c["usageReported"] == true {
		known = "known"
	}
	usage = fmt.Sprintf("%s, in %v, out %v", known, figure(c["inputTokens"]), figure(c["outputTokens"]))
	return fmt.Sprintf("| %s | %s | %s | %d | %s | %s", row.Name, class, then, server.Asked(), reason, said), usage
}

func figure(v any) any {
	if v == nil {
		return "-"
	}
	return v
}

// TestFaults: both protocols fail in the same way: the class of the error, whether the request is repeated and after
// what pause, the event, how a task ends that meets nothing but the fault, and the usage that is recorded.
// No text shows the key, although the answers repeat it.
func TestFaults(t *testing.T) {
	out := []string{
		"| Fault | Class | The run | Requests of a task that meets only this | How that task ends | Event | Usage, OpenAI | Usage, Anthropic |",
		"|---|---|---|---|---|---|---|---|",
	}
	for _, row := range modelfaults.Rows() {
		t.Run(row.Name, func(t *testing.T) {
			o, used := describe(t, modelfaults.OpenAI, row)
			a, alsoUsed := describe(t, modelfaults.Anthropic, row)
			head, said := o[:strings.LastIndex(o, "| ")], o[strings.LastIndex(o, "| ")+2:]
			if also := a[strings.LastIndex(a, "| ")+2:]; also != said {
				said += " / " + also
			}
			if !strings.HasPrefix(a, head) {
				t.Errorf("the protocols differ:\n%s\n%s", o, a)
			}
			out = append(out, fmt.Sprintf("%s| %s | %s | %s |", head, said, used, alsoUsed))
		})
	}
	file := filepath.Join("testdata", "faults.md")
	got := strings.Join(out, "\n") + "\n"
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not current; go test ./pkg/worker/runner/ai -run Faults -rewrite (-have +want):\n%s", file, diff)
	}
}
