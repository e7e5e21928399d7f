// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/readmodel/trace"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

// tracedScript is a run with a repeated request, two calls in one answer, and one that fails.
const tracedScript = `
models: [scripted-1]
turns:
- name: limited once
  match: {turn: 1}
  times: 1
  fault: {status: 429, retryAfter: "1", code: rate_limit_exceeded, message: Slow down}
- name: write
  match: {turn: 1}
  reply:
    text: First I write.
    usage: {input: 120, output: 40, cached: 100}
    toolCalls:
    - {name: file_write, arguments: {path: a.txt, content: hello}}
    - {name: file_read, arguments: {path: none.txt}}
- name: answer without usage
  match: {turn: 2, lastRole: tool}
  reply: {text: Done., noUsage: true}
`

// TestTraceOfARun runs a real agent task against the scripted model and reads its trace.
func TestTraceOfARun(t *testing.T) {
	t.Parallel()
	parsed, err := script.Parse([]byte(tracedScript))
	if err != nil {
		t.Fatal(err)
	}
	model := httptest.NewServer(script.New(parsed, io.Discard))
	t.Cleanup(model.Close)
	worker := kit.Bin(t, "platform-worker")
	p := &standalone.Platform{T: t, Server: standalone.Start(t, func(o *standalone.Options) { o.Controllers, o.WorkerBinary = nil, worker })}
	c, ctx := p.Core(t), t.Context()
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, StringData: map[string]string{"api-key": "k-1234567890"}}
	if _, err := p.Kubernetes(t).CoreV1().Secrets("default").Create(ctx, key, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	provider := &v1alpha1.Provider{ObjectMeta: metav1.ObjectMeta{Name: "model"}, Spec: v1alpha1.ProviderSpec{
		Type: v1alpha1.ProviderOpenAI, BaseURL: model.URL + "/v1", DefaultModel: "scripted-1",
		SecretRef: v1alpha1.ProviderSecretReference{Name: "key", Key: "api-key"},
	}}
	if _, err := c.Providers("default").Create(ctx, provider, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	task := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "traced"}, Spec: v1alpha1.TaskSpec{
		Type: v1alpha1.TaskTypeAI, Prompt: "write and read",
		AI: &v1alpha1.TaskAI{ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}, Tools: []string{"file_write", "file_read"}},
	}}
	if _, err := c.Tasks("default").Create(ctx, task, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.AwaitPhase("traced", v1alpha1.TaskSucceeded)

	tr, err := c.Tasks("default").GetTrace(ctx, "traced", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range tr.ModelRequests {
		got = append(got, fmt.Sprintf("model %s %s turn %d try %d in %s cached %s timed %t", r.Model, r.Status, r.Iteration, r.Attempt, known(r.InputTokens), known(r.CachedInputTokens), r.DurationMs != nil))
	}
	for _, r := range tr.ToolCalls {
		got = append(got, fmt.Sprintf("tool %s %s args %s error %t", r.Name, r.Status, known(r.ArgumentBytes), r.Error != ""))
	}
	want := []string{
		"model scripted-1 failed turn 1 try 1 in ? cached ? timed true",
		"model scripted-1 completed turn 1 try 2 in 120 cached 100 timed true",
		"model scripted-1 completed turn 2 try 1 in ? cached ? timed true",
		`tool file_write completed args 34 error false`,
		`tool file_read failed args 19 error true`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	switch u := tr.Usage; {
	case u == nil || u.ModelRequests != 3 || u.UnreportedRequests != 2 || known(u.InputTokens) != "120":
		t.Errorf("usage %+v", u)
	case tr.TerminalEvent == nil || tr.TerminalEvent.Type != v1alpha1.EventTaskSucceeded || tr.TerminalEvent.DedupKey != "":
		t.Errorf("terminal event %+v", tr.TerminalEvent)
	case !tr.Task.ResultAvailable || tr.Task.Phase != v1alpha1.TaskSucceeded || tr.Task.StartTime == nil:
		t.Errorf("task %+v", tr.Task)
	case len(tr.Timeline) != int(tr.LatestSeq) || len(tr.RawUnpaired) != 0 || len(tr.Errors) != 2 || len(tr.CriticalPath) == 0:
		t.Errorf("%d events up to %d, %d unpaired, errors %+v, path %+v", len(tr.Timeline), tr.LatestSeq, len(tr.RawUnpaired), tr.Errors, tr.CriticalPath)
	}
	for _, w := range tr.Warnings {
		t.Errorf("warning %+v", w)
	}
}

func known(n *int64) string {
	if n == nil {
		return "?"
	}
	return fmt.Sprint(*n)
}

// loopEvents returns n events as a loop of a model and a tool produces them, with a message of some size after each.
func loopEvents(n int, text string) []v1alpha1.ExecutionEvent {
	var events []v1alpha1.ExecutionEvent
	for i := 0; len(events) < n; i++ {
		c := &apiextensionsv1.JSON{Raw: fmt.Appendf(nil, `{"iteration":%d,"model":"m","provider":"p","attempt":1,"inputTokens":10,"outputTokens":2}`, i+1)}
		call := fmt.Sprint("call-", i)
		events = append(events,
			v1alpha1.ExecutionEvent{Type: v1alpha1.EventModelRequestStarted, Summary: "asking m", Content: c},
			v1alpha1.ExecutionEvent{Type: v1alpha1.EventModelRequestCompleted, Summary: "m answered", Content: c},
			v1alpha1.ExecutionEvent{Type: v1alpha1.EventModelMessage, ContentText: text},
			v1alpha1.ExecutionEvent{Type: v1alpha1.EventToolCallStarted, ToolName: "x", ToolCallID: call, Summary: "calling x"},
			v1alpha1.ExecutionEvent{Type: v1alpha1.EventToolCallFailed, ToolName: "x", ToolCallID: call, Summary: "x failed: " + text, Severity: v1alpha1.SeverityWarning},
		)
	}
	return events[:n]
}

// appendAll appends events in batches.
func appendAll(t *testing.T, c typed.CoreV1alpha1Interface, name string, events []v1alpha1.ExecutionEvent) {
	t.Helper()
	for len(events) > 0 {
		n := min(1000, len(events))
		if _, err := c.Tasks("default").AppendEvents(t.Context(), name, &v1alpha1.ExecutionEventList{Items: events[:n]}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		events = events[n:]
	}
}

func traceAt(t *testing.T, c *rest.Config, query url.Values) *v1alpha1.TaskTrace {
	t.Helper()
	code, body := host.Get(t, c, standalone.TasksPath+"/a/trace?"+query.Encode(), "")
	tr := &v1alpha1.TaskTrace{}
	d := json.NewDecoder(strings.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(tr); err != nil || code != http.StatusOK {
		t.Fatalf("%d %v: %.300s", code, err, body)
	}
	return tr
}

func TestTracePages(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	c := s.Core(t)
	standalone.Source(t, c, "a", 1)
	appendAll(t, c, "a", loopEvents(49, "hm"))
	whole := traceAt(t, s.Admin, nil)
	if len(whole.Timeline) != 50 || len(whole.ToolCalls) != 10 || whole.Continue != "" || whole.Kind != "TaskTrace" {
		t.Fatalf("%s of %d events, %d calls, continue %q", whole.Kind, len(whole.Timeline), len(whole.ToolCalls), whole.Continue)
	}
	groups := traceAt(t, s.Admin, url.Values{"timeline": {"false"}})
	if d := cmp.Diff(without(whole), without(groups)); d != "" || len(groups.Timeline) != 0 {
		t.Errorf("without a timeline: %d events\n%s", len(groups.Timeline), d)
	}
	// Events that arrive while pages are read do not change the pages.
	first := traceAt(t, s.Admin, url.Values{"limit": {"20"}})
	appendAll(t, c, "a", loopEvents(5, "later"))
	if d := cmp.Diff(without(whole), without(first)); d != "" || first.RemainingItemCount == nil || *first.RemainingItemCount != 30 {
		t.Errorf("first page, remaining %v:\n%s", first.RemainingItemCount, d)
	}
	events := first.Timeline
	for page := first; page.Continue != ""; {
		page = traceAt(t, s.Admin, url.Values{"limit": {"20"}, "continue": {page.Continue}})
		events = append(events, page.Timeline...)
		if len(page.ModelRequests) != 0 || page.LatestSeq != 50 {
			t.Errorf("a later page has %d requests, up to %d", len(page.ModelRequests), page.LatestSeq)
		}
	}
	if d := cmp.Diff(whole.Timeline, events); d != "" {
		t.Errorf("pages:\n%s", d)
	}

	for query, want := range map[string]int{
		"limit=x": 400, "limit=-1": 400, "timeline=perhaps": 400, "continue=x": 400, "continue=e30": 410,
		"timeline=false&continue=" + first.Continue: 400,
	} {
		if code, body := host.Get(t, s.Admin, standalone.TasksPath+"/a/trace?"+query, ""); code != want {
			t.Errorf("%s: %d %s", query, code, body)
		}
	}
	if code, body := host.Get(t, s.Admin, standalone.TasksPath+"/none/trace", ""); code != http.StatusNotFound {
		t.Errorf("unknown task: %d %s", code, body)
	}
	if err := c.Tasks("default").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	standalone.Source(t, c, "a", 1)
	if code, body := host.Get(t, s.Admin, standalone.TasksPath+"/a/trace?continue="+first.Continue, ""); code != http.StatusGone {
		t.Errorf("another task of the name: %d %s", code, body)
	}
}

// A trace can be read in parts, each of which costs as little as the first, and together they have what the whole has.
func TestTraceParts(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	c := s.Core(t)
	standalone.Source(t, c, "a", 1)
	appendAll(t, c, "a", loopEvents(50, "hm"))
	whole := traceAt(t, s.Admin, nil)
	if whole.Part != nil {
		t.Errorf("the whole has a part: %+v", whole.Part)
	}
	sum, parts, tokens, after := &v1alpha1.TaskTrace{Warnings: []v1alpha1.TraceProblem{}}, 0, int64(0), int64(0)
	for ; after < whole.LatestSeq; parts++ {
		p := traceAt(t, s.Admin, url.Values{"timeline": {"false"}, "spans": {"6"}, "after": {fmt.Sprint(after)}})
		if p.Part == nil || p.Part.AfterSeq != after || p.Part.ThroughSeq <= after || p.LatestSeq != whole.LatestSeq || len(p.ModelRequests)+len(p.ToolCalls) > 6 {
			t.Fatalf("after %d: %+v of %d, %d requests, %d calls", after, p.Part, p.LatestSeq, len(p.ModelRequests), len(p.ToolCalls))
		}
		sum.ModelRequests, sum.ToolCalls, sum.Warnings = append(sum.ModelRequests, p.ModelRequests...), append(sum.ToolCalls, p.ToolCalls...), append(sum.Warnings, p.Warnings...)
		sum.CriticalPath = append(sum.CriticalPath, p.CriticalPath...)
		tokens += *p.Usage.InputTokens
		after = p.Part.ThroughSeq
	}
	busy := func(tr *v1alpha1.TaskTrace) (list []string) {
		for _, x := range tr.CriticalPath {
			if x.Kind != v1alpha1.TraceKindIdle {
				list = append(list, x.Kind+" "+x.ID)
			}
		}
		return list
	}
	for what, d := range map[string]string{
		"requests": cmp.Diff(whole.ModelRequests, sum.ModelRequests), "calls": cmp.Diff(whole.ToolCalls, sum.ToolCalls),
		"warnings": cmp.Diff(whole.Warnings, sum.Warnings), "path": cmp.Diff(busy(whole), busy(sum)),
	} {
		if d != "" {
			t.Errorf("%s of the whole (-) and of its parts (+):\n%s", what, d)
		}
	}
	if parts != 4 || tokens != *whole.Usage.InputTokens {
		t.Errorf("%d parts with %d tokens", parts, tokens)
	}
	// A part within a call has no warning of an end whose start is before it, and ends after 8 events for each span.
	p := traceAt(t, s.Admin, url.Values{"timeline": {"false"}, "spans": {"1000"}, "after": {"5"}})
	if len(p.RawUnpaired) != 0 || p.Part.ThroughSeq != whole.LatestSeq {
		t.Errorf("%+v, unpaired: %+v", p.Part, p.RawUnpaired)
	}
	standalone.Source(t, c, "words", 1)
	var words []v1alpha1.ExecutionEvent
	for range 40 {
		words = append(words, v1alpha1.ExecutionEvent{Type: v1alpha1.EventModelMessage, ContentText: "hm"})
	}
	appendAll(t, c, "words", words)
	code, body := host.Get(t, s.Admin, standalone.TasksPath+"/words/trace?timeline=false&spans=2", "")
	if code != http.StatusOK || !strings.Contains(body, `"part":{"afterSeq":0,"throughSeq":16}`) {
		t.Errorf("%d %s", code, body)
	}
	for query, want := range map[string]string{
		"spans=0&timeline=false": "spans", "spans=10001&timeline=false": "from 1 to 10000", "spans=x&timeline=false": "spans",
		"spans=5": "timeline=false", "after=5&timeline=false": "ask with spans", "after=-1&spans=5&timeline=false": "after",
	} {
		if code, body := host.Get(t, s.Admin, standalone.TasksPath+"/a/trace?"+query, ""); code != http.StatusBadRequest || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", query, code, body)
		}
	}
}

// without removes what differs between two answers about the same trace.
func without(t *v1alpha1.TaskTrace) *v1alpha1.TaskTrace {
	out := t.DeepCopy()
	out.GeneratedAt, out.Timeline, out.ListMeta = metav1.MicroTime{}, nil, metav1.ListMeta{}
	return out
}

// TestTraceOfALongTask reads a trace with more rows than are held in memory while the timeline is written.
func TestTraceOfALongTask(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	s := standalone.Start(t)
	c := s.Core(t)
	standalone.Source(t, c, "a", 1)
	appendAll(t, c, "a", loopEvents(20000, strings.Repeat("thought ", 100)))
	got := traceAt(t, s.Admin, nil)
	if len(got.Timeline) != 20001 {
		t.Fatalf("%d events", len(got.Timeline))
	}
	want := map[trace.Group][]any{}
	f := trace.New("a", func(g trace.Group, row any) { want[g] = append(want[g], row) })
	for i := range got.Timeline {
		f.Add(&got.Timeline[i])
	}
	f.End()
	size := 0
	for g, rows := range map[trace.Group]any{
		trace.ModelRequests: got.ModelRequests, trace.ToolCalls: got.ToolCalls, trace.Errors: got.Errors,
		trace.Warnings: got.Warnings, trace.CriticalPath: got.CriticalPath, trace.RawUnpaired: got.RawUnpaired,
	} {
		a, b := asJSON(t, want[g]), asJSON(t, rows)
		if !bytes.Equal(a, b) {
			t.Errorf("%s: %d bytes, want %d: %.300s", g, len(b), len(a), b)
		}
		size += len(a)
	}
	if len(want[trace.ModelRequests]) != 4000 || size < 9<<20 {
		t.Errorf("%d requests, groups of %d bytes: too few to mean anything", len(want[trace.ModelRequests]), size)
	}

	// A trace that cannot be completed does not look complete.
	h, err := rest.HTTPClientFor(s.Config())
	if err != nil {
		t.Fatal(err)
	}
	resp, err := h.Get(s.URL + standalone.TasksPath + "/a/trace")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	head := make([]byte, 1000)
	if _, err := io.ReadFull(resp.Body, head); err != nil {
		t.Fatal(err)
	}
	if err := c.Tasks("default").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(resp.Body)
	if err == nil || errors.Is(err, io.EOF) {
		t.Errorf("the trace of a task that was deleted meanwhile ended well after %d bytes: %.200s", len(rest), rest[max(0, len(rest)-200):])
	}
}

func asJSON(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if string(raw) == "null" {
		return []byte("[]")
	}
	return raw
}
