// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package requester decides for whom tasks are created, and records it: the user who sent the request (recorded.go), and, for callers
// with an identity from outside, the verified identity with its transaction (stamp.go), which is sealed so that nobody else can write
// it.
package requester

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/gateway"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/token"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
)

// stamp is the verified identity for which a task is created. It travels in the context of the create, so that
// validation can tell it from what a client sent.
type stamp struct {
	requester   *v1alpha1.TaskRequester
	transaction *v1alpha1.TaskTransaction
	// token is the task's transaction token; empty if it has none yet. A task with a pending time waits for it since then.
	token   string
	pending time.Time
	// profile and source say who says that; empty for a token from outside, in a request to the API.
	profile, source string
}

type stampKey struct{}

// Requesters decides for whom tasks are created. All fields are required except Seal, without which no requester is verified, and
// Check.
type Requesters struct {
	Tasks      stored.Tasks
	Agents     stored.Agents
	Authorizer authorizer.Authorizer // decides who may create tasks on behalf of others
	Clock      clock.PassiveClock
	Seal       *external.Seal
	// Check, if it is set, refuses a task that the transaction of its creator, or of its parent if that is not nil, does not allow. It
	// may ask for the names of all tools that the task would have. Its error is an API error.
	Check func(ctx context.Context, t, parent *v1alpha1.Task, tools func() ([]string, error)) error
	// Event reads an event of a gateway of the context's namespace. Errors are API errors. Without it no task answers one.
	Event  func(ctx context.Context, name string) (*v1alpha1.GatewayEvent, error)
	Tokens token.Tokens
}

// stampOf returns the stamp of a create; nil if there is none.
func stampOf(ctx context.Context) *stamp {
	s, _ := ctx.Value(stampKey{}).(*stamp)
	return s
}

// Stamped reports whether the server decided in this create for whom the task is, so that it has what clients must not send.
func Stamped(ctx context.Context) bool { return stampOf(ctx) != nil }

// Begin decides for whom the task of a caller other than a worker is created. It also refuses what clients must not
// send, because the server overwrites it later. Call done, if it is not nil, when the create is over.
func (r Requesters) Begin(ctx context.Context, t *v1alpha1.Task, dryRun bool) (next context.Context, done func(created bool), err error) {
	invalid := func(errs field.ErrorList) error {
		return apierrors.NewInvalid(v1alpha1.SchemeGroupVersion.WithKind("Task").GroupKind(), t.Name, errs)
	}
	if errs := ValidateServerSet(t); len(errs) > 0 {
		return nil, nil, invalid(errs)
	}
	if marks := gatewayMarks(t); len(marks) > 0 {
		s, errs, err := r.eventOf(ctx, t, marks)
		if err != nil || len(errs) > 0 {
			return nil, nil, cmp.Or(err, invalid(errs))
		}
		return context.WithValue(ctx, stampKey{}, s), nil, nil
	}
	if ref := t.Spec.SessionRef; ref != nil && gateway.IsSession(ref.Name) {
		return nil, nil, invalid(field.ErrorList{field.Forbidden(field.NewPath("spec", "sessionRef", "name"), "is the session of a conversation of a gateway, which only tasks that answer its events join")})
	}
	user, _ := request.UserFrom(ctx)
	if i := external.From(user); i != nil {
		if err := r.check(ctx, t, nil, false); err != nil {
			return nil, nil, err
		}
		s := &stamp{requester: &i.Requester, transaction: i.Transaction}
		if !dryRun {
			if s.token, s.pending, err = r.Tokens.Obtain(ctx, t, s.transaction); err != nil {
				return nil, nil, err
			}
		}
		next := context.WithValue(ctx, stampKey{}, s)
		return next, r.Tokens.HandOut(ctx, t, s.token), nil
	}
	parent, err := r.scheduleOf(ctx, t)
	if err == nil && parent == nil {
		parent, err = r.makerOf(ctx, t)
	}
	if err != nil || parent == nil || parent.Spec.RequestedBy == nil {
		return ctx, nil, err
	}
	if !r.Seal.Verified(parent) {
		return nil, nil, invalid(field.ErrorList{field.Forbidden(field.NewPath("metadata", "ownerReferences"), "the requester of task "+parent.Name+" is not verified; create that task again")})
	}
	// Somebody else may have changed the schedule since its creation.
	if err := r.check(ctx, t, parent, false); err != nil {
		return nil, nil, err
	}
	return context.WithValue(ctx, stampKey{}, &stamp{requester: parent.Spec.RequestedBy, transaction: parent.Spec.Transaction}), nil, nil
}

// scheduleOf returns the scheduled task whose run a controller creates; nil for every other task. That an owner
// reference names a task is not enough, since everybody can write one.
func (r Requesters) scheduleOf(ctx context.Context, t *v1alpha1.Task) (*v1alpha1.Task, error) {
	owner := metav1.GetControllerOfNoCopy(t)
	if owner == nil || owner.Kind != "Task" || t.Labels[v1alpha1.LabelScheduledRun] == "" {
		return nil, nil //nolint:nilnil // none
	}
	if ok, err := guard.MayControl(ctx, r.Authorizer, request.NamespaceValue(ctx)); !ok || err != nil {
		return nil, err
	}
	parent, err := r.Tasks.Get(ctx, owner.Name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // none any more
	case err != nil:
		return nil, err
	case parent.UID != owner.UID || parent.Spec.Schedule == "":
		return nil, nil //nolint:nilnil // another task of that name
	}
	return parent, nil
}

// makerOf returns the task whose run had the server make a monitor of pull requests (package hostcall); nil for every other task.
func (r Requesters) makerOf(ctx context.Context, t *v1alpha1.Task) (*v1alpha1.Task, error) {
	maker := t.Annotations[v1alpha1.AnnotationParentTaskName]
	if maker == "" || t.Annotations[v1alpha1.AnnotationPRMonitorName] == "" || t.Spec.Schedule == "" {
		return nil, nil //nolint:nilnil // none
	}
	if ok, err := guard.MayControl(ctx, r.Authorizer, request.NamespaceValue(ctx)); !ok || err != nil {
		return nil, err
	}
	return r.Tasks.Get(ctx, maker)
}

// Inherit decides for whom a worker creates a child: for whoever asked for the parent, if that is verified.
func (r Requesters) Inherit(ctx context.Context, t, parent *v1alpha1.Task) (context.Context, error) {
	if errs := validateMarks(t, &v1alpha1.Task{}); len(errs) > 0 {
		return nil, apierrors.NewInvalid(v1alpha1.SchemeGroupVersion.WithKind("Task").GroupKind(), t.Name, errs)
	}
	if parent.Spec.RequestedBy == nil {
		return ctx, nil
	}
	s := &stamp{requester: parent.Spec.RequestedBy, transaction: parent.Spec.Transaction}
	if r.Tokens.Awaited(t, parent) {
		s.pending = r.Clock.Now()
	}
	if errs := ValidateServerSet(t); len(errs) > 0 {
		return nil, apierrors.NewInvalid(v1alpha1.SchemeGroupVersion.WithKind("Task").GroupKind(), t.Name, errs)
	}
	if !r.Seal.Verified(parent) {
		return nil, apierrors.NewForbidden(v1alpha1.Resource("tasks"), t.Name, errors.New("the requester of the parent is not verified, so it may not delegate"))
	}
	if err := r.check(ctx, t, parent, true); err != nil {
		return nil, err
	}
	return context.WithValue(ctx, stampKey{}, s), nil
}

// check refuses a task that a transaction does not allow: that of its parent, if it is given, or of the caller. delegated
// says that a worker creates the task.
func (r Requesters) check(ctx context.Context, t, parent *v1alpha1.Task, delegated bool) error {
	if r.Check == nil {
		return nil
	}
	return r.Check(ctx, t, parent, func() ([]string, error) { return r.tools(ctx, t, delegated) })
}

// tools returns the names of all tools that a new task would have in a transaction, or why they are not known.
func (r Requesters) tools(ctx context.Context, t *v1alpha1.Task, delegated bool) ([]string, error) {
	switch t.Spec.Type {
	case v1alpha1.TaskTypeContainer:
		return nil, nil
	case v1alpha1.TaskTypeAgent:
		return nil, errors.New("spec.type: a coding agent has tools of its own, and the transaction allows only certain tools")
	}
	agent, err := r.Agents.Of(ctx, t)
	switch {
	case err != nil:
		return nil, fmt.Errorf("spec.agentRef: the agent cannot be read: %w", err)
	case agent == nil && t.Spec.AgentRef != nil:
		return nil, fmt.Errorf("spec.agentRef: agent %q does not exist, and the transaction allows only certain tools", t.Spec.AgentRef.Name)
	}
	t = t.DeepCopy()
	if t.Spec.Transaction == nil {
		t.Spec.Transaction = &v1alpha1.TaskTransaction{} // which is stamped later
	}
	if delegated && t.Status.Delegation == nil {
		t.Status.Delegation = &v1alpha1.TaskDelegation{} // it has tools for messages to its parent
	}
	var names []string
	for _, key := range plan.UsesOf(t, agent).Tools {
		names = append(names, key.Name)
	}
	return names, nil
}

// Apply writes the stamp of a create, with its seal, into the new task, whose UID is set. So requester, seal and task are one write.
func (r Requesters) Apply(ctx context.Context, t *v1alpha1.Task) {
	s := stampOf(ctx)
	if s == nil {
		return
	}
	t.Spec.RequestedBy, t.Spec.Transaction = s.requester.DeepCopy(), s.transaction.DeepCopy()
	if t.Annotations == nil {
		t.Annotations = map[string]string{}
	}
	if t.Labels == nil {
		t.Labels = map[string]string{}
	}
	t.Annotations[v1alpha1.AnnotationRequestedBySource] = cmp.Or(s.source, "api")
	t.Annotations[v1alpha1.AnnotationRequestedByStamp] = r.Seal.Stamp(t.UID, s.requester)
	profile := cmp.Or(s.profile, external.TypeOIDC)
	if x := s.transaction; x != nil {
		profile = x.Profile
		t.Labels[v1alpha1.LabelTransactionID] = v1alpha1.TransactionLabel(x.ID)
		for key, value := range map[string]string{
			v1alpha1.LabelTransactionID: x.ID, v1alpha1.AnnotationContextTokenProfile: x.Profile, v1alpha1.AnnotationTransactionIssuer: x.Issuer,
			v1alpha1.AnnotationTransactionSubject: x.Subject, v1alpha1.AnnotationTransactionWorkload: x.RequestingWorkload,
			v1alpha1.AnnotationTransactionScope: x.Scope, v1alpha1.AnnotationTransactionContextDigest: x.ContextDigest,
			v1alpha1.AnnotationRequesterContextDigest: x.RequesterContextDigest,
		} {
			if value != "" {
				t.Annotations[key] = value
			}
		}
	}
	t.Labels[v1alpha1.LabelAuthProfile] = profile
	if !s.pending.IsZero() {
		t.Annotations[v1alpha1.AnnotationTransactionTokenPending] = "true"
		t.Annotations[v1alpha1.AnnotationTransactionTokenPendingSince] = s.pending.UTC().Format(time.RFC3339)
	}
}

// Report sets the condition of a task whose requester's seal is not this server's; the controller then refuses to start it. old is the
// stored task.
func (r Requesters) Report(t, old *v1alpha1.Task) {
	if old.Spec.RequestedBy == nil || r.Seal.Verified(old) {
		meta.RemoveStatusCondition(&t.Status.Conditions, v1alpha1.ConditionRequesterVerified)
		return
	}
	meta.SetStatusCondition(&t.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionRequesterVerified, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonRequesterUnverified,
		Message: "the seal of spec.requestedBy is not this server's", LastTransitionTime: metav1.Time{Time: r.Clock.Now()},
	})
}
