// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
)

// followTree prints the events of a task and of everything that it delegates, until all of it has ended. The error
// describes the end of the task at the top.
func followTree(ctx context.Context, api *server, term *terminal, task string, types []string, f format) error {
	c, namespace, err := api.client()
	if err != nil {
		return err
	}
	root, err := c.Tasks(namespace).Get(ctx, task, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if d := root.Status.Delegation; d != nil {
		return fmt.Errorf("task %s was delegated by a task of the tree of %s: follow that one with --tree, or this one without it", task, d.Root)
	}
	for _, t := range types {
		if !event.Known(v1alpha1.EventType(t)) {
			return fmt.Errorf("--type: %q is not an event type", t)
		}
	}
	lines := &timeline{terminal: term, out: term.Out, session: true}
	w := &treeWatch{clock: term.clock, client: c, root: root, ended: map[string]bool{}, print: func(e *v1alpha1.ExecutionEvent) error {
		if len(types) > 0 && !slices.Contains(types, string(e.Type)) {
			return nil
		}
		return printEvent(term, lines, e, f)
	}}
	if err := w.follow(ctx); err != nil {
		return err
	}
	return ended(task, w.last, w.why)
}

// treeWatch follows the events of a tree: a list of what is stored, and then one watch, which is opened again at the last
// revision when it is cut.
type treeWatch struct {
	clock  clock.Clock
	client typed.CoreV1alpha1Interface
	root   *v1alpha1.Task
	print  func(*v1alpha1.ExecutionEvent) error

	// revision is the position of the next watch; empty before the list was read, and after the server has forgotten it.
	revision string
	printed  uint64          // the revision of the last event that was printed
	ended    map[string]bool // the tasks whose last event was printed
	last     v1alpha1.EventType
	why      string
	changed  bool // whether anything may have ended since the last look at the tasks
}

// errTreeEnded ends a watch whose tree has ended.
var errTreeEnded = errors.New("the tree has ended")

func (w *treeWatch) follow(ctx context.Context) error {
	err := persist(ctx, w.clock, func() int64 { return int64(w.printed) }, func(ctx context.Context) error {
		err := w.once(ctx)
		switch {
		case errors.Is(err, errTreeEnded):
			return nil
		case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
			w.revision = "" // what was printed is skipped when it is listed again
			return errCut
		}
		return err
	})
	return lost(err, "the watch of the tree of "+w.root.Name)
}

// once lists what is stored, if that was not done, and watches until the tree has ended or the watch is cut.
func (w *treeWatch) once(ctx context.Context) error {
	if w.revision == "" {
		if err := w.list(ctx); err != nil {
			return err
		}
	}
	if err := w.look(ctx); err != nil {
		return err
	}
	o := w.options()
	o.ResourceVersion, o.AllowWatchBookmarks = w.revision, true
	in, err := w.client.ExecutionEvents(w.root.Namespace).Watch(ctx, o)
	if err != nil {
		return err
	}
	defer in.Stop()
	for e := range in.ResultChan() {
		if err := w.take(ctx, e); err != nil {
			return err
		}
	}
	return errCut
}

func (w *treeWatch) options() metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: "rootTask=" + w.root.Name}
}

// list prints what is stored, in pages.
func (w *treeWatch) list(ctx context.Context) error {
	for o := w.options(); ; {
		o.Limit = pageSize
		page, err := w.client.ExecutionEvents(w.root.Namespace).List(ctx, o)
		if err != nil {
			return err
		}
		for i := range page.Items {
			if err := w.show(&page.Items[i]); err != nil {
				return err
			}
		}
		if o.Continue = page.Continue; o.Continue == "" {
			w.revision, w.changed = page.ResourceVersion, true
			return nil
		}
	}
}

// take handles what the watch sent.
func (w *treeWatch) take(ctx context.Context, e watch.Event) error {
	if e.Type == watch.Error {
		return apierrors.FromObject(e.Object)
	}
	got, ok := e.Object.(*v1alpha1.ExecutionEvent)
	if !ok {
		return nil
	}
	switch e.Type {
	case watch.Added:
		if err := w.show(got); err != nil {
			return err
		}
	case watch.Bookmark, watch.Deleted: // a task that was removed ends with its events
		w.changed = true
	}
	w.revision = got.ResourceVersion
	return w.look(ctx)
}

// show prints an event once and notes what it ends.
func (w *treeWatch) show(e *v1alpha1.ExecutionEvent) error {
	revision, err := strconv.ParseUint(e.ResourceVersion, 10, 64)
	if err != nil {
		return &outcome{codeError, fmt.Sprintf("the server sent an event with the resource version %q", e.ResourceVersion)}
	}
	if revision <= w.printed {
		return nil
	}
	w.printed = revision
	switch e.Type {
	case v1alpha1.EventTaskSucceeded, v1alpha1.EventTaskFailed, v1alpha1.EventTaskCancelled:
		w.ended[e.TaskName], w.changed = true, true
		if e.TaskName == w.root.Name {
			w.last, w.why = e.Type, clean(e.Summary)
		}
	}
	if err := w.print(e); err != nil {
		return &outcome{codeError, err.Error()}
	}
	return nil
}

// look returns errTreeEnded if the task at the top has ended, or is gone, and the last events of all tasks of the tree
// were printed. It reads the tasks only if that may have become true.
func (w *treeWatch) look(ctx context.Context) error {
	if !w.changed {
		return nil
	}
	if !w.ended[w.root.Name] {
		now, err := w.client.Tasks(w.root.Namespace).Get(ctx, w.root.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), err == nil && now.UID != w.root.UID:
			w.last, w.ended[w.root.Name] = event.TaskDeleted, true
		case err != nil:
			return err
		default:
			w.changed = false
			return nil
		}
	}
	tasks, err := tasksOfTree(ctx, w.client, w.root)
	if err != nil {
		return err
	}
	w.changed = false
	if slices.ContainsFunc(tasks, func(t v1alpha1.Task) bool { return !w.ended[t.Name] }) {
		return nil
	}
	return errTreeEnded
}
