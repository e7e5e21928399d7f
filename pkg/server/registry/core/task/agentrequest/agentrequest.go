// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agentrequest records the model requests that coding agents make through this server (package server/compat) as events of their
// tasks, like those that the workers of other tasks append.
//
// The server numbers the requests of a task itself and writes their events itself, so that what an agent uses is counted whatever its
// worker says: events of model requests are not accepted from the workers of such tasks. The start of a request is stored before it is
// sent, and rate limits and budgets decide about it as about any other (package modelrequest). Its end is stored before the agent has
// seen the end of the answer, or, on a full disk, once there is room, and in any case before the end of the task. A request whose end is
// lost, because this server was killed, is charged in full when the task ends, and its usage has a gap.
package agentrequest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/agentloop"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/server/models"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/recording"
	"github.com/platform-ai/platform/pkg/usage"
)

// Events appends the events of requests.
type Events interface {
	// Add appends an event as if the worker of the task had posted it, if admission allows it.
	Add(ctx context.Context, t *v1alpha1.Task, e *v1alpha1.ExecutionEvent) error
	// AddEnd appends an event that must not be refused, or calls lost.
	AddEnd(ctx context.Context, t *v1alpha1.Task, e *v1alpha1.ExecutionEvent, lost func(error))
}

// Options are what requests need. All fields are required.
type Options struct {
	Tasks  stored.Tasks
	Guard  resource.Guard[*v1alpha1.Task]
	Log    *eventlog.Log
	Events Events
	Clock  clock.PassiveClock
	// Agent reads an Agent of the context's namespace.
	Agent func(ctx context.Context, name string) (*v1alpha1.Agent, error)
	// Recordings store what is said, and Recording is how much of it where an Agent does not say that.
	Recordings *recording.Store
	Recording  v1alpha1.RecordingMode
}

// Requests are the model requests of coding agents.
type Requests struct {
	o Options

	mu   sync.Mutex
	runs map[types.UID]*progress
}

// progress is how far the requests of a task have come.
type progress struct {
	mu sync.Mutex // held while an event with a recording is made and stored, so that its numbers come in order
	// read is set once what is stored has been read. last is the number of the newest request.
	read bool
	last int64
	said *agentloop.Recording // what is recorded; nil before that is asked for
}

// New returns the requests of a server.
func New(o Options) *Requests { return &Requests{o: o, runs: map[types.UID]*progress{}} }

// Run is a task whose agent may ask a model.
type Run struct {
	*v1alpha1.Task
	of *Requests
}

// Of returns the task of that name in the context's namespace, if its agent may ask a model on behalf of the context's user. Errors are
// API errors.
func (r *Requests) Of(ctx context.Context, name string) (*Run, error) {
	t, err := r.o.Tasks.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	if r.o.Guard.Held(ctx) {
		if err := r.o.Guard.Object(ctx, resource.Access{Verb: "create", Subresource: runspec.ModelsSubresource}, t); err != nil {
			return nil, err
		}
	}
	forbidden := func(why string) error {
		return apierrors.NewForbidden(v1alpha1.Resource("tasks/"+runspec.ModelsSubresource), name, errors.New(why))
	}
	switch {
	case t.Spec.Type != v1alpha1.TaskTypeAgent:
		return nil, forbidden("only the coding agent of a task of type agent is given models here")
	case t.Spec.AgentRef == nil:
		return nil, forbidden("the task has no agent")
	case t.Status.Phase != v1alpha1.TaskRunning:
		return nil, forbidden(fmt.Sprintf("the task is %s; an agent is given models while its task is %s", phaseOf(t), v1alpha1.TaskRunning))
	}
	return &Run{t, r}, nil
}

func phaseOf(t *v1alpha1.Task) string {
	if t.Status.Phase == "" {
		return "not picked up yet"
	}
	return string(t.Status.Phase)
}

// Query says which models answer the agent: those of the task's Agent.
func (r *Run) Query() models.Query {
	ref := r.Spec.AgentRef.In(r.Namespace)
	return models.Query{Namespace: ref.Namespace, Agent: ref.Name, Coding: true}
}

// Meter records one request and those to the fallbacks.
func (r *Run) Meter() models.Meter { return &meter{run: r} }

// Forget forgets a task that has ended or is gone.
func (r *Requests) Forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.runs, uid)
}

// of returns the progress of a task.
func (r *Requests) of(uid types.UID) *progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.runs[uid]
	if p == nil {
		p = &progress{}
		r.runs[uid] = p
	}
	return p
}

// next returns the number of a new request of a task. After a restart the numbers go on after those that are stored.
func (r *Requests) next(ctx context.Context, t *v1alpha1.Task, p *progress) (int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.read {
		var err error
		if p.last, err = r.stored(ctx, t); err != nil {
			return 0, err
		}
		p.read = true
	}
	p.last++
	return p.last, nil
}

// page is how many events are read at a time.
const page = 500

// stored returns the highest number of the requests of a task.
func (r *Requests) stored(ctx context.Context, t *v1alpha1.Task) (highest int64, err error) {
	for after := int64(0); ; {
		p, err := r.o.Log.TaskPage(ctx, stored.Stream(t), after, page, []v1alpha1.EventType{v1alpha1.EventModelRequestStarted})
		if err != nil {
			return 0, err
		}
		for _, e := range p.Events {
			var c struct{ Iteration int64 }
			if e.Content != nil {
				_ = json.Unmarshal(e.Content.Raw, &c) // this server wrote it
			}
			highest = max(highest, c.Iteration)
		}
		if after = p.Next; after >= p.Latest {
			return highest, nil
		}
	}
}

// meter records one request and those to the fallbacks.
type meter struct {
	run    *Run
	number int64
}

// passed is a request that does not count: a fallback that is not asked, or one that counts tokens.
type passed struct{}

// End does nothing.
func (passed) End(models.Ended) {}

// Start stores that a request is about to be sent.
func (m *meter) Start(ctx context.Context, a models.Asked) (models.Measurement, error) {
	if a.PassedOver || a.MaxInput == 0 { // counting tokens spends none
		return passed{}, nil
	}
	of, t := m.run.of, m.run.Task
	ctx = request.WithNamespace(ctx, t.Namespace)
	p := of.of(t.UID)
	if m.number == 0 {
		var err error
		if m.number, err = of.next(ctx, t, p); err != nil {
			return nil, err
		}
	}
	mode, err := of.mode(ctx, t)
	if err != nil {
		return nil, err
	}
	c := call{meter: m, ctx: context.WithoutCancel(ctx), asked: a, began: of.o.Clock.Now(), progress: p, mode: mode}
	content := c.content()
	content["maxInputTokens"], content["maxOutputTokens"] = a.MaxInput, a.MaxTokens
	if err := c.start(ctx, c.event(v1alpha1.EventModelRequestStarted, v1alpha1.SeverityInfo, "start", "asking "+a.Model, content)); err != nil {
		return nil, err
	}
	return c, nil
}

// call is a request that was started.
type call struct {
	*meter
	ctx   context.Context //nolint:containedctx // of the end, which outlives the request
	asked models.Asked
	began time.Time

	progress *progress
	mode     v1alpha1.RecordingMode
}

func (c call) content() map[string]any {
	return map[string]any{"iteration": c.number, "attempt": c.asked.Candidate, "provider": c.asked.Provider, "model": c.asked.Model}
}

func (c call) event(kind v1alpha1.EventType, severity v1alpha1.EventSeverity, what, summary string, content map[string]any) *v1alpha1.ExecutionEvent {
	e := event.New(kind, severity, fmt.Sprintf("platform:model:%d:%d:%s", c.number, c.asked.Candidate, what), summary, content)
	if ref := c.run.Spec.AgentRef; ref != nil {
		e.AgentName = ref.Name
	}
	return e
}

// End stores how the request ended.
func (c call) End(e models.Ended) {
	content := c.content()
	content["durationMs"] = c.run.of.o.Clock.Since(c.began).Milliseconds()
	agentloop.NoteUsage(content, e.Usage)
	end := c.event(v1alpha1.EventModelRequestCompleted, v1alpha1.SeverityInfo, "end", agentloop.UsageText(c.asked.Model, e.Usage), content)
	if e.Status != usage.StatusCompleted {
		end = c.failed(e, content)
	}
	c.end(end, func(err error) {
		klog.FromContext(c.ctx).V(2).Info("The end of a model request of a coding agent is lost", "task", klog.KObj(c.run.Task), "err", err)
	})
}

// failed returns the event of a request that was not answered.
func (c call) failed(e models.Ended, content map[string]any) *v1alpha1.ExecutionEvent {
	switch {
	case e.Refused: // the vendor used no tokens
		content["unsent"], content["errorClass"] = true, llm.ClassInvalidRequest
		return c.event(v1alpha1.EventModelRequestFailed, v1alpha1.SeverityWarning, "end", c.asked.Model+" refused the request, or did not get it", content)
	case e.Status == usage.StatusCancelled:
		content["errorClass"] = llm.ClassCanceled
		return c.event(v1alpha1.EventModelRequestFailed, v1alpha1.SeverityInfo, "end", "the agent left before "+c.asked.Model+" had answered", content)
	}
	content["errorClass"] = llm.ClassServer
	return c.event(v1alpha1.EventModelRequestFailed, v1alpha1.SeverityWarning, "end", c.asked.Model+" sent no complete answer", content)
}
