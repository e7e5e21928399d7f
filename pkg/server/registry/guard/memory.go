// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// Caller returns the task of the worker that makes the request; nil for a caller who is no worker. It does not check
// whether the run is over; the guards do that before a request is carried out. Errors are API errors.
func (w *Workers) Caller(ctx context.Context) (*v1alpha1.Task, error) {
	u, ok := request.UserFrom(ctx)
	if !ok || !IsWorker(u) {
		return nil, nil //nolint:nilnil // no worker
	}
	s, err := w.scope(ctx, nil)
	if err != nil {
		if status := apierrors.APIStatus(nil); errors.As(err, &status) {
			return nil, err
		}
		return nil, apierrors.NewForbidden(v1alpha1.Resource("tasks"), "", err)
	}
	return s.task, nil
}

// RecallScope returns the scope of what a task may recall (spec.memory.recall of its Agent). It is the whole namespace for
// a task without an Agent, and the narrowest scope if the Agent is gone, because its wish is not known.
func RecallScope(ctx context.Context, w *Workers, t *v1alpha1.Task) (v1alpha1.MemoryScope, error) {
	ref := t.Spec.AgentRef
	if ref == nil {
		return v1alpha1.MemoryScopeNamespace, nil
	}
	key := ref.In(t.Namespace)
	a, err := w.Agent(request.WithNamespace(ctx, key.Namespace), key.Name)
	switch {
	case apierrors.IsNotFound(err):
		return v1alpha1.MemoryScopeSession, nil
	case err != nil:
		return "", err
	case a.Spec.Memory == nil || a.Spec.Memory.Recall == "":
		return v1alpha1.MemoryScopeNamespace, nil
	}
	return a.Spec.Memory.Recall, nil
}

// Recalls reports whether a task may recall a memory within a scope. session is the task's session; nil if it has none.
// Agents are compared by name, because an agent that is deleted and created again is the same agent with other settings.
func Recalls(scope v1alpha1.MemoryScope, t *v1alpha1.Task, session *v1alpha1.Session, m *v1alpha1.Memory) bool {
	if m.Namespace != t.Namespace || m.Status.Deleted {
		return false
	}
	agent := m.Spec.AgentName == "" || m.Spec.AgentName == v1alpha1.MemoryAgent(t)
	switch scope {
	case v1alpha1.MemoryScopeNamespace:
		return true
	case v1alpha1.MemoryScopeAgent:
		return agent
	default:
		return agent && (m.Spec.SessionName == "" || session != nil && ofSession(m, session))
	}
}

// ofSession reports whether a memory with a session belongs to this one. A memory without a recorded UID was written
// before its session existed, or by a server that recorded none. It belongs to this session unless an earlier one of the
// same name recalled it.
func ofSession(m *v1alpha1.Memory, s *v1alpha1.Session) bool {
	if m.Spec.SessionName != s.Name || m.Namespace != s.Namespace {
		return false
	}
	if m.Status.SessionUID != "" {
		return m.Status.SessionUID == s.UID
	}
	began, recalled := s.CreationTimestamp, m.Status.LastRecalledAt
	return recalled == nil || !recalled.Before(&began) || !m.CreationTimestamp.Before(&began)
}

// session returns the session of the worker's task; nil if the task has none, or if it does not exist.
func (s *scope) session(ctx context.Context) (*v1alpha1.Session, error) {
	ref := s.task.Spec.SessionRef
	if ref == nil || ref.Name == "" {
		return nil, nil //nolint:nilnil // no session
	}
	found, err := s.w.Session(request.WithNamespace(ctx, s.run.namespace), ref.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // no session
	}
	return found, err
}

// recalls is Recalls for the task of a scope.
func (s *scope) recalls(ctx context.Context, m *v1alpha1.Memory) (bool, error) {
	scope, err := RecallScope(ctx, s.w, s.task)
	if err != nil {
		return false, err
	}
	session, err := s.session(ctx)
	return err == nil && Recalls(scope, s.task, session, m), err
}

// Memories is the guard of memories. A worker may read a memory that it may recall. It finds memories by a
// MemorySearch, and never writes one.
func (w *Workers) Memories() resource.Guard[*v1alpha1.Memory] {
	return &rule[*v1alpha1.Memory]{
		w: w, resource: v1alpha1.Resource("memories"),
		object: func(ctx context.Context, s *scope, a resource.Access, m *v1alpha1.Memory) error {
			if err := readable(a); err != nil {
				return err
			}
			ok, err := s.recalls(ctx, m)
			if err == nil && !ok {
				err = errors.New("the memory is not for the task of the caller's credential")
			}
			return err
		},
		narrow: func(ctx context.Context, s *scope, _ resource.Access, o *metainternalversion.ListOptions) (func(*v1alpha1.Memory) bool, error) {
			if oneOf(o, "metadata.name") == "" { // it finds others by a MemorySearch
				return nil, unnarrowed("the field metadata.name")
			}
			return func(m *v1alpha1.Memory) bool {
				ok, err := s.recalls(ctx, m)
				return ok && err == nil
			}, nil
		},
	}
}

// MemoryProposals is the guard of proposals. A worker may propose, and read what its run proposed. It never reviews,
// applies or archives.
func (w *Workers) MemoryProposals() resource.Guard[*v1alpha1.MemoryProposal] {
	own := func(s *scope, p *v1alpha1.MemoryProposal) bool {
		return p.Status.Origin != nil && p.Status.Origin.TaskUID == s.run.uid
	}
	return &rule[*v1alpha1.MemoryProposal]{
		w: w, resource: v1alpha1.Resource("memoryproposals"),
		object: func(ctx context.Context, s *scope, a resource.Access, p *v1alpha1.MemoryProposal) error {
			switch a {
			case resource.Access{Verb: "create"}:
				if agent := p.Spec.AgentName; agent != "" && agent != v1alpha1.MemoryAgent(s.task) {
					return errors.New("spec.agentName: a run proposes for its own agent only; leave it out")
				}
				return mine(request.NamespaceValue(ctx) == s.run.namespace)
			case resource.Access{Verb: "get"}:
				return mine(own(s, p))
			}
			return errNotAWorkers
		},
		narrow: func(ctx context.Context, s *scope, _ resource.Access, o *metainternalversion.ListOptions) (func(*v1alpha1.MemoryProposal) bool, error) {
			if request.NamespaceValue(ctx) != s.run.namespace {
				return nil, errAnother
			}
			if oneOf(o, "status.origin.taskName") != s.run.name {
				return nil, unnarrowed("the field status.origin.taskName")
			}
			return func(p *v1alpha1.MemoryProposal) bool { return own(s, p) }, nil
		},
	}
}

// MemorySearches is the guard of searches for memories. The search itself keeps to the scope of the worker's task.
func (w *Workers) MemorySearches() resource.Guard[*v1alpha1.MemorySearch] {
	return searches[*v1alpha1.MemorySearch](w, "memorysearches")
}

// MemoryProposalSearches is the guard of searches for proposals. The search itself keeps to those of the worker's run.
func (w *Workers) MemoryProposalSearches() resource.Guard[*v1alpha1.MemoryProposalSearch] {
	return searches[*v1alpha1.MemoryProposalSearch](w, "memoryproposalsearches")
}

// TranscriptSearches is the guard of searches in transcripts. The search itself keeps to the sessions that the
// worker's task may read.
func (w *Workers) TranscriptSearches() resource.Guard[*v1alpha1.TranscriptSearch] {
	return searches[*v1alpha1.TranscriptSearch](w, "transcriptsearches")
}

func searches[T resource.Object](w *Workers, name string) resource.Guard[T] {
	return &rule[T]{
		w: w, resource: v1alpha1.Resource(name),
		object: func(ctx context.Context, s *scope, a resource.Access, _ T) error {
			if a != (resource.Access{Verb: "create"}) {
				return errNotAWorkers
			}
			return mine(request.NamespaceValue(ctx) == s.run.namespace)
		},
		narrow: func(context.Context, *scope, resource.Access, *metainternalversion.ListOptions) (func(T) bool, error) {
			return nil, errNotAWorkers
		},
	}
}
