// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gateway is where the adapters of chat systems and the server meet: the door for their events (intake.go), the calls of the
// server on them (probe.go, send.go), and the credentials of both directions, which nobody else has in hand (token.go, adapter.go).
//
// # Events
//
// An event is answered with 202 only after one commit has its record, its place in the order of its session, the message of the user in the
// session's transcript, and the key by which a repetition is recognised (package storage/inbound). So an adapter may repeat whatever was
// not answered, at any time: of one externalEventId there is one record. A repetition is recognised before it is asked whether the gateway
// is ready, and even when the record is not kept any more. The record of an event that no binding is for says why, and a person can have it
// routed again (replay.go).
//
// The controller (pkg/controller/gateway) has the event answered by a task, and writes a delivery.
//
// # Deliveries
//
// A delivery is claimed with a lease before anything is sent, so two servers never send one at a time, and a server that was killed leaves
// a claim that ends. What such a server had sent is not known, so the row says outcomeUnknown, and the same text goes out with the same
// idempotencyId, by which the adapter knows it. An attempt counts if bytes may have left. An adapter that cannot be reached spends none: it
// is looked at again at most every half a second, without a write, and what waits for it goes on when it answers.
//
// Of a session only the first delivery that has not ended is sent. Sessions do not wait for each other.
//
// # Tokens
//
// The token of an adapter is compared in constant time with the value of the gateway's Secret, before the body is read. After the Secret
// has changed, its new value is accepted at once, and the old one until the controller has looked at the gateway, which moves
// status.observedInboundAuthSecretVersion. Secrets must name their gateway, and the outbound one the address to which it may be sent, so
// whoever may write gateways cannot send away other Secrets.
package gateway

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	restclient "k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
	"github.com/platform-ai/platform/pkg/server/door"
	kinds "github.com/platform-ai/platform/pkg/server/registry/core/gateway"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/inbound"
	"github.com/platform-ai/platform/pkg/storage/transcript"
)

// userPrefix and Group name the callers of the door: an adapter is platform:gateway:NAMESPACE:NAME.
const (
	userPrefix = "platform:gateway:"
	Group      = "platform:gateways"
)

// Limits bound what gateways may use. Zero values mean the defaults.
type Limits struct {
	// Pending is how many events may wait in a session. Default: 100.
	Pending int
	// Records is how many events of a gateway may have not ended. Default: 1000.
	Records int
	// Rejected is how many rejected events of a gateway are kept. Default: 250.
	Rejected int
	// EventExpiry is how long after it was accepted an event may be answered, and a delivery may be sent. Default: 24h.
	EventExpiry time.Duration
	// Retention is how long a record is kept after it ended. Default: 720h.
	Retention time.Duration
	// DeliveryTimeout is how long an adapter may take to answer. Default: 15s.
	DeliveryTimeout time.Duration
	// MaxAttempts is how often a delivery is sent. Default: 10.
	MaxAttempts int32
	// Lease is how long a claim lasts, at least twice DeliveryTimeout. Default: 1m.
	Lease time.Duration
	// Poll is how long an adapter that could not be reached is left alone. Default: 500ms.
	Poll time.Duration
}

// WithDefaults returns the limits with their defaults, or what is wrong with them.
func (l Limits) WithDefaults() (Limits, error) {
	for _, d := range []struct {
		value     *time.Duration
		otherwise time.Duration
	}{
		{&l.EventExpiry, 24 * time.Hour}, {&l.Retention, 720 * time.Hour}, {&l.DeliveryTimeout, 15 * time.Second}, {&l.Lease, time.Minute}, {&l.Poll, 500 * time.Millisecond},
	} {
		if *d.value == 0 {
			*d.value = d.otherwise
		}
		if *d.value < 0 {
			return l, errors.New("limits of gateways: no time may be negative")
		}
	}
	for _, d := range []struct {
		value     *int
		otherwise int
	}{{&l.Pending, 100}, {&l.Records, 1000}, {&l.Rejected, 250}} {
		if *d.value == 0 {
			*d.value = d.otherwise
		}
		if *d.value < 0 {
			return l, errors.New("limits of gateways: no number may be negative")
		}
	}
	if l.MaxAttempts == 0 {
		l.MaxAttempts = 10
	}
	switch {
	case l.MaxAttempts < 0:
		return l, errors.New("limits of gateways: no number may be negative")
	case l.Lease < 2*l.DeliveryTimeout:
		return l, errors.New("limits of gateways: the lease of a claim must be at least twice the timeout of a delivery")
	}
	return l, nil
}

// Options are what this package needs. All fields are required except Off, Allow and Metrics.
type Options struct {
	// Off refuses events and sends nothing.
	Off      bool
	Limits   Limits
	Stored   kinds.Stored
	Sessions *resource.Stored[*v1alpha1.Session]
	// Transcripts and Inbound are in Engine, with the objects.
	Transcripts *transcript.Store
	Inbound     *inbound.Store
	Engine      engine.Engine
	// Host is a client of the server that has the Secrets and the Services.
	Host kubernetes.Interface
	// Loopback is the configuration of the server's client of itself.
	Loopback *restclient.Config
	// Services is set if that server has Services with Pods behind them.
	Services bool
	// NamespaceUID returns the UID of a namespace; empty if it is not known.
	NamespaceUID func(name string) types.UID
	// Allow lists host:port of adapters that may be reached although their addresses are not public.
	Allow []string
	// Holder names this server in the leases of deliveries.
	Holder  string
	Clock   clock.WithTicker
	Metrics prometheus.Registerer
}

// Hub is the gateways of a server. All methods may be called concurrently.
type Hub struct {
	o        Options
	rates    *rates
	open     *open
	tokens   *tokens
	adapters *adapters
	counts   *metrics
}

// New returns the gateways of a server.
func New(o Options) (*Hub, error) {
	var err error
	if o.Limits, err = o.Limits.WithDefaults(); err != nil {
		return nil, err
	}
	counts, err := newMetrics(o.Metrics)
	if err != nil {
		return nil, err
	}
	waiting := &open{limit: o.Limits.Records, most: map[types.UID]int{}, count: func(g *v1alpha1.Gateway, limit int) (int, error) {
		return count(o.Stored.Events, kinds.FieldOpenGateway, kinds.OfGateway(g.Namespace, g.Name), limit)
	}}
	return &Hub{o: o, rates: newRates(o.Clock), open: waiting, tokens: newTokens(o.Clock), adapters: newAdapters(o.Allow), counts: counts}, nil
}

// Door returns the door of the adapters.
func (h *Hub) Door() door.Door {
	return door.Door{
		Name: "gateway", Paths: []string{"/api/v1/gateways/{namespace}/{name}/events"},
		Bounds: door.Bounds{Body: protocol.MaxEventBody, Bytes: 128 * protocol.MaxEventBody, Requests: 256},
		Before: h.before,
		Verify: func(r *http.Request, _ []byte) (user.Info, error) {
			return &user.DefaultInfo{Name: userPrefix + r.PathValue("namespace") + ":" + r.PathValue("name"), Groups: []string{Group, user.AllAuthenticated}}, nil
		},
		Handle: h.intake,
	}
}

// gateway returns a gateway that is not being deleted.
func (h *Hub) gateway(ctx context.Context, namespace, name string) (*v1alpha1.Gateway, error) {
	g, err := h.o.Stored.Gateways.Get(resource.AsServer(ctx, namespace), name)
	if err != nil {
		return nil, err
	}
	if g.DeletionTimestamp != nil {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("gateways"), name)
	}
	return g, nil
}

// Forget removes what is remembered of a gateway that was deleted.
func (h *Hub) Forget(ctx context.Context, g *v1alpha1.Gateway) error {
	h.tokens.forget(g.UID)
	h.open.forget(g.UID)
	h.adapters.forget(g.UID)
	return h.o.Inbound.Delete(ctx, g.UID)
}

// Sweep removes what is remembered of gateways that are gone, which a crash may have left.
func (h *Hub) Sweep(ctx context.Context) {
	gone, err := resource.Sweep(ctx, h.o.Inbound, nil, h.o.Stored.Gateways)
	switch {
	case err != nil && ctx.Err() == nil && !errors.Is(err, engine.ErrClosed):
		klog.FromContext(ctx).Error(err, "What is remembered of deleted gateways is not removed; the next start removes it")
	case gone > 0:
		klog.FromContext(ctx).Info("Removed what was remembered of deleted gateways", "gateways", gone)
	}
}

// now returns the time as records have it.
func (h *Hub) now() metav1.MicroTime { return metav1.NewMicroTime(h.o.Clock.Now()) }

// at returns a time as the index of what is due needs it: in whole seconds, not before t.
func at(t time.Time) *metav1.Time {
	whole := t.Truncate(time.Second)
	if whole.Before(t) {
		whole = whole.Add(time.Second)
	}
	return &metav1.Time{Time: whole}
}
