// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/gateway"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
	"github.com/platform-ai/platform/pkg/redact"
)

// ending is how an event ends.
type ending struct {
	state           v1alpha1.GatewayEventState
	reason, message string
	// delivery is the answer, or what is said instead of one.
	delivery string
}

// end ends an event.
func (d *dispatcher) end(ctx context.Context, e *v1alpha1.GatewayEvent, how ending) error {
	err := d.change(ctx, e, func(s *v1alpha1.GatewayEventStatus) {
		s.State, s.Reason, s.StateMessage, s.DeliveryID = how.state, how.reason, brief(how.message), how.delivery
		s.NextAttemptAt, s.LeaseHolder, s.LeaseUntil, s.CompletedAt = nil, "", nil, stamp(d.now())
	})
	if err != nil {
		return err
	}
	switch how.state {
	case v1alpha1.GatewayEventDeadLettered:
		d.counts.deadLetters.WithLabelValues(kindEvent).Inc()
		d.counts.dispatched(resultDeadLettered)
	case v1alpha1.GatewayEventExpired:
		d.counts.dispatched(resultExpired)
	}
	return nil
}

// expire ends an event that was not dispatched in time.
func (d *dispatcher) expire(ctx context.Context, e *v1alpha1.GatewayEvent) error {
	message := "no task could be made in time"
	if e.Status.StateMessage != "" {
		message += "; the last obstacle: " + e.Status.StateMessage
	}
	gone, err := d.gatewayGone(ctx, e)
	if err != nil {
		return err
	}
	if gone {
		return d.end(ctx, e, ending{state: v1alpha1.GatewayEventDeadLettered, reason: v1alpha1.ReasonGatewayGone, message: "the gateway was deleted, or another one has its name"})
	}
	return d.apologize(ctx, e, ending{state: v1alpha1.GatewayEventExpired, reason: v1alpha1.ReasonGatewayExpired, message: message}, timeout)
}

// refused ends an event whose task the server does not accept.
func (d *dispatcher) refused(ctx context.Context, e *v1alpha1.GatewayEvent, why error) error {
	d.counts.dispatched(resultRefused)
	// An event that is held goes back to its queue before it ends without a task.
	err := d.change(ctx, e, func(s *v1alpha1.GatewayEventStatus) {
		s.State, s.LeaseHolder, s.LeaseUntil = v1alpha1.GatewayEventQueued, "", nil
	})
	if err != nil {
		return err
	}
	return d.apologize(ctx, e, ending{state: v1alpha1.GatewayEventCompleted, reason: v1alpha1.ReasonGatewayTaskRefused, message: why.Error()}, misconfigured)
}

// follow ends an event whose task is over.
func (d *dispatcher) follow(ctx context.Context, e *v1alpha1.GatewayEvent) error {
	t := &v1alpha1.Task{}
	found, err := get(ctx, d, e.Namespace, e.Status.TaskName, t)
	if err == nil && (!found || t.UID != e.Status.TaskUID) { // the cache may not have it yet
		t = &v1alpha1.Task{}
		found, err = get(ctx, d.live, e.Namespace, e.Status.TaskName, t)
	}
	if err != nil {
		return fmt.Errorf("task: %w", err)
	}
	if !found || t.UID != e.Status.TaskUID {
		return d.apologize(ctx, e, ending{state: v1alpha1.GatewayEventExpired, reason: v1alpha1.ReasonTaskGone, message: "the task was deleted"}, cancelled)
	}
	if err := d.announce(ctx, e, t); err != nil {
		return err
	}
	if !t.Status.Phase.Terminal() {
		return step.Wait{After: maintenance, Reason: "the task runs"}
	}
	how := ending{state: v1alpha1.GatewayEventCompleted, reason: v1alpha1.ReasonGatewayAnswered}
	var text string
	if t.Status.Phase == v1alpha1.TaskSucceeded {
		if text, err = d.result(ctx, t); err != nil {
			return err
		}
	}
	if strings.TrimSpace(text) == "" {
		err = d.apologize(ctx, e, how, categoryOf(t))
	} else {
		err = d.answer(ctx, e, how, text)
	}
	if err == nil && t.Status.CompletionTime != nil {
		d.counts.taskDuration.Observe(max(t.Status.CompletionTime.Sub(t.CreationTimestamp.Time), 0).Seconds())
	}
	return err
}

// result returns what the agent said, without secrets and not longer than may be sent.
func (d *dispatcher) result(ctx context.Context, t *v1alpha1.Task) (string, error) {
	r := &v1alpha1.TaskResult{}
	err := d.SubResource("result").Get(ctx, t, r)
	if apierrors.IsNotFound(err) {
		if c := t.Status.CompletionTime; c != nil && d.now().Sub(c.Time) < d.o.ResultGrace {
			return "", step.Wait{After: again, Reason: "the result is not there yet"}
		}
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("result of task %s: %w", t.Name, err)
	}
	var seen redact.Seen // before it is cut: a half of a secret would not be recognised
	text, _ := seen.Text(r.Result)
	return fitting(text), nil
}

// fitting cuts a text that is longer than may be sent, and says so.
func fitting(text string) string {
	if len(text) <= protocol.MaxText {
		return text
	}
	note := fmt.Sprintf("\n[cut: this is the beginning of an answer of %d bytes]", len(text))
	return clip.Text(text, protocol.MaxText-len(note)) + note
}

// messageSource is the sourceType of what gateways add to sessions.
const messageSource = "gateway"

// answer adds an answer to the session and makes its delivery.
func (d *dispatcher) answer(ctx context.Context, e *v1alpha1.GatewayEvent, how ending, text string) error {
	err := d.appendMessage(ctx, e.Namespace, e.Status.SessionName, v1alpha1.SessionMessage{
		ID: gateway.MessageID(e.Name, v1alpha1.RoleAssistant), Role: v1alpha1.RoleAssistant, Content: text, SourceType: messageSource, SourceRef: e.Name,
	})
	switch {
	case err != nil && !refusedForGood(err):
		return err
	case err != nil: // the sender gets the answer anyway
		how.message = err.Error()
	}
	return d.deliver(ctx, e, how, v1alpha1.GatewayDeliveryFinal, text)
}

// apologize makes a delivery that says why there is no answer.
func (d *dispatcher) apologize(ctx context.Context, e *v1alpha1.GatewayEvent, how ending, why category) error {
	return d.deliver(ctx, e, how, v1alpha1.GatewayDeliveryError, texts[why])
}

// deliver makes the delivery of an event and ends the event. If nobody can be told, the event is a dead letter.
func (d *dispatcher) deliver(ctx context.Context, e *v1alpha1.GatewayEvent, how ending, kind v1alpha1.GatewayDeliveryKind, text string) error {
	lost := func(why string) error {
		return d.end(ctx, e, ending{state: v1alpha1.GatewayEventDeadLettered, reason: how.reason, message: strings.TrimPrefix(how.message+"; "+why, "; ")})
	}
	if e.Spec.AccountID == "" || e.Spec.ContextID == "" {
		return lost("the event does not say where to answer")
	}
	g := &v1alpha1.Gateway{}
	if _, err := get(ctx, d, e.Namespace, e.Spec.GatewayName, g); err != nil {
		return fmt.Errorf("read the gateway: %w", err)
	}
	o := d.answerOf(e, g, kind, text)
	err := d.Create(ctx, o)
	if apierrors.IsAlreadyExists(err) { // made before this was interrupted
		have := &v1alpha1.GatewayDelivery{}
		if err = d.live.Get(ctx, client.ObjectKeyFromObject(o), have); err == nil && have.Spec.EventID != e.Name {
			err = errors.New("the record of another event has its name")
		}
	}
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err) {
		return lost(err.Error())
	}
	if err != nil {
		return fmt.Errorf("delivery %s: %w", o.Name, err)
	}
	how.delivery = o.Name
	return d.end(ctx, e, how)
}

// answerOf returns the delivery that answers an event. g has no UID if there is no such gateway.
func (w *world) answerOf(e *v1alpha1.GatewayEvent, g *v1alpha1.Gateway, kind v1alpha1.GatewayDeliveryKind, text string) *v1alpha1.GatewayDelivery {
	o := gateway.Named(gateway.DeliveryOf(e, g, kind, text), gateway.DeliveryID(e.UID, e.Status.Replays))
	o.Spec.MaxAttempts, o.Spec.CreatedAt = w.o.DeliveryAttempts, *stamp(w.now())
	return o
}
