// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/agentloop"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/worker/asking"
	"github.com/platform-ai/platform/pkg/worker/runners"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/quickclock"
)

// desk is an API server with what an approval needs: it accepts events by the rules of
// approvals, and serves reads and watches of the approvals that result.
type desk struct {
	*httptest.Server
	t *testing.T

	mu     sync.Mutex
	events []*v1alpha1.ExecutionEvent
	state  approval.State
	change chan struct{} // closed and replaced by each event
	// answer, if set, replaces the answer to a request if it returns a status code.
	answer func(what string) int
	asked  []string
}

func newDesk(t *testing.T) *desk {
	d := &desk{t: t, change: make(chan struct{})}
	mux := http.NewServeMux()
	const base = "/apis/core.platform.ai/v1alpha1/namespaces/ns/"
	handle := func(pattern, what string, f http.HandlerFunc) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if what == "watch" && r.URL.Query().Get("watch") == "" {
				d.list(w, r)
				return
			}
			if code := d.refusal(what); code != 0 {
				reply(t, w, code, metav1.Status{
					TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Message: http.StatusText(code),
				})
				return
			}
			f(w, r)
		})
	}
	handle("POST "+base+"tasks/t/events", "append", d.append)
	handle("GET "+base+"approvals/{id}", "get", d.get)
	handle("GET "+base+"approvals", "watch", d.watch)
	d.Server = httptest.NewServer(mux)
	t.Cleanup(d.Close)
	return d
}

func reply(t *testing.T, w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		t.Log(err)
	}
}

func (d *desk) refusal(what string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, what)
	if d.answer == nil {
		return 0
	}
	return d.answer(what)
}

// append accepts an event, or a list of events that were recorded together.
func (d *desk) append(w http.ResponseWriter, r *http.Request) {
	var body struct {
		v1alpha1.ExecutionEvent
		Items []*v1alpha1.ExecutionEvent `json:"items"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		d.t.Error(err)
	}
	if body.Items == nil {
		d.add(&body.ExecutionEvent)
		reply(d.t, w, http.StatusCreated, &body.ExecutionEvent)
		return
	}
	for _, e := range body.Items {
		d.add(e)
	}
	list := &v1alpha1.ExecutionEventList{}
	for _, e := range body.Items {
		list.Items = append(list.Items, *e)
	}
	reply(d.t, w, http.StatusCreated, list)
}

func (d *desk) add(e *v1alpha1.ExecutionEvent) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := approval.Admit(e, approval.Owner{Namespace: "ns", Task: "t", UID: "uid"}, time.Now()); err != nil {
		d.t.Error(err)
	}
	e.Namespace, e.TaskName, e.Seq = "ns", "t", int64(len(d.events)+1)
	d.events = append(d.events, e)
	d.state.Apply(e)
	close(d.change)
	d.change = make(chan struct{})
}

func (d *desk) approval(id string) (*v1alpha1.Approval, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.state.Get("ns", id)
	if a != nil {
		a = a.DeepCopy()
		a.APIVersion, a.Kind = v1alpha1.SchemeGroupVersion.String(), "Approval"
	}
	return a, d.change
}

func (d *desk) get(w http.ResponseWriter, r *http.Request) {
	if a, _ := d.approval(r.PathValue("id")); a != nil {
		reply(d.t, w, http.StatusOK, a)
		return
	}
	http.NotFound(w, r)
}

// list answers with all approvals of the task: a later attempt looks for calls whose outcome is unknown.
func (d *desk) list(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("fieldSelector") != "spec.taskName=t" {
		d.t.Errorf("asked for %s", r.URL)
	}
	d.mu.Lock()
	all := d.state.All()
	d.mu.Unlock()
	l := v1alpha1.ApprovalList{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "ApprovalList"}}
	for i := range all {
		a, _ := d.approval(all[i].Name)
		l.Items = append(l.Items, *a)
	}
	reply(d.t, w, http.StatusOK, l)
}

// watch sends the approval at the beginning and after each event.
func (d *desk) watch(w http.ResponseWriter, r *http.Request) {
	id, ok := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	if !ok {
		d.t.Errorf("asked for %s", r.URL)
	}
	w.Header().Set("Content-Type", "application/json")
	for kind := watch.Added; ; kind = watch.Modified {
		a, change := d.approval(id)
		if a != nil {
			if err := json.NewEncoder(w).Encode(map[string]any{"type": kind, "object": a}); err != nil {
				return // cut
			}
			_ = http.NewResponseController(w).Flush()
		}
		select {
		case <-change:
		case <-r.Context().Done():
			return
		}
	}
}

// pending waits for the n-th request and returns its id.
func (d *desk) pending(n int) string {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), kit.Patience)
	defer cancel()
	for {
		d.mu.Lock()
		all, change := d.state.All(), d.change
		d.mu.Unlock()
		if len(all) >= n {
			return all[n-1].Name
		}
		select {
		case <-change:
		case <-ctx.Done():
			d.t.Fatal("nobody asked")
		}
	}
}

func (d *desk) decide(id string, t v1alpha1.EventType, reason string) {
	d.add(approval.DecisionEvent(t, id, approval.Decision{Actor: "someone", Reason: reason}))
}

// asker is a worker that asks a desk. Its timers fire at once if quick is set.
func asker(t *testing.T, d *desk, quick bool, timeout time.Duration) (*asking.Approvals, *quickclock.Clock) {
	t.Helper()
	w := newTestWorker(t, func(c *Config) { c.ServerURL = d.URL })
	clk, fast := clock.WithDelayedExecution(clock.RealClock{}), quickclock.New()
	if quick {
		clk = fast
	}
	a, err := newAPI(w.config, clk)
	if err != nil {
		t.Fatal(err)
	}
	w = newWorker(w.config, a, clk)
	w.runners = runners.All()
	_, ctx := ktesting.NewTestContext(t)
	w.events.out.start(ctx)
	t.Cleanup(func() { w.events.out.close(0) })
	return &asking.Approvals{Run: w.given(theTask()), Timeout: timeout}, fast
}

// theTask is the task that the configuration of a test worker names.
func theTask() *v1alpha1.Task {
	return &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "t", UID: "uid"}}
}

func aCall() agentloop.ApprovalRequest {
	return agentloop.ApprovalRequest{
		Tool:   tool.Definition{Name: "drop", Description: "drops", Parameters: []byte(`{"type":"object"}`)},
		CallID: "call-1", Arguments: []byte(`{"key":"x","header":"` + providerKey + `"}`), ArgsDigest: strings.Repeat("0", 64), Action: "I drop it.",
	}
}

type reaction struct {
	approval.Answer
	err error
}

func asks(ctx context.Context, a *asking.Approvals, r agentloop.ApprovalRequest) <-chan reaction {
	out := make(chan reaction, 1)
	go func() {
		d, err := a.Ask(ctx, r)
		out <- reaction{d, err}
	}()
	return out
}

// TestAsk: earlier records and then the request are stored before anything waits; then the
// watch delivers the decision.
func TestAsk(t *testing.T) {
	d := newDesk(t)
	a, _ := asker(t, d, false, time.Hour)
	a.Recorder.Record(event.New(v1alpha1.EventModelMessage, v1alpha1.SeverityInfo, "", "before", nil))
	answer := asks(t.Context(), a, aCall())
	id := d.pending(1)
	got, _ := d.approval(id)
	if b := got.Spec.Binding; b == nil || b.TaskAttempt != 2 || len(b.CallIDDigest) != 64 {
		t.Errorf("binding %+v", b)
	}
	if s := got.Spec; s.Timeout != "1h0m0s" || s.ExpiresAt == nil || s.Action != "I drop it." || s.ToolCallID != "call-1" || string(s.TaskUID) != "uid" {
		t.Errorf("asked %+v", s)
	}
	if p := string(got.Spec.TargetArgsPreview.Raw); !strings.Contains(p, `"key":"x"`) || strings.Contains(p, providerKey) {
		t.Errorf("people are shown %s", p)
	}
	d.decide(id, v1alpha1.EventApprovalDeclined, "no")
	r := <-answer
	if diff := cmp.Diff(approval.Answer{ApprovalID: id, State: v1alpha1.ApprovalDeclined, Reason: "no"}, r.Answer); r.err != nil || diff != "" {
		t.Errorf("%v\n%s", r.err, diff)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.events[0].Summary != "before" || d.events[1].Type != v1alpha1.EventApprovalRequested || d.asked[0] != "append" {
		t.Errorf("the server was asked to %v", d.asked)
	}
}

// TestEqualCallsHaveTheirOwnApprovals, also in another attempt.
func TestEqualCallsHaveTheirOwnApprovals(t *testing.T) {
	d := newDesk(t)
	a, _ := asker(t, d, false, 0)
	for n := 1; n <= 2; n++ {
		answer := asks(t.Context(), a, aCall())
		d.decide(d.pending(n), v1alpha1.EventApprovalApproved, "")
		if r := <-answer; r.err != nil || r.State != v1alpha1.ApprovalApproved {
			t.Fatalf("%+v", r)
		}
	}
	again := *a.Run
	again.Attempt = 3
	a = &asking.Approvals{Run: &again}
	answer := asks(t.Context(), a, aCall())
	d.decide(d.pending(3), v1alpha1.EventApprovalCancelled, "")
	if r := <-answer; r.State != v1alpha1.ApprovalCancelled {
		t.Errorf("%+v", r)
	}
}

// TestWaitSurvives what happens to a server while people think.
func TestWaitSurvives(t *testing.T) {
	for name, trouble := range map[string]func(d *desk) func(what string) int{
		"append fails at first": func(*desk) func(string) int { return failing("append", 503, 3) },
		"server is away":        func(*desk) func(string) int { return failing("get", 503, 4) },
		"token is not known yet": func(*desk) func(string) int {
			return failing("get", 401, 3)
		},
		"watch is too old": func(*desk) func(string) int { return failing("watch", 410, 2) },
		"watch is cut": func(d *desk) func(string) int {
			once := sync.Once{}
			return func(what string) int {
				if what == "watch" {
					once.Do(func() { go d.CloseClientConnections() })
				}
				return 0
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			a, _ := asker(t, d, true, 0)
			d.answer = trouble(d)
			answer := asks(t.Context(), a, aCall())
			id := d.pending(1)
			d.decide(id, v1alpha1.EventApprovalApproved, "")
			if r := <-answer; r.err != nil || r.ApprovalID != id || r.State != v1alpha1.ApprovalApproved {
				t.Errorf("%+v", r)
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			if n := len(d.state.All()); n != 1 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

// failing answers the first n requests of a kind with a code.
func failing(what string, code, n int) func(string) int {
	return func(w string) int {
		if w == what && n > 0 {
			n--
			return code
		}
		return 0
	}
}

// TestWatchRefused: without a watch the approval is polled.
func TestWatchRefused(t *testing.T) {
	d := newDesk(t)
	a, clk := asker(t, d, true, 0)
	looks := 0
	d.answer = func(what string) int {
		switch what {
		case "watch":
			return http.StatusForbidden
		case "get":
			if looks++; looks == 12 {
				go func() { d.decide(d.pending(1), v1alpha1.EventApprovalApproved, "") }()
			}
		}
		return 0
	}
	if r := <-asks(t.Context(), a, aCall()); r.err != nil || r.State != v1alpha1.ApprovalApproved {
		t.Errorf("%+v", r)
	}
	pauses := slices.DeleteFunc(clk.Waits(), func(w time.Duration) bool { return w == opening }) // the recorder's
	for i, w := range pauses {
		if want := min(200*time.Millisecond<<min(i, 20), 30*time.Second); w != want {
			t.Errorf("pause %d is %s, not %s", i, w, want)
		}
	}
}

// TestAskFails if it would otherwise wait forever.
func TestAskFails(t *testing.T) {
	always := func(what string, code int) func(string) int {
		return func(w string) int {
			if w == what {
				return code
			}
			return 0
		}
	}
	for name, tc := range map[string]struct {
		answer func(string) int
		want   string
	}{
		"request is refused":  {always("append", 400), "the server refused"},
		"stream is closed":    {always("append", 409), "the server refused"},
		"approval is gone":    {always("get", 404), "approval"},
		"token is not good":   {always("get", 401), "approval"},
		"nothing may be read": {always("get", 403), "approval"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.answer = tc.answer
			a, _ := asker(t, d, true, 0)
			if r := <-asks(t.Context(), a, aCall()); r.err == nil || !strings.Contains(r.err.Error(), tc.want) {
				t.Errorf("%+v", r)
			}
		})
	}
	t.Run("stopped", func(t *testing.T) {
		d := newDesk(t)
		a, _ := asker(t, d, false, 0)
		ctx, stop := context.WithCancel(t.Context())
		answer := asks(ctx, a, aCall())
		d.pending(1)
		stop()
		if r := <-answer; r.err == nil {
			t.Errorf("%+v", r)
		}
	})
}
