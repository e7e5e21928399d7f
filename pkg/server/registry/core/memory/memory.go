// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memory serves memories and searches for them. A memory is a text with a scope: the namespace, one agent, one session,
// or one agent in one session. People write memories. A worker writes none: it searches them, and proposes new ones (package
// memoryproposal). A search is created, answered and not stored. What a worker's search finds is limited to what spec.memory.recall
// of its task's Agent admits (guard.RecallScope).
//
// The status of a memory belongs to the server: its subresources, the application of a proposal and the counters of
// recall change it. Writes to memories/status are refused. The subresource discard is a deletion that restore undoes. A
// DELETE is final.
//
// A session is its UID: a later session of the same name does not recall the memories of the earlier one (status.sessionUID, and
// guard.Recalls for a memory without one). When a session is deleted, memories that name it and have no recorded UID get its UID, so
// nobody recalls them any more. An agent is its name, because an Agent is deleted and created again to change its settings; its
// memories stay. To forget them, select them by spec.agentName.
//
// status.origin.taskName and status.origin.taskUID are field selectors of memories and of proposals. A deletecollection of both
// therefore removes all that came from a task, with the rows of the index (platform memory forget --task).
package memory

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/server/registry/rule"
	"github.com/platform-ai/platform/pkg/storage/fulltext"
	"github.com/platform-ai/platform/pkg/storage/object"
)

// NamePrefix starts the names of memories that are created without one.
const NamePrefix = "mem-"

// Options are what memories need besides the object store. All fields are required.
type Options struct {
	// Stored is what is stored of memories.
	Stored *resource.Stored[*v1alpha1.Memory]
	// Clock provides the times in a memory's status.
	Clock clock.PassiveClock
	// Index finds memories by their text.
	Index *fulltext.Index
	// Caller returns the task of a worker that makes a request; nil for other callers.
	Caller func(ctx context.Context) (*v1alpha1.Task, error)
	// Scope returns the scope of what a task may recall. Errors are API errors.
	Scope func(ctx context.Context, t *v1alpha1.Task) (v1alpha1.MemoryScope, error)
	// Session reads a session of the context's namespace. Errors are API errors.
	Session func(ctx context.Context, name string) (*v1alpha1.Session, error)
	// Guard limits workers to the memories that their task may recall.
	Guard resource.Guard[*v1alpha1.Memory]
}

// Resource is the resource memories.
type Resource struct {
	resource.Resource
	stored  *resource.Stored[*v1alpha1.Memory]
	clock   clock.PassiveClock
	index   *fulltext.Index
	caller  func(ctx context.Context) (*v1alpha1.Task, error)
	scope   func(ctx context.Context, t *v1alpha1.Task) (v1alpha1.MemoryScope, error)
	session func(ctx context.Context, name string) (*v1alpha1.Session, error)
}

// New makes the resource memories.
func New(o Options) *Resource {
	r := &Resource{stored: o.Stored, clock: o.Clock, index: o.Index, caller: o.Caller, scope: o.Scope, session: o.Session}
	change := func(name string, as func(context.Context) context.Context, mutate func(*v1alpha1.MemoryStatus) error) resource.Subresource[*v1alpha1.Memory] {
		return resource.Subresource[*v1alpha1.Memory]{
			Name: name, New: func() runtime.Object { return &v1alpha1.MemoryChange{} }, Creators: resource.Writers(),
			Create: func(ctx context.Context, p resource.Parent[*v1alpha1.Memory], _ runtime.Object) (runtime.Object, error) {
				return r.change(as(ctx), p, mutate)
			},
		}
	}
	r.Resource = &resource.Definition[*v1alpha1.Memory]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("memories"),
		Kind:       "Memory",
		Singular:   "memory",
		Roles:      resource.Roles{Readers: resource.Users(resource.Approver, resource.Worker), Writers: resource.Writers()},
		Scopes:     &external.Scopes{Read: "memory:read", Write: "memory:write"},
		ShortNames: []string{"mem"},
		Categories: []string{"platform"},
		Fields:     fields(),
		Columns:    columns(),
		Guard:      o.Guard,
		Stored:     o.Stored,
		Shape: resource.Kept[*v1alpha1.Memory]{
			PrepareForCreate: r.prepareForCreate,
			PrepareForUpdate: r.prepareForUpdate,
			Validate:         validate,
			ValidateStatus:   validateStatus,
		},
		Subresources: []resource.Subresource[*v1alpha1.Memory]{
			change("disable", byServer, func(s *v1alpha1.MemoryStatus) error { return set(&s.Disabled, true, s) }),
			change("enable", byServer, func(s *v1alpha1.MemoryStatus) error { return set(&s.Disabled, false, s) }),
			change("discard", discarding, func(s *v1alpha1.MemoryStatus) error { s.Deleted = true; return nil }),
			change("restore", byServer, func(s *v1alpha1.MemoryStatus) error { s.Deleted = false; return nil }),
		},
	}
	return r
}

// set changes a flag of a memory that is not discarded.
func set(flag *bool, to bool, s *v1alpha1.MemoryStatus) error {
	if s.Deleted {
		return errors.New("the memory is discarded; restore it first")
	}
	*flag = to
	return nil
}

// change carries out a subresource. A repeated request changes nothing.
func (r *Resource) change(ctx context.Context, p resource.Parent[*v1alpha1.Memory], mutate func(*v1alpha1.MemoryStatus) error) (runtime.Object, error) {
	return p.Update(ctx, func(m *v1alpha1.Memory) error {
		was := m.Status
		if err := mutate(&m.Status); err != nil {
			return apierrors.NewConflict(v1alpha1.Resource("memories"), m.Name, err)
		}
		if was.Disabled != m.Status.Disabled || was.Deleted != m.Status.Deleted {
			m.Status.UpdatedAt = r.now()
		}
		return nil
	})
}

func (r *Resource) now() *metav1.Time { return &metav1.Time{Time: r.clock.Now()} }

type (
	serverKey struct{} // marks a write of the status by the server itself
	statusKey struct{} // holds the status of a memory that the server makes
)

func byServer(ctx context.Context) context.Context { return context.WithValue(ctx, serverKey{}, true) }

// discarding is byServer for a change that is accepted on a full disk, because users take it for the deletion that it is.
func discarding(ctx context.Context) context.Context { return object.Discarding(byServer(ctx)) }

func (r *Resource) prepareForCreate(ctx context.Context, m *v1alpha1.Memory) {
	if m.Name == "" && m.GenerateName == "" {
		m.Name = NamePrefix + string(uuid.NewUUID())
	}
	if given, ok := ctx.Value(statusKey{}).(*v1alpha1.MemoryStatus); ok {
		m.Status = *given.DeepCopy()
	}
	m.Status.UpdatedAt = r.now()
	clean(m)
	m.Status.SessionUID = r.uidOf(ctx, m)
}

func (r *Resource) prepareForUpdate(ctx context.Context, m, old *v1alpha1.Memory) {
	clean(m)
	if m.Spec.SessionName != old.Spec.SessionName {
		m.Status.SessionUID, m.Status.LastRecalledAt = r.uidOf(ctx, m), nil // the new session has not recalled it
	}
	if !equality.Semantic.DeepEqual(m.Spec, old.Spec) {
		m.Status.UpdatedAt = r.now()
	}
}

// clean removes secrets, and what nobody sees, from every text.
func clean(m *v1alpha1.Memory) {
	s := &m.Spec
	rule.CleanVisible(&s.Content, &s.Source, &s.SessionName, &s.AgentName, &s.TaskName, &s.ParentTask)
	for i := range s.Tags {
		rule.CleanVisible(&s.Tags[i])
	}
	rule.CleanAnnotations(m)
}

func validate(_ context.Context, m *v1alpha1.Memory) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if m.Spec.Content != "" && strings.TrimSpace(m.Spec.Content) == "" {
		errs = append(errs, field.Required(spec.Child("content"), "must not be blank"))
	}
	for i, tag := range m.Spec.Tags {
		if strings.TrimSpace(tag) != tag || tag == "" || len(tag) > maxTag || strings.ContainsRune(tag, ',') {
			errs = append(errs, field.Invalid(spec.Child("tags").Index(i), field.OmitValueType{},
				fmt.Sprintf("must be 1 to %d bytes, without a comma and without spaces around it", maxTag)))
		}
	}
	return errs
}

// maxTag is the length of a tag, in bytes.
const maxTag = 128

// validateStatus refuses writes of the status that do not come from the server itself.
func validateStatus(ctx context.Context, m, old *v1alpha1.Memory) field.ErrorList {
	if ctx.Value(serverKey{}) != nil || equality.Semantic.DeepEqual(m.Status, old.Status) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("status"), "is written by the server only; use memories/disable, enable, discard or restore")}
}

// Make creates the memory of a proposal on behalf of the caller, with the status that the proposal determines. If it
// exists already, Make returns it, with made unset. Errors are API errors.
func (r *Resource) Make(ctx context.Context, m *v1alpha1.Memory, dryRun bool) (out *v1alpha1.Memory, made bool, err error) {
	memories, err := r.stored.AsCaller()
	if err != nil {
		return nil, false, err
	}
	config, err := r.stored.Config()
	if err != nil {
		return nil, false, err
	}
	status := m.Status
	options := &metav1.CreateOptions{}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	// Policies on memories hold for applied proposals, too.
	if err := config.AdmitCreate(ctx, m, v1alpha1.SchemeGroupVersion.WithKind("Memory"), v1alpha1.SchemeGroupVersion.WithResource("memories"), options); err != nil {
		return nil, false, err
	}
	obj, err := memories.Create(context.WithValue(ctx, statusKey{}, &status), m.DeepCopy(), rest.ValidateAllObjectFunc, options)
	if apierrors.IsAlreadyExists(err) {
		have, err := r.stored.Get(ctx, m.Name)
		if err == nil && have.Status.ProposalUID != status.ProposalUID {
			err = apierrors.NewConflict(v1alpha1.Resource("memories"), m.Name, errors.New("another memory has this name; delete it, then apply again"))
		}
		return have, false, err
	}
	if err != nil {
		return nil, false, err
	}
	out, ok := obj.(*v1alpha1.Memory)
	if !ok {
		return nil, false, apierrors.NewInternalError(fmt.Errorf("create of a memory: %T", obj))
	}
	return out, true, nil
}

// Unmake removes a memory that Make created.
func (r *Resource) Unmake(ctx context.Context, m *v1alpha1.Memory) error {
	memories, err := r.stored.AsCaller()
	if err != nil {
		return err
	}
	options := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &m.UID}}
	_, _, err = memories.Delete(ctx, m.Name, rest.ValidateAllObjectFunc, options)
	return err
}
