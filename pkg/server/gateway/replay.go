// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/object"
)

// Replay routes an event again, as the bindings are now. Its state is one from which an event can be replayed. by is who asks for it.
func (h *Hub) Replay(ctx context.Context, e *v1alpha1.GatewayEvent, by string) (*v1alpha1.GatewayEvent, error) {
	g, err := h.gateway(ctx, e.Namespace, e.Spec.GatewayName)
	if apierrors.IsNotFound(err) || err == nil && g.UID != e.Spec.GatewayUID {
		return nil, apierrors.NewConflict(v1alpha1.Resource("gatewayevents"), e.Name, errors.New("its gateway is gone"))
	}
	if err != nil {
		return nil, err
	}
	row := e.DeepCopy()
	now, was := h.now(), &e.Status
	row.Status = v1alpha1.GatewayEventStatus{
		Duplicates: was.Duplicates, Mismatches: was.Mismatches, Replays: was.Replays + 1, ReplayedBy: by, UpdatedAt: &now, ExpiresAt: at(now.Add(h.o.Limits.EventExpiry)),
	}
	route, err := h.route(ctx, row)
	if err != nil {
		return nil, err
	}
	h.open.add(g.UID)
	err = (&placing{hub: h, row: row}).place(ctx, route)
	if object.IsConflict(err) {
		err = apierrors.NewConflict(v1alpha1.Resource("gatewayevents"), e.Name, errors.New("it was changed meanwhile"))
	}
	if err != nil {
		return nil, err
	}
	return h.o.Stored.Events.Get(resource.AsServer(ctx, e.Namespace), e.Name)
}
