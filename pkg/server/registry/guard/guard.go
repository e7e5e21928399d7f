// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package guard limits each worker to what its run needs. RBAC cannot express this limit: all workers of a namespace
// share one role, which covers all objects of the namespace. Therefore each resource of the group has a guard from
// this package: the one in its Definition, or else one that keeps all workers out.
//
// A worker is a caller whose credential names a task, or a service account of workers. The task is named in the
// user's extras: the standalone host puts them into its tokens, and auth/worker establishes them in a cluster. A
// worker's service account without such a credential may do nothing at all.
//
// A worker may read its own task, the tasks that its task delegated, its session, and the agent, providers, tools and
// skills that its task and agent name. These are derived anew from the stored objects for each request, so a worker
// cannot widen its own access. It may append events, result, log, artifacts, a plan and messages to its own task. It may
// create tasks that its own task controls, cancel and detach these, create agents (plan.CheckMade) and delete its own ones,
// propose and search memories, and ask for verdicts about calls of tools. Everything else is refused, including resources
// and verbs that are added later. Lists and watches must be narrowed by a selector to what the worker may see, so that
// they cost no more than that, and so that resource versions and bookmarks keep their usual meaning.
//
// All of these permissions end with the run: when the task ends, or when the attempt that the credential is for is
// over. Open watches then deliver nothing more.
//
// Around the guards of tasks and approvals is that of gateways (Gateways), which asks REST callers for rights on the gateway whose event a
// task answers.
package guard

import (
	"context"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// Workers makes the guards. The funcs read from the store, in the namespace of the context. Their errors are API
// errors.
type Workers struct {
	Task    func(ctx context.Context, name string) (*v1alpha1.Task, error)
	Agent   func(ctx context.Context, name string) (*v1alpha1.Agent, error)
	Session func(ctx context.Context, name string) (*v1alpha1.Session, error)
}

// run identifies the run that a worker's credential is for.
type run struct {
	namespace, name string
	uid             types.UID
	// id is status.jobUID of the task at the time the credential was made. It is nil for a credential from before
	// credentials named their run; such a credential is valid for whichever attempt is running.
	id *string
}

// IsWorker reports whether the user's credential is for a task, or the user is an account of workers.
func IsWorker(u user.Info) bool {
	if u == nil {
		return false
	}
	for _, key := range extras() {
		if _, ok := u.GetExtra()[key]; ok {
			return true
		}
	}
	_, name, err := serviceaccount.SplitUsername(u.GetName())
	return err == nil && isAccount(name)
}

func extras() []string {
	return []string{v1alpha1.ExtraTaskNamespace, v1alpha1.ExtraTaskName, v1alpha1.ExtraTaskUID, v1alpha1.ExtraTaskRun}
}

func isAccount(name string) bool {
	switch name {
	case v1alpha1.ServiceAccountAIWorker, v1alpha1.ServiceAccountAgentWorker, v1alpha1.ServiceAccountContainerWorker:
		return true
	}
	return false
}

// runOf returns the run that the user's credential is for. An extra that does not have exactly one value counts as
// absent.
func runOf(u user.Info) run {
	one := func(key string) string {
		if v := u.GetExtra()[key]; len(v) == 1 {
			return v[0]
		}
		return ""
	}
	r := run{namespace: one(v1alpha1.ExtraTaskNamespace), name: one(v1alpha1.ExtraTaskName), uid: types.UID(one(v1alpha1.ExtraTaskUID))}
	if _, ok := u.GetExtra()[v1alpha1.ExtraTaskRun]; ok {
		r.id = new(one(v1alpha1.ExtraTaskRun))
	}
	return r
}

// over returns why the credential is no longer valid, given the current state of the task; empty if it is still
// valid.
func (r run) over(t *v1alpha1.Task) string {
	s := &t.Status
	switch {
	case t.UID != r.uid:
		return "the task of the caller's credential is gone"
	case s.Phase.Terminal():
		return "the task of the caller's credential has ended"
	case r.id == nil && s.Phase != v1alpha1.TaskRunning && s.Phase != v1alpha1.TaskFinalizing:
		return "the task of the caller's credential has no run"
	case r.id != nil && (*r.id == "" || *r.id != string(s.JobUID)):
		return "the run of the caller's credential is over"
	}
	return ""
}

// scope is what a worker may access: everything is derived from its own task.
type scope struct {
	w    *Workers
	run  run
	task *v1alpha1.Task
}

var errNoTask = errors.New("the caller is a worker whose credential names no task")

// scope returns the caller's scope. own may be the caller's task, which saves reading it. A refusal is not yet an API
// error.
func (w *Workers) scope(ctx context.Context, own *v1alpha1.Task) (*scope, error) {
	u, ok := request.UserFrom(ctx)
	if !ok {
		return nil, errors.New("the caller is not known")
	}
	s := &scope{w: w, run: runOf(u), task: own}
	if s.run.namespace == "" || s.run.name == "" || s.run.uid == "" {
		return nil, errNoTask
	}
	if own == nil || own.UID != s.run.uid {
		var err error
		s.task, err = w.Task(request.WithNamespace(ctx, s.run.namespace), s.run.name)
		if apierrors.IsNotFound(err) {
			return nil, errors.New("the task of the caller's credential is gone")
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// owns reports whether t is the worker's task.
func (s *scope) owns(t *v1alpha1.Task) bool { return t.UID == s.run.uid }

// reaches reports whether t is the worker's task or one that it delegated. An owner reference alone proves nothing,
// because whoever creates tasks writes it.
func (s *scope) reaches(t *v1alpha1.Task) bool {
	d := t.Status.Delegation
	return s.owns(t) || t.Namespace == s.run.namespace && d != nil && d.ParentUID == s.run.uid
}

// follows reports whether the worker's task begins with what t changed. The server has recorded that.
func (s *scope) follows(t *v1alpha1.Task) bool {
	prior := s.task.Status.PriorTaskUID
	return prior != "" && prior == t.UID && t.Namespace == s.run.namespace
}

// rule decides about one resource for a worker with a scope. A nil error means allowed.
type rule[T resource.Object] struct {
	w        *Workers
	resource schema.GroupResource
	// task returns the object as a task; only the guard of tasks sets it.
	task func(T) *v1alpha1.Task
	// object decides on one object.
	object func(ctx context.Context, s *scope, a resource.Access, obj T) error
	// narrow returns which objects of a list or watch are seen, or an error that says why the request is refused.
	narrow func(ctx context.Context, s *scope, a resource.Access, o *metainternalversion.ListOptions) (func(T) bool, error)
	// late reports whether a request about an ended task is left to the event log to decide, as it is for all other
	// callers.
	late func(s *scope, a resource.Access, obj T) bool
}

// Held reports whether the caller is a worker.
func (r *rule[T]) Held(ctx context.Context) bool {
	u, ok := request.UserFrom(ctx)
	return ok && IsWorker(u)
}

// Object decides on a request about one object.
func (r *rule[T]) Object(ctx context.Context, a resource.Access, obj T) error {
	var own *v1alpha1.Task
	if r.task != nil {
		own = r.task(obj)
	}
	s, err := r.w.scope(ctx, own)
	if err != nil {
		return r.refuse(obj.GetName(), err)
	}
	if err := r.object(ctx, s, a, obj); err != nil {
		return r.refuse(obj.GetName(), err)
	}
	why := s.run.over(s.task)
	if why == "" || s.task.Status.Phase.Terminal() && r.late != nil && r.late(s, a, obj) {
		return nil
	}
	return r.refuse(obj.GetName(), errors.New(why))
}

// Collection decides on a list or a watch. A watch shows nothing more once the run is over.
func (r *rule[T]) Collection(ctx context.Context, a resource.Access, o *metainternalversion.ListOptions) (func(T) bool, error) {
	s, err := r.w.scope(ctx, nil)
	if err != nil {
		return nil, r.refuse("", err)
	}
	if why := s.run.over(s.task); why != "" {
		return nil, r.refuse("", errors.New(why))
	}
	if a.Verb != "list" && a.Verb != "watch" {
		return nil, r.refuse("", errNotAWorkers)
	}
	sees, err := r.narrow(ctx, s, a, o)
	if err != nil {
		return nil, r.refuse("", err)
	}
	if a.Verb == "list" {
		return sees, nil
	}
	return func(obj T) bool {
		if !sees(obj) {
			return false
		}
		now, err := r.w.scope(ctx, nil)
		return err == nil && now.run.over(now.task) == ""
	}, nil
}

// refuse turns a reason into a Forbidden error. It returns API errors unchanged.
func (r *rule[T]) refuse(name string, why error) error {
	if status := apierrors.APIStatus(nil); errors.As(why, &status) {
		return why
	}
	return apierrors.NewForbidden(r.resource, name, why)
}

// errNotAWorkers refuses what no worker may do.
var errNotAWorkers = errors.New("a worker may not do this")

// oneOf returns the only value that the field selector allows for a field; empty if there is no such value.
func oneOf(o *metainternalversion.ListOptions, field string) string {
	if o.FieldSelector == nil {
		return ""
	}
	v, _ := o.FieldSelector.RequiresExactMatch(field)
	return v
}

// unnarrowed refuses a list or watch without one of the given selectors.
func unnarrowed(selectors ...string) error {
	return errors.New("a worker lists and watches what its run uses: narrow the request by " + strings.Join(selectors, " or "))
}
