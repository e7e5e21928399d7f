// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/custody"
	"github.com/platform-ai/platform/pkg/storage/engine"
)

// revokeTime bounds all calls on a provider when one person disconnects. It ends before the request does, which has a minute.
const revokeTime = 50 * time.Second

// Release gives the tokens of a connection back that is being deleted: it revokes them at the provider, as far as that can be done, and
// replaces the custody by a tombstone. After that the finalizer may go. It is safe to repeat. Its error, an API error, says that it has to
// be tried again: without the Secret of the client, or the key of the custody, the tokens are kept, unless the provider is on its way out,
// too.
func (h *Hub) Release(ctx context.Context, c *v1alpha1.Connection) error {
	if c.DeletionTimestamp == nil {
		return conflict(c, errors.New("it is not being deleted"))
	}
	leaving, err := h.leaving(ctx, c)
	if err != nil {
		return err
	}
	if err := h.uses.flush(ctx, place{c.Namespace, c.Name}, c.UID); err != nil { // so that the newest tokens are revoked
		klog.FromContext(ctx).Error(err, "The tokens of a refresh are not written", "connection", klog.KObj(c))
	}
	grants, err := h.vault.close(ctx, c.UID)
	switch {
	case errors.Is(err, errGone):
		return nil
	case err != nil && !leaving:
		return h.failure(ctx, c, err)
	}
	if err := h.revoke(ctx, c, grants, leaving); err != nil {
		return err
	}
	// Also if the caller is gone by now: with a provider that is slow each time, this would never end.
	if err := h.vault.Bury(context.WithoutCancel(ctx), c.UID); err != nil {
		return err
	}
	h.uses.forget(c.UID)
	h.counts.consents.WithLabelValues(released).Inc()
	return nil
}

// leaving reports whether the provider of a connection is gone or being deleted.
func (h *Hub) leaving(ctx context.Context, c *v1alpha1.Connection) (bool, error) {
	p, err := h.o.Providers.Get(resource.AsServer(ctx, c.Namespace), c.Spec.ProviderRef.Name)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return err == nil && p.DeletionTimestamp != nil, err
}

// revoke revokes grants, the newest first. What the provider refuses, or does not answer in time, is left.
func (h *Hub) revoke(ctx context.Context, c *v1alpha1.Connection, grants []grant, leaving bool) error {
	ctx, cancel := context.WithTimeout(ctx, revokeTime)
	defer cancel()
	left := 0
	for i := range grants {
		g := &grants[len(grants)-1-i]
		endpoint, err := h.endpoint(ctx, c.Namespace, &g.Client)
		if err != nil {
			if leaving {
				left++
				continue
			}
			return apierrors.NewServiceUnavailable(fmt.Sprintf("the tokens are kept until they can be revoked: %v", err))
		}
		token, hint := g.Refresh, "refresh_token"
		if token == "" {
			token, hint = g.Access, "access_token"
		}
		if err := h.client.Revoke(ctx, endpoint, token, hint); err != nil {
			left++
			klog.FromContext(ctx).Error(err, "A grant is not revoked at its provider", "connection", klog.KObj(c), "grant", g.Sequence)
		}
	}
	h.counts.revocations.WithLabelValues(revoked).Add(float64(len(grants) - left))
	h.counts.revocations.WithLabelValues(failed).Add(float64(left))
	return nil
}

// Sweep buries what is kept for connections that are gone, which an operator who removed a finalizer may have left.
func (h *Hub) Sweep(ctx context.Context) {
	gone, err := resource.Sweep(ctx, burying{h.vault.Store}, nil, h.o.Connections)
	switch {
	case err != nil && ctx.Err() == nil && !errors.Is(err, engine.ErrClosed):
		klog.FromContext(ctx).Error(err, "The tokens of connections that are gone are not removed; the next start removes them")
	case gone > 0:
		klog.FromContext(ctx).Info("Removed the tokens of connections that are gone, which were not revoked at their providers", "connections", gone)
	}
}

// burying is custody as Sweep needs it. Tombstones are kept.
type burying struct{ *custody.Store }

// Owners calls f with each connection that has more than a tombstone.
func (b burying) Owners(ctx context.Context, f func(types.UID) error) error {
	return b.Store.Owners(ctx, func(uid types.UID, gone bool) error {
		if gone {
			return nil
		}
		return f(uid)
	})
}

// Delete buries the tokens of a connection.
func (b burying) Delete(ctx context.Context, uid types.UID) error { return b.Bury(ctx, uid) }
