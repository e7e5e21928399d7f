// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// catalogGuard is the guard of providers: by REST only persons see them. Workers see those whose tools their tasks use.
type catalogGuard struct {
	o    *Options
	next resource.Guard[*v1alpha1.ConnectorProvider]
}

func (o *Options) catalogGuard() resource.Guard[*v1alpha1.ConnectorProvider] {
	return &catalogGuard{o, o.Workers.ConnectorProviders()}
}

// Held reports whether the caller is a worker, or asks by REST.
func (g *catalogGuard) Held(ctx context.Context) bool { return g.next.Held(ctx) || g.o.REST(ctx) }

// Object decides on a request about one provider.
func (g *catalogGuard) Object(ctx context.Context, a resource.Access, p *v1alpha1.ConnectorProvider) error {
	if g.next.Held(ctx) {
		return g.next.Object(ctx, a, p)
	}
	return g.o.byREST(ctx, "connectorproviders", p.Name)
}

// Collection decides on a list or a watch.
func (g *catalogGuard) Collection(ctx context.Context, a resource.Access, opts *metainternalversion.ListOptions) (func(*v1alpha1.ConnectorProvider) bool, error) {
	if g.next.Held(ctx) {
		return g.next.Collection(ctx, a, opts)
	}
	return func(*v1alpha1.ConnectorProvider) bool { return true }, g.o.byREST(ctx, "connectorproviders", "")
}

// ownerGuard is the guard of connections: a person reaches those of that person. Workers reach none.
type ownerGuard struct {
	o    *Options
	next resource.Guard[*v1alpha1.Connection]
}

func (o *Options) ownerGuard() resource.Guard[*v1alpha1.Connection] {
	return &ownerGuard{o, guard.Closed[*v1alpha1.Connection](o.Workers, "connections")}
}

// Held is true for all but the server itself: also an administrator may not do everything.
func (g *ownerGuard) Held(ctx context.Context) bool { return !isServer(ctx) }

// Object decides on a request about one connection.
func (g *ownerGuard) Object(ctx context.Context, a resource.Access, c *v1alpha1.Connection) error {
	if g.next.Held(ctx) {
		return g.next.Object(ctx, a, c)
	}
	if err := g.o.byREST(ctx, "connections", c.Name); err != nil {
		return err
	}
	who := identity(ctx)
	switch {
	case a.Verb == "create" && a.Subresource == "":
		return apierrors.NewForbidden(v1alpha1.Resource("connections"), c.Name, errors.New("the server makes connections: create a connectionauthorization"))
	case who != nil && !owns(who.Requester.Issuer, who.Requester.Subject, c):
		return apierrors.NewNotFound(v1alpha1.Resource("connections"), c.Name)
	case who == nil && consents(a):
		return apierrors.NewForbidden(v1alpha1.Resource("connections"), c.Name, errNobody)
	}
	return nil
}

// Collection decides on a list or a watch. Others' connections are left out, and are not deleted together with one's own.
func (g *ownerGuard) Collection(ctx context.Context, a resource.Access, opts *metainternalversion.ListOptions) (func(*v1alpha1.Connection) bool, error) {
	if g.next.Held(ctx) {
		return g.next.Collection(ctx, a, opts)
	}
	if err := g.o.byREST(ctx, "connections", ""); err != nil {
		return nil, err
	}
	who := identity(ctx)
	return func(c *v1alpha1.Connection) bool {
		return who == nil || owns(who.Requester.Issuer, who.Requester.Subject, c)
	}, nil
}

// consents reports whether a request does what only the owner of a connection does.
func consents(a resource.Access) bool {
	return a.Verb == "create" && (a.Subresource == subAuthorize || a.Subresource == subComplete)
}

// owns reports whether a connection is that of a person.
func owns(issuer, subject string, c *v1alpha1.Connection) bool {
	return c.Spec.Subject == v1alpha1.ConnectionSubject{Issuer: issuer, Subject: subject}
}
