// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connectorcall

import (
	"context"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/server/connection"
	"github.com/platform-ai/platform/pkg/tool"
)

// reserve keeps the effect of a call before anybody is asked to approve it.
func (s *Calls) reserve(ctx context.Context, c *call, dryRun bool, out *v1alpha1.TaskConnectorCall) error {
	spec, err := s.spec(c)
	if err != nil {
		return err
	}
	e, err := s.o.Effects.Reserve(ctx, c.task.Namespace, spec, dryRun)
	if err != nil {
		return err
	}
	out.Effect = e.Name
	return nil
}

// spend makes an approved call, once for its approval.
func (s *Calls) spend(ctx context.Context, c *call, out *v1alpha1.TaskConnectorCall) error {
	e, err := s.effect(ctx, c)
	if err != nil {
		return err
	}
	out.Effect = e.Name
	var token connection.Token
	if e.Status.State == v1alpha1.ToolEffectPending { // before the claim, whose time is that of the request alone
		if token, err = s.token(ctx, c); err != nil {
			return err
		}
	}
	claim, err := s.o.Effects.Claim(ctx, e, c.posted.ApprovalID)
	if err != nil {
		return err
	}
	if claim.Replayed() {
		out.Replayed = true
		return replay(claim.Effect(), claim.Response(), out)
	}
	if token.Access.Reveal() == "" { // a claim was handed back meanwhile
		if err := claim.HandBack(ctx); err != nil {
			return err
		}
		return fails(v1alpha1.ConnectorUnavailable, "the call was handed back in this moment")
	}
	got := s.send(tool.WithApproval(context.WithoutCancel(ctx), c.posted.ApprovalID), c, token)
	switch {
	case got.failed == nil:
		err = claim.Succeed(ctx, got.status, got.result)
	case got.unsent:
		err = claim.HandBack(ctx)
	case got.failed.Reason == v1alpha1.ConnectorOutcomeUnknown:
		err = claim.Unknown(ctx, got.failed.Message)
	default:
		err = claim.Fail(ctx, got.status, got.failed.Message)
	}
	if err != nil {
		return err
	}
	if got.failed != nil {
		return got.failed
	}
	out.Result = &apiextensionsv1.JSON{Raw: got.result}
	return nil
}

// made answers a call whose request was made before, whatever has become of the account since then. It reports whether that is so.
func (s *Calls) made(ctx context.Context, t *v1alpha1.Task, posted *v1alpha1.TaskConnectorCall, out *v1alpha1.TaskConnectorCall) (bool, error) {
	if posted.ApprovalID == "" || posted.Arguments == nil {
		return false, nil
	}
	a, err := s.approval(ctx, t, posted.ApprovalID)
	if err != nil || a == nil || a.Spec.Binding == nil || a.Spec.Binding.Effect == "" {
		return false, err
	}
	e, err := s.o.Effects.Get(ctx, t.Namespace, a.Spec.Binding.Effect)
	if err != nil {
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return false, err
	}
	digest, err := approval.Digest(posted.Arguments.Raw)
	spent := err == nil && e.Status.ApprovalID == a.Name && e.Status.State != v1alpha1.ToolEffectPending
	if !spent || e.Spec.TaskUID != t.UID || e.Spec.Tool != posted.ToolName || e.Spec.RequestDigest != digest {
		return false, nil
	}
	claim, err := s.o.Effects.Claim(ctx, e, a.Name)
	if err != nil {
		return true, err
	}
	if !claim.Replayed() { // it was handed back in this moment
		return false, claim.HandBack(ctx)
	}
	out.Effect, out.Replayed = e.Name, true
	return true, replay(claim.Effect(), claim.Response(), out)
}

// replay answers with what an effect came to before.
func replay(e *v1alpha1.ToolEffect, response []byte, out *v1alpha1.TaskConnectorCall) error {
	if e.Status.State == v1alpha1.ToolEffectFailed {
		f := fails(v1alpha1.ConnectorRefused, "%s", e.Status.Message)
		f.Status = e.Status.ResponseStatus
		return f
	}
	out.Result = &apiextensionsv1.JSON{Raw: response}
	return nil
}

// effect returns the effect that an approval is for. It must be that of this very call.
func (s *Calls) effect(ctx context.Context, c *call) (*v1alpha1.ToolEffect, error) {
	a, err := s.approved(ctx, c)
	if err != nil {
		return nil, err
	}
	if a.Spec.Binding == nil || a.Spec.Binding.Effect == "" {
		return nil, fails(v1alpha1.ConnectorDenied, "the approval %s names no effect, so it is for no call of %s", a.Name, c.tool.Name)
	}
	e, err := s.o.Effects.Get(ctx, c.task.Namespace, a.Spec.Binding.Effect)
	if apierrors.IsNotFound(err) {
		return nil, fails(v1alpha1.ConnectorDenied, "the effect %s of the approval does not exist", a.Spec.Binding.Effect)
	}
	if err != nil {
		return nil, err
	}
	want, err := s.spec(c)
	if err != nil {
		return nil, err
	}
	// An approval outlives an attempt of the task, in which the model calls the tool again.
	want.Attempt, want.CallID, want.CreatedAt = e.Spec.Attempt, e.Spec.CallID, e.Spec.CreatedAt
	if e.Spec != want {
		return nil, fails(v1alpha1.ConnectorDenied, "the approval is not for this call of %s: %s; it was not made", c.tool.Name, differs(&e.Spec, &want))
	}
	if a.CreationTimestamp.Time.Before(e.Spec.CreatedAt.Truncate(time.Second)) {
		return nil, fails(v1alpha1.ConnectorDenied, "the effect %s was reserved after the approval was asked for", e.Name)
	}
	return e, nil
}
