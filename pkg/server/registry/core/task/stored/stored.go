// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stored reads and changes stored tasks on behalf of the server itself, and says what follows from a stored task: the stream
// of its events, its session, and the root of its tree. All packages of tasks stand on it, so none of them needs the resource tasks.
package stored

import (
	"cmp"
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// Tasks reads and changes stored tasks; see resource.Stored.
type Tasks struct {
	*resource.Stored[*v1alpha1.Task]
}

// NewTasks returns what is stored of tasks, for the resource tasks and for all who need them.
func NewTasks() Tasks { return Tasks{resource.NewStored[*v1alpha1.Task](v1alpha1.Resource("tasks"))} }

// Get reads a task of the context's namespace. Errors are API errors.
func (s Tasks) Get(ctx context.Context, name string) (*v1alpha1.Task, error) {
	t, err := s.Stored.Get(ctx, name)
	if apierrors.IsNotFound(err) { // the store's error names the resource of the request instead
		return nil, apierrors.NewNotFound(v1alpha1.Resource("tasks"), name)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Parent is the task that a request of a subresource is about.
type Parent = resource.Parent[*v1alpha1.Task]

// EachOf calls f with the tasks of a list that is read in pages.
func (s Tasks) EachOf(ctx context.Context, opts *internalversion.ListOptions, f func(*v1alpha1.Task)) error {
	return resource.EachObject(ctx, s, opts, func(o metav1.Object) {
		if t, ok := o.(*v1alpha1.Task); ok {
			f(t)
		}
	})
}

// Agents reads an agent in the context's namespace. Errors are API errors.
type Agents func(ctx context.Context, name string) (*v1alpha1.Agent, error)

// Of reads the agent that a task names; nil if it names none, or the agent does not exist.
func (read Agents) Of(ctx context.Context, t *v1alpha1.Task) (*v1alpha1.Agent, error) {
	if t.Spec.AgentRef == nil {
		return nil, nil //nolint:nilnil // none
	}
	key := t.Spec.AgentRef.In(cmp.Or(t.Namespace, request.NamespaceValue(ctx)))
	a, err := read(request.WithNamespace(ctx, key.Namespace), key.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // none
	}
	return a, err
}

// Stream returns the stream of a task's events.
func Stream(t *v1alpha1.Task) eventlog.Stream {
	s := eventlog.Stream{Namespace: t.Namespace, Task: t.Name, UID: t.UID, Session: Session(t), Agent: t.Status.AgentName}
	if s.Agent == "" && t.Spec.AgentRef != nil {
		s.Agent = t.Spec.AgentRef.Name
	}
	if d := t.Status.Delegation; d != nil {
		s.Root = d.Root
	}
	return s
}

// Session returns the name of a task's session; empty if it has none.
func Session(t *v1alpha1.Task) string {
	if t.Spec.SessionRef == nil {
		return ""
	}
	return t.Spec.SessionRef.Name
}

// Root returns the UID and the name of the task at the top of a task's tree, which is the task itself if it was not delegated.
func Root(t *v1alpha1.Task) (types.UID, string) {
	if d := t.Status.Delegation; d != nil {
		return d.RootUID, d.Root
	}
	return t.UID, t.Name
}
