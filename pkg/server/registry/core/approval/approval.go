// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package approval serves approvals: requests for what agents may do only after a person has
// agreed. They are a view of the event log. Lists and watches read only the events of approvals,
// which the log finds by type, so their cost does not grow with the length of the streams. A list
// of one task reads the approval events of that task; a list of a namespace reads those of the
// namespace. A list with a limit reads only those of its page: the requests and, by their de-duplication keys, the decisions and
// outcomes of these alone (page.go). That also holds for the pending approvals of a namespace, because the package remembers where
// their requests are (waiting.go). Any further selector costs one read for each request that it leaves out; of pending ones, as
// of one tree, these are few.
// To find a single approval by its id, the package remembers ids that it has seen; for another id it goes through the requests of
// the namespace.
package approval

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// Tasks is what approvals need from tasks, in the namespace of the request. Errors are API errors.
type Tasks interface {
	// Get reads a task.
	Get(ctx context.Context, name string) (*v1alpha1.Task, error)
	// Decide appends an event that decides an approval, unless it has been decided already.
	Decide(ctx context.Context, t *v1alpha1.Task, e *v1alpha1.ExecutionEvent) error
	// Annotate changes the annotations of a task and nothing else.
	Annotate(ctx context.Context, t *v1alpha1.Task, change func(annotations map[string]string)) error
	// IsLeftover reports whether a task belongs to a tree whose root is gone while another task has the root's name.
	IsLeftover(task types.UID) bool
	// RootUID returns the UID of the root of the tree of a delegated task; empty if it is not known.
	RootUID(task types.UID) types.UID
}

// Options are what approvals need. All fields are required.
type Options struct {
	Log   *eventlog.Log
	Tasks Tasks
	// Tool reads a Tool of the request's namespace.
	Tool func(ctx context.Context, name string) (*v1alpha1.Tool, error)
	// Clock is used to determine which approvals have expired.
	Clock clock.PassiveClock
	// Guard limits workers to the approvals of their tasks.
	Guard resource.Guard[*v1alpha1.Approval]
}

// Definition returns the resource approvals.
func Definition(o Options) resource.Resource {
	v := &view{log: o.Log, tasks: o.Tasks, tool: o.Tool, clock: o.Clock, places: lru.New(maxPlaces), waiting: newWaiting()}
	return &resource.Definition[*v1alpha1.Approval]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("approvals"),
		Kind:       "Approval",
		Singular:   "approval",
		Roles:      resource.Roles{Readers: resource.Users(resource.Approver, resource.Worker)},
		Scopes:     &external.Scopes{Read: "tasks:get", Write: "tasks:update"},
		ShortNames: []string{"apr"},
		Categories: []string{"platform"},
		Fields: []resource.Field[*v1alpha1.Approval]{
			{Path: fieldTask, Value: func(a *v1alpha1.Approval) string { return a.Spec.TaskName }},
			{Path: fieldTaskUID, Value: func(a *v1alpha1.Approval) string { return string(a.Spec.TaskUID) }},
			{Path: fieldRoot, Value: func(a *v1alpha1.Approval) string { return a.Spec.RootTask }},
			{Path: fieldRootUID, Value: func(a *v1alpha1.Approval) string { return string(a.Spec.RootTaskUID) }},
			{Path: fieldTaskName, Value: func(a *v1alpha1.Approval) string { return a.Spec.TaskName }},
			{Path: fieldRootTask, Value: func(a *v1alpha1.Approval) string { return a.Spec.RootTask }},
			{Path: fieldTool, Value: func(a *v1alpha1.Approval) string { return a.Spec.TargetTool }},
			{Path: fieldDigest, Value: func(a *v1alpha1.Approval) string { return a.Spec.TargetArgsDigest }},
			{Path: fieldState, Value: func(a *v1alpha1.Approval) string { return string(a.Status.State) }},
		},
		Columns: columns(o.Clock),
		Guard:   o.Guard,
		Shape:   resource.View[*v1alpha1.Approval]{Get: v.get, List: v.list, Watch: v.watch},
		Subresources: []resource.Subresource[*v1alpha1.Approval]{{
			Name:     "decision",
			Creators: []resource.Role{resource.Approver},
			New:      func() runtime.Object { return &v1alpha1.ApprovalDecision{} },
			Prepare:  prepare,
			Create:   v.decide,
		}},
	}
}

const (
	// maxPlaces bounds the cache of which task has an approval, at about 200 bytes an entry.
	maxPlaces = 1 << 14
	// chunk is the number of events read at a time.
	chunk = 2048
)

type view struct {
	log   *eventlog.Log
	tasks Tasks
	tool  func(ctx context.Context, name string) (*v1alpha1.Tool, error)
	clock clock.PassiveClock
	// places caches the name of the task that has an approval. An entry is only a hint and is
	// always verified.
	places *lru.Cache
	// waiting finds the pending approvals of a namespace.
	waiting *waiting
}

// place identifies an approval in a namespace.
type place struct{ namespace, id string }

func (v *view) get(ctx context.Context, name string) (*v1alpha1.Approval, error) {
	namespace := request.NamespaceValue(ctx)
	task, err := v.find(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	if task == "" {
		return nil, notFound(name)
	}
	state, _, err := v.fold(ctx, eventlog.Query{Namespace: namespace, Task: task})
	if err != nil {
		return nil, resource.PositionError(err)
	}
	if a := state.Get(namespace, name); a != nil {
		return a, nil
	}
	return nil, notFound(name)
}

func notFound(name string) error { return apierrors.NewNotFound(v1alpha1.Resource("approvals"), name) }

// find returns the name of the task that has an approval; empty if there is none.
func (v *view) find(ctx context.Context, namespace, id string) (string, error) {
	if task, ok := v.places.Get(place{namespace, id}); ok {
		return task.(string), nil //nolint:forcetypeassert // only names are put in
	}
	q := eventlog.Query{
		Namespace: namespace, Types: []v1alpha1.EventType{v1alpha1.EventApprovalRequested}, Limit: 1,
		Match: func(e *v1alpha1.ExecutionEvent) bool { return e.DedupKey == approval.RequestKey(id) },
	}
	for {
		page, err := v.log.List(ctx, q)
		if err != nil {
			return "", resource.PositionError(err)
		}
		if len(page.Items) > 0 {
			task := page.Items[0].TaskName
			v.places.Add(place{namespace, id}, task)
			return task, nil
		}
		if page.Continue == "" {
			return "", nil
		}
		q.Continue = page.Continue
	}
}

// remember records which task has the approval.
func (v *view) remember(a *v1alpha1.Approval) {
	v.places.Add(place{a.Namespace, a.Name}, a.Spec.TaskName)
}

// fold computes the approvals of the events that q selects, and returns the revision of that state.
func (v *view) fold(ctx context.Context, q eventlog.Query) (*approval.State, uint64, error) {
	q.Types, q.Limit = approval.EventTypes(), chunk
	state := &approval.State{}
	for {
		page, err := v.log.List(ctx, q)
		if err != nil {
			return nil, 0, fmt.Errorf("approvals: %w", err)
		}
		for _, e := range page.Items {
			state.Apply(e)
		}
		if page.Continue == "" {
			return state, page.Revision, nil
		}
		q.Continue = page.Continue
	}
}
