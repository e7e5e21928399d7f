// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connection serves the accounts that people link: connectorproviders (provider.go), which operators write, connections
// (connection.go), which belong to one person each, and connectionauthorizations (authorization.go), by which a person connects. What is
// done about a consent, and with tokens, is in pkg/server/connection, which gives this package its funcs (Options).
//
// Whose a connection is follows from the verified identity of the caller: the issuer and the subject of a token from outside (package
// external). Such a caller sees and changes its own connections; those of others are not found. Callers without such an identity, which are
// administrators and controllers, are governed by their roles, but by REST they are refused, and nobody consents for another person.
package connection

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
	"github.com/platform-ai/platform/pkg/server/registry/guard"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// Stored is what is stored of connectors.
type Stored struct {
	Providers   *resource.Stored[*v1alpha1.ConnectorProvider]
	Connections *resource.Stored[*v1alpha1.Connection]
}

// NewStored returns what is stored of the connectors of one server.
func NewStored() Stored {
	return Stored{
		Providers:   resource.NewStored[*v1alpha1.ConnectorProvider](v1alpha1.Resource("connectorproviders")),
		Connections: resource.NewStored[*v1alpha1.Connection](v1alpha1.Resource("connections")),
	}
}

// Hub asks for consents and keeps tokens: pkg/server/connection. Its errors are API errors.
type Hub interface {
	Connect(ctx context.Context, namespace string, who *external.Identity, provider string, mode v1alpha1.ConnectionMode, dryRun bool) (*v1alpha1.ConnectionAuthorizationStatus, error)
	Authorize(ctx context.Context, c *v1alpha1.Connection, mode v1alpha1.ConnectionMode, dryRun bool) (*v1alpha1.ConnectionAuthorizationStatus, error)
	Complete(ctx context.Context, c *v1alpha1.Connection, completion string, dryRun bool) (*v1alpha1.Connection, error)
	Release(ctx context.Context, c *v1alpha1.Connection) error
}

// Options are what connectors need. All fields are required.
type Options struct {
	Stored Stored
	Hub    Hub
	// Off, if set, is the error of REST requests to a server without connectors.
	Off error
	// REST reports whether a request was made by REST.
	REST    func(ctx context.Context) bool
	Clock   clock.PassiveClock
	Workers *guard.Workers
}

// Families of scopes that transaction tokens need.
const (
	scopeRead   = "connectors:read"
	scopeManage = "connectors:manage"
)

// category is the group of kinds of which kubectl gets all.
const category = "platform"

// Resources returns the resources of connectors.
func Resources(o Options) []resource.Resource {
	return []resource.Resource{o.providers(), o.connections(), o.authorizations()}
}

// identity returns the verified identity of the caller; nil if it has none that names a person.
func identity(ctx context.Context) *external.Identity {
	u, ok := request.UserFrom(ctx)
	if !ok {
		return nil
	}
	i := external.From(u)
	if i == nil || i.Requester.Issuer == "" || i.Requester.Subject == "" {
		return nil
	}
	return i
}

// isServer reports whether the server itself acts; see resource.AsServer.
func isServer(ctx context.Context) bool {
	_, ok := request.UserFrom(ctx)
	return !ok
}

// errNobody refuses callers that are not known as a person.
var errNobody = errors.New("this needs the token of an OpenID provider or a transaction token, whose issuer and subject say which person asks")

// person returns the identity of the caller, or a refusal.
func person(ctx context.Context, kind, name string) (*external.Identity, error) {
	i := identity(ctx)
	if i == nil {
		return nil, apierrors.NewForbidden(v1alpha1.Resource(kind), name, errNobody)
	}
	return i, nil
}

// byREST refuses a REST request that connectors do not answer.
func (o *Options) byREST(ctx context.Context, kind, name string) error {
	if !o.REST(ctx) {
		return nil
	}
	if o.Off != nil {
		return o.Off
	}
	_, err := person(ctx, kind, name)
	return err
}
