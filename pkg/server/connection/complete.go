// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/connector"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/custody"
	"github.com/platform-ai/platform/pkg/storage/engine"
)

// protected reports whether a connection stays until its tokens are revoked and removed.
func protected(c *v1alpha1.Connection) bool {
	return slices.Contains(c.Finalizers, v1alpha1.FinalizerConnection)
}

// Complete commits the tokens that were parked under a completion token. The caller is the owner of the connection. Its error is an API error.
func (h *Hub) Complete(ctx context.Context, c *v1alpha1.Connection, completion string, dryRun bool) (*v1alpha1.Connection, error) {
	if h.o.Off {
		return nil, Disabled()
	}
	uid, digest, err := h.readToken(forCompletion, completion)
	if err != nil {
		return nil, apierrors.NewBadRequest("spec.completion: is not a completion token of this server")
	}
	if uid != c.UID {
		return nil, conflict(c, errors.New("the completion token is for another connection"))
	}
	p, err := h.provider(ctx, c.Namespace, c.Spec.ProviderRef.Name)
	if err != nil {
		return nil, err
	}
	if c.DeletionTimestamp != nil || !protected(c) {
		return nil, conflict(c, errGone)
	}
	for range maxTries {
		err := h.commit(ctx, c, p, digest, dryRun)
		if isConflict(err) {
			continue
		}
		if err != nil {
			return nil, h.failure(ctx, c, err)
		}
		if !dryRun {
			h.counts.consents.WithLabelValues(committed).Inc()
		}
		return h.o.Connections.Get(resource.AsServer(ctx, c.Namespace), c.Name)
	}
	return nil, conflict(c, errBusy)
}

// refusal says why a completion is not committed. It is answered with 409.
type refusal string

// Error returns the words.
func (r refusal) Error() string { return string(r) }

// commit commits parked tokens and the status of the connection together.
func (h *Hub) commit(ctx context.Context, c *v1alpha1.Connection, p *v1alpha1.ConnectorProvider, completion []byte, dryRun bool) error {
	d, version, err := h.vault.load(c.UID)
	if err != nil {
		return err
	}
	now := h.o.Clock.Now()
	t := d.Parked
	switch {
	case d.Closing:
		return errGone
	case t == nil || !bytes.Equal(t.Completion, completion):
		return refusal("the completion token was used, or a newer consent has replaced it; connect again")
	case !now.Before(t.Until):
		err = refusal("the completion came too late; connect again")
	case t.Refresh == "" && !t.Expires.IsZero() && !now.Before(t.Expires):
		err = refusal("the access token has ended meanwhile, and the provider gave nothing to refresh it with; connect again")
	case t.ProviderUID != p.UID || t.Authority != connector.AuthorityDigest(p):
		err = refusal("the provider was changed meanwhile; connect again")
	case len(d.Superseded) >= maxSuperseded && d.Grant.revocable():
		// The parked tokens stay, and end by themselves: they are nobody's.
		return refusal(fmt.Sprintf("the connection has %d earlier grants, which are revoked when you disconnect; disconnect first", maxSuperseded))
	}
	if dryRun {
		return err
	}
	d.Parked = nil
	if err != nil { // what can never be committed is not kept
		if discarded := h.vault.save(ctx, c.UID, version, d); discarded != nil {
			return discarded
		}
		return err
	}
	if d.Grant.revocable() {
		d.Superseded = append(d.Superseded, *d.Grant)
	}
	d.Sequence++
	t.Sequence = d.Sequence
	d.Grant = &t.grant
	status, err := h.o.Connections.Stage(resource.AsServer(ctx, c.Namespace), c.Name, func(now *v1alpha1.Connection) error {
		if stale(now, c.UID) || !protected(now) {
			return errGone
		}
		h.linked(now, d.Grant, p)
		return nil
	})
	if err != nil {
		return err
	}
	row, err := h.vault.stage(c.UID, version, d)
	if err != nil {
		return err
	}
	return h.o.Engine.Commit(engine.Join(engine.Grow, row, status))
}

// revocable reports whether there is something of a grant to revoke when the person disconnects.
func (g *grant) revocable() bool { return g != nil && g.Client.RevocationURL != "" }

// linked writes a committed grant into the status of its connection.
func (h *Hub) linked(c *v1alpha1.Connection, g *grant, p *v1alpha1.ConnectorProvider) {
	now := h.o.Clock.Now()
	s := &c.Status
	s.GrantSequence, s.LinkedAt, s.LastRefreshTime = g.Sequence, new(metav1.NewTime(now)), nil
	s.Consent = &v1alpha1.ConnectionConsent{ProviderUID: g.ProviderUID, AuthorityDigest: g.Authority}
	honour(c, g, now)
	connector.Settle(c, p, now)
}

// failure returns an error of the custody of a connection as the API answers it.
func (h *Hub) failure(ctx context.Context, c *v1alpha1.Connection, err error) error {
	_, refused := errors.AsType[refusal](err)
	_, noKey := errors.AsType[*custody.KeyError](err)
	switch {
	case refused, errors.Is(err, errGone), errors.Is(err, errBusy):
		return conflict(c, err)
	case errors.Is(err, custody.ErrGone):
		return conflict(c, errGone)
	case noKey:
		klog.FromContext(ctx).Error(err, "The custody of a connection cannot be opened", "connection", klog.KObj(c))
		return apierrors.NewServiceUnavailable("the key of the connection is missing; the operator has to restore it")
	}
	return err
}
