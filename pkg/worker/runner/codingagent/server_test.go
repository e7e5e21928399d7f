// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codingagent

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
)

// server is an API server with one Agent. It keeps the plans that it gets, and has policies and people.
type server struct {
	*httptest.Server
	t *testing.T
	// judge is what policies say of a call; nil allows all.
	judge func(c v1alpha1.ToolCallSpec) v1alpha1.ToolCallStatus
	// decide is what people say of an approval at once: a decision, or nothing.
	decide func(a *v1alpha1.Approval) (v1alpha1.EventType, string)

	mu    sync.Mutex
	plans []v1alpha1.TaskPlan
	calls []v1alpha1.ToolCallSpec
	state approval.State
	// pending is how many approvals wait, and most how many waited at once.
	pending, most int64
	change        chan struct{} // closed and replaced by each event
}

func newServer(t *testing.T, spec v1alpha1.AgentSpec) *server {
	t.Helper()
	s := &server{t: t, change: make(chan struct{})}
	mux := http.NewServeMux()
	const base = "/apis/core.platform.ai/v1alpha1/namespaces/ns/"
	mux.HandleFunc("GET "+base+"agents/coder", func(w http.ResponseWriter, _ *http.Request) {
		s.reply(w, &v1alpha1.Agent{TypeMeta: typeMeta("Agent"), ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "coder"}, Spec: spec})
	})
	mux.HandleFunc("POST "+base+"tasks/t/plan", func(w http.ResponseWriter, r *http.Request) {
		p := read[v1alpha1.TaskPlan](t, r)
		s.mu.Lock()
		s.plans = append(s.plans, *p)
		s.mu.Unlock()
		s.reply(w, p)
	})
	mux.HandleFunc("POST "+base+"toolcalls", func(w http.ResponseWriter, r *http.Request) {
		c := read[v1alpha1.ToolCall](t, r)
		s.mu.Lock()
		s.calls = append(s.calls, c.Spec)
		s.mu.Unlock()
		c.TypeMeta, c.Status = typeMeta("ToolCall"), v1alpha1.ToolCallStatus{Verdict: v1alpha1.ToolCallAllowed}
		if s.judge != nil {
			c.Status = s.judge(c.Spec)
		}
		s.reply(w, c)
	})
	mux.HandleFunc("GET "+base+"approvals/{id}", func(w http.ResponseWriter, r *http.Request) {
		a, _ := s.approval(r.PathValue("id"))
		s.reply(w, a)
	})
	mux.HandleFunc("GET "+base+"approvals", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" { // a later attempt looks for calls whose outcome is unknown
			s.reply(w, &v1alpha1.ApprovalList{TypeMeta: typeMeta("ApprovalList")})
			return
		}
		s.watch(w, r)
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind}
}

func read[T any](t *testing.T, r *http.Request) *T {
	v := new(T)
	if err := json.NewDecoder(r.Body).Decode(v); err != nil {
		t.Error(err)
	}
	return v
}

func (s *server) reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		s.t.Log(err)
	}
}

// watch sends an approval at the beginning and after each event.
func (s *server) watch(w http.ResponseWriter, r *http.Request) {
	id := strings.TrimPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	w.Header().Set("Content-Type", "application/json")
	for {
		a, change := s.approval(id)
		if err := json.NewEncoder(w).Encode(map[string]any{"type": watch.Modified, "object": a}); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-change:
		case <-r.Context().Done():
			return
		}
	}
}

func (s *server) approval(id string) (*v1alpha1.Approval, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.state.Get("ns", id)
	if a == nil {
		s.t.Errorf("there is no approval %s", id)
		return &v1alpha1.Approval{}, s.change
	}
	a = a.DeepCopy()
	a.TypeMeta = typeMeta("Approval")
	return a, s.change
}

// approvals returns the approvals in the order of their requests.
func (s *server) approvals() []v1alpha1.Approval {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.All()
}

// add stores an event as the server does.
func (s *server) add(e *v1alpha1.ExecutionEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e = e.DeepCopy()
	outcome, err := approval.Admit(e, approval.Owner{Namespace: "ns", Task: "t", UID: "uid"}, time.Now())
	if err != nil {
		s.t.Error(err)
	}
	s.apply(e)
	if outcome != nil {
		s.apply(outcome)
	}
	if e.Type == v1alpha1.EventApprovalRequested && s.decide != nil {
		if typ, why := s.decide(s.state.Get("ns", approval.IDOf(e))); typ != "" {
			s.apply(approval.DecisionEvent(typ, approval.IDOf(e), approval.Decision{Actor: "someone", Reason: why}))
		}
	}
}

// apply needs mu.
func (s *server) apply(e *v1alpha1.ExecutionEvent) {
	e.Namespace, e.TaskName = "ns", "t"
	s.state.Apply(e)
	s.pending += approval.PendingChange(e.Type)
	s.most = max(s.most, s.pending)
	close(s.change)
	s.change = make(chan struct{})
}

// decideOn decides on an approval that waits.
func (s *server) decideOn(id string, typ v1alpha1.EventType, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.apply(approval.DecisionEvent(typ, id, approval.Decision{Actor: "someone", Reason: why}))
}

// asked waits until that many approvals were requested.
func (s *server) asked(n int) []v1alpha1.Approval {
	for {
		s.mu.Lock()
		all, change := s.state.All(), s.change
		s.mu.Unlock()
		if len(all) >= n {
			return all
		}
		select {
		case <-change:
		case <-s.t.Context().Done():
			return nil
		}
	}
}
