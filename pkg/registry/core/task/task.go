// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package task serves tasks and what belongs to them: events, result, log,
// artifacts and cancellation. What a task leaves is stored by its UID and goes
// with it.
package task

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"
	restclient "k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/registry/resource"
	"github.com/platform-ai/platform/pkg/registry/timeline"
	"github.com/platform-ai/platform/pkg/storage/blob"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// Options are what tasks need beside the object store. All are required, but
// Loopback, ExecutionWorkspaces and Retention.
type Options struct {
	// Log keeps the events of tasks.
	Log *eventlog.Log
	// Timelines answers pages and streams of events.
	Timelines *timeline.Server
	// Blobs keeps results, logs and artifacts.
	Blobs *blob.Store
	// Authorizer decides who may append controller-owned events.
	Authorizer authorizer.Authorizer
	// Clock times conditions, artifacts and the following of logs.
	Clock clock.Clock
	// Loopback is the server's client of itself, with which it acts for its callers. Without one tasks cannot be forked.
	Loopback *restclient.Config
	// ExecutionWorkspaces accepts tasks that ask for an external sandbox.
	ExecutionWorkspaces bool
	// Retention removes old events of ended tasks.
	Retention Retention
}

// Resource is the resource tasks. It is bound to the store when its Storage is
// built, once.
type Resource struct {
	resource.Resource
	log        *eventlog.Log
	timelines  *timeline.Server
	blobs      *blob.Store
	authorizer authorizer.Authorizer
	clock      clock.Clock
	loopback   *restclient.Config
	retention  Retention
	scheme     *runtime.Scheme

	mu    sync.Mutex // guards tasks
	tasks store      // nil until Storage was called
}

// store is what this package needs of the tasks' own storage.
type store interface {
	rest.Getter
	rest.Lister
	rest.Updater
}

var _ resource.Resource = (*Resource)(nil)

// rules are the validation rules of a server.
type rules struct {
	executionWorkspaces bool
}

// New makes the resource tasks.
func New(o Options) *Resource {
	r := &Resource{log: o.Log, timelines: o.Timelines, blobs: o.Blobs, authorizer: o.Authorizer, clock: o.Clock, loopback: o.Loopback, retention: o.Retention}
	v := rules{executionWorkspaces: o.ExecutionWorkspaces}
	r.Resource = &resource.Definition[*v1alpha1.Task]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("tasks"),
		Kind:       "Task",
		Singular:   "task",
		ShortNames: []string{"tk"},
		Categories: []string{"platform"},
		Fields:     fields(),
		Columns:    columns(),
		Shape: resource.Kept[*v1alpha1.Task]{
			Default:          setDefaults,
			PrepareForCreate: r.setRequester,
			PrepareForUpdate: keepRequester,
			Validate:         v.validate,
			ValidateUpdate:   validateUpdate,
			ValidateStatus:   validateStatus,
			ValidateName:     validateName,
			Warnings:         warnings,
			AfterDelete:      r.afterDelete,
		},
		Subresources: []resource.Subresource[*v1alpha1.Task]{
			{Name: "events", Methods: []string{http.MethodGet, http.MethodPost}, Connect: r.events, New: func() runtime.Object { return &v1alpha1.ExecutionEvent{} }},
			{Name: "stream", Methods: []string{http.MethodGet}, Connect: r.streamEvents},
			{Name: "trace", Methods: []string{http.MethodGet}, Connect: r.trace, New: func() runtime.Object { return &v1alpha1.TaskTrace{} }},
			{Name: "cancel", New: func() runtime.Object { return &v1alpha1.TaskCancellation{} }, Create: r.cancel},
			{Name: "fork", New: func() runtime.Object { return &v1alpha1.TaskFork{} }, Create: r.fork},
			{Name: "result", Methods: []string{http.MethodGet, http.MethodPost}, Connect: r.result, New: func() runtime.Object { return &v1alpha1.TaskResult{} }},
			{Name: "log", Methods: []string{http.MethodGet, http.MethodPost}, Connect: r.logs},
			{Name: "artifacts", Methods: []string{http.MethodGet, http.MethodPost}, Connect: r.artifacts, Subpath: true, New: func() runtime.Object { return &v1alpha1.TaskArtifactList{} }},
		},
	}
	return r
}

func fields() []resource.Field[*v1alpha1.Task] {
	return []resource.Field[*v1alpha1.Task]{
		{Path: "spec.type", Value: func(t *v1alpha1.Task) string { return string(t.Spec.Type) }},
		{Path: "spec.agentRef.name", Value: func(t *v1alpha1.Task) string {
			if t.Spec.AgentRef == nil {
				return ""
			}
			return t.Spec.AgentRef.Name
		}},
		{Path: "spec.sessionRef.name", Value: session},
		{Path: "status.phase", Value: func(t *v1alpha1.Task) string { return string(t.Status.Phase) }},
	}
}

// setDefaults fills in what depends on the type of the task; the rest are tags.
func setDefaults(t *v1alpha1.Task) {
	if w := t.Spec.Workspace; w != nil {
		w.Intent = effectiveIntent(&t.Spec)
	}
}

// warnings tell of what is accepted and will not do what one may expect.
func warnings(_ context.Context, t, old *v1alpha1.Task) []string {
	if old != nil {
		return nil
	}
	var w []string
	path := field.NewPath("spec", "env")
	for i, e := range t.Spec.Env {
		if len(e.Name) > len(reservedEnv) && e.Name[:len(reservedEnv)] == reservedEnv {
			w = append(w, fmt.Sprintf("%s: variables named %s* are set by the platform and win over this one", path.Index(i).Child("name"), reservedEnv))
		}
	}
	if t.Spec.Schedule == "" && t.Spec.Suspend {
		w = append(w, "spec.suspend: without a schedule it only stops the iterations of an autonomous agent")
	}
	return w
}

const reservedEnv = "PLATFORM_"

// Storage builds the storage and starts, under ctx, the search for what tasks
// have left that no longer exist.
func (r *Resource) Storage(ctx context.Context, c resource.Config) (map[string]rest.Storage, error) {
	r.scheme = c.Scheme
	paths, err := r.Resource.Storage(ctx, c)
	if err != nil {
		return nil, err
	}
	tasks, ok := paths["tasks"].(store)
	if !ok {
		return nil, fmt.Errorf("resource tasks: %T has no get, list and update", paths["tasks"])
	}
	r.mu.Lock()
	r.tasks = tasks
	r.mu.Unlock()
	go r.sweep(ctx) // ends with ctx
	if r.retention != (Retention{}) {
		go r.retain(ctx) // ends with ctx
	}
	return paths, nil
}

func (r *Resource) storage() (store, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tasks == nil {
		return nil, apierrors.NewServiceUnavailable("tasks are not served yet")
	}
	return r.tasks, nil
}

// get reads a task of the request's namespace from the store. Errors are API errors.
func (r *Resource) get(ctx context.Context, name string) (*v1alpha1.Task, error) {
	tasks, err := r.storage()
	if err != nil {
		return nil, err
	}
	obj, err := tasks.Get(ctx, name, &metav1.GetOptions{})
	if apierrors.IsNotFound(err) { // of the store it names the resource of the request
		return nil, apierrors.NewNotFound(v1alpha1.Resource("tasks"), name)
	}
	if err != nil {
		return nil, err
	}
	t, ok := obj.(*v1alpha1.Task)
	if !ok {
		return nil, apierrors.NewInternalError(fmt.Errorf("get of a task gave %T", obj))
	}
	return t, nil
}

// afterDelete removes what the task left. What a crash or a failure leaves
// behind here is found by the next sweep.
func (r *Resource) afterDelete(ctx context.Context, t *v1alpha1.Task) {
	defer r.timelines.Deleted(t.UID)
	if err := r.forget(ctx, stream(t)); err != nil {
		klog.FromContext(ctx).Error(err, "Content of a deleted task stays until the next start", "task", klog.KObj(t))
	}
}

func (r *Resource) forget(ctx context.Context, s eventlog.Stream) error {
	if err := r.log.DeleteStream(ctx, s); err != nil {
		return err
	}
	return r.blobs.Delete(ctx, s.UID)
}
