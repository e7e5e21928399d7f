// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memoryproposal serves proposals of agents and people to remember something: their review, their application
// and their archiving.
//
// Agents only propose. A proposal is reviewed first and applied afterwards, both by people. Three separate rights decide who may do
// what: create memoryproposals, create memoryproposals/review and create memoryproposals/apply. Whoever has them may review and
// apply a proposal of their own.
//
// There is one exception, because a text that a stranger wrote must not become a memory by the approval of one person alone: the
// creator of a task does not apply what its run proposed if untrusted text may be in it (status.origin.outsideText). That is so in
// any of these cases, which the server finds out from the run's credential and events and never from what the worker says (origin.go):
//
//   - The task has called a tool that brings text from elsewhere, which is every tool that the catalogue does not call trusted.
//   - A model wrote the prompt of the task, or the task is a fork.
//   - The task's session has a message that does not come from a task of the same person to which none of this applies.
//   - Something of this cannot be read, such as the events of a deleted task.
//
// What is reviewed is what is recalled: characters that a reviewer does not see and a model does are removed before a proposal or a
// memory is stored (redact.Visible).
//
// A task has a limited number of proposals, which is kept without a lock around a create: a create takes its number among the creates
// of its task that are under way, and then counts the proposals that are stored. Both together must be within the limit. Of those that
// succeed, the last one to take its number has counted all others.
package memoryproposal

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
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/server/registry/rule"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/transcript"
)

// NamePrefix starts the names of proposals that are created without one.
const NamePrefix = "mprop-"

// Options are what proposals need besides the object store. All fields are required.
type Options struct {
	// Stored is what is stored of proposals.
	Stored *resource.Stored[*v1alpha1.MemoryProposal]
	// Clock provides the times in a proposal's status.
	Clock clock.PassiveClock
	// Log has the events of the runs that propose.
	Log *eventlog.Log
	// Caller returns the task of a worker that makes a request; nil for other callers.
	Caller func(ctx context.Context) (*v1alpha1.Task, error)
	// Task reads a task of the context's namespace.
	Task func(ctx context.Context, name string) (*v1alpha1.Task, error)
	// History reads a page of the messages of a session of the context's namespace, after an order.
	History func(ctx context.Context, session string, after int64) (transcript.Page, error)
	// Make creates the memory of an applied proposal, or returns the one that exists. made is set if it created one.
	Make func(ctx context.Context, m *v1alpha1.Memory, dryRun bool) (out *v1alpha1.Memory, made bool, err error)
	// Unmake removes a memory that Make created.
	Unmake func(ctx context.Context, m *v1alpha1.Memory) error
	// Memory reads a memory of the context's namespace. Errors are API errors.
	Memory func(ctx context.Context, name string) (*v1alpha1.Memory, error)
	// Guard limits workers to proposing and to what they proposed.
	Guard resource.Guard[*v1alpha1.MemoryProposal]
}

// Resource is the resource memoryproposals.
type Resource struct {
	resource.Resource
	o         Options
	proposing proposing
}

// New makes the resource memoryproposals.
func New(o Options) *Resource {
	r := &Resource{o: o}
	deciders := []resource.Role{resource.Approver, resource.Operator}
	r.Resource = &resource.Definition[*v1alpha1.MemoryProposal]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("memoryproposals"),
		Kind:       "MemoryProposal",
		Singular:   "memoryproposal",
		Roles:      resource.Roles{Readers: resource.Users(resource.Approver, resource.Worker), Creators: []resource.Role{resource.Worker}, Writers: resource.Writers()},
		Scopes:     &external.Scopes{Read: "memory:read", Write: "memory:write"},
		ShortNames: []string{"mprop"},
		Categories: []string{"platform"},
		Fields:     selectable(),
		Columns:    columns(),
		Guard:      o.Guard,
		Stored:     o.Stored,
		Shape: resource.Kept[*v1alpha1.MemoryProposal]{
			Begin:            r.beginCreate,
			PrepareForCreate: r.prepareForCreate,
			PrepareForUpdate: func(_ context.Context, p, _ *v1alpha1.MemoryProposal) { clean(p) },
			Validate:         r.validate,
			ValidateStatus:   validateStatus,
			Frozen: []resource.Frozen[*v1alpha1.MemoryProposal]{
				{Path: field.NewPath("spec"), Value: func(p *v1alpha1.MemoryProposal) any { return p.Spec }},
			},
		},
		Subresources: []resource.Subresource[*v1alpha1.MemoryProposal]{
			{Name: "review", New: func() runtime.Object { return &v1alpha1.MemoryProposalReview{} }, Create: r.review, Creators: deciders},
			{Name: "apply", New: func() runtime.Object { return &v1alpha1.MemoryProposalApplication{} }, Create: r.apply, Creators: deciders},
			{Name: "archive", New: func() runtime.Object { return &v1alpha1.MemoryChange{} }, Create: r.archive, Creators: append(deciders, resource.Editor)},
		},
	}
	return r
}

func (r *Resource) now() *metav1.Time { return &metav1.Time{Time: r.o.Clock.Now()} }

// prepareForCreate sets what the server determines. For a run, that is also what the proposal is about.
func (r *Resource) prepareForCreate(ctx context.Context, p *v1alpha1.MemoryProposal) {
	if p.Name == "" && p.GenerateName == "" {
		p.Name = NamePrefix + string(uuid.NewUUID())
	}
	p.Status = v1alpha1.MemoryProposalStatus{State: v1alpha1.ProposalPending, UpdatedAt: r.now(), ProposedBy: caller(ctx)}
	if t, err := r.o.Caller(ctx); t != nil && err == nil { // validate refuses a worker without a task
		p.Spec.TaskName, p.Spec.AgentName = t.Name, v1alpha1.MemoryAgent(t)
		p.Status.Origin = r.origin(ctx, t)
	}
	clean(p)
}

// caller returns the user name of the caller.
func caller(ctx context.Context) string {
	u, ok := request.UserFrom(ctx)
	if !ok {
		return ""
	}
	return u.GetName()
}

// clean removes secrets, and what a reviewer would not see, from every text.
func clean(p *v1alpha1.MemoryProposal) {
	s, kind := &p.Spec, string(p.Spec.Type)
	rule.CleanVisible(&s.Title, &kind, &s.SkillName, &s.Description, &s.Content, &s.Patch, &s.AgentName, &s.TaskName)
	s.Type = v1alpha1.MemoryProposalType(kind)
	rule.CleanAnnotations(p)
}

func (r *Resource) validate(ctx context.Context, p *v1alpha1.MemoryProposal) field.ErrorList {
	var errs field.ErrorList
	spec := field.NewPath("spec")
	if p.Spec.Title != "" && strings.TrimSpace(p.Spec.Title) == "" {
		errs = append(errs, field.Required(spec.Child("title"), "must not be blank"))
	}
	if p.Spec.Type == v1alpha1.ProposalSkill && p.Spec.SkillName == "" {
		errs = append(errs, field.Required(spec.Child("skillName"), "a proposal of type skill names the skill"))
	}
	if t, err := r.o.Caller(ctx); err != nil || t != nil && p.Status.Origin == nil {
		errs = append(errs, field.InternalError(field.NewPath("status", "origin"), errors.New("the run that proposes could not be determined")))
	}
	return errs
}

type serverKey struct{} // marks a write of the status by the server itself

func byServer(ctx context.Context) context.Context { return context.WithValue(ctx, serverKey{}, true) }

// validateStatus refuses writes of the status that do not come from the server itself.
func validateStatus(ctx context.Context, p, old *v1alpha1.MemoryProposal) field.ErrorList {
	if ctx.Value(serverKey{}) != nil || equality.Semantic.DeepEqual(p.Status, old.Status) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("status"), "is written by the server only; use memoryproposals/review, apply or archive")}
}

func conflict(p *v1alpha1.MemoryProposal, format string, args ...any) error {
	return apierrors.NewConflict(v1alpha1.Resource("memoryproposals"), p.Name, fmt.Errorf(format, args...))
}
