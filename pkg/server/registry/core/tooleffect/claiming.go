// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tooleffect

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// reasonUnknown is the reason of the API error of an effect whose outcome is not known.
const reasonUnknown = metav1.StatusReason(v1alpha1.ToolEffectOutcomeUnknown)

// Claim takes an effect for one request, which may be sent once Claim has returned: it is durable. Of several that try, one succeeds. It
// spends the approval, unless the claim is handed back.
//
// Of an effect that has succeeded or failed, the claim is Replayed: it has what is stored, and nothing may be sent. An error says why there
// is no claim:
//
//   - 403: the approval was spent on another effect, or another approval on this one.
//   - 409: the request is being executed, or the effect is not the one that is stored.
//   - 410: the request succeeded, and its response is not kept. The error has its length and its digest.
//   - 502: the outcome of the request is not known; see IsOutcomeUnknown.
func (e *Effects) Claim(ctx context.Context, effect *v1alpha1.ToolEffect, approvalID string) (*Claim, error) {
	if approvalID == "" {
		return nil, apierrors.NewBadRequest("approvalId: is required")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx) // or nobody would know whether it is claimed
	defer e.hold("approval/" + approvalID)()
	if err := e.unspent(ctx, effect, approvalID); err != nil {
		return nil, err
	}
	claimed := false
	row, err := e.change(ctx, effect, func(row *v1alpha1.ToolEffect, now time.Time) error {
		claimed = false // the last call counts
		s := &row.Status
		switch {
		case s.ApprovalID != "" && s.ApprovalID != approvalID:
			return apierrors.NewForbidden(v1alpha1.Resource("tooleffects"), row.Name, errors.New("another approval was spent on it"))
		case s.State == v1alpha1.ToolEffectPending:
			claimed = true
			*s = v1alpha1.ToolEffectStatus{
				State: v1alpha1.ToolEffectInFlight, ApprovalID: approvalID, Attempts: s.Attempts + 1,
				LeaseOwner: e.o.Holder, LeaseExpiresAt: leaseEnd(now, row.Spec.TimeoutSeconds),
			}
		case over(s, now):
			lose(row)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case claimed:
		return &Claim{effects: e, effect: row, approval: approvalID, number: row.Status.Attempts}, nil
	}
	return e.replay(ctx, row)
}

// unspent returns an error if an approval was spent on another effect of the namespace.
func (e *Effects) unspent(ctx context.Context, effect *v1alpha1.ToolEffect, approvalID string) error {
	return e.o.Stored.Select(ctx, effect.Namespace, fields.OneTermEqualSelector(FieldApproval, approvalID), func(other *v1alpha1.ToolEffect) error {
		if other.Name == effect.Name {
			return nil
		}
		return apierrors.NewForbidden(v1alpha1.Resource("tooleffects"), effect.Name, fmt.Errorf("the approval was spent on %s", other.Name))
	})
}

// leaseEnd returns when a lease of some seconds ends, rounded up to the next second: what is due is found by the stored time, which is in
// whole seconds.
func leaseEnd(now time.Time, seconds int32) *metav1.Time {
	end := now.Add(time.Duration(seconds) * time.Second)
	if whole := end.Truncate(time.Second); whole.Before(end) {
		end = whole.Add(time.Second)
	}
	return new(metav1.NewTime(end).Rfc3339Copy())
}

// replay returns what is stored of an effect that is not claimed.
func (e *Effects) replay(ctx context.Context, row *v1alpha1.ToolEffect) (*Claim, error) {
	s := &row.Status
	switch s.State {
	case v1alpha1.ToolEffectSucceeded:
		response, err := e.kept(ctx, row)
		if err != nil {
			return nil, err
		}
		return &Claim{effects: e, effect: row, replayed: true, response: response}, nil
	case v1alpha1.ToolEffectFailed:
		return &Claim{effects: e, effect: row, replayed: true}, nil
	case v1alpha1.ToolEffectInFlight:
		return nil, apierrors.NewConflict(v1alpha1.Resource("tooleffects"), row.Name, errors.New("the request is still executing; ask again later"))
	}
	return nil, unknown(row)
}

// unknown is the error of an effect whose outcome is not known.
func unknown(row *v1alpha1.ToolEffect) error {
	return status(row, http.StatusBadGateway, reasonUnknown, "it is not known whether the provider carried out the request, which is not sent again: "+row.Status.Message)
}

// IsOutcomeUnknown reports whether an error says that nobody knows whether a request was carried out.
func IsOutcomeUnknown(err error) bool { return apierrors.ReasonForError(err) == reasonUnknown }

// status returns an API error about an effect.
func status(row *v1alpha1.ToolEffect, code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: fmt.Sprintf("tool effect %q: %s", row.Name, message),
		Details: &metav1.StatusDetails{Group: v1alpha1.GroupName, Kind: "tooleffects", Name: row.Name, UID: row.UID},
	}}
}
