// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package taskquery serves taskqueries: a selection of tasks and an order are created and answered with summaries of the
// tasks. A list cannot be sorted by anything but names, because its pages follow the keys of the store.
//
// All pages of a query describe the tasks at the revision of its first page, so no task is missed or shown twice while tasks
// change. The continue token has that revision and the last task of the page; after the window of history it is answered with 410.
// What a running task has used is counted up to that revision. A page costs a walk over the decoded tasks of the namespace, which
// are not copied, whatever the size of the page is.
//
// The caller needs the rights to create taskqueries and to list tasks. REST has a query as GET /api/v1/tasks with orderBy or one
// of the filters.
package taskquery

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// Tasks is what this package needs of tasks. Errors are API errors.
type Tasks interface {
	// Each calls f with each task of the request's namespace as of a revision, which it returns; 0 is the newest. The tasks
	// are shared.
	Each(ctx context.Context, revision uint64, f func(*v1alpha1.Task) error) (uint64, error)
	// Usage returns what a task has used as of a revision; nil if nothing is known.
	Usage(ctx context.Context, t *v1alpha1.Task, revision uint64) *v1alpha1.TaskUsage
}

// Options are what taskqueries need. All fields are required.
type Options struct {
	Tasks      Tasks
	Authorizer authorizer.Authorizer
	Clock      clock.PassiveClock
	// Summary returns what a list shows of a task, without what it has used and how long it has run.
	Summary func(*v1alpha1.Task) v1alpha1.TaskSummary
	// Sees returns a func that reports which tasks the caller may read.
	Sees func(ctx context.Context) func(*v1alpha1.Task) (bool, error)
}

// Definition returns the resource taskqueries.
func Definition(o Options) resource.Resource {
	return &resource.Definition[*v1alpha1.TaskQuery]{
		Resource: v1alpha1.SchemeGroupVersion.WithResource("taskqueries"),
		Kind:     "TaskQuery",
		Singular: "taskquery",
		Roles:    resource.Roles{Creators: resource.Users(resource.Approver)},
		Scopes:   &external.Scopes{Read: "tasks:list", Write: "tasks:list"}, // asked by a create
		Shape:    resource.Action[*v1alpha1.TaskQuery]{Create: o.create},
	}
}

// create answers a query.
func (o *Options) create(ctx context.Context, u *v1alpha1.TaskQuery) (*v1alpha1.TaskQuery, error) {
	namespace := request.NamespaceValue(ctx)
	if err := o.authorize(ctx, namespace); err != nil {
		return nil, err
	}
	q, err := parse(&u.Spec, namespace, o.Clock.Now())
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	status, err := o.find(ctx, q)
	if apierrors.IsResourceExpired(err) {
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired,
			Message: "continue: the first page is too old to go on from; ask again without it",
		}}
	}
	if err != nil {
		return nil, err
	}
	u.Namespace, u.Status = namespace, *status
	return u, nil
}

// authorize requires the right to list what is answered: the right to ask does not imply it.
func (o *Options) authorize(ctx context.Context, namespace string) error {
	ok, err := guard.May(ctx, o.Authorizer, authorizer.AttributesRecord{Verb: "list", Namespace: namespace, Resource: "tasks"})
	if err != nil {
		return err
	}
	if !ok {
		return apierrors.NewForbidden(v1alpha1.Resource("taskqueries"), "", errors.New("a query needs the right to list the tasks of the namespace "+namespace))
	}
	return nil
}
