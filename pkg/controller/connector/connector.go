// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connector keeps the status of ConnectorProviders (provider.go) and of Connections (connection.go), and sees to it that the tokens
// of a connection that is deleted are given back before it goes. It has no tokens: the server has, and does what concerns them.
package connector

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	rules "github.com/platform-ai/platform/pkg/connector"
	"github.com/platform-ai/platform/pkg/controller/step"
)

// Options configure the controllers.
type Options struct {
	// Clock is required.
	Clock clock.PassiveClock
	// Enabled keeps the status of providers and connections. Without it only deleted connections are seen to.
	Enabled bool
	// RequireSecretHosts refuses Secrets that do not say to which hosts they may be sent.
	RequireSecretHosts bool
}

// ofProvider is the index of connections by their provider.
const ofProvider = "provider"

// Add registers the controllers.
func Add(ctx context.Context, mgr manager.Manager, o Options) error {
	w := &world{Client: mgr.GetClient(), o: o}
	err := mgr.GetFieldIndexer().IndexField(ctx, &v1alpha1.Connection{}, ofProvider, func(obj client.Object) []string {
		c, ok := obj.(*v1alpha1.Connection)
		if !ok {
			return nil
		}
		return []string{c.Spec.ProviderRef.Name}
	})
	if err != nil {
		return fmt.Errorf("index of connections: %w", err)
	}
	if !o.Enabled {
		return w.addConnections(mgr)
	}
	return errors.Join(w.addProviders(mgr), w.addConnections(mgr))
}

type world struct {
	client.Client
	o Options
}

func (w *world) addConnections(mgr manager.Manager) error {
	return builder.ControllerManagedBy(mgr).Named("connection").For(&v1alpha1.Connection{}).
		Watches(&v1alpha1.ConnectorProvider{}, handler.EnqueueRequestsFromMapFunc(w.connectionsOf)).
		Complete(&step.Reconciler[*v1alpha1.Connection]{
			Client: w.Client, New: func() *v1alpha1.Connection { return &v1alpha1.Connection{} },
			Steps: []step.Step[*v1alpha1.Connection]{{Name: "release", Do: w.release}, {Name: "settle", Do: w.settle}},
		})
}

// connectionsOf returns the connections whose status depends on a provider.
func (w *world) connectionsOf(ctx context.Context, p client.Object) []reconcile.Request {
	var list v1alpha1.ConnectionList
	if err := w.List(ctx, &list, client.InNamespace(p.GetNamespace()), client.MatchingFields{ofProvider: p.GetName()}); err != nil {
		return nil // of the cache, which has the index
	}
	out := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		out[i].NamespacedName = client.ObjectKeyFromObject(&list.Items[i])
	}
	return out
}

// release gives the tokens of a deleted connection back and lets the connection go. Until the server can, it is tried again.
func (w *world) release(ctx context.Context, c *v1alpha1.Connection) error {
	if c.DeletionTimestamp == nil {
		return nil
	}
	if !controllerutil.ContainsFinalizer(c, v1alpha1.FinalizerConnection) {
		return step.ErrDone
	}
	err := w.SubResource("release").Create(ctx, c, &v1alpha1.Connection{})
	if err != nil {
		rules.Leave(c, "its tokens cannot be given back yet: "+err.Error(), w.o.Clock.Now())
		return fmt.Errorf("release of %s: %w", c.Name, err)
	}
	before := c.DeepCopy()
	controllerutil.RemoveFinalizer(c, v1alpha1.FinalizerConnection)
	if err := w.Patch(ctx, c, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return err
	}
	return step.ErrDone
}

// settle writes what follows from the provider.
func (w *world) settle(ctx context.Context, c *v1alpha1.Connection) error {
	if !w.o.Enabled {
		return nil
	}
	p := &v1alpha1.ConnectorProvider{}
	err := w.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: c.Spec.ProviderRef.Name}, p)
	if apierrors.IsNotFound(err) {
		p, err = nil, nil
	}
	if err != nil {
		return err
	}
	rules.Settle(c, p, w.o.Clock.Now())
	return nil
}
