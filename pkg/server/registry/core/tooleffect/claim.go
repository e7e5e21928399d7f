// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tooleffect

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/quota"
)

// Claim is an effect that was claimed. Whoever has it sends the request, unless it is Replayed, and then calls Succeed, Fail, Unknown or
// HandBack. If none is called, the effect becomes OutcomeUnknown when its lease ends (status.leaseExpiresAt).
//
// These methods store what they say although the context has ended. If the effect was settled in another way before, because the lease had
// ended, they change nothing, and the error says what is stored. A Claim is not for concurrent use.
type Claim struct {
	effects  *Effects
	effect   *v1alpha1.ToolEffect
	replayed bool
	response []byte
	// approval and number, which counts the claims of the effect, are those of this claim, whatever became of the effect.
	approval string
	number   int32
}

// Effect returns the effect as it is stored.
func (c *Claim) Effect() *v1alpha1.ToolEffect { return c.effect }

// Replayed reports whether the request was made before. Nothing may be sent then. The status of Effect says whether it succeeded or failed,
// and with which HTTP status and message.
func (c *Claim) Replayed() bool { return c.replayed }

// Response returns what the tool returned before, byte for byte, if the claim is Replayed and the request succeeded.
func (c *Claim) Response() []byte { return c.response }

// Succeed stores that the provider answered with success, by its HTTP status and what the tool returns. A response of at most
// MaxResponseBytes is kept, if there is room for it.
func (c *Claim) Succeed(ctx context.Context, status int, response []byte) error {
	ctx = context.WithoutCancel(ctx)
	if c.replayed {
		return c.refused()
	}
	sum := sha256.Sum256(response)
	return c.settle(ctx, v1alpha1.ToolEffectStatus{
		State: v1alpha1.ToolEffectSucceeded, ResponseStatus: int32(status), ResponseDigest: hex.EncodeToString(sum[:]), ResponseBytes: int64(len(response)),
		Message: c.keep(ctx, response),
	})
}

// Fail stores that the provider refused the request, by its HTTP status and why. What looks like a secret is removed from the message.
func (c *Claim) Fail(ctx context.Context, status int, message string) error {
	return c.settle(ctx, v1alpha1.ToolEffectStatus{State: v1alpha1.ToolEffectFailed, ResponseStatus: int32(status), Message: message})
}

// Unknown stores that nobody knows whether the provider carried out the request, and why.
func (c *Claim) Unknown(ctx context.Context, message string) error {
	return c.settle(ctx, v1alpha1.ToolEffectStatus{State: v1alpha1.ToolEffectOutcomeUnknown, Message: message})
}

// HandBack stores that nothing was sent, so that the effect may be claimed again, with the same approval, too.
func (c *Claim) HandBack(ctx context.Context) error {
	return c.settle(ctx, v1alpha1.ToolEffectStatus{State: v1alpha1.ToolEffectPending})
}

// settle ends the claim, unless it has ended.
func (c *Claim) settle(ctx context.Context, to v1alpha1.ToolEffectStatus) error {
	if c.replayed {
		return c.refused()
	}
	to.Attempts, to.Message = c.number, says(to.Message)
	if to.State != v1alpha1.ToolEffectPending {
		to.ApprovalID = c.approval
	}
	settled := false
	row, err := c.effects.change(context.WithoutCancel(ctx), c.effect, func(row *v1alpha1.ToolEffect, _ time.Time) error {
		// A claim that was handed back, after which another one was made, has another number.
		settled = row.Status.State == v1alpha1.ToolEffectInFlight && row.Status.Attempts == c.number
		if settled {
			row.Status = to
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.effect = row
	switch {
	case settled, row.Status.State == to.State && row.Status.Attempts == c.number: // perhaps by an earlier call
		return nil
	case row.Status.State == v1alpha1.ToolEffectOutcomeUnknown:
		return unknown(row)
	}
	return c.refused()
}

// refused says that the claim has ended.
func (c *Claim) refused() error {
	return apierrors.NewConflict(v1alpha1.Resource("tooleffects"), c.effect.Name, fmt.Errorf("the claim has ended; the state is %s", c.effect.Status.State))
}

// id is by which the response to the request of a claim is kept.
func id(effect types.UID, number int32) string { return fmt.Sprintf("%s/%d", effect, number) }

// keep keeps a response with the content of the task. If it cannot, the message says why: the request has succeeded all the same.
func (c *Claim) keep(ctx context.Context, response []byte) (message string) {
	if len(response) > MaxResponseBytes {
		return fmt.Sprintf("the response is not kept: it has %d bytes, and at most %d are kept", len(response), MaxResponseBytes)
	}
	e, spec := c.effects, &c.effect.Spec
	t, err := e.o.TaskOf(ctx, c.effect.Namespace, spec.TaskName)
	if apierrors.IsNotFound(err) || err == nil && t.UID != spec.TaskUID {
		return "the response is not kept: the task was deleted"
	}
	if err == nil {
		err = e.o.Responses.KeepAnswer(ctx, c.effect.Namespace, spec.TaskUID, id(c.effect.UID, c.number), response)
	}
	switch {
	case err == nil:
		return ""
	case errors.Is(err, quota.ErrLimit) || errors.Is(err, engine.ErrFull):
		return "the response is not kept: there is no room for it"
	}
	klog.FromContext(ctx).Error(err, "The response of a tool is not kept", "effect", klog.KObj(c.effect))
	return "the response is not kept: it could not be stored"
}

// kept returns the response of an effect that succeeded, byte for byte.
func (e *Effects) kept(ctx context.Context, row *v1alpha1.ToolEffect) ([]byte, error) {
	s := &row.Status
	response, ok, err := e.o.Responses.Answer(ctx, row.Spec.TaskUID, id(row.UID, s.Attempts))
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(response); ok && hex.EncodeToString(sum[:]) == s.ResponseDigest {
		return response, nil
	}
	why := "is not kept any more"
	switch {
	case s.ResponseBytes > MaxResponseBytes:
		why = "was too large to be kept"
	case s.Message != "":
		why = "is not kept"
	}
	return nil, status(row, http.StatusGone, metav1.StatusReasonGone, fmt.Sprintf(
		"the request succeeded and is not sent again; its response of %d bytes, with the SHA-256 %s, %s", s.ResponseBytes, s.ResponseDigest, why))
}
