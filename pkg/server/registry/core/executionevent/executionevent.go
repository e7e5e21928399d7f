// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package executionevent serves execution events, the ledger of what tasks did,
// directly from the event log.
package executionevent

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	utilflowcontrol "k8s.io/apiserver/pkg/util/flowcontrol"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// Append appends events to the stream of a task in the request's namespace, by
// the same rules as a create of tasks/events. Errors are API errors.
type Append func(ctx context.Context, task string, events ...*v1alpha1.ExecutionEvent) ([]*v1alpha1.ExecutionEvent, error)

// Definition returns the resource executionevents, served from log.
func Definition(log *eventlog.Log, add Append, leftover Leftover, guard resource.Guard[*v1alpha1.ExecutionEvent]) resource.Resource {
	l := ledger{log: log, add: add, leftover: leftover}
	return &resource.Definition[*v1alpha1.ExecutionEvent]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("executionevents"),
		Kind:       "ExecutionEvent",
		Singular:   "executionevent",
		Roles:      resource.Roles{Readers: resource.Users(resource.Approver, resource.Worker)},
		Scopes:     &external.Scopes{Read: "tasks:get", Write: "tasks:update"},
		ShortNames: []string{"ee", "eev"},
		Categories: []string{}, // kubectl get platform would list all of them
		Fields: []resource.Field[*v1alpha1.ExecutionEvent]{
			{Path: fieldTask, Value: func(e *v1alpha1.ExecutionEvent) string { return e.TaskName }},
			{Path: fieldSession, Value: func(e *v1alpha1.ExecutionEvent) string { return e.SessionName }},
			{Path: fieldRoot, Value: func(e *v1alpha1.ExecutionEvent) string { return e.RootTask }},
			{Path: fieldType, Value: func(e *v1alpha1.ExecutionEvent) string { return string(e.Type) }},
			{Path: fieldSeverity, Value: func(e *v1alpha1.ExecutionEvent) string { return string(e.Severity) }},
		},
		Columns: columns(),
		Guard:   guard,
		Shape: resource.Ledger[*v1alpha1.ExecutionEvent]{
			Create:  l.create,
			Refused: func(e *v1alpha1.ExecutionEvent) { log.Refused(e) },
			Get:     l.get,
			List:    l.list,
			Watch:   l.watch,
		},
	}
}

// pageBytes bounds a page of events, which may have fewer of them than its client asked for. wholeBytes bounds a list without a
// limit, whose client may not expect a part of it.
const pageBytes, wholeBytes = 16 << 20, 64 << 20

type ledger struct {
	log      *eventlog.Log
	add      Append
	leftover Leftover
}

func (l ledger) create(ctx context.Context, e *v1alpha1.ExecutionEvent) (*v1alpha1.ExecutionEvent, error) {
	if e.TaskName == "" {
		l.log.Refused(e)
		return nil, apierrors.NewBadRequest("taskName: is required")
	}
	stored, err := l.add(ctx, e.TaskName, e)
	if err != nil {
		return nil, err
	}
	return stored[0], nil
}

func (l ledger) get(ctx context.Context, name string) (*v1alpha1.ExecutionEvent, error) {
	e, err := l.log.Get(ctx, request.NamespaceValue(ctx), name)
	if errors.Is(err, event.ErrName) || errors.Is(err, eventlog.ErrNotFound) {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("executionevents"), name)
	}
	return e, err
}

func (l ledger) list(ctx context.Context, o *internalversion.ListOptions) (runtime.Object, error) {
	q := query(request.NamespaceValue(ctx), o, l.leftover)
	if err := resource.At(&q, o); err != nil {
		return nil, err
	}
	q.Continue, q.Limit, q.Bytes = o.Continue, int(o.Limit), pageBytes
	if q.Limit == 0 {
		q.Bytes = wholeBytes
	}
	page, err := l.log.List(ctx, q)
	if err != nil {
		return nil, resource.PositionError(err)
	}
	if q.Limit == 0 && page.Continue != "" {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("limit: is required, because these events take more than %d MiB; a page of 500 says in metadata.continue where to go on", wholeBytes>>20))
	}
	list := &v1alpha1.ExecutionEventList{
		ListMeta: metav1.ListMeta{
			ResourceVersion:    strconv.FormatUint(page.Revision, 10),
			Continue:           page.Continue,
			RemainingItemCount: page.Remaining,
		},
		Items: make([]v1alpha1.ExecutionEvent, len(page.Items)),
	}
	for i, e := range page.Items {
		list.Items[i] = *e
	}
	return list, nil
}

func (l ledger) watch(ctx context.Context, o *internalversion.ListOptions) (watch.Interface, error) {
	rev, err := resource.Revision(o.ResourceVersion)
	if err != nil {
		return nil, err
	}
	w, err := l.log.Watch(ctx, query(request.NamespaceValue(ctx), o, l.leftover), rev, eventlog.WatchOptions{
		SendInitialEvents: o.SendInitialEvents,
		AllowBookmarks:    o.AllowWatchBookmarks,
	})
	if err != nil {
		return nil, resource.PositionError(err)
	}
	utilflowcontrol.WatchInitialized(ctx) // otherwise priority and fairness would keep the watch's seat
	return w, nil
}
