// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/canonical"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/gateway"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/pkg/server/facade/rest"
	kinds "github.com/platform-ai/platform/pkg/server/registry/core/gateway"
	"github.com/platform-ai/platform/pkg/server/registry/core/session"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/inbound"
	"github.com/platform-ai/platform/pkg/storage/object"
)

// retryAfter is the number of seconds after which an adapter should repeat an event that was not taken.
const retryAfter = 1

// before looks at an event whose body was not read: whether it may arrive now, and who sends it.
func (h *Hub) before(r *http.Request) error {
	err := h.pass(r)
	switch s, known := errors.AsType[*apierrors.StatusError](err); {
	case err == nil:
	case !known:
		h.counts.ingress.WithLabelValues(resultUnauthorized).Inc()
	case s.ErrStatus.Code == http.StatusTooManyRequests:
		h.counts.ingress.WithLabelValues(resultLimited).Inc()
	default:
		h.counts.ingress.WithLabelValues(resultRefused).Inc()
	}
	return err
}

func (h *Hub) pass(r *http.Request) error {
	if !h.rates.take(r.RemoteAddr) {
		return apierrors.NewTooManyRequests("events arrive too fast from this address", retryAfter)
	}
	if h.o.Off {
		return apierrors.NewServiceUnavailable("gateways are switched off (--gateway-enabled)")
	}
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return status(http.StatusUnsupportedMediaType, "Content-Encoding: the body must not be compressed")
	}
	kind, parameters, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" || parameters["charset"] != "" && !strings.EqualFold(parameters["charset"], "utf-8") {
		return status(http.StatusUnsupportedMediaType, "Content-Type: must be application/json")
	}
	g, err := h.gateway(r.Context(), r.PathValue("namespace"), r.PathValue("name"))
	if apierrors.IsNotFound(err) {
		return status(http.StatusNotFound, "there is no such gateway")
	}
	if err != nil {
		return err
	}
	if err := h.check(r, g); err != nil {
		return err
	}
	if !h.rates.takeOfAll() {
		return apierrors.NewTooManyRequests("events arrive too fast, in total", retryAfter)
	}
	return nil
}

func status(code int32, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: message}}
}

// intake answers an event whose sender is known.
func (h *Hub) intake(w http.ResponseWriter, r *http.Request, body []byte) {
	began := h.o.Clock.Now()
	a, err := h.accept(r.Context(), r.PathValue("namespace"), r.PathValue("name"), body, began)
	if err != nil {
		code, message, wait := answerTo(r.Context(), err)
		h.counts.ingress.WithLabelValues(resultOf(code)).Inc()
		if wait > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(wait))
		}
		rest.Fail(w, code, clip.Text(message, maxMessage)) // it may quote what was sent
		return
	}
	h.counts.ingress.WithLabelValues(a.Status).Inc()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	if err := json.NewEncoder(w).Encode(a); err != nil {
		return // the adapter has gone, and repeats the event
	}
}

// answerTo returns the answer to an event that was not stored. The text of an error that is no API error is logged.
func answerTo(ctx context.Context, err error) (code int, message string, wait int) {
	var s metav1.Status
	if known, ok := errors.AsType[*apierrors.StatusError](err); ok {
		s = known.ErrStatus
	}
	switch {
	case s.Code == http.StatusInsufficientStorage, errors.Is(err, engine.ErrFull):
		return http.StatusTooManyRequests, "the store has no room for more events now", retryAfter
	case s.Code < http.StatusBadRequest, s.Code == http.StatusInternalServerError:
		klog.FromContext(ctx).Error(err, "An event of a gateway is not stored")
		return http.StatusServiceUnavailable, "the event is not stored; repeat it", retryAfter
	case s.Code == http.StatusServiceUnavailable:
		return int(s.Code), s.Message, retryAfter
	case s.Details != nil && s.Details.RetryAfterSeconds > 0:
		wait = int(s.Details.RetryAfterSeconds)
	}
	return int(s.Code), s.Message, wait
}

// accept stores an event, or recognises it.
func (h *Hub) accept(ctx context.Context, namespace, name string, body []byte, began time.Time) (*protocol.Reply, error) {
	g, err := h.gateway(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	said, err := read(body)
	if err != nil {
		return nil, status(http.StatusBadRequest, err.Error())
	}
	digest, err := gateway.Digest(said)
	if err != nil {
		return nil, err
	}
	a := &arrival{hub: h, gateway: g, said: said, digest: digest, id: gateway.EventID(g.UID, said.ExternalEventID), began: began}
	for range tries {
		seen, err := h.o.Inbound.Find(g.UID, said.ExternalEventID)
		if err != nil {
			return nil, err
		}
		if seen != nil {
			return a.again(ctx, seen)
		}
		reply, err := a.first(ctx)
		if !object.IsConflict(err) {
			return reply, err
		}
		if err := ctx.Err(); err != nil { // another request with this event was faster
			return nil, err
		}
	}
	return nil, apierrors.NewServiceUnavailable("something else has the name " + a.id + ", which the record of the event would have")
}

// read reads an event. The error says what is wrong with it.
func read(body []byte) (*protocol.Event, error) {
	said := &protocol.Event{}
	if err := protocol.Unmarshal(body, said); err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	// Halves of surrogate pairs are all decoded to one character, so two events would be taken for one.
	if err := canonical.Check(body); err != nil {
		return nil, fmt.Errorf("body: %w", err)
	}
	errs := said.Check()
	for _, m := range []struct {
		name string
		at   *time.Time
	}{{"occurredAt", said.OccurredAt}, {"receivedAt", said.ReceivedAt}} {
		// A time of another year could be stored, and no list with it could be read.
		if m.at != nil && (m.at.UTC().Year() < firstYear || m.at.UTC().Year() > lastYear) {
			errs = append(errs, fmt.Errorf("%s: must be in a year from %d to %d, in UTC", m.name, firstYear, lastYear))
		}
	}
	if len(errs) > 0 {
		return nil, errors.New(strings.ReplaceAll(errors.Join(errs...).Error(), "\n", "; "))
	}
	return said, nil
}

// firstYear and lastYear bound the times of events: RFC 3339 has no other years.
const firstYear, lastYear = 1, 9999

// tries is how often an event is looked for and stored, as long as somebody else is faster.
const tries = 5

// arrival is an event that arrived.
type arrival struct {
	hub     *Hub
	gateway *v1alpha1.Gateway
	said    *protocol.Event
	digest  string
	id      string
	began   time.Time
}

// again answers an event that was stored before.
func (a *arrival) again(ctx context.Context, seen *inbound.Seen) (*protocol.Reply, error) {
	same := seen.Digest == a.digest
	row, err := a.hub.o.Stored.Events.UpdateStored(resource.AsServer(ctx, a.gateway.Namespace), a.id, func(row *v1alpha1.GatewayEvent) error {
		if same {
			row.Status.Duplicates++
		} else {
			row.Status.Mismatches++
		}
		return nil
	})
	if err != nil && !apierrors.IsNotFound(err) { // the answer does not depend on the count
		klog.FromContext(ctx).Error(err, "A repeated event of a gateway is not counted", "event", a.id)
	}
	if !same {
		return nil, status(http.StatusConflict, "externalEventId: an event of this id was accepted, and said something else")
	}
	reply := &protocol.Reply{Status: protocol.ReplyDuplicate, EventID: a.id}
	if row == nil {
		reply.Message = "the event was accepted before, and its record is not kept any more"
		return reply, nil
	}
	reply.State, reply.Message = string(row.Status.State), row.Status.StateMessage
	return reply, nil
}

// first stores an event that was not seen before.
func (a *arrival) first(ctx context.Context) (*protocol.Reply, error) {
	h, g := a.hub, a.gateway
	if !g.Status.Ready || g.Status.ObservedGeneration != g.Generation {
		return nil, apierrors.NewServiceUnavailable("the gateway is not ready: " + g.Status.Message)
	}
	class, err := h.o.Stored.Classes.Get(ctx, g.Spec.GatewayClassName)
	if err != nil {
		return nil, apierrors.NewServiceUnavailable("the class of the gateway cannot be read")
	}
	for key := range a.said.Metadata {
		if !slices.Contains(class.Spec.AllowedMetadataKeys, key) {
			return nil, status(http.StatusBadRequest, fmt.Sprintf("metadata: the class of the gateway does not allow the key %q", key))
		}
	}
	if err := h.open.take(g); err != nil {
		return nil, err
	}
	row := a.row()
	route, err := h.route(ctx, row)
	if err != nil {
		return nil, err
	}
	p := &placing{hub: h, row: row, seen: &inbound.Seen{Digest: a.digest, At: h.o.Clock.Now()}}
	if err := p.place(ctx, route); err != nil {
		return nil, err
	}
	s := &row.Status
	h.counts.intake(h.o.Clock.Since(a.began))
	reply := &protocol.Reply{Status: protocol.ReplyAccepted, EventID: a.id, State: string(s.State), Message: s.StateMessage}
	switch s.State {
	case v1alpha1.GatewayEventRejected:
		reply.Status = protocol.ReplyRejected
		prune(ctx, h.o.Stored.Events, g, h.o.Limits.Rejected)
	case v1alpha1.GatewayEventDeadLettered:
		reply.Status = protocol.ReplyDeadLettered
	}
	return reply, nil
}

// row returns the record of an event, without where it goes.
func (a *arrival) row() *v1alpha1.GatewayEvent {
	e, g := a.said, a.gateway
	text, _ := redact.Text(e.Text)
	name, _ := redact.Text(e.Sender.DisplayName)
	now := a.hub.now()
	row := &v1alpha1.GatewayEvent{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: a.id},
		Spec: v1alpha1.GatewayEventSpec{
			GatewayOwner: v1alpha1.GatewayOwner{
				NamespaceUID: a.hub.o.NamespaceUID(g.Namespace), GatewayName: g.Name, GatewayUID: g.UID, GatewayGeneration: g.Generation,
			},
			ExternalEventID: e.ExternalEventID, PayloadSHA256: a.digest, ProtocolVersion: v1alpha1.GatewayContractV1, EventType: e.EventType,
			AccountID: e.AccountID, ContextID: e.ContextID, ThreadID: e.ThreadID, SenderID: e.Sender.ID, SenderDisplayName: name, Text: text,
			ReplyTarget: e.ReplyTarget, Metadata: e.Metadata, OccurredAt: micro(e.OccurredAt), ReceivedAt: micro(e.ReceivedAt), CreatedAt: now,
		},
	}
	row.Status.UpdatedAt, row.Status.ExpiresAt = &now, at(now.Add(a.hub.o.Limits.EventExpiry))
	return row
}

func micro(t *time.Time) *metav1.MicroTime {
	if t == nil {
		return nil
	}
	m := metav1.NewMicroTime(*t)
	return &m
}

// route returns where an event goes.
func (h *Hub) route(ctx context.Context, e *v1alpha1.GatewayEvent) (gateway.Route, error) {
	bindings, err := h.o.Stored.BindingsOf(ctx, e.Namespace, e.Spec.GatewayName)
	return gateway.RouteOf(&e.Spec, bindings), err
}

// placing stores an event with its place.
type placing struct {
	hub *Hub
	row *v1alpha1.GatewayEvent
	// seen is set for an event that is new; one that is replayed has a record already.
	seen *inbound.Seen
}

// place decides where an event goes and stores it, in one commit with the message of its session. The error may be one that
// object.IsConflict recognises.
func (p *placing) place(ctx context.Context, route gateway.Route) error {
	h, s := p.hub, &p.row.Status
	b := route.Binding
	if b == nil {
		s.State, s.Reason, s.StateMessage, s.CompletedAt = v1alpha1.GatewayEventRejected, route.Reason, route.Message, s.UpdatedAt
		return p.commit(ctx)
	}
	s.BindingName, s.BindingUID, s.BindingGeneration, s.AgentName = b.Name, b.UID, b.Generation, b.Spec.AgentRef.Name
	s.SessionName = gateway.SessionName(b, p.row.Name, &p.row.Spec)
	if b.Spec.Approvals == v1alpha1.GatewayApprovalsConversation {
		s.Decision, _ = gateway.DecisionOf(p.row.Spec.Text)
	}
	if s.Decision != nil { // the Agent is not told of it, and it waits for nothing: what waits may wait for it
		s.State, s.Reason, s.StateMessage, s.CompletedAt, s.NextAttemptAt = v1alpha1.GatewayEventQueued, "", "", nil, at(s.UpdatedAt.Time)
		return p.commit(ctx)
	}
	waiting, err := count(h.o.Stored.Events, kinds.FieldOpenSession, s.SessionName, h.o.Limits.Pending)
	if err != nil {
		return err
	}
	if waiting >= h.o.Limits.Pending {
		s.State, s.Reason, s.CompletedAt = v1alpha1.GatewayEventDeadLettered, v1alpha1.ReasonSessionQueueFull, s.UpdatedAt
		s.StateMessage = fmt.Sprintf("%d events wait in the session", waiting)
		return p.commit(ctx)
	}
	ctx = resource.AsServer(ctx, p.row.Namespace)
	belongs, _, err := h.o.Sessions.Ensure(ctx, &v1alpha1.Session{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.row.Namespace, Name: s.SessionName,
			Labels:      map[string]string{v1alpha1.LabelGateway: v1alpha1.LabelValue(p.row.Spec.GatewayName)},
			Annotations: map[string]string{v1alpha1.AnnotationGatewayName: p.row.Spec.GatewayName},
		},
		Spec: v1alpha1.SessionSpec{SessionType: v1alpha1.SessionTypeGateway},
	}, false)
	if err != nil {
		return err
	}
	said, err := h.o.Transcripts.Stage(session.Place(belongs), session.MaxTaskBytes, []v1alpha1.SessionMessage{{
		ID: gateway.MessageID(p.row.Name, v1alpha1.RoleUser), Role: v1alpha1.RoleUser, Content: p.row.Spec.Text, SourceType: "gateway", SourceRef: p.row.Name,
		Metadata: map[string]string{"senderId": p.row.Spec.SenderID},
	}})
	if err != nil {
		return err
	}
	defer said.Release()
	s.State, s.Reason, s.StateMessage, s.CompletedAt = v1alpha1.GatewayEventQueued, "", "", nil
	s.TranscriptOrder, s.NextAttemptAt = said.Messages()[0].Order, at(s.UpdatedAt.Time)
	return p.commit(ctx, said)
}

// commit stores the record, with more.
func (p *placing) commit(ctx context.Context, more ...engine.Part) error {
	h := p.hub
	ctx = resource.AsServer(ctx, p.row.Namespace)
	if p.seen == nil {
		status := p.row.Status
		part, err := h.o.Stored.Events.Stage(ctx, p.row.Name, func(now *v1alpha1.GatewayEvent) error {
			if now.ResourceVersion != p.row.ResourceVersion {
				return apierrors.NewConflict(v1alpha1.Resource("gatewayevents"), p.row.Name, errors.New("it was changed meanwhile"))
			}
			now.Status = status
			return nil
		})
		if err != nil || part == nil {
			return err
		}
		return h.o.Engine.Commit(engine.Join(engine.Grow, append(more, part)...))
	}
	row, err := h.o.Stored.Events.StageNew(ctx, p.row)
	if err != nil {
		return err
	}
	seen, err := h.o.Inbound.Stage(p.row.Spec.GatewayUID, p.row.Spec.ExternalEventID, *p.seen)
	if err != nil {
		return err
	}
	return h.o.Engine.Commit(engine.Join(engine.Grow, append(more, row, seen)...))
}

// prune removes the oldest rejected events of a gateway, of which only so many are kept. What was removed is still recognised.
func prune(ctx context.Context, events *resource.Stored[*v1alpha1.GatewayEvent], g *v1alpha1.Gateway, kept int) {
	from, to := kinds.OfGateway(g.Namespace, g.Name)+"/", kinds.OfGateway(g.Namespace, g.Name)+"0" // the character after the slash
	n, err := events.Count(kinds.FieldRejected, from, to, kept+most)
	extra := n - kept
	if err == nil && extra > 0 {
		err = events.Scan(ctx, kinds.FieldRejected, from, to, func(_ string, e *v1alpha1.GatewayEvent) (bool, error) {
			extra--
			return extra > 0, events.Remove(ctx, e)
		})
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Rejected events of a gateway are not removed", "gateway", klog.KObj(g))
	}
}

// most is how many events one that is rejected removes at most.
const most = 25

// count returns how many objects have one value of an indexed field, and at most limit.
func count[T resource.Object](in *resource.Stored[T], field, value string, limit int) (int, error) {
	from, to := object.Only(value)
	return in.Count(field, from, to, limit)
}
