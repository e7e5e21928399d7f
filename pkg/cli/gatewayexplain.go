// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/gateway"
	typed "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
)

func gatewayExplain(api *server, term *terminal) *cobra.Command {
	return &cobra.Command{
		Use: "explain EVENT", Short: "Say what happened to an event, what it waits for, and what to do", Args: cobra.ExactArgs(1), ValidArgsFunction: api.names(gatewayEvents),
		Long: "Say what happened to an event: where it came from, how often, which binding is for it or why none is, its place in its session and\n" +
			"what waits before it, its task, its deliveries, and what to do. What you may not read is left out, and that is said.",
		RunE: func(cmd *cobra.Command, args []string) error {
			c, namespace, err := api.client()
			if err != nil {
				return err
			}
			e, err := c.GatewayEvents(namespace).Get(cmd.Context(), args[0], metav1.GetOptions{})
			if err != nil {
				return err
			}
			s := &eventStory{terminal: term, client: c, event: e}
			if err := s.tell(cmd.Context()); err != nil {
				return err
			}
			return term.facts(s.lines)
		},
	}
}

// eventStory puts together what is known of an event.
type eventStory struct {
	*terminal
	client typed.CoreV1alpha1Interface
	event  *v1alpha1.GatewayEvent
	lines  [][2]string
	advice []string
}

// add adds a line. Most of what is in it was written by others.
func (s *eventStory) add(what, text string) { s.lines = append(s.lines, [2]string{what, clean(text)}) }

// readable reports whether something was read. What the caller may not read is a line of the story.
func (s *eventStory) readable(what string, err error) (bool, error) {
	if apierrors.IsForbidden(err) {
		s.add(what, "not known, because you may not read it: "+explain(err))
		return false, nil
	}
	return err == nil, err
}

func (s *eventStory) tell(ctx context.Context) error {
	e, now := s.event, &s.event.Status
	s.add("Event", e.Name+", "+e.Spec.ExternalEventID+" of the gateway "+e.Spec.GatewayName)
	place := e.Spec.AccountID + ", " + e.Spec.ContextID
	if e.Spec.ThreadID != "" {
		place += ", thread " + e.Spec.ThreadID
	}
	s.add("Conversation", place)
	sender := e.Spec.SenderID
	if e.Spec.SenderDisplayName != "" {
		sender += fmt.Sprintf(", shown as %q", e.Spec.SenderDisplayName)
	}
	s.add("Sender", sender)
	s.add("Text", fit(clean(e.Spec.Text), 2*textColumns))
	received := e.Spec.CreatedAt.Local().Format(time.DateTime)
	if e.Spec.OccurredAt != nil {
		received += ", written at " + e.Spec.OccurredAt.Local().Format(time.DateTime)
	}
	s.add("Received", received+s.repetitions())
	s.add("State", inOne(string(now.State), now.Reason, now.StateMessage))
	if now.Replays > 0 {
		s.add("Replayed", fmt.Sprintf("%s, last by %s", many(int(now.Replays), "time"), now.ReplayedBy))
	}
	if d := now.Decision; d != nil {
		counts := "does not count"
		if d.Accepted {
			counts = "counts"
		}
		s.add("Decision", fmt.Sprintf("%s, for the code %s (approval %s), as the user %s: it %s", d.Decision, d.Code, cmp.Or(d.Approval, "unknown"), cmp.Or(d.Subject, "unknown"), counts))
	}
	for _, part := range []func(context.Context) error{s.binding, s.session, s.task, s.deliveries} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	for _, text := range s.advice {
		s.add("To do", text)
	}
	return nil
}

// repetitions says how often an event was delivered again.
func (s *eventStory) repetitions() string {
	text := ""
	if n := s.event.Status.Duplicates; n > 0 {
		text = "; delivered again " + many(int(n), "time")
	}
	if n := s.event.Status.Mismatches; n > 0 {
		text += fmt.Sprintf("; %s with other content under the same id, refused", many(int(n), "time"))
	}
	return text
}

// binding says which binding is for the event and, if it ended without an answer, where it would go now.
func (s *eventStory) binding(ctx context.Context) error {
	e, now := s.event, &s.event.Status
	if now.BindingName != "" {
		text := now.BindingName
		if now.AgentName != "" {
			text += ", whose Agent is " + now.AgentName
		}
		s.add("Binding", text)
	}
	if now.State != v1alpha1.GatewayEventRejected && now.State != v1alpha1.GatewayEventDeadLettered {
		return nil
	}
	list, err := s.client.GatewayBindings(e.Namespace).List(ctx, metav1.ListOptions{})
	if ok, err := s.readable("Bindings", err); !ok {
		return err
	}
	var all []*v1alpha1.GatewayBinding
	for i := range list.Items {
		b := &list.Items[i]
		if b.Spec.GatewayRef.Name != e.Spec.GatewayName {
			continue
		}
		all = append(all, b)
		if now.State == v1alpha1.GatewayEventRejected {
			s.add("Binding", b.Name+": "+differs(b, &e.Spec))
		}
	}
	if len(all) == 0 {
		s.add("Bindings", "the gateway has none")
	}
	if route := gateway.RouteOf(&e.Spec, all); route.Binding == nil {
		s.advice = append(s.advice, fmt.Sprintf("it would be rejected now, too (%s); correct the bindings, then: platform gateway events replay %s", route.Message, e.Name))
	} else {
		s.advice = append(s.advice, fmt.Sprintf("it would go to the binding %s now: platform gateway events replay %s", route.Binding.Name, e.Name))
	}
	return nil
}

// differs says why a binding is not for an event, or that it is.
func differs(b *v1alpha1.GatewayBinding, e *v1alpha1.GatewayEventSpec) string {
	m := &b.Spec.Match
	for _, part := range []struct {
		name, wanted, is string
		all              bool
	}{
		{"accountId", m.AccountID, e.AccountID, false},
		{"contextId", m.ContextID, e.ContextID, false},
		{"threadId", m.ThreadID, e.ThreadID, m.ThreadID == ""},
		{"senderId", m.SenderID, e.SenderID, m.SenderID == ""},
	} {
		if !part.all && part.wanted != part.is {
			return fmt.Sprintf("its %s is %q, and that of the event is %q", part.name, part.wanted, part.is)
		}
	}
	if b.Spec.SenderPolicy.Mode != v1alpha1.GatewaySendersAll && !slices.Contains(b.Spec.SenderPolicy.AllowedSenderIDs, e.SenderID) {
		return "it is for the conversation, but its senderPolicy does not allow the sender"
	}
	return fmt.Sprintf("it is for the event, with priority %d", b.Spec.Priority)
}

// session says where the event is in its session, and what it waits for.
func (s *eventStory) session(ctx context.Context) error {
	e, now := s.event, &s.event.Status
	if now.SessionName == "" {
		return nil
	}
	s.add("Session", fmt.Sprintf("%s, place %d", now.SessionName, now.TranscriptOrder))
	if now.State != v1alpha1.GatewayEventQueued && now.State != v1alpha1.GatewayEventDispatching {
		return nil
	}
	if now.NextAttemptAt != nil {
		s.add("Next attempt", fmt.Sprintf("%s, after %s that could not begin", s.until(now.NextAttemptAt), many(int(now.AttemptCount), "attempt")))
	}
	s.add("Expires", s.until(now.ExpiresAt))
	found, err := gatewayRecords(ctx, s.client, e.Namespace, v1alpha1.GatewayRecordQuerySpec{
		Records: v1alpha1.GatewayRecordsEvents, Session: now.SessionName,
		States: texts(v1alpha1.GatewayEventQueued, v1alpha1.GatewayEventDispatching, v1alpha1.GatewayEventTaskCreated),
	}, 0)
	if ok, err := s.readable("Waits for", err); !ok {
		return err
	}
	before := slices.DeleteFunc(found.Events, func(o v1alpha1.GatewayEvent) bool { return o.Status.TranscriptOrder >= now.TranscriptOrder })
	if len(before) == 0 {
		return nil
	}
	first := slices.MinFunc(before, func(a, b v1alpha1.GatewayEvent) int {
		return cmp.Compare(a.Status.TranscriptOrder, b.Status.TranscriptOrder)
	})
	s.add("Waits for", fmt.Sprintf("%s before it in the session; the first is %s (%s)", many(len(before), "event"), first.Name, inOne(string(first.Status.State), cmp.Or(first.Status.StateMessage, first.Status.Reason))))
	s.advice = append(s.advice, "see what the first one waits for: platform gateway events explain "+first.Name)
	return nil
}

// task says what the task of the event does.
func (s *eventStory) task(ctx context.Context) error {
	name := s.event.Status.TaskName
	if name == "" {
		return nil
	}
	t, err := s.client.Tasks(s.event.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		s.add("Task", name+": it was deleted")
		return nil
	}
	if ok, err := s.readable("Task", err); !ok {
		return err
	}
	if uid := s.event.Status.TaskUID; uid != "" && uid != t.UID {
		s.add("Task", name+": it was deleted, and another task has its name")
		return nil
	}
	node := nodeOf(t)
	phase := string(node.Phase)
	if d := took(t.Status.StartTime, t.Status.CompletionTime, t.Status.Phase, s.clock.Now()); d != "" {
		phase += " for " + d
		if t.Status.CompletionTime != nil {
			phase = string(node.Phase) + " after " + d
		}
	}
	s.add("Task", inOne(name, phase, node.Reason, t.Status.Message))
	return nil
}

// deliveries says what became of the answers.
func (s *eventStory) deliveries(ctx context.Context) error {
	e := s.event
	found, err := gatewayRecords(ctx, s.client, e.Namespace, v1alpha1.GatewayRecordQuerySpec{Records: v1alpha1.GatewayRecordsDeliveries, Event: e.Name}, 0)
	if ok, err := s.readable("Deliveries", err); !ok {
		return err
	}
	id := e.Status.DeliveryID
	if id != "" && !slices.ContainsFunc(found.Deliveries, func(d v1alpha1.GatewayDelivery) bool { return d.Name == id }) {
		s.add("Delivery", id+": its record is not kept any more")
	}
	for i := range slices.Backward(found.Deliveries) {
		d := &found.Deliveries[i]
		s.add("Delivery", inOne(d.Name, string(d.Status.State), strings.Join(s.deliveryFacts(d), ", ")))
		switch d.Status.State {
		case v1alpha1.GatewayDeliveryDeadLettered, v1alpha1.GatewayDeliveryFailed:
			s.advice = append(s.advice, again(d))
		case v1alpha1.GatewayDeliveryPending, v1alpha1.GatewayDeliveryRetryScheduled:
			if err := s.held(ctx, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// again says what can be done about a delivery that was given up.
func again(d *v1alpha1.GatewayDelivery) string {
	retry := "platform gateway deliveries retry " + d.Name
	switch {
	case d.Status.Reason == v1alpha1.ReasonGatewayGone:
		return "its gateway was deleted or changed since it was written; if it was only changed, send it to where it is now: " + retry
	case d.Status.OutcomeUnknown:
		return "it may have been posted, so look into the conversation; to send it again: " + retry
	}
	return "send it again: " + retry
}

// inOne joins the parts of a line that there are.
func inOne(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ": ")
}

// held says which delivery of the session is to be sent first.
func (s *eventStory) held(ctx context.Context, d *v1alpha1.GatewayDelivery) error {
	found, err := gatewayRecords(ctx, s.client, d.Namespace, v1alpha1.GatewayRecordQuerySpec{
		Records: v1alpha1.GatewayRecordsDeliveries, Session: d.Spec.SessionName,
		States: texts(v1alpha1.GatewayDeliveryPending, v1alpha1.GatewayDeliverySending, v1alpha1.GatewayDeliveryRetryScheduled),
	}, 0)
	if ok, err := s.readable("Held by", err); !ok {
		return err
	}
	first := slices.MinFunc(append(found.Deliveries, *d), func(a, b v1alpha1.GatewayDelivery) int {
		return gateway.CompareDeliveries(&a.Spec, &b.Spec)
	})
	if first.Name != d.Name {
		s.add("Held by", fmt.Sprintf("%s, which comes before it in the session: %s, %s", first.Name, first.Status.State, strings.Join(s.deliveryFacts(&first), ", ")))
	}
	return nil
}
