// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cancellation stops tasks with what they delegated, and separates tasks from their parents.
//
//   - A cancellation marks a task and all tasks below it in one commit, with an event for each (cancel.go). No event that begins work
//     is stored after the mark (event.Begins): the append is refused with 403. The worker then stops and the controller looks again.
//   - A deletion first cancels what is below (delete.go). The controller then deletes what the task owns, and removes the task after
//     that. With propagationPolicy Orphan the tasks below stay, with their events and results, but those that have not ended are
//     cancelled all the same. A task that is to go on is detached first.
//   - A detached task belongs to the tree's events and limits, but no longer to its parent: nobody waits for it, and no cancellation or
//     deletion from above reaches it, nor what it delegated (detach.go).
package cancellation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/refusal"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/tree"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/object"
)

// maxReason is the maximum length of the reason of a cancellation, in
// characters.
const maxReason = 1024

// messageOf returns the reason that a caller gave, without secrets, or the default if there is none.
func messageOf(reason, none string) (string, error) {
	if utf8.RuneCountInString(reason) > maxReason {
		return "", apierrors.NewBadRequest(fmt.Sprintf("reason: must be at most %d characters", maxReason))
	}
	clean, _ := redact.Text(reason)
	if message := strings.TrimSpace(clean); message != "" {
		return message, nil
	}
	return none, nil
}

// Cancellations marks tasks. All fields are required.
type Cancellations struct {
	Tasks stored.Tasks
	Log   *eventlog.Log
	Trees *tree.Trees
	Clock clock.PassiveClock
}

// Create serves POST of cancel: it asks the controller to stop the task and everything that it delegated. A repeated request changes nothing.
func (r Cancellations) Create(ctx context.Context, p stored.Parent, obj runtime.Object) (runtime.Object, error) {
	c, ok := obj.(*v1alpha1.TaskCancellation)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body must be a TaskCancellation, not %T", obj))
	}
	message, err := messageOf(c.Reason, "cancellation was requested")
	if err != nil {
		return nil, err
	}
	if t := p.Object; t.Status.Phase.Terminal() && !c.DescendantsOnly {
		return nil, refusal.Ended(t)
	}
	if p.DryRun {
		t := p.Object.DeepCopy()
		if !c.DescendantsOnly {
			r.request(t, message)
		}
		return t, nil
	}
	if err := r.cancelTree(ctx, p.Object, !c.DescendantsOnly, message); err != nil {
		return nil, err
	}
	return p.Reload(ctx)
}

// request marks one task.
func (r Cancellations) request(t *v1alpha1.Task, message string) {
	meta.SetStatusCondition(&t.Status.Conditions, metav1.Condition{
		Type:               v1alpha1.ConditionCancelRequested,
		Status:             metav1.ConditionTrue,
		Reason:             v1alpha1.ReasonCancelRequested,
		Message:            message,
		ObservedGeneration: t.Generation,
		LastTransitionTime: metav1.NewTime(r.Clock.Now()),
	})
}

// errUnmarked leaves a task of a tree as it is.
var errUnmarked = errors.New("nothing to mark")

// cancelTree marks a task, if itself is set, and all tasks below it that have not ended, in one commit, with an event
// for each. Children that are being created meanwhile are either marked, too, or refused.
func (r Cancellations) cancelTree(ctx context.Context, top *v1alpha1.Task, itself bool, message string) error {
	if !itself && !top.Status.HasChildren {
		return nil
	}
	ctx = request.WithNamespace(ctx, top.Namespace)
	root, _ := stored.Root(top)
	unlock, err := r.Trees.Cancelling(ctx, root)
	if err != nil {
		return err
	}
	defer unlock()
	for {
		names, err := r.marked(ctx, top, itself)
		if err != nil {
			return err
		}
		var parts []engine.Part
		for _, uid := range slices.Sorted(mapKeys(names)) {
			more, err := r.mark(ctx, names[uid], uid, uid == top.UID, message)
			if err != nil {
				return err
			}
			parts = append(parts, more...)
		}
		if len(parts) == 0 {
			return nil
		}
		err = r.Log.Commit(engine.Free, parts...) // each task is marked once, and its run may be what fills the disk
		switch {
		case err == nil:
			return nil
		case !object.IsConflict(err) || ctx.Err() != nil:
			return resource.StatusError(v1alpha1.Resource("tasks"), top.Name, err)
		}
	}
}

func mapKeys(m map[types.UID]string) func(func(types.UID) bool) {
	return func(yield func(types.UID) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// marked returns the names of the tasks that a cancellation concerns, by UID: without those that were detached, and
// without what these delegated.
func (r Cancellations) marked(ctx context.Context, top *v1alpha1.Task, itself bool) (map[types.UID]string, error) {
	names := map[types.UID]string{}
	now, err := r.Tasks.Get(ctx, top.Name)
	if err != nil {
		return nil, err
	}
	if now.UID != top.UID {
		return nil, refusal.Deleted(top)
	}
	if now.Status.HasChildren {
		if err := r.Trees.Known(ctx); err != nil {
			return nil, err
		}
		root, _ := stored.Root(top)
		names = r.Trees.Below(root, top.UID)
	}
	detached := map[types.UID]bool{}
	above := map[types.UID][]types.UID{}
	for uid, name := range names {
		t, err := r.Tasks.Get(ctx, name)
		switch {
		case apierrors.IsNotFound(err), err == nil && t.UID != uid:
			delete(names, uid)
		case err != nil:
			return nil, err
		default:
			detached[uid] = t.Status.Delegation.Detached
			above[uid] = t.Status.Delegation.Ancestors
		}
	}
	for uid, ancestors := range above {
		if detached[uid] || slices.ContainsFunc(ancestors, func(a types.UID) bool { return detached[a] }) {
			delete(names, uid)
		}
	}
	if itself {
		names[top.UID] = top.Name
	}
	return names, nil
}

// mark stages the mark of one task and its event.
func (r Cancellations) mark(ctx context.Context, name string, uid types.UID, top bool, message string) ([]engine.Part, error) {
	var marked *v1alpha1.Task
	part, err := r.Tasks.Stage(ctx, name, func(t *v1alpha1.Task) error {
		switch {
		case t.UID != uid:
			return errUnmarked
		case t.Status.Phase.Terminal() && top:
			return refusal.Ended(t)
		case t.Status.Phase.Terminal(), meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionCancelRequested):
			return errUnmarked
		}
		r.request(t, message)
		marked = t.DeepCopy()
		return nil
	})
	switch {
	case errors.Is(err, errUnmarked), storage.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	case part == nil:
		return nil, nil
	}
	e, err := r.Log.Stage(stored.Stream(marked), marking(marked, v1alpha1.ReasonCancelRequested, event.CancelKey, "cancellation was requested", message))
	if err != nil {
		return nil, err
	}
	return []engine.Part{part, e}, nil
}

// marking returns the event that the server records when it marks a task whose phase stays as it is.
func marking(t *v1alpha1.Task, reason, key, summary, message string) *v1alpha1.ExecutionEvent {
	e := event.New(v1alpha1.EventTaskPhaseChanged, v1alpha1.SeverityWarning, key, summary, map[string]any{
		"from": string(t.Status.Phase), "to": string(t.Status.Phase), "attempt": t.Status.Attempts, "reason": reason, "message": message,
	})
	e.TaskName, e.StreamType, e.StreamID, e.AgentName = t.Name, v1alpha1.StreamTask, t.Name, t.Status.AgentName
	return e
}
