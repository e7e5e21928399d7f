// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/egress"
)

// completed writes a missing terminal event of a finished task again, and
// delivers the completion callback.
type completed struct {
	end  endFunc
	post func(ctx context.Context, target string, body webhookBody) error
	// warn writes a warning about the task for people.
	warn func(ctx context.Context, t *v1alpha1.Task, reason, message string)
}

func (s completed) do(ctx context.Context, t *v1alpha1.Task) error {
	if !t.Status.Phase.Terminal() {
		return nil
	}
	// The condition is written with the phase, after the event. If the phase was set by somebody else, both are
	// missing.
	if !meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionComplete) {
		if err := s.end(ctx, t, outcome{phase: t.Status.Phase, message: t.Status.Message}); err != nil {
			return err
		}
		return step.ErrDone
	}
	addEnd(&t.Status)
	if t.Spec.WebhookURL == "" || t.Status.WebhookDelivered {
		return step.ErrDone
	}
	body := webhookBody{
		TaskName: t.Name, TaskNamespace: t.Namespace, Phase: string(t.Status.Phase), Message: t.Status.Message,
		StartTime: t.Status.StartTime, CompletionTime: t.Status.CompletionTime, Attempts: t.Status.Attempts,
	}
	body.ResultRef.Available = t.Status.ResultRef != nil && t.Status.ResultRef.Available
	if t.Spec.Type == v1alpha1.TaskTypeAgent {
		body.RuntimeType = "agent"
	}
	if err := s.post(ctx, t.Spec.WebhookURL, body); err != nil {
		klog.FromContext(ctx).Info("Completion callback was not delivered", "cause", err.Error())
		if errors.Is(err, egress.ErrRefused) || errors.Is(err, errWebhookURL) {
			s.warn(ctx, t, v1alpha1.EventReasonWebhookRefused, "spec.webhookURL: the completion callback is not sent there: "+err.Error()+
				"; it must be a public address, or one that the operator allowed (--webhook-allow)")
			return step.Wait{After: webhookRefusedRetry, Reason: "the destination of the completion callback is refused"}
		}
		s.warn(ctx, t, v1alpha1.EventReasonWebhookFailed, "the completion callback was not delivered and will be sent again: "+err.Error())
		return step.Wait{After: webhookRetry, Reason: "the completion callback was not delivered"}
	}
	t.Status.WebhookDelivered = true
	return step.ErrDone
}
