// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"cmp"
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/connector"
	"github.com/platform-ai/platform/pkg/connector/oauth"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// Connect connects an account of a person: it makes the connection unless there is one, gives it the mode, and begins a consent. With dryRun
// nothing is stored, and there is no address. Its error is an API error.
func (h *Hub) Connect(ctx context.Context, namespace string, who *external.Identity, provider string, mode v1alpha1.ConnectionMode, dryRun bool) (*v1alpha1.ConnectionAuthorizationStatus, error) {
	if h.o.Off {
		return nil, Disabled()
	}
	p, err := h.provider(ctx, namespace, provider)
	if err != nil {
		return nil, err
	}
	subject := v1alpha1.ConnectionSubject{Issuer: who.Requester.Issuer, Subject: who.Requester.Subject}
	wanted := &v1alpha1.Connection{
		ObjectMeta: metav1.ObjectMeta{Name: connector.Name(provider, subject.Issuer, subject.Subject), Namespace: namespace},
		Spec:       v1alpha1.ConnectionSpec{Subject: subject, ProviderRef: v1alpha1.LocalReference{Name: provider}, Mode: cmp.Or(mode, v1alpha1.ConnectionReadOnly)},
	}
	c, _, err := h.o.Connections.Ensure(ctx, wanted, dryRun)
	if err != nil {
		return nil, err
	}
	// A name has 12 digits of the digest. Two people with the same ones do not get each other's connection.
	if c.Spec.Subject != subject || c.Spec.ProviderRef.Name != provider {
		return nil, apierrors.NewConflict(v1alpha1.Resource("connections"), c.Name, errors.New("another person's connection has this name; ask the operator"))
	}
	if c, err = h.setMode(ctx, c, mode, dryRun); err != nil {
		return nil, err
	}
	return h.begin(ctx, c, p, dryRun)
}

// Authorize begins another consent for a connection. With a mode the connection is given that, and a consent is begun only if what was
// granted does not cover it. Its error is an API error.
func (h *Hub) Authorize(ctx context.Context, c *v1alpha1.Connection, mode v1alpha1.ConnectionMode, dryRun bool) (*v1alpha1.ConnectionAuthorizationStatus, error) {
	if h.o.Off {
		return nil, Disabled()
	}
	p, err := h.provider(ctx, c.Namespace, c.Spec.ProviderRef.Name)
	if err != nil {
		return nil, err
	}
	if c, err = h.setMode(ctx, c, mode, dryRun); err != nil {
		return nil, err
	}
	if mode != "" && covered(c) {
		return &v1alpha1.ConnectionAuthorizationStatus{Connection: c}, nil
	}
	return h.begin(ctx, c, p, dryRun)
}

// covered reports whether what was granted covers the mode, and the grant is honoured.
func covered(c *v1alpha1.Connection) bool { return c.Status.State == v1alpha1.ConnectionReady }

// setMode gives a connection the mode, unless that is empty. The resource gives it a status that fits.
func (h *Hub) setMode(ctx context.Context, c *v1alpha1.Connection, mode v1alpha1.ConnectionMode, dryRun bool) (*v1alpha1.Connection, error) {
	if mode == "" || c.Spec.Mode == mode {
		return c, nil
	}
	set := func(now *v1alpha1.Connection) error {
		if stale(now, c.UID) {
			return conflict(c, errGone)
		}
		now.Spec.Mode = mode
		return nil
	}
	if dryRun {
		c = c.DeepCopy()
		return c, set(c)
	}
	ctx = resource.AsServer(ctx, c.Namespace)
	if err := h.o.Connections.UpdateAsCaller(ctx, c.Name, set); err != nil {
		return nil, err
	}
	return h.o.Connections.Get(ctx, c.Name)
}

// begin begins a consent.
func (h *Hub) begin(ctx context.Context, c *v1alpha1.Connection, p *v1alpha1.ConnectorProvider, dryRun bool) (*v1alpha1.ConnectionAuthorizationStatus, error) {
	if c.DeletionTimestamp != nil {
		return nil, conflict(c, errors.New("it is still being disconnected; try again when that is over"))
	}
	out := &v1alpha1.ConnectionAuthorizationStatus{Connection: c}
	if dryRun {
		return out, nil
	}
	state, digest, err := h.newToken(forState, c.UID)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	ends := h.o.Clock.Now().Add(consentLife).Truncate(time.Second)
	next := pending{ask: asked(c, p), Nonce: digest, Expires: ends}
	ask := oauth.Authorization{RedirectURI: h.RedirectURI(), Scopes: next.Scopes, State: state}
	if proof := p.Spec.OAuth.PKCE; proof == nil || *proof {
		next.Verifier = oauth.Verifier()
		ask.Challenge = oauth.Challenge(next.Verifier)
	}
	address, err := oauth.AuthorizeURL(&p.Spec.OAuth, ask)
	if err != nil {
		return nil, conflict(c, err)
	}
	err = h.vault.change(ctx, c.UID, func(d *document) error {
		d.Namespace, d.Name = c.Namespace, c.Name
		if d.Parked != nil && !h.o.Clock.Now().Before(d.Parked.Until) { // nobody can claim them any more
			d.Parked = nil
		}
		d.Begun++
		next.Number = d.Begun
		d.Pending = &next
		return nil
	})
	if err != nil {
		return nil, h.failure(ctx, c, err)
	}
	h.counts.consents.WithLabelValues(begun).Inc()
	out.AuthorizeURL, out.ExpiresAt = address, &metav1.Time{Time: ends}
	return out, nil
}

// conflict returns an error as the API answers it.
func conflict(c *v1alpha1.Connection, err error) error {
	return apierrors.NewConflict(v1alpha1.Resource("connections"), c.Name, err)
}
