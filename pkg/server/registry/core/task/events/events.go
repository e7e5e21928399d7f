// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package events appends events to the streams of tasks: whatever way an event arrives, it is checked against its task, put to admission,
// completed (approvals.go), separated from what is recorded beside it (recorded.go), counted against limits (pending.go, and the model requests that it begins), and stored by the event log.
package events

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/refusal"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/server/wellformed"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/later"
)

const (
	// MaxBytes is the maximum size of a list of events, in bytes.
	MaxBytes = 15 << 20
	// maxListedEvents is how many events one request may append.
	maxListedEvents = 5000
)

// Requests decides about the model requests that begin and end with events; see package modelrequest.
type Requests interface {
	// Begin lets the requests begin whose starts are among the events, which are to be appended with the context next, or refuses all
	// events with an API error. end is called with the stored events, or with none if they were not stored.
	Begin(ctx context.Context, t *v1alpha1.Task, events eventlog.Sanitized) (next context.Context, end func(stored []*v1alpha1.ExecutionEvent), err error)
	// Refusal returns the API error for events whose append a Budget refused; nil if err is about something else.
	Refusal(ctx context.Context, t *v1alpha1.Task, events []*v1alpha1.ExecutionEvent, err error) error
	// Forget forgets the requests of a task that has ended.
	Forget(uid types.UID)
}

// Options are what events need. All fields are required.
type Options struct {
	Tasks stored.Tasks
	Log   *eventlog.Log
	Clock clock.PassiveClock
	// Authorizer decides who may append what only controllers may write.
	Authorizer authorizer.Authorizer
	Requests   Requests
	// Ending waits until all content of the task with a UID that is being written is stored, and blocks further writes until done is
	// called: an event that ends the task is being stored.
	Ending func(uid types.UID) (done func())
	// Ends stores what AddEnd is given.
	Ends *later.Queue
	// Recording is how much is recorded where the agent does not say it.
	Recording v1alpha1.RecordingMode
}

// Events appends events to the streams of tasks.
type Events struct {
	o        Options
	pendings *pendings
}

// New returns what appends events.
func New(o Options) *Events { return &Events{o: o, pendings: newPendings()} }

// Post serves POST of one event or of a list of events, which are stored as one commit, and returns what was stored.
func (r *Events) Post(w http.ResponseWriter, req *http.Request, t *v1alpha1.Task) (runtime.Object, error) {
	obj, err := r.decodeEvents(w, req)
	if err != nil {
		return nil, err
	}
	var events []*v1alpha1.ExecutionEvent
	switch o := obj.(type) {
	case *v1alpha1.ExecutionEvent:
		events = []*v1alpha1.ExecutionEvent{o}
	case *v1alpha1.ExecutionEventList:
		if n := len(o.Items); n > maxListedEvents {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("items: must have at most %d events, not %d; send the others in further requests", maxListedEvents, n))
		}
		for i := range o.Items {
			events = append(events, &o.Items[i])
		}
	default:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body must be an ExecutionEvent or an ExecutionEventList, not %s", obj.GetObjectKind().GroupVersionKind().Kind))
	}
	ctx, err := r.recorded(req.Context(), events...)
	if err != nil {
		return nil, err
	}
	if err := countedHere(t, events); err != nil {
		return nil, err
	}
	stored, err := r.admitted(ctx, t, events, slices.Contains(wellformed.Query(req)["dryRun"], metav1.DryRunAll))
	if err != nil {
		return nil, err
	}
	if _, single := obj.(*v1alpha1.ExecutionEvent); single {
		return stored[0], nil
	}
	list := &v1alpha1.ExecutionEventList{Items: make([]v1alpha1.ExecutionEvent, len(stored))}
	for i, e := range stored {
		list.Items[i] = *e
	}
	return list, nil
}

// countedHere refuses events about the model requests of a coding agent, which this server makes (package agentrequest): otherwise who runs
// the agent could begin and end requests that were not made.
func countedHere(t *v1alpha1.Task, events []*v1alpha1.ExecutionEvent) error {
	for _, e := range events {
		if t.Spec.Type == v1alpha1.TaskTypeAgent && event.ModelRequest(e.Type) {
			return apierrors.NewForbidden(v1alpha1.Resource("executionevents"), t.Name, fmt.Errorf("%s: of a task of type %s the server itself writes such events", e.Type, t.Spec.Type))
		}
	}
	return nil
}

// decodeEvents reads the body, JSON or YAML. A body without a kind is an ExecutionEvent.
func (r *Events) decodeEvents(w http.ResponseWriter, req *http.Request) (runtime.Object, error) {
	data, err := resource.ReadBody(w, req, MaxBytes)
	if err != nil {
		return nil, err
	}
	obj := decodePosted(req, data)
	if obj == nil {
		c, err := r.o.Tasks.Config()
		if err != nil {
			return nil, err
		}
		if obj, err = resource.DecodeBody(c.Scheme, req, data, v1alpha1.SchemeGroupVersion.WithKind("ExecutionEvent")); err != nil {
			return nil, err
		}
	}
	if e, single := obj.(*v1alpha1.ExecutionEvent); single && e.Recording == nil && len(data) > event.MaxBodyBytes {
		r.o.Log.Refused(e)
		return nil, tooLarge()
	}
	return obj, nil
}

func tooLarge() error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("an event must be at most %d bytes", event.MaxBodyBytes))
}

// Append appends events to the stream of a stored task, in the same way as a create of its subresource events. Errors
// are API errors.
func (r *Events) Append(ctx context.Context, task string, events ...*v1alpha1.ExecutionEvent) ([]*v1alpha1.ExecutionEvent, error) {
	t, err := r.o.Tasks.Get(ctx, task)
	if err != nil {
		r.o.Log.Refused(events...)
		return nil, err
	}
	return r.append(ctx, t, events, false)
}

func (r *Events) append(ctx context.Context, t *v1alpha1.Task, events []*v1alpha1.ExecutionEvent, dryRun bool) ([]*v1alpha1.ExecutionEvent, error) {
	all, own, err := r.appendable(ctx, t, events)
	if err != nil {
		r.o.Log.Refused(events...)
		return nil, err
	}
	if dryRun {
		return events, nil
	}
	release, err := r.pendings.admit(ctx, r.o.Log, stored.Stream(t), all)
	if err != nil {
		r.o.Log.Refused(events...)
		r.o.Log.NoteLimit(ctx, stored.Stream(t), "approvals", v1alpha1.ReasonEventLimitReached, err)
		return nil, resource.StatusError(v1alpha1.Resource("tasks"), t.Name, err)
	}
	defer release()
	clean := eventlog.Sanitize(all) // checkEvent has validated them
	given := givenFor(ctx, all, clean.Events())
	ctx, end, err := r.o.Requests.Begin(ctx, t, clean)
	if err != nil {
		r.o.Log.Refused(events...)
		return nil, err
	}
	if len(given) > 0 {
		ctx = eventlog.WithNote(ctx, given)
	}
	stored, err := r.writeSanitized(ctx, t, clean)
	end(stored)
	if err != nil {
		return nil, err
	}
	return ownOnly(stored, own), nil
}

// appendable returns the events to store if the caller may append the given ones; see admitApprovals.
func (r *Events) appendable(ctx context.Context, t *v1alpha1.Task, events []*v1alpha1.ExecutionEvent) (all []*v1alpha1.ExecutionEvent, own []bool, err error) {
	if len(events) == 0 {
		return nil, nil, apierrors.NewBadRequest("items: at least one event is needed")
	}
	var owned v1alpha1.EventType // an event type that workers may not write
	for i, e := range events {
		if err := checkEvent(t, e); err != nil {
			if len(events) > 1 {
				err = refusal.At(fmt.Sprintf("items[%d]: ", i), err)
			}
			return nil, nil, err
		}
		if event.ControllerOwned(e.Type) {
			owned = e.Type
		}
	}
	if err := r.MayAppend(ctx, t, owned); err != nil {
		return nil, nil, err
	}
	return r.admitApprovals(t, events)
}

// Write appends events, which the log checks. Errors are API errors.
func (r *Events) Write(ctx context.Context, t *v1alpha1.Task, events []*v1alpha1.ExecutionEvent) ([]*v1alpha1.ExecutionEvent, error) {
	return r.writeBy(ctx, t, events, func() ([]*v1alpha1.ExecutionEvent, error) { return r.o.Log.Append(ctx, stored.Stream(t), events) })
}

func (r *Events) writeSanitized(ctx context.Context, t *v1alpha1.Task, events eventlog.Sanitized) ([]*v1alpha1.ExecutionEvent, error) {
	return r.writeBy(ctx, t, events.Events(), func() ([]*v1alpha1.ExecutionEvent, error) {
		return r.o.Log.AppendSanitized(ctx, stored.Stream(t), events)
	})
}

func (r *Events) writeBy(ctx context.Context, t *v1alpha1.Task, events []*v1alpha1.ExecutionEvent, appendEvents func() ([]*v1alpha1.ExecutionEvent, error)) ([]*v1alpha1.ExecutionEvent, error) {
	if slices.ContainsFunc(events, func(e *v1alpha1.ExecutionEvent) bool { return event.Terminal(e.Type) }) {
		defer r.o.Ending(t.UID)()
		defer r.o.Requests.Forget(t.UID)
		if err := r.o.Ends.Flush(); err != nil { // otherwise they would come after the end, where nothing is stored
			return nil, resource.StatusError(v1alpha1.Resource("tasks"), t.Name, err)
		}
	}
	stored, err := appendEvents()
	switch {
	case errors.Is(err, eventlog.ErrClosed):
		return nil, refusal.Closed(t)
	case errors.Is(err, eventlog.ErrDeleted):
		return nil, refusal.Deleted(t)
	case errors.Is(err, eventlog.ErrCancelled):
		return nil, refusal.Cancelled(t)
	case err != nil:
		if refused := r.o.Requests.Refusal(ctx, t, events, err); refused != nil {
			return nil, refused
		}
		return nil, resource.StatusError(v1alpha1.Resource("tasks"), t.Name, err)
	}
	return stored, nil
}

// MayAppend decides by the state of the task and the types of the events; owned is a type that only controllers may
// write, if there is one. Only controllers may still write to a task that has ended or is being deleted.
func (r *Events) MayAppend(ctx context.Context, t *v1alpha1.Task, owned v1alpha1.EventType) error {
	gone, ended := t.DeletionTimestamp != nil, t.Status.Phase.Terminal()
	if owned == "" && !gone && !ended {
		return nil
	}
	ok, err := guard.MayControl(ctx, r.o.Authorizer, t.Namespace)
	switch {
	case err != nil:
		return err
	case ok:
		return nil
	case owned != "":
		return apierrors.NewForbidden(v1alpha1.Resource("executionevents"), t.Name, errors.New(reserved(owned)))
	case gone:
		return refusal.Deleted(t)
	}
	return refusal.Closed(t)
}

// reserved returns the message for a caller who may not write the type.
func reserved(owned v1alpha1.EventType) string {
	if event.Terminal(owned) || event.Approval(owned) {
		return "terminal task and approval events must use controller-owned paths"
	}
	return string(owned) + " events must use controller-owned paths"
}

// checkEvent checks the event itself and that it fits the task.
func checkEvent(t *v1alpha1.Task, e *v1alpha1.ExecutionEvent) error {
	if err := event.Validate(e); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if event.Size(e) > event.MaxBodyBytes {
		return tooLarge()
	}
	if e.Recording != nil {
		return apierrors.NewBadRequest("recording: is accepted by tasks/events only")
	}
	if e.TaskName != "" && e.TaskName != t.Name {
		return apierrors.NewBadRequest(fmt.Sprintf("taskName: %q: must be the name of the task, %q", e.TaskName, t.Name))
	}
	if s := stored.Session(t); e.SessionName != "" && e.SessionName != s {
		return apierrors.NewBadRequest(fmt.Sprintf("sessionName: %q: must be the session of the task", e.SessionName))
	}
	return nil
}
