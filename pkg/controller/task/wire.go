// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// wire is how the controller talks to the API, beyond the status patch.
type wire struct {
	client.Client
	// live reads from the server, never from a cache.
	live client.Reader
	// group speaks the subresources that a client.Client does not know.
	group rest.Interface
}

func newWire(cfg *rest.Config, c client.Client, live client.Reader) (*wire, error) {
	gc := newWireConfig(cfg)
	gc.NegotiatedSerializer = serializer.NewCodecFactory(c.Scheme()).WithoutConversion()
	gc.ContentConfig.ContentType = "application/json"
	group, err := rest.RESTClientFor(gc)
	if err != nil {
		return nil, fmt.Errorf("task client: %w", err)
	}
	return &wire{Client: c, live: live, group: group}, nil
}

// append adds events to the task's stream in one commit. Repeated events are
// recognised by their key. A closed stream is apierrors.IsConflict.
func (w *wire) append(ctx context.Context, t *v1alpha1.Task, events ...v1alpha1.ExecutionEvent) error {
	_, err := w.appendEvents(ctx, t, events...)
	return err
}

func (w *wire) appendEvents(ctx context.Context, t *v1alpha1.Task, events ...v1alpha1.ExecutionEvent) ([]v1alpha1.ExecutionEvent, error) {
	var stored v1alpha1.ExecutionEventList
	err := w.group.Post().Namespace(t.Namespace).Resource("tasks").Name(t.Name).SubResource("events").
		Body(&v1alpha1.ExecutionEventList{Items: events}).Do(ctx).Into(&stored)
	if err != nil {
		return nil, fmt.Errorf("append events: %w", err)
	}
	return stored.Items, nil
}

// terminalEvent appends events, of which the last is the terminal one, and
// returns the one that closed the stream, which is another where the stream was
// closed before. Without a stream to write to the proposal stands.
func (w *wire) terminalEvent(ctx context.Context, t *v1alpha1.Task, events ...v1alpha1.ExecutionEvent) (v1alpha1.ExecutionEvent, error) {
	terminal := events[len(events)-1]
	stored, err := w.appendEvents(ctx, t, events...)
	switch {
	case err == nil && len(stored) == len(events):
		return stored[len(stored)-1], nil
	case err == nil:
		return terminal, fmt.Errorf("append events: %d of %d stored", len(stored), len(events))
	case apierrors.IsConflict(err):
		return w.closedBy(ctx, t)
	case apierrors.IsGone(err), apierrors.IsNotFound(err):
		return terminal, nil
	default:
		return terminal, err
	}
}

// closedBy finds the event that closed the stream.
func (w *wire) closedBy(ctx context.Context, t *v1alpha1.Task) (v1alpha1.ExecutionEvent, error) {
	for _, typ := range []v1alpha1.EventType{v1alpha1.EventTaskSucceeded, v1alpha1.EventTaskFailed, v1alpha1.EventTaskCancelled} {
		var found *v1alpha1.ExecutionEvent
		err := w.eachEvent(ctx, t, typ, func(e *v1alpha1.ExecutionEvent) { found = e })
		if err != nil {
			return v1alpha1.ExecutionEvent{}, err
		}
		if found != nil {
			return *found, nil
		}
	}
	return v1alpha1.ExecutionEvent{}, errors.New("event stream is closed, but has no terminal event")
}

// eventPage is how many events are read at once.
const eventPage = 500

// eachEvent pages through the events of one type of a task, oldest first.
func (w *wire) eachEvent(ctx context.Context, t *v1alpha1.Task, typ v1alpha1.EventType, f func(*v1alpha1.ExecutionEvent)) error {
	opts := &client.ListOptions{Namespace: t.Namespace, Limit: eventPage}
	client.MatchingFields{"taskName": t.Name, "type": string(typ)}.ApplyToList(opts)
	for {
		var page v1alpha1.ExecutionEventList
		if err := w.live.List(ctx, &page, opts); err != nil {
			return fmt.Errorf("list %s events: %w", typ, err)
		}
		for i := range page.Items {
			f(&page.Items[i])
		}
		if page.Continue == "" {
			return nil
		}
		opts.Continue = page.Continue
	}
}

// usage sums the model events of a task.
func (w *wire) usage(ctx context.Context, t *v1alpha1.Task) (*v1alpha1.TaskUsage, error) {
	var sum usageSum
	for _, typ := range usageTypes() {
		if err := w.eachEvent(ctx, t, typ, sum.add); err != nil {
			return nil, err
		}
	}
	return sum.usage(), nil
}

// result is what the worker submitted, if it did.
func (w *wire) result(ctx context.Context, t *v1alpha1.Task) (text string, ok bool, err error) {
	var r v1alpha1.TaskResult
	err = w.SubResource("result").Get(ctx, t, &r)
	if apierrors.IsNotFound(err) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("result: %w", err)
	}
	return r.Result, true, nil
}

// hasResult tells whether the worker submitted a result.
func (w *wire) hasResult(ctx context.Context, t *v1alpha1.Task) (bool, error) {
	_, ok, err := w.result(ctx, t)
	return ok, err
}

// appendMessages adds to the transcript of a session, in one commit. Repeated
// messages are recognised by their id.
func (w *wire) appendMessages(ctx context.Context, s *v1alpha1.Session, messages []v1alpha1.SessionMessage) error {
	err := w.group.Post().Namespace(s.Namespace).Resource("sessions").Name(s.Name).SubResource("transcript").
		Body(&v1alpha1.SessionTranscript{Items: messages}).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("append messages: %w", err)
	}
	return nil
}

// fresh fails with a conflict when the cache lags behind the server. It is
// asked before what cannot be taken back.
func (w *wire) fresh(ctx context.Context, t *v1alpha1.Task) error {
	var now v1alpha1.Task
	if err := w.live.Get(ctx, client.ObjectKeyFromObject(t), &now); err != nil {
		return fmt.Errorf("task: %w", err)
	}
	if now.UID != t.UID || now.ResourceVersion != t.ResourceVersion {
		return apierrors.NewConflict(v1alpha1.Resource("tasks"), t.Name, errors.New("the task moved on"))
	}
	return nil
}

// changeMeta patches metadata only; the status in memory is left alone.
func (w *wire) changeMeta(ctx context.Context, t *v1alpha1.Task, change func(client.Object) bool) error {
	after := t.DeepCopy()
	if !change(after) {
		return nil
	}
	err := w.Patch(ctx, after, client.MergeFromWithOptions(t, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return fmt.Errorf("finalizer: %w", err)
	}
	t.ResourceVersion = after.ResourceVersion
	return nil
}

func (w *wire) addFinalizer(ctx context.Context, t *v1alpha1.Task) error {
	return w.changeMeta(ctx, t, func(o client.Object) bool { return controllerutil.AddFinalizer(o, v1alpha1.FinalizerCleanup) })
}

func (w *wire) dropFinalizer(ctx context.Context, t *v1alpha1.Task) error {
	err := w.changeMeta(ctx, t, func(o client.Object) bool { return controllerutil.RemoveFinalizer(o, v1alpha1.FinalizerCleanup) })
	return client.IgnoreNotFound(err)
}

// touchAgent notes when the task's Agent was last used.
func (w *wire) touchAgent(ctx context.Context, t *v1alpha1.Task, at metav1.Time) error {
	if t.Spec.AgentRef == nil {
		return nil
	}
	var a v1alpha1.Agent
	if err := w.Get(ctx, refKey(t.Namespace, t.Spec.AgentRef), &a); err != nil {
		return client.IgnoreNotFound(err)
	}
	if a.Status.LastUsed != nil && !a.Status.LastUsed.Before(&at) {
		return nil
	}
	before := a.DeepCopy()
	a.Status.LastUsed = &at
	if err := w.Status().Patch(ctx, &a, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("agent: %w", err)
	}
	return nil
}

// shows reports whether the cache holds the task in this version.
func (w *wire) shows(ctx context.Context, t *v1alpha1.Task) (bool, error) {
	var now v1alpha1.Task
	err := w.Get(ctx, client.ObjectKeyFromObject(t), &now, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("task: %w", err)
	}
	return now.UID == t.UID && now.ResourceVersion == t.ResourceVersion, nil
}

// children are the runs of a schedule.
func (w *wire) children(ctx context.Context, t *v1alpha1.Task) ([]v1alpha1.Task, error) {
	var tasks v1alpha1.TaskList
	err := w.List(ctx, &tasks, client.InNamespace(t.Namespace), client.MatchingLabels{
		v1alpha1.LabelParentTask: v1alpha1.LabelValue(t.Name), v1alpha1.LabelScheduledRun: "true",
	})
	if err != nil {
		return nil, fmt.Errorf("scheduled runs: %w", err)
	}
	own := tasks.Items[:0]
	for _, c := range tasks.Items {
		if metav1.IsControlledBy(&c, t) {
			own = append(own, c)
		}
	}
	return own, nil
}

// createChild is content with a run that is there already.
func (w *wire) createChild(ctx context.Context, t, child *v1alpha1.Task) error {
	if err := controllerutil.SetControllerReference(t, child, w.Scheme()); err != nil {
		return fmt.Errorf("scheduled run: %w", err)
	}
	err := w.Create(ctx, child)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("scheduled run: %w", err)
	}
	return nil
}

func (w *wire) remove(ctx context.Context, t *v1alpha1.Task) error {
	err := w.Delete(ctx, t, client.Preconditions{UID: new(t.UID)}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("old run %s: %w", t.Name, err)
	}
	return nil
}
