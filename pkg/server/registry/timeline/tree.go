// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/server/wellformed"
	"github.com/platform-ai/platform/pkg/sse"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// Tree is what a stream of a task and of everything below it depends on.
type Tree struct {
	// Allowed checks whether the caller may read the events of all tasks of the tree. It is called before events are sent
	// and with each heartbeat. Its error ends the stream.
	Allowed func(ctx context.Context) error
	// Leftover reports whether a task is below an earlier root of the same name.
	Leftover func(task types.UID) bool
	// Below returns the names of the tasks below the root that exist, by their UIDs.
	Below func() map[types.UID]string
}

// Trees returns the tree of which a task is the root. Errors are API errors.
type Trees func(ctx context.Context, namespace, name string) (*Tree, error)

// JoinTrees permits streams of whole trees. It must be called before the first request.
func (s *Server) JoinTrees(t Trees) { s.trees = t }

// wholeTree reports whether a request asks for the events of a task and of all tasks below it.
func (s *Server) wholeTree(req *http.Request) (bool, error) {
	v := wellformed.Query(req)
	if s.trees == nil || !v.Has("tree") {
		return false, nil
	}
	is, err := strconv.ParseBool(v.Get("tree"))
	switch {
	case err != nil:
		return false, apierrors.NewBadRequest(fmt.Sprintf("tree: %q: must be true or false", clip(v.Get("tree"))))
	case is && several(v):
		return false, apierrors.NewBadRequest("tree: cannot be combined with tasks or sessions")
	}
	return is, nil
}

// streamTree answers with the events of a task and of all tasks below it, in the order in which they were stored. Its frames
// are those of Stream, but their ids, and the position that a request names, are resource versions. It ends when the task
// and all tasks below it have ended. Events that are no longer kept are left out without a gap.
func (s *Server) streamTree(ctx context.Context, w http.ResponseWriter, t *Timeline, q *query, respond rest.Responder) {
	tree, err := s.trees(ctx, t.Namespace, t.Name)
	if err == nil {
		err = tree.Allowed(ctx)
	}
	if err != nil {
		respond.Error(err)
		return
	}
	q.beginAnew(int64(s.opts.Log.Revision()))
	r := &treeRun{run: run{server: s, timeline: t, query: q, last: q.after}, tree: tree}
	if over, err := r.over(ctx); err != nil || over {
		if err != nil {
			respond.Error(err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
		return
	}
	r.out = newSender(w, &s.opts)
	defer s.metrics.opened(t, q.after)()
	r.finish(ctx, r.serve(ctx))
}

// treeRun is the stream of a tree being served.
type treeRun struct {
	run
	tree   *Tree
	buffer []byte
}

// serve sends until something ends the stream, and returns the cause.
func (r *treeRun) serve(ctx context.Context) error {
	if err := r.begin(); err != nil {
		return err
	}
	for {
		terminal, err := r.ended(ctx) // before the events are read, so that the last ones are among them
		if err != nil {
			return err
		}
		revision, err := r.stored(ctx)
		if err == nil && terminal != "" {
			return r.complete(terminal)
		}
		if err == nil {
			err = r.follow(ctx, revision)
		}
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return err
		}
	}
}

// over reports whether a client that reconnects by itself has everything, and nothing can follow.
func (r *treeRun) over(ctx context.Context) (bool, error) {
	if !r.query.resumed {
		return false, nil
	}
	terminal, err := r.ended(ctx)
	if err != nil || terminal == "" {
		return false, err
	}
	p, err := r.page(ctx, 1)
	return err == nil && len(p.Items) == 0 && p.Continue == "", err
}

// ended returns how the task ended, if it and all tasks below it have ended and their last events are stored.
func (r *treeRun) ended(ctx context.Context) (v1alpha1.EventType, error) {
	head, err := r.server.opts.Log.Head(ctx, r.timeline.stream())
	if err != nil || !head.Closed || r.timeline.leaving(ctx) {
		return "", err
	}
	for uid, name := range r.tree.Below() {
		h, err := r.server.opts.Log.Head(ctx, eventlog.Stream{Namespace: r.timeline.Namespace, Task: name, UID: uid})
		if err != nil || !h.Closed {
			return "", err
		}
	}
	return head.Terminal, nil
}

// selected selects the events of the tree, of all types, because the end of a task must be noticed with any.
func (r *treeRun) selected() eventlog.Query {
	return eventlog.Query{Namespace: r.timeline.Namespace, Root: r.timeline.Name, Match: func(e *v1alpha1.ExecutionEvent) bool {
		// A root has its own name, so only the tasks below are looked up.
		return e.TaskName == e.RootTask || !slices.ContainsFunc(e.OwnerReferences, func(o metav1.OwnerReference) bool { return r.tree.Leftover(o.UID) })
	}}
}

// Bounds of what is read at a time.
const (
	treeEvents = 256
	treeBytes  = 1 << 20
)

// page reads stored events after the last one that was sent.
func (r *treeRun) page(ctx context.Context, limit int) (*eventlog.Page, error) {
	q := r.selected()
	q.From, q.Limit, q.Bytes = eventlog.Position{Revision: uint64(r.last) + 1}, limit, treeBytes
	return r.server.opts.Log.List(ctx, q)
}

// stored sends what is stored and returns the revision up to which it did.
func (r *treeRun) stored(ctx context.Context) (uint64, error) {
	for {
		p, err := r.page(ctx, treeEvents)
		if err != nil {
			return 0, err
		}
		for _, e := range p.Items {
			if err := r.add(e); err != nil {
				return 0, err
			}
		}
		if err := r.flush(ctx); err != nil || p.Continue == "" {
			return p.Revision, err
		}
	}
}

// follow sends what is stored after a revision, until the tree may have ended.
func (r *treeRun) follow(ctx context.Context, from uint64) error {
	in, err := r.server.opts.Log.Watch(ctx, r.selected(), from, eventlog.WatchOptions{SendInitialEvents: new(false)})
	if err != nil {
		return err
	}
	defer in.Stop()
	timer := r.server.opts.Clock.NewTimer(r.server.opts.Heartbeat)
	defer timer.Stop()
	for {
		look := false
		select {
		case e, ok := <-in.ResultChan():
			if look, err = r.take(ctx, in, e, ok); err != nil {
				return err
			}
		case <-timer.C():
			look = true // a task may have left the tree without an event
			if err := r.allowed(ctx); err != nil {
				return err
			}
			if err := r.out.send(sse.AppendComment(nil, "heartbeat")); err != nil {
				return err
			}
			timer.Reset(r.server.opts.Heartbeat)
		case <-ctx.Done():
			return ctx.Err()
		}
		if look {
			if terminal, err := r.ended(ctx); err != nil || terminal != "" {
				return err
			}
		}
	}
}

// take sends a change and those that are ready behind it. It reports whether a task may have ended.
func (r *treeRun) take(ctx context.Context, in watch.Interface, e watch.Event, ok bool) (ended bool, err error) {
	for n := 0; ; n++ {
		if !ok {
			return false, eventlog.ErrShutdown
		}
		switch got, isEvent := e.Object.(*v1alpha1.ExecutionEvent); {
		case e.Type == watch.Error:
			return false, apierrors.FromObject(e.Object)
		case e.Type == watch.Deleted:
			ended = true
		case isEvent:
			ended = ended || event.Terminal(got.Type)
			if err := r.add(got); err != nil {
				return false, err
			}
		}
		if n == treeEvents || len(r.buffer) >= sendAt {
			return ended, r.flush(ctx)
		}
		select {
		case e, ok = <-in.ResultChan():
		default:
			return ended, r.flush(ctx)
		}
	}
}

// add adds the frame of an event to those that will be sent, unless it was sent before or is of a type that is not wanted.
func (r *treeRun) add(e *v1alpha1.ExecutionEvent) error {
	at, err := strconv.ParseInt(e.ResourceVersion, 10, 64)
	if err != nil {
		return fmt.Errorf("event %s: resource version %q: %w", e.Name, e.ResourceVersion, err)
	}
	if at <= r.last {
		return nil
	}
	r.last = at
	if len(r.query.types) > 0 && !slices.Contains(r.query.types, e.Type) {
		return nil
	}
	r.buffer, err = appendFrame(r.buffer, event.FrameEvent, at, eventOf(e))
	return err
}

// flush sends what was added, if the caller may still have it.
func (r *treeRun) flush(ctx context.Context) error {
	if len(r.buffer) == 0 {
		return nil
	}
	if err := r.allowed(ctx); err != nil {
		return err
	}
	err := r.out.send(r.buffer)
	if r.buffer = r.buffer[:0]; cap(r.buffer) > 4*sendAt {
		r.buffer = nil
	}
	return err
}

// allowed checks whether the caller may still read the task and its tree.
func (r *treeRun) allowed(ctx context.Context) error {
	if err := r.timeline.allowed(ctx); err != nil {
		return err
	}
	return r.tree.Allowed(ctx)
}
