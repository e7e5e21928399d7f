// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mail lets the tasks of a family, which are a parent and its children, write to each other. A message is an event of the
// recipient's stream, so it is durable, redacted, counted in the limits of the stream, readable for whoever may read the events, and
// removed with them.
package mail

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/readmodel/inbox"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/refusal"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/tree"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/quota"
)

// MaxBytes is the maximum length of a message as JSON, in bytes. JSON needs up to six bytes for a character.
const MaxBytes = 128 << 10

// maxSiblings is how many siblings one message may be sent to.
const maxSiblings = 100

// Events appends messages, and the marks of those that were read, to the streams of tasks.
type Events interface {
	// MayAppend refuses to write to a task that has ended or is being deleted. owned is empty.
	MayAppend(ctx context.Context, t *v1alpha1.Task, owned v1alpha1.EventType) error
	// Admit puts an event to admission.
	Admit(ctx context.Context, t *v1alpha1.Task, e *v1alpha1.ExecutionEvent, dryRun bool) error
	// Write appends events.
	Write(ctx context.Context, t *v1alpha1.Task, events []*v1alpha1.ExecutionEvent) ([]*v1alpha1.ExecutionEvent, error)
}

// Mail serves the subresources messages and inbox. All exported fields are required.
type Mail struct {
	Tasks  stored.Tasks
	Trees  *tree.Trees
	Log    *eventlog.Log
	Events Events

	inboxes inboxes
}

// Send serves POST of messages: it sends a message from the task to others of its family. A broadcast is stored for all recipients in one commit.
func (r *Mail) Send(ctx context.Context, p stored.Parent, obj runtime.Object) (runtime.Object, error) {
	m, ok := obj.(*v1alpha1.TaskMessage)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body must be a TaskMessage, not %T", obj))
	}
	if err := inbox.Check(&m.Spec); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	ctx = request.WithNamespace(ctx, p.Object.Namespace)
	to, parent, err := r.recipients(ctx, p.Object, &m.Spec)
	if err != nil {
		return nil, err
	}
	if want := m.Spec.ParentTask; want != "" && want != parent {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("spec.parentTask: %q: the parent of the family is %q", want, parent))
	}
	message := inbox.Message{From: p.Object.Name, FromUID: p.Object.UID, Parent: parent, Content: m.Spec.Content}
	if id := m.Spec.MessageID; id != "" {
		message.Key = fmt.Sprintf("message/%s/%s", p.Object.UID, id)
	}
	unlock := r.inboxes.lock(to)
	defer unlock()
	out := &v1alpha1.TaskMessage{Spec: m.Spec}
	if m.Spec.ToTask != v1alpha1.ToSiblings {
		if err := r.deliver(ctx, to[0], message, p.DryRun); err != nil {
			return nil, refusal.At(fmt.Sprintf("spec.toTask: %q: ", to[0].Name), err)
		}
		out.Status.Recipients = []string{to[0].Name}
		return out, nil
	}
	out.Status, err = r.broadcast(ctx, to, message, p.DryRun)
	return out, err
}

// recipients returns the tasks that a message goes to, and the name of the parent of their family.
func (r *Mail) recipients(ctx context.Context, from *v1alpha1.Task, m *v1alpha1.TaskMessageSpec) ([]*v1alpha1.Task, string, error) {
	up := from.Status.Delegation
	if m.ToTask == v1alpha1.ToSiblings {
		if up == nil || up.Detached {
			return nil, "", apierrors.NewBadRequest("spec.toTask: the task has no siblings, because it has no parent; name a task that it created")
		}
		to, err := r.siblings(ctx, from)
		return to, up.Parent, err
	}
	if m.ToTask == from.Name {
		return nil, "", apierrors.NewBadRequest("spec.toTask: a task cannot send a message to itself")
	}
	to, err := r.Tasks.Get(ctx, m.ToTask)
	parent := ""
	if err == nil {
		parent = family(from, to)
	}
	switch {
	case apierrors.IsNotFound(err), err == nil && parent == "": // the sender must not learn which other names exist
		return nil, "", apierrors.NewForbidden(v1alpha1.Resource("tasks/messages"), from.Name,
			fmt.Errorf("task %q is not of its family: a task may send messages to its siblings, to its parent and to tasks that it created", m.ToTask))
	case err != nil:
		return nil, "", err
	case to.DeletionTimestamp != nil, to.Status.Phase.Terminal():
		return nil, "", apierrors.NewConflict(v1alpha1.Resource("tasks"), to.Name, errors.New("the task has ended and reads no more messages"))
	}
	return []*v1alpha1.Task{to}, parent, nil
}

// family returns the name of the parent of the family that both tasks belong to: the parent of both, or the one of them
// that is the parent of the other. It is empty if they have no such parent. A detached task left its parent's family.
func family(a, b *v1alpha1.Task) string {
	up := func(t *v1alpha1.Task) *v1alpha1.TaskDelegation {
		if d := t.Status.Delegation; d != nil && !d.Detached {
			return d
		}
		return &v1alpha1.TaskDelegation{}
	}
	switch of, other := up(a), up(b); {
	case of.ParentUID != "" && (of.ParentUID == other.ParentUID || of.ParentUID == b.UID):
		return of.Parent
	case other.ParentUID == a.UID:
		return a.Name
	}
	return ""
}

// siblings returns the siblings of a task that have not ended, by name.
func (r *Mail) siblings(ctx context.Context, from *v1alpha1.Task) ([]*v1alpha1.Task, error) {
	if err := r.Trees.Known(ctx); err != nil {
		return nil, err
	}
	d := from.Status.Delegation
	var all []*v1alpha1.Task
	for _, name := range r.Trees.Children(d.RootUID, d.ParentUID) {
		t, err := r.Tasks.Get(ctx, name)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return nil, err
		case t.UID == from.UID, family(from, t) == "", t.DeletionTimestamp != nil, t.Status.Phase.Terminal():
			continue
		}
		if all = append(all, t); len(all) > maxSiblings {
			return nil, apierrors.NewForbidden(v1alpha1.Resource("tasks/messages"), from.Name, fmt.Errorf("more than %d siblings have not ended; name the recipients", maxSiblings))
		}
	}
	return all, nil
}

// deliver stores a message for one recipient.
func (r *Mail) deliver(ctx context.Context, to *v1alpha1.Task, m inbox.Message, dryRun bool) error {
	e, err := r.event(ctx, to, m, dryRun)
	if err != nil || e == nil || dryRun {
		return err
	}
	_, err = r.Events.Write(ctx, to, []*v1alpha1.ExecutionEvent{e})
	return err
}

// broadcast stores a message for all recipients in one commit, and reports those that cannot take it. If the stream of
// one of them has reached a limit, each recipient gets a commit of its own, so that none keeps a message from the others.
func (r *Mail) broadcast(ctx context.Context, to []*v1alpha1.Task, m inbox.Message, dryRun bool) (out v1alpha1.TaskMessageStatus, err error) {
	events := map[*v1alpha1.Task]*v1alpha1.ExecutionEvent{}
	var parts []engine.Part
	for _, t := range to {
		e, err := r.event(ctx, t, m, dryRun)
		if errors.Is(err, errFull) {
			out.Full = append(out.Full, t.Name)
			continue
		}
		if err != nil {
			return out, err
		}
		out.Recipients = append(out.Recipients, t.Name)
		if e == nil || dryRun {
			continue
		}
		part, err := r.Log.Stage(stored.Stream(t), e)
		if err != nil {
			return out, resource.StatusError(v1alpha1.Resource("tasks"), t.Name, err)
		}
		events[t], parts = e, append(parts, part)
	}
	if len(parts) == 0 {
		return out, nil
	}
	switch err := r.Log.Commit(engine.Grow, parts...); {
	case err == nil:
		return out, nil
	case !errors.Is(err, quota.ErrLimit):
		return out, resource.StatusError(v1alpha1.Resource("tasks/messages"), m.From, err)
	}
	for t, e := range events {
		_, err := r.Log.Append(ctx, stored.Stream(t), []*v1alpha1.ExecutionEvent{e})
		switch {
		case err == nil:
			continue
		case errors.Is(err, quota.ErrLimit):
			out.Full = append(out.Full, t.Name)
		case errors.Is(err, eventlog.ErrClosed), errors.Is(err, eventlog.ErrDeleted): // it has ended meanwhile
		default:
			return out, resource.StatusError(v1alpha1.Resource("tasks/messages"), t.Name, err)
		}
		out.Recipients = slices.DeleteFunc(out.Recipients, func(name string) bool { return name == t.Name })
	}
	slices.Sort(out.Full)
	return out, nil
}

// event returns the event that stores a message for a recipient; nil if it is stored already.
func (r *Mail) event(ctx context.Context, to *v1alpha1.Task, m inbox.Message, dryRun bool) (*v1alpha1.ExecutionEvent, error) {
	if m.Key != "" {
		if has, err := r.Log.Has(ctx, stored.Stream(to), m.Key); has || err != nil {
			return nil, err
		}
	}
	last, read, _, err := r.state(ctx, to)
	switch {
	case err != nil:
		return nil, err
	case last >= inbox.MaxMessages:
		return nil, full("the task has got %d messages, and gets no more", last)
	case last-read >= inbox.MaxUnread:
		return nil, full("the task has %d unread messages; send more after it has read them", last-read)
	}
	m.Number = last + 1
	e, err := inbox.Event(m)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	e.AgentName = to.Status.AgentName
	e.TaskName, e.StreamType, e.StreamID = to.Name, v1alpha1.StreamTask, to.Name
	return e, r.Events.Admit(ctx, to, e, dryRun)
}

// errFull is the cause of the errors about recipients that take no more messages.
var errFull = errors.New("full")

// fullError is a Conflict, because the state of the recipient refuses the message.
type fullError struct{ *apierrors.StatusError }

// Is reports whether the target is errFull.
func (fullError) Is(target error) bool { return target == errFull }

// Unwrap returns the API error.
func (e fullError) Unwrap() error { return e.StatusError }

func full(format string, args ...any) error {
	err := apierrors.NewConflict(v1alpha1.Resource("tasks/messages"), "", nil)
	err.ErrStatus.Message = fmt.Sprintf(format, args...)
	return fullError{err}
}

// state returns the number of the newest message of a task, the number up to which its run has read them, and the newest
// mark, which may be nil.
func (r *Mail) state(ctx context.Context, t *v1alpha1.Task) (last, read int64, mark *v1alpha1.ExecutionEvent, err error) {
	_, newest, err := r.Log.Newest(ctx, stored.Stream(t), v1alpha1.EventTaskMessageReceived)
	if err != nil {
		return 0, 0, nil, err
	}
	_, mark, err = r.Log.Newest(ctx, stored.Stream(t), v1alpha1.EventTaskMessagesRead)
	return inbox.Number(newest), inbox.Read(mark, reader(t)), mark, err
}

// reader returns the run of a task that reads.
func reader(t *v1alpha1.Task) inbox.Reader {
	return inbox.Reader{Run: t.Status.JobUID, Iteration: t.Status.Iteration}
}

// Show serves GET of inbox: the unread messages.
func (r *Mail) Show(ctx context.Context, p stored.Parent) (runtime.Object, error) {
	return r.open(ctx, p.Object, 0, false, true)
}

// Read serves POST of inbox: it returns the oldest unread messages and marks them as read, or marks those that the run has got before.
func (r *Mail) Read(ctx context.Context, p stored.Parent, obj runtime.Object) (runtime.Object, error) {
	b, ok := obj.(*v1alpha1.TaskInbox)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body must be a TaskInbox, not %T", obj))
	}
	if b.Spec.Through < 0 {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("spec.through: must not be negative, and is %d", b.Spec.Through))
	}
	t := p.Object
	families := []string{t.Name}
	if d := t.Status.Delegation; d != nil {
		families = append(families, d.Parent)
	}
	if want := b.Spec.ParentTask; want != "" && !slices.Contains(families, want) {
		return nil, apierrors.NewForbidden(v1alpha1.Resource("tasks/inbox"), t.Name, fmt.Errorf("spec.parentTask: %q is not the parent of a family of the task", want))
	}
	if err := r.Events.MayAppend(ctx, t, ""); err != nil {
		return nil, err
	}
	defer r.inboxes.lock([]*v1alpha1.Task{t})()
	return r.open(ctx, t, b.Spec.Through, b.Spec.MarkRead == nil || *b.Spec.MarkRead, p.DryRun)
}

// open returns the oldest unread messages. It marks them, or those up to a number, as read if mark is set and it is not a
// dry run.
func (r *Mail) open(ctx context.Context, t *v1alpha1.Task, through int64, mark, dryRun bool) (*v1alpha1.TaskInbox, error) {
	last, read, newest, err := r.state(ctx, t)
	if err != nil {
		return nil, err
	}
	out := &v1alpha1.TaskInbox{}
	out.Name, out.Namespace = t.Name, t.Namespace
	if through == 0 {
		if out.Status.Messages, err = r.unread(ctx, t, last, read, mark); err != nil {
			return nil, err
		}
		through = read + int64(len(out.Status.Messages))
	}
	if through = min(through, last); mark && through > read {
		e := inbox.Mark(newest, reader(t), through)
		e.AgentName = t.Status.AgentName
		if err := r.Events.Admit(ctx, t, e, dryRun); err != nil {
			return nil, err
		}
		if !dryRun {
			if _, err := r.Events.Write(ctx, t, []*v1alpha1.ExecutionEvent{e}); err != nil {
				return nil, err
			}
		}
		read = through
	}
	out.Status.Unread = last - read
	return out, nil
}

// unread returns the oldest messages after the number read, at most a page of them.
func (r *Mail) unread(ctx context.Context, t *v1alpha1.Task, last, read int64, marked bool) ([]v1alpha1.ReceivedMessage, error) {
	var all []v1alpha1.ReceivedMessage
	for after := int64(0); last > read && len(all) < inbox.Page; {
		page, err := r.Log.TaskPage(ctx, stored.Stream(t), after, 0, []v1alpha1.EventType{v1alpha1.EventTaskMessageReceived})
		if err != nil {
			return nil, err
		}
		for _, e := range page.Events {
			m := inbox.Of(e)
			if m.Number <= read || len(all) == inbox.Page {
				continue
			}
			m.Read = marked
			all = append(all, m)
		}
		if after = page.Next; after >= page.Latest {
			break
		}
	}
	return all, nil
}
