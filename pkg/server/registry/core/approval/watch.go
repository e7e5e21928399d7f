// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	utilflowcontrol "k8s.io/apiserver/pkg/util/flowcontrol"
	"k8s.io/utils/lru"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

const (
	// watchBuffer is the number of events that a watch buffers.
	watchBuffer = 100
	// maxStates bounds the number of streams whose approvals a watch keeps in
	// memory. Those of any other stream are read again when an event arrives
	// there.
	maxStates = 64
)

// watch follows the events of approvals. To find what an event changes, it uses
// the state of its stream just before the event. Therefore a watch can resume
// from any revision that the log still has, and needs memory only for the
// streams in use.
func (v *view) watch(ctx context.Context, o *internalversion.ListOptions) (watch.Interface, error) {
	from, err := resource.Revision(o.ResourceVersion)
	if err != nil {
		return nil, err
	}
	s := v.newSelection(request.NamespaceValue(ctx), o)
	q, err := v.query(ctx, s)
	if err != nil {
		return nil, err
	}
	w := &watcher{view: v, selection: s, states: lru.New(maxStates), result: make(chan watch.Event, watchBuffer)}
	var initial []watch.Event
	if state := o.SendInitialEvents; state != nil && *state || state == nil && from == 0 {
		if initial, from, err = v.initial(ctx, q, from, s); err != nil {
			return nil, err
		}
		if state != nil && o.AllowWatchBookmarks {
			b := bookmark(strconv.FormatUint(from, 10))
			b.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
			initial = append(initial, watch.Event{Type: watch.Bookmark, Object: b})
		}
	}
	q.Types = approval.EventTypes()
	ctx, w.cancel = context.WithCancel(ctx)
	w.events, err = v.log.Watch(ctx, q, from, eventlog.WatchOptions{SendInitialEvents: new(bool), AllowBookmarks: o.AllowWatchBookmarks})
	if err != nil {
		w.cancel()
		return nil, resource.PositionError(err)
	}
	go w.run(ctx, initial) // ends with ctx, Stop or the log
	utilflowcontrol.WatchInitialized(ctx)
	return w, nil
}

// initial returns the state at or after a revision as events, and the revision
// of that state.
func (v *view) initial(ctx context.Context, q eventlog.Query, from uint64, s *selection) ([]watch.Event, uint64, error) {
	q.Revision, q.NotOlderThan = from, true
	state, rev, err := v.fold(ctx, q)
	if err != nil {
		return nil, 0, resource.PositionError(err)
	}
	var list []watch.Event
	state.Each(func(a *v1alpha1.Approval, _ string) {
		if s.takes(a) {
			v.remember(a)
			list = append(list, watch.Event{Type: watch.Added, Object: shallow(a)})
		}
	})
	return list, rev, nil
}

// watcher is one watch: a goroutine that reads a watch of the log and writes to
// a channel.
type watcher struct {
	view      *view
	selection *selection
	events    watch.Interface
	states    *lru.Cache // approvals by the UID of their stream
	result    chan watch.Event
	cancel    context.CancelFunc
	once      sync.Once
}

var _ watch.Interface = (*watcher)(nil)

// Stop ends the watch. The channel is closed soon after.
func (w *watcher) Stop() { w.once.Do(w.cancel) }

// ResultChan returns the channel of events.
func (w *watcher) ResultChan() <-chan watch.Event { return w.result }

func (w *watcher) run(ctx context.Context, initial []watch.Event) {
	defer close(w.result)
	defer w.events.Stop()
	defer w.cancel()
	for _, e := range initial {
		if !w.put(ctx, e) {
			return
		}
	}
	for e := range w.events.ResultChan() {
		out, err := w.translate(ctx, e)
		if err != nil {
			out = &watch.Event{Type: watch.Error, Object: status(err)}
		}
		if out != nil && !w.put(ctx, *out) || err != nil {
			return
		}
	}
}

func (w *watcher) put(ctx context.Context, e watch.Event) bool {
	select {
	case w.result <- e:
		return true
	case <-ctx.Done():
		return false
	}
}

// translate turns an event of the log into an event for a watcher of approvals;
// nil if it changes nothing that the watcher selects.
func (w *watcher) translate(ctx context.Context, in watch.Event) (*watch.Event, error) {
	e, ok := in.Object.(*v1alpha1.ExecutionEvent)
	if !ok {
		return &in, nil // an error
	}
	if in.Type == watch.Bookmark {
		return &watch.Event{Type: watch.Bookmark, Object: bookmark(e.ResourceVersion)}, nil
	}
	id := approval.IDOf(e)
	if id == "" || w.selection.name != "" && id != w.selection.name {
		return nil, nil //nolint:nilnil // nothing to tell, which is no error
	}
	state, err := w.stateBefore(ctx, e)
	if err != nil {
		return nil, err
	}
	apply := state.Apply
	if in.Type == watch.Deleted {
		apply = state.Remove
	}
	before, after := apply(e)
	return w.change(before, after, e.ResourceVersion), nil
}

// stateBefore returns the approvals of the event's stream just before the
// event.
func (w *watcher) stateBefore(ctx context.Context, e *v1alpha1.ExecutionEvent) (*approval.State, error) {
	uid := streamUID(e)
	if s, ok := w.states.Get(uid); ok {
		return s.(*approval.State), nil //nolint:forcetypeassert // only states are put in
	}
	state := &approval.State{}
	if before := number(e.ResourceVersion) - 1; before > 0 {
		var err error
		state, _, err = w.view.fold(ctx, eventlog.Query{
			Namespace: e.Namespace, Task: e.TaskName, Revision: before,
			Match: func(o *v1alpha1.ExecutionEvent) bool { return streamUID(o) == uid },
		})
		if err != nil {
			return nil, err
		}
	}
	w.states.Add(uid, state)
	return state, nil
}

func streamUID(e *v1alpha1.ExecutionEvent) types.UID {
	if len(e.OwnerReferences) == 0 {
		return ""
	}
	return e.OwnerReferences[0].UID
}

// change returns the event to send to the watcher, if any. When an approval
// leaves the selection, the event carries its last state within the selection
// and the revision at which it left.
func (w *watcher) change(before, after *v1alpha1.Approval, revision string) *watch.Event {
	was, is := w.selection.takes(before), w.selection.takes(after)
	switch {
	case is:
		w.view.remember(after)
		if !was {
			return &watch.Event{Type: watch.Added, Object: shallow(after)}
		}
		if before != after {
			return &watch.Event{Type: watch.Modified, Object: shallow(after)}
		}
	case was:
		a := shallow(before)
		a.ResourceVersion = revision
		return &watch.Event{Type: watch.Deleted, Object: a}
	}
	return nil
}

// shallow returns a copy whose kind can be set, because the original is shared.
func shallow(a *v1alpha1.Approval) *v1alpha1.Approval {
	c := *a
	return &c
}

func bookmark(revision string) *v1alpha1.Approval {
	return &v1alpha1.Approval{ObjectMeta: metav1.ObjectMeta{ResourceVersion: revision}}
}

// status returns the object of an ERROR event.
func status(err error) *metav1.Status {
	var s apierrors.APIStatus
	if !errors.As(resource.PositionError(err), &s) {
		s = apierrors.NewInternalError(err)
	}
	out := s.Status()
	if out.Code == 0 {
		out.Code = http.StatusInternalServerError
	}
	return &out
}
