// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tooleffect serves tooleffects: the ledger of calls of tools that change something elsewhere with the linked account of a person.
//
// # At most once
//
// The provider of such a tool may carry out a request although no answer arrives, and nobody can find out whether it did. So a request is
// sent at most once, and the ledger says what became of it:
//
//	Pending ──▶ InFlight ──▶ Succeeded, Failed or OutcomeUnknown
//	   ▲ │         │
//	   │ ▼         │ nothing was sent
//	   │ Failed    │
//	   └───────────┘
//
// An effect is stored (Effects.Reserve) before anybody is asked to approve the call. Its name follows from all that the call is made of,
// so the same call has the same effect. With an approval, it is claimed (Effects.Claim) before the request is sent, and settled (the
// methods of Claim) when there is an answer. Each step is durable before the next one begins. Wherever a server is killed, one of three
// things holds:
//
//   - The effect is Pending, and nothing was sent.
//   - The effect is InFlight, and the request may have been sent. Nobody takes the claim over. When its lease ends, the effect becomes
//     OutcomeUnknown.
//   - The effect has ended. Another claim with the same approval gets what is stored, and sends nothing.
//
// Only a server that knows that it sent nothing hands a claim back. The approval is then as if it had not been used. Otherwise it is spent
// on its effect, however that ends, and no other effect can be claimed with it.
//
// # Who writes
//
// Only the methods of Effects change a status. Requests to the subresource status are refused, also those of administrators: a state that
// is set back would have a request sent again. An effect is not deleted while its task could repeat the call. Those of ended tasks that
// were not claimed are ended by Effects.Reconcile.
//
// What a tool answered may be a person's private data. It is not in the effect, which many may read, but kept with the content of the task
// (Responses), and is removed with it.
package tooleffect

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

const (
	// retention is how long an effect is kept after it ended.
	retention = 14 * 24 * time.Hour
	// maxTimeout is the maximum of spec.timeoutSeconds.
	maxTimeout = 3600
)

// Fields by which effects are found. All are indexed.
const (
	FieldState    = "status.state"
	FieldTask     = "spec.taskName"
	FieldApproval = "status.approvalId"
	// FieldPendingTask is the UID of the task of an effect that is Pending, otherwise empty.
	FieldPendingTask = "pendingTask"
)

// Kind is what the resource needs. All fields are required.
type Kind struct {
	Stored *resource.Stored[*v1alpha1.ToolEffect]
	Clock  clock.PassiveClock
	// Task reads a task of the context's namespace. Errors are API errors.
	Task func(ctx context.Context, name string) (*v1alpha1.Task, error)
}

// Definition returns the resource tooleffects.
func Definition(k Kind) resource.Resource {
	return &resource.Definition[*v1alpha1.ToolEffect]{
		Resource:   v1alpha1.SchemeGroupVersion.WithResource("tooleffects"),
		Kind:       "ToolEffect",
		Singular:   "tooleffect",
		ShortNames: []string{"teff"},
		Categories: []string{}, // kubectl get platform would list all of them
		Roles:      resource.Roles{Readers: resource.Users()},
		Scopes:     &external.Scopes{Read: "connectors:read"},
		Stored:     k.Stored,
		Fields: []resource.Field[*v1alpha1.ToolEffect]{
			{Path: FieldState, Indexed: true, Value: func(e *v1alpha1.ToolEffect) string { return string(e.Status.State) }},
			{Path: FieldTask, Indexed: true, Value: func(e *v1alpha1.ToolEffect) string { return e.Spec.TaskName }},
			{Path: FieldApproval, Indexed: true, Value: func(e *v1alpha1.ToolEffect) string { return e.Status.ApprovalID }},
			{Path: FieldPendingTask, Indexed: true, Value: pendingTask},
			{Path: "taskName", Value: func(e *v1alpha1.ToolEffect) string { return e.Spec.TaskName }}, // as in all kinds
			{Path: "spec.tool", Value: func(e *v1alpha1.ToolEffect) string { return e.Spec.Tool }},
		},
		Columns: []resource.Column[*v1alpha1.ToolEffect]{
			{Name: "Tool", Description: "The tool.", Value: func(e *v1alpha1.ToolEffect) any { return e.Spec.Tool }},
			{Name: "Provider", Description: "The ConnectorProvider that declares the tool.", Value: func(e *v1alpha1.ToolEffect) any { return e.Spec.ConnectorProvider }},
			{Name: "State", Description: "How far it got.", Value: func(e *v1alpha1.ToolEffect) any { return string(e.Status.State) }},
			{Name: "Task", Description: "The task that makes the call.", Value: func(e *v1alpha1.ToolEffect) any { return e.Spec.TaskName }},
			{Name: "Connection", Wide: true, Description: "The account that is used.", Value: func(e *v1alpha1.ToolEffect) any { return e.Spec.Connection.Name }},
			{Name: "Approval", Wide: true, Description: "The approval that was spent on it.", Value: func(e *v1alpha1.ToolEffect) any { return e.Status.ApprovalID }},
			{Name: "Response", Wide: true, Description: "The HTTP status of the answer.", Value: response},
			{Name: "Message", Wide: true, Description: "Why.", Value: func(e *v1alpha1.ToolEffect) any { return e.Status.Message }},
		},
		Shape: resource.StateLedger[*v1alpha1.ToolEffect]{
			Kept: resource.Kept[*v1alpha1.ToolEffect]{
				PrepareForCreate: func(_ context.Context, e *v1alpha1.ToolEffect) {
					e.Status = v1alpha1.ToolEffectStatus{State: v1alpha1.ToolEffectPending, UpdatedAt: k.now()}
				},
				PrepareForStatus: func(_ context.Context, e, old *v1alpha1.ToolEffect) {
					if e.Status.State != old.Status.State {
						e.Status.UpdatedAt = k.now()
					}
				},
				Validate:       validate,
				ValidateStatus: validateStatus,
				ValidateDelete: k.mayDelete,
			},
			States:    states(),
			Entry:     entry,
			Retention: retention,
		},
	}
}

// states are the states of effects. Nobody takes over what is InFlight.
func states() resource.States {
	pending, inFlight := string(v1alpha1.ToolEffectPending), string(v1alpha1.ToolEffectInFlight)
	succeeded, failed, unknown := string(v1alpha1.ToolEffectSucceeded), string(v1alpha1.ToolEffectFailed), string(v1alpha1.ToolEffectOutcomeUnknown)
	return resource.States{
		Initial: []string{pending}, Held: []string{inFlight}, Ended: []string{succeeded, failed, unknown},
		Table: []resource.Transition{
			{From: pending, To: inFlight},
			{From: pending, To: failed}, // its task has ended
			{From: inFlight, To: succeeded},
			{From: inFlight, To: failed},
			{From: inFlight, To: unknown},
			{From: inFlight, To: pending}, // nothing was sent
		},
	}
}

func entry(e *v1alpha1.ToolEffect) resource.Entry {
	out := resource.Entry{State: string(e.Status.State), Holder: e.Status.LeaseOwner}
	if until := e.Status.LeaseExpiresAt; until != nil {
		out.Until = until.Time
	}
	return out
}

func pendingTask(e *v1alpha1.ToolEffect) string {
	if e.Status.State != v1alpha1.ToolEffectPending {
		return ""
	}
	return string(e.Spec.TaskUID)
}

func response(e *v1alpha1.ToolEffect) any {
	if e.Status.ResponseStatus == 0 {
		return ""
	}
	return strconv.Itoa(int(e.Status.ResponseStatus))
}

func (k *Kind) now() *metav1.MicroTime { return new(metav1.NewMicroTime(k.Clock.Now())) }

func validate(_ context.Context, e *v1alpha1.ToolEffect) field.ErrorList {
	if n := e.Spec.TimeoutSeconds; n < 1 || n > maxTimeout {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "timeoutSeconds"), n, fmt.Sprintf("must be from 1 to %d", maxTimeout))}
	}
	return nil
}

// writing marks the context of a write by Effects.
type writing struct{}

// validateStatus refuses changes of a status by anybody but Effects.
func validateStatus(ctx context.Context, e, old *v1alpha1.ToolEffect) field.ErrorList {
	if ctx.Value(writing{}) != nil || equality.Semantic.DeepEqual(e.Status, old.Status) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("status"), "only the server that sends the request changes it")}
}

// mayDelete refuses to delete an effect whose task could make the same call again, as if it had not been made before.
func (k *Kind) mayDelete(ctx context.Context, e *v1alpha1.ToolEffect) error {
	t, err := k.Task(resource.AsServer(ctx, e.Namespace), e.Spec.TaskName)
	if over, err := ended(t, e.Spec.TaskUID, err); over || err != nil {
		return err
	}
	return apierrors.NewConflict(v1alpha1.Resource("tooleffects"), e.Name, fmt.Errorf("task %q has not ended, and could make the call once more", e.Spec.TaskName))
}

// ended reports whether a task makes no call any more, given what reading it returned.
func ended(t *v1alpha1.Task, uid types.UID, err error) (bool, error) {
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return t.UID != uid || t.Status.Phase.Terminal(), nil
}
