// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/connector"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/custody"
	"github.com/platform-ai/platform/pkg/storage/engine"
)

// flush writes an outcome that could not be written before.
func (u *uses) flush(ctx context.Context, at place, uid types.UID) error {
	u.mu.Lock()
	o := u.unwritten[uid]
	u.mu.Unlock()
	if o == nil {
		return nil
	}
	_, err := u.settle(ctx, at, uid, o)
	if errors.Is(err, errSuperseded) { // it is written, or there is nothing to write any more
		return nil
	}
	return err
}

// forget forgets a connection that has ended.
func (u *uses) forget(uid types.UID) {
	u.pauses.end(uid)
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.unwritten, uid)
}

// settle writes an outcome and returns the connection with it. The error is errSuperseded if it was written, if at all, for a grant that
// the connection does not have any more. If the person has disconnected, new tokens are given back, because those that were revoked are
// the ones of before, and the error is a *connector.UnusableError.
func (u *uses) settle(ctx context.Context, at place, uid types.UID, o *outcome) (*v1alpha1.Connection, error) {
	var c *v1alpha1.Connection
	err := errBusy
	for range maxTries {
		if c, err = u.write(ctx, at, uid, o); !isConflict(err) {
			break
		}
	}
	written := err == nil || errors.Is(err, errSuperseded)
	switch {
	case written && o.got != nil:
		u.count(refreshed)
	case written:
		u.count(revoked)
	case errors.Is(err, errGone):
		u.count(discarded)
		err = &connector.UnusableError{Message: errGone.Error()}
	default:
		u.mu.Lock()
		u.unwritten[uid] = o
		u.mu.Unlock()
		return nil, err
	}
	u.forget(uid)
	if !written && o.got != nil {
		u.giveBack(ctx, at, o)
	}
	return c, err
}

// write writes an outcome into the custody of a connection and, if the connection has the grant, into its status, in one commit.
func (u *uses) write(ctx context.Context, at place, uid types.UID, o *outcome) (*v1alpha1.Connection, error) {
	d, version, err := u.h.vault.load(uid)
	if err != nil {
		return nil, err
	}
	found, current := d.settle(o)
	switch {
	case d.Closing:
		return nil, errGone
	case !found:
		return nil, errSuperseded
	}
	row, err := u.h.vault.stage(uid, version, d)
	if err != nil {
		return nil, err
	}
	parts := []engine.Part{row}
	var c *v1alpha1.Connection
	if current {
		var status engine.Part
		c, status, err = u.stage(ctx, at, uid, o, d.Grant)
		if err != nil {
			return nil, err
		}
		if status != nil {
			parts = append(parts, status)
		}
	}
	// Upkeep, because the provider may have revoked the token that this one replaces.
	err = u.h.o.Engine.Commit(engine.Join(engine.Upkeep, parts...))
	switch {
	case errors.Is(err, custody.ErrGone):
		return nil, errGone
	case err == nil && c == nil:
		return nil, errSuperseded
	}
	return c, err
}

// stage prepares the status with an outcome. There is nothing to write, and no connection, if it is being deleted: its tokens are still
// kept then, and are revoked before it goes.
func (u *uses) stage(ctx context.Context, at place, uid types.UID, o *outcome, g *grant) (*v1alpha1.Connection, engine.Part, error) {
	var with *v1alpha1.Connection
	status, err := u.h.o.Connections.Stage(resource.AsServer(ctx, at.namespace), at.name, func(c *v1alpha1.Connection) error {
		switch {
		case c.UID != uid:
			return errGone
		case c.DeletionTimestamp != nil, c.Status.GrantSequence != o.sequence:
			return errSuperseded
		}
		p, err := u.provider(ctx, c)
		if err != nil {
			return err
		}
		o.show(c, g, p, u.h.o.Clock.Now())
		with = c
		return nil
	})
	switch {
	case errors.Is(err, errSuperseded):
		return nil, nil, nil
	case apierrors.IsNotFound(err):
		return nil, nil, errGone
	}
	return with, status, err
}

// giveBack revokes tokens that are not kept, as far as the provider lets us.
func (u *uses) giveBack(ctx context.Context, at place, o *outcome) {
	g := grant{ask: ask{Client: o.client}, Sequence: o.sequence, Access: o.got.AccessToken.Reveal(), Refresh: o.got.RefreshToken.Reveal()}
	if !g.revocable() {
		return
	}
	if g.Refresh == o.sent { // which is revoked already
		g.Refresh = ""
	}
	c := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Namespace: at.namespace, Name: at.name}}
	if err := u.h.revoke(ctx, c, []grant{g}, true); err != nil {
		klog.FromContext(ctx).Error(err, "Tokens that came while the person disconnected are not revoked", "connection", klog.KObj(c))
	}
}
