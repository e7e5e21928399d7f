// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tooleffect

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

const (
	// look is how often Run looks for what is due, and atOnce how much of it is read at a time.
	look   = 30 * time.Second
	atOnce = 100
	// messageEnded is the message of an effect that was not claimed before its task ended.
	messageEnded = "the task has ended"
)

// over reports whether an effect is held by a lease that has ended.
func over(s *v1alpha1.ToolEffectStatus, now time.Time) bool {
	return s.State == v1alpha1.ToolEffectInFlight && (s.LeaseExpiresAt == nil || !now.Before(s.LeaseExpiresAt.Time))
}

// lose ends an effect whose lease has ended.
func lose(row *v1alpha1.ToolEffect) {
	row.Status = v1alpha1.ToolEffectStatus{
		State: v1alpha1.ToolEffectOutcomeUnknown, ApprovalID: row.Status.ApprovalID, Attempts: row.Status.Attempts,
		Message: fmt.Sprintf("the request was not over within %d s, or the server was interrupted while it sent it", row.Spec.TimeoutSeconds),
	}
}

// Run reconciles at once and then again and again, until ctx ends.
func (e *Effects) Run(ctx context.Context) {
	ticker := e.o.Clock.NewTicker(look)
	defer ticker.Stop()
	for {
		if err := e.Reconcile(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Effects of tools wait for being settled")
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// Reconcile ends effects that nobody else ends. One whose lease has ended becomes OutcomeUnknown. One that is Pending becomes Failed if its
// task has ended.
func (e *Effects) Reconcile(ctx context.Context) error {
	return errors.Join(e.loseAll(ctx), e.fenceAll(ctx))
}

// loseAll ends the effects whose lease has ended.
func (e *Effects) loseAll(ctx context.Context) error {
	for {
		due, err := e.o.Stored.Due(ctx, e.o.Clock.Now(), atOnce)
		if err != nil {
			return err
		}
		var failed []error
		for _, effect := range due {
			_, err := e.change(ctx, effect, func(row *v1alpha1.ToolEffect, now time.Time) error {
				if over(&row.Status, now) {
					lose(row)
				}
				return nil
			})
			if err != nil && !apierrors.IsNotFound(err) {
				failed = append(failed, err)
			}
		}
		if len(failed) > 0 || len(due) < atOnce {
			return errors.Join(failed...)
		}
	}
}

// fenceAll ends what was not claimed of tasks that have ended.
func (e *Effects) fenceAll(ctx context.Context) error {
	var pending []*v1alpha1.ToolEffect
	err := e.o.Stored.Select(ctx, "", fields.OneTermEqualSelector(FieldState, string(v1alpha1.ToolEffectPending)), func(effect *v1alpha1.ToolEffect) error {
		pending = append(pending, effect)
		return nil
	})
	if err != nil {
		return err
	}
	known := map[types.UID]bool{} // whether the task with a UID has ended
	var failed []error
	for _, effect := range pending {
		over, asked := known[effect.Spec.TaskUID]
		if !asked {
			t, err := e.o.TaskOf(ctx, effect.Namespace, effect.Spec.TaskName)
			if over, err = ended(t, effect.Spec.TaskUID, err); err != nil {
				failed = append(failed, err)
				continue
			}
			known[effect.Spec.TaskUID] = over
		}
		if !over {
			continue
		}
		_, err := e.change(ctx, effect, func(row *v1alpha1.ToolEffect, _ time.Time) error {
			if row.Status.State == v1alpha1.ToolEffectPending {
				row.Status = v1alpha1.ToolEffectStatus{State: v1alpha1.ToolEffectFailed, Attempts: row.Status.Attempts, Message: messageEnded}
			}
			return nil
		})
		if err != nil && !apierrors.IsNotFound(err) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
