// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/gateway"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
	"github.com/platform-ai/platform/pkg/redact"
	kinds "github.com/platform-ai/platform/pkg/server/registry/core/gateway"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

const (
	// backoffFirst and backoffMost are how long a delivery waits after it failed for the first time, and at most.
	backoffFirst, backoffMost = time.Second, 5 * time.Minute
	// late is how long after it was written an answer is late, if its binding does not say.
	late = 10 * time.Minute
)

// errLater says that a delivery is not sent now.
func errLater(d *v1alpha1.GatewayDelivery, why string) error {
	return apierrors.NewConflict(v1alpha1.Resource("gatewaydeliveries"), d.Name, errors.New(why))
}

// Send sends a delivery, if it is its turn, and returns it as it is afterwards. A conflict says why it is not sent now; 429 that its adapter
// cannot be reached, and when to ask again.
func (h *Hub) Send(ctx context.Context, d *v1alpha1.GatewayDelivery) (*v1alpha1.GatewayDelivery, error) {
	now := h.o.Clock.Now()
	if err := h.turn(ctx, d, now); err != nil {
		return nil, err
	}
	policy, after := h.lateness(ctx, d)
	isLate := now.Sub(d.Spec.CreatedAt.Time) >= after
	unwanted := ""
	if isLate && policy == v1alpha1.GatewayLateExpire && d.Status.ManualRetryCount == 0 { // a person may ask for it
		unwanted = fmt.Sprintf("it could not be delivered within %s, and the binding wants no late answers", after)
	}
	if given, err := h.giveUp(ctx, d, now, unwanted); given != nil || err != nil {
		return given, err
	}
	g, err := h.gateway(ctx, d.Namespace, d.Spec.GatewayName)
	switch {
	case apierrors.IsNotFound(err), err == nil && !meant(d, g):
		return h.end(ctx, d, v1alpha1.GatewayDeliveryDeadLettered, v1alpha1.ReasonGatewayGone, "the gateway was deleted or changed after the answer was written")
	case err != nil:
		return nil, err
	}
	a, err := h.adapter(ctx, g)
	if err != nil {
		return h.unreached(ctx, d, "", err)
	}
	if until := a.down.Load(); until > now.UnixNano() {
		return nil, apierrors.NewTooManyRequests("the adapter could not be reached a moment ago", retryAfter)
	} else if until != 0 {
		if err := h.look(ctx, a); err != nil {
			return nil, apierrors.NewTooManyRequests("the adapter cannot be reached", retryAfter)
		}
	}
	body := wire(d, isLate)
	holder, err := h.claim(ctx, d, isLate)
	if err != nil {
		return nil, err
	}
	to, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.o.Limits.DeliveryTimeout) // what was begun is stored
	defer cancel()
	var answer protocol.Answer
	x, err := a.ask(to, http.MethodPost, protocol.PathDeliveries, body, &answer, now)
	if err == nil {
		err = answer.Check()
	}
	if err != nil && !x.sent {
		a.down.Store(h.o.Clock.Now().Add(h.o.Limits.Poll).UnixNano())
		return h.unreached(ctx, d, holder, err)
	}
	return h.outcome(ctx, d, holder, x, &answer, err)
}

// meant reports whether a delivery is for a gateway as it is now. If its spec has changed since, only a person may send it there.
func meant(d *v1alpha1.GatewayDelivery, g *v1alpha1.Gateway) bool {
	return g.UID == d.Spec.GatewayUID && (g.Generation == d.Spec.GatewayGeneration || d.Status.ManualRetryCount > 0)
}

// look asks an adapter that could not be reached whether it can be reached now.
func (h *Hub) look(ctx context.Context, a *adapter) error {
	now := h.o.Clock.Now()
	a.down.Store(now.Add(h.o.Limits.Poll).UnixNano()) // others need not look meanwhile
	ctx, cancel := context.WithTimeout(ctx, h.o.Limits.DeliveryTimeout)
	defer cancel()
	var health protocol.Health
	if x, err := a.ask(ctx, http.MethodGet, protocol.PathHealth, nil, &health, now); err != nil && x.code == 0 {
		return err
	}
	a.down.Store(0)
	return nil
}

// turn returns why a delivery is not sent now; nil if it is its turn.
func (h *Hub) turn(ctx context.Context, d *v1alpha1.GatewayDelivery, now time.Time) error {
	s := &d.Status
	switch s.State {
	case v1alpha1.GatewayDeliveryPending, v1alpha1.GatewayDeliveryRetryScheduled:
		if s.NextAttemptAt != nil && s.NextAttemptAt.After(now) {
			return errLater(d, "its next attempt is not due")
		}
	case v1alpha1.GatewayDeliverySending:
		if s.LeaseUntil != nil && s.LeaseUntil.After(now) {
			return errLater(d, "another server sends it")
		}
	default:
		return errLater(d, fmt.Sprintf("its state is %s", s.State))
	}
	errEarlier := errLater(d, "an earlier delivery of its session has not ended")
	return h.o.Stored.Deliveries.Select(ctx, d.Namespace, fields.OneTermEqualSelector(kinds.FieldOpenSession, d.Spec.SessionName), func(other *v1alpha1.GatewayDelivery) error {
		if other.Name != d.Name && gateway.CompareDeliveries(&other.Spec, &d.Spec) < 0 {
			return errEarlier
		}
		return nil
	})
}

// giveUp ends a delivery that is not sent any more; nil if it may be sent. unwanted says why it is not wanted, if it is not.
func (h *Hub) giveUp(ctx context.Context, d *v1alpha1.GatewayDelivery, now time.Time, unwanted string) (*v1alpha1.GatewayDelivery, error) {
	if d.Status.ExpiresAt != nil && !d.Status.ExpiresAt.After(now) {
		return h.end(ctx, d, v1alpha1.GatewayDeliveryExpired, v1alpha1.ReasonGatewayExpired, "it could not be delivered in time")
	}
	if unwanted != "" {
		return h.end(ctx, d, v1alpha1.GatewayDeliveryExpired, v1alpha1.ReasonGatewayExpired, unwanted)
	}
	return nil, nil //nolint:nilnil // it may be sent
}

// lateness returns what the binding of a delivery says about late answers.
func (h *Hub) lateness(ctx context.Context, d *v1alpha1.GatewayDelivery) (v1alpha1.GatewayLatePolicy, time.Duration) {
	b, err := h.o.Stored.Bindings.Get(resource.AsServer(ctx, d.Namespace), d.Spec.BindingName)
	if err != nil { // it is gone, or cannot be read now
		return v1alpha1.GatewayLateMark, late
	}
	return b.Spec.LateAnswers.Policy, cmp.Or(b.Spec.LateAnswers.After.Value(), late)
}

// wire returns what is sent.
func wire(d *v1alpha1.GatewayDelivery, isLate bool) *protocol.Delivery {
	s := &d.Spec
	out := &protocol.Delivery{
		ProtocolVersion: protocol.Version, DeliveryID: d.Name, IdempotencyID: s.IdempotencyID, OriginatingEventID: s.EventID, SessionRef: s.SessionName,
		Kind: string(s.Kind), AccountID: s.AccountID, ContextID: s.ContextID, ThreadID: s.ThreadID, ReplyTarget: s.ReplyTarget, Text: s.Text,
		Metadata: map[string]string{},
	}
	if s.TaskName != "" {
		out.TaskRef = protocol.TaskRef{Namespace: d.Namespace, Name: s.TaskName}
	}
	maps.Copy(out.Metadata, s.Metadata)
	out.Metadata[protocol.MetadataCreatedAt] = s.CreatedAt.UTC().Format(time.RFC3339)
	if isLate {
		out.Metadata[protocol.MetadataLate] = "true"
		line := fmt.Sprintf("[late: written at %s]\n", s.CreatedAt.UTC().Format("2006-01-02 15:04 UTC"))
		out.Text = line + clip.Text(s.Text, protocol.MaxText-len(line))
	}
	return out
}

// claim stores that this server is about to send. Whoever held the claim before may have sent it.
func (h *Hub) claim(ctx context.Context, d *v1alpha1.GatewayDelivery, isLate bool) (holder string, err error) {
	now := h.now()
	holder = fmt.Sprintf("%s/%s/%d", h.o.Holder, d.UID[:min(len(d.UID), 8)], now.UnixMicro())
	row, err := h.o.Stored.Deliveries.UpdateStored(resource.AsServer(ctx, d.Namespace), d.Name, func(row *v1alpha1.GatewayDelivery) error {
		if row.ResourceVersion != d.ResourceVersion {
			return errLater(d, "it was changed meanwhile")
		}
		s := &row.Status
		if s.State == v1alpha1.GatewayDeliverySending {
			s.AttemptCount++
			s.OutcomeUnknown, s.LastError = true, "the server was interrupted while it sent"
		}
		s.State, s.LeaseHolder, s.LeaseUntil, s.NextAttemptAt, s.UpdatedAt = v1alpha1.GatewayDeliverySending, holder, at(now.Add(h.o.Limits.Lease)), nil, &now
		s.Late = s.Late || isLate
		return nil
	})
	if err == nil {
		row.DeepCopyInto(d)
	}
	return holder, err
}

// change stores what became of a delivery. holder is who has claimed it; empty if nobody has. If another server has it by then, what that
// one does counts.
func (h *Hub) change(ctx context.Context, d *v1alpha1.GatewayDelivery, holder string, mutate func(*v1alpha1.GatewayDeliveryStatus)) (*v1alpha1.GatewayDelivery, error) {
	now := h.now()
	ctx = resource.AsServer(context.WithoutCancel(ctx), d.Namespace)
	return h.o.Stored.Deliveries.UpdateStored(ctx, d.Name, func(row *v1alpha1.GatewayDelivery) error {
		if row.UID != d.UID || row.Status.LeaseHolder != holder && holder != "" || holder == "" && row.ResourceVersion != d.ResourceVersion {
			return errLater(d, "it was changed meanwhile")
		}
		s := &row.Status
		s.LeaseHolder, s.LeaseUntil, s.UpdatedAt = "", nil, &now
		mutate(s)
		s.LastError = clip.Text(s.LastError, maxMessage)
		return nil
	})
}

// end ends a delivery of which nothing is sent any more. What is Sending was claimed by a server that is gone.
func (h *Hub) end(ctx context.Context, d *v1alpha1.GatewayDelivery, state v1alpha1.GatewayDeliveryState, reason, message string) (*v1alpha1.GatewayDelivery, error) {
	return h.change(ctx, d, "", func(s *v1alpha1.GatewayDeliveryStatus) {
		if s.State == v1alpha1.GatewayDeliverySending {
			s.AttemptCount++
			s.OutcomeUnknown = true
		}
		s.State, s.Reason, s.LastError, s.NextAttemptAt = state, reason, message, nil
	})
}

// unreached stores that nothing could be sent.
func (h *Hub) unreached(ctx context.Context, d *v1alpha1.GatewayDelivery, holder string, why error) (*v1alpha1.GatewayDelivery, error) {
	if holder == "" {
		if d.Status.Reason == v1alpha1.ReasonNotReached && d.Status.LastError == clip.Text(why.Error(), maxMessage) { // it says so already
			return nil, apierrors.NewTooManyRequests(clip.Text(why.Error(), maxMessage), retryAfter)
		}
		var err error
		if holder, err = h.claim(ctx, d, false); err != nil {
			return nil, err
		}
	}
	return h.change(ctx, d, holder, func(s *v1alpha1.GatewayDeliveryStatus) {
		s.UnreachedCount++
		s.State, s.Reason, s.LastError = v1alpha1.GatewayDeliveryRetryScheduled, v1alpha1.ReasonNotReached, why.Error()
		s.NextAttemptAt = at(h.o.Clock.Now())
	})
}

// outcome stores what became of a delivery of which bytes may have left. why is nil if the answer could be read.
func (h *Hub) outcome(ctx context.Context, d *v1alpha1.GatewayDelivery, holder string, x exchange, a *protocol.Answer, why error) (*v1alpha1.GatewayDelivery, error) {
	now := h.now()
	return h.change(ctx, d, holder, func(s *v1alpha1.GatewayDeliveryStatus) {
		s.AttemptCount++
		s.UnreachedCount, s.NextAttemptAt = 0, nil
		switch {
		case why == nil && a.Status == protocol.Delivered:
			s.State, s.Reason, s.LastError, s.OutcomeUnknown, s.DeliveredAt = v1alpha1.GatewayDeliveryDelivered, v1alpha1.ReasonGatewayDelivered, "", false, &now
			s.ProviderMessageID = clip.Text(a.ProviderMessageID, maxProviderID)
			return
		case why == nil && a.Status == protocol.NonRetryableError, why != nil && final(x.code):
			s.State, s.Reason, s.LastError = v1alpha1.GatewayDeliveryDeadLettered, v1alpha1.ReasonNotDeliverable, said(a, why)
			return
		case why == nil || x.code >= http.StatusMultipleChoices: // the adapter says that it could not
			s.Reason = v1alpha1.ReasonSendFailed
		default: // no answer, or one of 2xx that cannot be read
			s.Reason, s.OutcomeUnknown = v1alpha1.ReasonOutcomeUnknown, true
		}
		s.LastError = said(a, why)
		next := now.Add(max(min(backoffFirst<<min(max(s.AttemptCount-1, 0), 10), backoffMost), x.wait))
		switch {
		case s.AttemptCount >= d.Spec.MaxAttempts:
			s.State, s.Reason = v1alpha1.GatewayDeliveryDeadLettered, v1alpha1.ReasonAttemptsSpent
		case s.ExpiresAt != nil && next.After(s.ExpiresAt.Time):
			s.State, s.Reason = v1alpha1.GatewayDeliveryDeadLettered, v1alpha1.ReasonGatewayExpired
		default:
			s.State, s.NextAttemptAt = v1alpha1.GatewayDeliveryRetryScheduled, at(next)
		}
	})
}

// final reports whether an answer with a code says that the delivery will never be accepted. Of 2xx it says nothing.
func final(code int) bool {
	switch {
	case code < http.StatusMultipleChoices, code >= http.StatusInternalServerError:
		return false
	case code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests:
		return false
	}
	return true
}

// said returns why a delivery failed, for people, without what looks like a secret.
func said(a *protocol.Answer, why error) string {
	text := a.Message
	if why != nil {
		text = why.Error()
	}
	text, _ = redact.Text(text)
	return text
}

// maxProviderID is the maximum length of an id that a chat system gave, in bytes.
const maxProviderID = 512
