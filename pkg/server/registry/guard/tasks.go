// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

var errAnother = errors.New("the caller's credential is for another task")

// Tasks is the guard of tasks.
func (w *Workers) Tasks() resource.Guard[*v1alpha1.Task] {
	return &rule[*v1alpha1.Task]{
		w: w, resource: v1alpha1.Resource("tasks"),
		task:   func(t *v1alpha1.Task) *v1alpha1.Task { return t },
		object: taskAccess,
		narrow: func(_ context.Context, s *scope, _ resource.Access, o *metainternalversion.ListOptions) (func(*v1alpha1.Task) bool, error) {
			if oneOf(o, "metadata.name") == "" && !selectsChildren(o.LabelSelector, s.run.name) {
				return nil, unnarrowed("the field metadata.name", "the label "+v1alpha1.LabelParentTask)
			}
			return s.reaches, nil
		},
		late: func(_ *scope, a resource.Access, _ *v1alpha1.Task) bool {
			return a == resource.Access{Verb: "create", Subresource: "events"}
		},
	}
}

// taskAccess decides what a worker may do with a task.
func taskAccess(_ context.Context, s *scope, a resource.Access, t *v1alpha1.Task) error {
	own, reaches := s.owns(t), s.reaches(t)
	switch a.Subresource {
	case "":
		if a.Verb == "create" { // the namespace of the request becomes the task's
			reaches = !own && metav1.IsControlledBy(t, s.task)
			if !reaches {
				return errors.New("a worker may create only tasks that its own task controls")
			}
			return nil
		}
	case "status", "trace", "stream":
	case "proxy", "codehost", "connectortool":
		return mine(own)
	case "delta":
		return deltaAccess(s, a, t)
	case "events", "result", "log", "artifacts", "plan", "fork":
		if a.Verb == "create" {
			return mine(own)
		}
	case "transactiontoken": // for a child, from the run that delegated it
		if a.Verb == "create" {
			return mine(reaches && !own)
		}
	case "cancel":
		if a.Verb == "create" {
			return mine(reaches && (own || !t.Status.Delegation.Detached))
		}
	case "detach":
		if a.Verb == "create" {
			return mayDetach(reaches && !own, t)
		}
	case "messages", "inbox", "reply": // a task speaks as itself and reads its own messages
		if err := mine(own); err != nil || a.Verb == "create" {
			return err
		}
	default:
		return errNotAWorkers
	}
	if !reaches {
		return errAnother
	}
	if a.Verb != "get" {
		return errNotAWorkers
	}
	return nil
}

// deltaAccess decides who reads what a task changed, besides its family: the task that continues it.
func deltaAccess(s *scope, a resource.Access, t *v1alpha1.Task) error {
	if a.Verb == "get" {
		return mine(s.reaches(t) || s.follows(t))
	}
	return mine(a.Verb == "create" && s.owns(t))
}

// mayDetach decides whether a worker may detach a task, which must be a child of its own. One that has not begun would get around
// the limit of children that run.
func mayDetach(child bool, t *v1alpha1.Task) error {
	if child && t.Status.JobUID == "" && t.Status.Attempts == 0 {
		return errors.New("the task has not begun, and a worker may detach only children that have")
	}
	return mine(child)
}

func mine(ok bool) error {
	if !ok {
		return errAnother
	}
	return nil
}

// selectsChildren reports whether a selector requires the label of tasks that were created by the
// named task.
func selectsChildren(s labels.Selector, name string) bool {
	if s == nil {
		return false
	}
	requirements, _ := s.Requirements()
	for _, r := range requirements {
		if r.Key() == v1alpha1.LabelParentTask && (r.Operator() == selection.Equals || r.Operator() == selection.DoubleEquals || r.Operator() == selection.In) &&
			r.Values().Len() == 1 && r.Values().Has(v1alpha1.LabelValue(name)) {
			return true
		}
	}
	return false
}

// ToolCalls is the guard of toolcalls.
func (w *Workers) ToolCalls() resource.Guard[*v1alpha1.ToolCall] {
	return &rule[*v1alpha1.ToolCall]{
		w: w, resource: v1alpha1.Resource("toolcalls"),
		object: func(ctx context.Context, s *scope, a resource.Access, c *v1alpha1.ToolCall) error {
			if a != (resource.Access{Verb: "create"}) {
				return errNotAWorkers
			}
			return mine(request.NamespaceValue(ctx) == s.run.namespace && c.Spec.TaskName == s.run.name)
		},
		narrow: func(context.Context, *scope, resource.Access, *metainternalversion.ListOptions) (func(*v1alpha1.ToolCall) bool, error) {
			return nil, errNotAWorkers
		},
	}
}

// Events is the guard of executionevents.
func (w *Workers) Events() resource.Guard[*v1alpha1.ExecutionEvent] {
	return &rule[*v1alpha1.ExecutionEvent]{
		w: w, resource: v1alpha1.Resource("executionevents"),
		object: func(ctx context.Context, s *scope, a resource.Access, e *v1alpha1.ExecutionEvent) error {
			switch {
			case a.Verb == "create" && a.Subresource == "":
				return mine(request.NamespaceValue(ctx) == s.run.namespace && e.TaskName == s.run.name)
			case a.Verb == "get" && a.Subresource == "":
				uid, err := s.taskUID(ctx, e.TaskName)
				if err != nil {
					return err
				}
				return mine(streamOf(e) == uid)
			}
			return errNotAWorkers
		},
		narrow: narrowEvents,
		late: func(_ *scope, a resource.Access, _ *v1alpha1.ExecutionEvent) bool {
			return a == resource.Access{Verb: "create"}
		},
	}
}

func narrowEvents(ctx context.Context, s *scope, _ resource.Access, o *metainternalversion.ListOptions) (func(*v1alpha1.ExecutionEvent) bool, error) {
	if request.NamespaceValue(ctx) != s.run.namespace {
		return nil, errAnother
	}
	if name := oneOf(o, "taskName"); name != "" {
		uid, err := s.taskUID(ctx, name)
		return func(e *v1alpha1.ExecutionEvent) bool { return streamOf(e) == uid }, err
	}
	if session := oneOf(o, "sessionName"); session != "" {
		if !s.converses(session) {
			return nil, errSession
		}
		return func(e *v1alpha1.ExecutionEvent) bool { return e.SessionName == session }, nil
	}
	return nil, unnarrowed("the field taskName", "the field sessionName")
}

// streamOf returns the UID of the task that an event belongs to.
func streamOf(e *v1alpha1.ExecutionEvent) (uid string) {
	if len(e.OwnerReferences) == 0 {
		return ""
	}
	return string(e.OwnerReferences[0].UID)
}

// taskUID returns the UID of a task in the request's namespace, if the worker may read it.
func (s *scope) taskUID(ctx context.Context, name string) (string, error) {
	if request.NamespaceValue(ctx) != s.run.namespace {
		return "", errAnother
	}
	if name == s.run.name {
		return string(s.run.uid), nil
	}
	t, err := s.w.Task(ctx, name)
	if err != nil {
		return "", errAnother // also if the task is gone: the worker must not learn which names exist
	}
	return string(t.UID), mine(s.reaches(t))
}

// Approvals is the guard of approvals. A worker acts for the agent that requests the approval, so
// it may not decide.
func (w *Workers) Approvals() resource.Guard[*v1alpha1.Approval] {
	sees := func(s *scope) func(*v1alpha1.Approval) bool {
		return func(a *v1alpha1.Approval) bool { return a.Spec.TaskUID == s.run.uid }
	}
	return &rule[*v1alpha1.Approval]{
		w: w, resource: v1alpha1.Resource("approvals"),
		object: func(_ context.Context, s *scope, a resource.Access, obj *v1alpha1.Approval) error {
			switch {
			case a.Subresource == "decision":
				return errors.New("a worker may not decide")
			case a != resource.Access{Verb: "get"}:
				return errNotAWorkers
			}
			return mine(sees(s)(obj))
		},
		narrow: func(ctx context.Context, s *scope, _ resource.Access, o *metainternalversion.ListOptions) (func(*v1alpha1.Approval) bool, error) {
			task := oneOf(o, "spec.taskName")
			switch {
			case request.NamespaceValue(ctx) != s.run.namespace || task != "" && task != s.run.name:
				return nil, errAnother
			case task == "" && oneOf(o, "metadata.name") == "":
				return nil, unnarrowed("the field metadata.name", "the field spec.taskName")
			}
			return sees(s), nil
		},
	}
}
