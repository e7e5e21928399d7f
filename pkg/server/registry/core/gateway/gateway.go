// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gateway serves gateways to chat systems, and the two ledgers of what goes through them.
//
// People write four kinds. A GatewayClass (class.go) says what gateways to one chat system have in common. A Gateway (gateways.go) is an
// adapter and its Secrets. A GatewayBinding (binding.go) has an Agent answer in a conversation. A GatewayIdentity (identity.go) says which
// user a sender is. Each of them lets strangers do something here, so only operators write them.
//
// Two kinds are records, which people read: events (events.go), what adapters delivered, and deliveries (deliveries.go), what goes back. The
// tables of their states are here, and hold whoever writes. What is done about a record is not here: the server stores an event together
// with the message of its session, and sends deliveries, because it alone has the credentials of adapters; it gives this package the funcs
// for that (Options). A controller decides when. Where people step in, which is to retry or abandon a delivery or to replay an event, they
// need the right to get and update the gateway besides.
//
// Records are many, so nothing here walks all of them. Each has rows (records.go) that are sorted by its time, the newest first, in its
// namespace, for its gateway and for its state. A gatewayrecordquery (query.go) reads a page of such rows.
package gateway

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// Stored is what is stored of gateways and of their records.
type Stored struct {
	Classes    *resource.Stored[*v1alpha1.GatewayClass]
	Gateways   *resource.Stored[*v1alpha1.Gateway]
	Bindings   *resource.Stored[*v1alpha1.GatewayBinding]
	Identities *resource.Stored[*v1alpha1.GatewayIdentity]
	Events     *resource.Stored[*v1alpha1.GatewayEvent]
	Deliveries *resource.Stored[*v1alpha1.GatewayDelivery]
}

// NewStored returns what is stored of the gateways of one server.
func NewStored() Stored {
	return Stored{
		Classes:    resource.NewStored[*v1alpha1.GatewayClass](v1alpha1.Resource("gatewayclasses")),
		Gateways:   resource.NewStored[*v1alpha1.Gateway](v1alpha1.Resource("gateways")),
		Bindings:   resource.NewStored[*v1alpha1.GatewayBinding](v1alpha1.Resource("gatewaybindings")),
		Identities: resource.NewStored[*v1alpha1.GatewayIdentity](v1alpha1.Resource("gatewayidentities")),
		Events:     resource.NewStored[*v1alpha1.GatewayEvent](v1alpha1.Resource("gatewayevents")),
		Deliveries: resource.NewStored[*v1alpha1.GatewayDelivery](v1alpha1.Resource("gatewaydeliveries")),
	}
}

// BindingsOf returns the bindings of a gateway.
func (s Stored) BindingsOf(ctx context.Context, namespace, gateway string) (found []*v1alpha1.GatewayBinding, err error) {
	err = s.Bindings.Select(ctx, namespace, fields.OneTermEqualSelector(FieldGatewayRef, gateway), func(b *v1alpha1.GatewayBinding) error {
		found = append(found, b)
		return nil
	})
	return found, err
}

// IdentityOf returns who a sender of a gateway is; nil if nobody says so. If two objects say so, which only writers at the same time can
// bring about, neither counts: which of two users somebody is must not be decided by chance.
func (s Stored) IdentityOf(ctx context.Context, namespace, gateway, account, sender string) (*v1alpha1.GatewayIdentity, error) {
	all, err := s.identities(ctx, namespace, &v1alpha1.GatewayIdentitySpec{GatewayRef: v1alpha1.LocalReference{Name: gateway}, AccountID: account, SenderID: sender})
	if err != nil || len(all) != 1 {
		return nil, err
	}
	return all[0], nil
}

// Options are what gateways need. The server sets Probe, Send, Replay, Decide and Forget; without them, where only the definitions are wanted, what
// needs them is answered with 503. All other fields without a default are required.
type Options struct {
	Stored     Stored
	Clock      clock.PassiveClock
	Authorizer authorizer.Authorizer
	// Retention is how long records are kept after they ended, in whole seconds. Default: 720h.
	Retention time.Duration
	// Expiry is how long a delivery may take, from its creation or a manual retry. Default: 24h.
	Expiry time.Duration
	// MaxAttempts is how often a delivery that does not say so is sent. Default: 10.
	MaxAttempts int32
	// Probe looks at the Secrets of a gateway and asks its adapter.
	Probe func(ctx context.Context, g *v1alpha1.Gateway) (*v1alpha1.GatewayProbe, error)
	// Send posts a delivery to its adapter, stores the outcome, and returns the delivery as it is then. It refuses with 409 what is not due.
	Send func(ctx context.Context, d *v1alpha1.GatewayDelivery) (*v1alpha1.GatewayDelivery, error)
	// Replay routes an event again for a user, stores where it goes, and returns it as it is then.
	Replay func(ctx context.Context, e *v1alpha1.GatewayEvent, by string) (*v1alpha1.GatewayEvent, error)
	// Decide decides on an approval as an event says, in the name of its sender, and returns the event as it is then.
	Decide func(ctx context.Context, e *v1alpha1.GatewayEvent) (*v1alpha1.GatewayEvent, error)
	// Forget is called after a gateway was deleted. A crash may prevent it.
	Forget func(ctx context.Context, g *v1alpha1.Gateway)
}

// Defaults of Options.
const (
	defaultRetention         = 30 * 24 * time.Hour
	defaultExpiry            = 24 * time.Hour
	defaultMaxAttempts int32 = 10
)

// Families of scopes that transaction tokens need.
const (
	scopeRead    = "gateways:read"
	scopeOperate = "gateways:operate"
)

// categories are the groups of kinds of which kubectl gets all.
const (
	category       = "platform"
	categoryRecord = "platform-gateways"
)

// Resources returns the resources of gateways.
func Resources(o Options) []resource.Resource {
	o.Retention = cmp.Or(o.Retention, defaultRetention)
	o.Expiry = cmp.Or(o.Expiry, defaultExpiry)
	o.MaxAttempts = cmp.Or(o.MaxAttempts, defaultMaxAttempts)
	return []resource.Resource{o.classes(), o.gateways(), o.bindings(), o.identities(), o.events(), o.deliveries(), o.queries()}
}

// writers are the roles that write what lets strangers in.
func writers() resource.Roles {
	return resource.Roles{Readers: resource.Users(), Writers: []resource.Role{resource.Operator}}
}

// records are the roles of what only the server and controllers write.
func records() resource.Roles { return resource.Roles{Readers: resource.Users()} }

// operated returns the scopes of a kind that people operate by subresources.
func operated(subresources ...string) *external.Scopes {
	return &external.Scopes{Of: func(a authorizer.Attributes) (families []string, ok bool) {
		if external.Reads(a.GetVerb()) {
			return []string{scopeRead}, true
		}
		for _, s := range subresources {
			if a.GetVerb() == "create" && a.GetSubresource() == s {
				return []string{scopeOperate}, true
			}
		}
		return nil, false
	}}
}

// mayOperate requires the rights to get and to update a gateway, which those who step in need besides the right to the subresource. The
// gateway may be gone.
func (o *Options) mayOperate(ctx context.Context, namespace, gateway string) error {
	if o.Authorizer == nil {
		return unavailable()
	}
	for _, verb := range []string{"get", "update"} {
		ok, err := guard.May(ctx, o.Authorizer, authorizer.AttributesRecord{Verb: verb, Namespace: namespace, Resource: "gateways", Name: gateway})
		if err != nil {
			return err
		}
		if !ok {
			return apierrors.NewForbidden(v1alpha1.Resource("gateways"), gateway, fmt.Errorf("this needs the right to %s the gateway", verb))
		}
	}
	return nil
}

// callerOf returns the name of the caller of a request.
func callerOf(ctx context.Context) (string, error) {
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return "", apierrors.NewUnauthorized("the caller is not known")
	}
	return caller.GetName(), nil
}

// unavailable is the answer of a server that lacks what a request needs.
func unavailable() error {
	return apierrors.NewServiceUnavailable("gateways are not served by this server")
}

// soon returns a time that is compared as it is stored, in whole seconds.
func (o *Options) soon(after time.Duration) *metav1.Time {
	t := metav1.NewTime(o.Clock.Now().Add(after)).Rfc3339Copy()
	return &t
}

// now returns the time as records have it.
func (o *Options) now() metav1.MicroTime {
	return metav1.NewMicroTime(o.Clock.Now().Truncate(time.Microsecond))
}
