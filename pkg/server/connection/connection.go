// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connection links people's own accounts: it asks a person's consent at a ConnectorProvider, keeps the tokens, refreshes them, and
// gives them back. Refresh tokens never leave it but for the provider that gave them. Access tokens leave it by Use, for a call of a tool
// of that provider.
//
// # The way of a consent
//
// Begin (begin.go) writes a pending consent into the custody of the connection: a digest of a random nonce, and all that the consent is for.
// The person's browser gets the nonce in the parameter state, with an HMAC, and comes back with it to the callback (callback.go), which
// anybody can open, so only the state counts there. The callback takes the pending consent away first, then exchanges the code, once,
// whatever happens, and parks the tokens. They are nobody's yet: whose browser it was is not known. It may have been sent here by somebody
// who wants another person's account on their connection, or the reverse. The browser is sent on with a completion token in the fragment of
// the address, which reaches no server, log or referrer, and the page posts it as the person who is logged in there. Complete (complete.go)
// commits the parked tokens only for the owner of the connection, in one commit with its status.
//
// A crash leaves the connection before or after each of these steps, and never between. What was taken away is not used again; the person
// begins anew.
//
// # Custody
//
// Everything is one document for each connection (document.go), which package storage/custody seals, and changes only by compare-and-swap.
// A committed grant has a sequence that never repeats. The grants before it are kept until the person disconnects, at most 16, because
// providers revoke all grants of a person with one of them; then (release.go) all of them are revoked at the provider, as far as it lets
// us, and the row becomes a tombstone, so that nothing that was still going on can write tokens afterwards.
//
// # The use of an account
//
// Use (use.go) gives out the access token of a connection if the connection, its provider as it is now, and the grant in custody belong
// together. A token that ends within a minute is refreshed first (renew.go). Providers replace the refresh token when it is used, and take
// it for stolen when it comes again: then they revoke everything. So one refresh at a time is going on for a connection, whatever becomes
// of the callers who wait for it. What the provider answered is written before anybody gets it, together with the status (settle.go). Only
// one process has the store open, so nobody else sends the token. If the answer cannot be written, it is kept in memory, and no request is
// made until it is written. What came meanwhile wins: after another consent the new tokens are kept, to be revoked with the other earlier
// grants, and after a disconnection they are revoked at once.
//
// Only an answer of class oauth.Revoked removes the tokens; the person connects again. Any other failure keeps them. The access token is
// used while it lives, and calls fail with a RefreshError after that. The same refresh token is sent again after a pause (pause.go), also
// if the answer was lost: if the provider had replaced the token, it says so now, and the connection is revoked once. Nothing is sent for a
// connection that is revoked.
package connection

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/connector"
	"github.com/platform-ai/platform/pkg/connector/oauth"
	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/server/door"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/custody"
	"github.com/platform-ai/platform/pkg/storage/engine"
)

const (
	// CallbackPath is where the provider sends the browser of a person back to.
	CallbackPath = "/api/v1/connections/callback"
	// settingsPath is the page to which the browser is sent on.
	settingsPath = "/settings/connectors"
	// consentLife is how long a consent may take, and how long a completion may after it.
	consentLife = 10 * time.Minute
	// maxSuperseded is how many grants are kept beside the committed one.
	maxSuperseded = 16
)

// Options are what this package needs. All fields are required except Off, Transport and Metrics.
type Options struct {
	// Off refuses everything but to give tokens back; Base is not needed then.
	Off bool
	// Base is the address that browsers know the server by, such as https://platform.example.com.
	Base string
	// Connections and Providers are what is stored of them, in Engine, as Custody is.
	Connections *resource.Stored[*v1alpha1.Connection]
	Providers   *resource.Stored[*v1alpha1.ConnectorProvider]
	Custody     *custody.Store
	Engine      engine.Engine
	// Key signs states and completions, at least 32 bytes.
	Key []byte
	// Host is a client of the server that has the Secrets.
	Host kubernetes.Interface
	// RequireSecretHosts refuses Secrets that do not name the hosts to which their values may be sent.
	RequireSecretHosts bool
	// Transport speaks with providers. Default: one that reaches public addresses only.
	Transport http.RoundTripper
	Clock     clock.PassiveClock
	Metrics   prometheus.Registerer
}

// Hub is the connections of a server. All methods may be called concurrently.
type Hub struct {
	o      Options
	vault  vault
	base   string
	client *oauth.Client
	counts *metrics
	uses   *uses
}

// New returns the connections of a server.
func New(o Options) (*Hub, error) {
	if o.Base == "" && !o.Off {
		return nil, errors.New("--connector-callback-base-url: is required with --connectors-enabled: the address that browsers know this server by")
	}
	if err := egress.CheckSecure("--connector-callback-base-url", o.Base); err != nil {
		return nil, err
	}
	if len(o.Key) < minKey {
		return nil, fmt.Errorf("key of connections: has %d bytes, and must have at least %d", len(o.Key), minKey)
	}
	counts, err := newMetrics(o.Metrics)
	if err != nil {
		return nil, err
	}
	h := &Hub{o: o, vault: vault{o.Custody}, base: strings.TrimRight(o.Base, "/"), client: oauth.New(oauth.Options{Transport: o.Transport, Clock: o.Clock}), counts: counts}
	h.uses = newUses(h)
	return h, nil
}

// Disabled is the error of everything that needs connectors on a server without them.
func Disabled() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotImplemented, Reason: v1alpha1.ReasonConnectorsDisabled,
		Message: "connectors are off: the server needs --connectors-enabled and --connector-callback-base-url",
	}}
}

// userCallback names who comes back from a provider: anybody with a state.
const userCallback = "platform:connector-callback"

// Door returns the door of the callback. A server without connectors has it too, and answers 404.
func (h *Hub) Door() door.Door {
	return door.Door{
		Name: "connector-callback", Paths: []string{CallbackPath}, Methods: []string{http.MethodGet},
		Bounds: door.Bounds{Body: 1, Bytes: 128, Requests: 64, Time: callbackTime},
		Before: func(*http.Request) error {
			if h.o.Off {
				return apierrors.NewNotFound(v1alpha1.Resource("connections"), "callback")
			}
			return nil
		},
		Verify: func(*http.Request, []byte) (user.Info, error) { // Handle proves the state, and tells the browser what is wrong with it
			return &user.DefaultInfo{Name: userCallback, Groups: []string{user.AllUnauthenticated}}, nil
		},
		Handle: h.callback,
	}
}

// callbackTime is how long a callback may take: the exchange of the code has 30 s.
const callbackTime = 45 * time.Second

// RedirectURI is the address that providers must know the server by.
func (h *Hub) RedirectURI() string { return h.base + CallbackPath }

// provider returns the provider of a connection if a consent can be asked there. Its error is an API error.
func (h *Hub) provider(ctx context.Context, namespace, name string) (*v1alpha1.ConnectorProvider, error) {
	p, err := h.o.Providers.Get(resource.AsServer(ctx, namespace), name)
	if err != nil {
		return nil, err
	}
	if err := connector.Available(p); err != nil {
		return nil, apierrors.NewConflict(v1alpha1.Resource("connectorproviders"), name, err)
	}
	return p, nil
}

// endpoint returns where the provider of a grant is asked, with the secret of the client as it is now.
func (h *Hub) endpoint(ctx context.Context, namespace string, c *client) (oauth.Endpoint, error) {
	s, err := h.o.Host.CoreV1().Secrets(namespace).Get(ctx, c.Secret.Name, metav1.GetOptions{})
	if err != nil {
		return oauth.Endpoint{}, fmt.Errorf("secret of the client: %w", err)
	}
	to, err := url.Parse(c.TokenURL) // the address of the revocation is on the same host
	if err != nil {
		return oauth.Endpoint{}, errors.New("the address of the provider cannot be read")
	}
	of := types.NamespacedName{Namespace: namespace, Name: c.Secret.Name}
	if err := plan.MaySend(of, plan.HostsOf(s.Annotations), h.o.RequireSecretHosts, to); err != nil {
		return oauth.Endpoint{}, err
	}
	value := strings.TrimRight(string(s.Data[c.Secret.Key]), "\r\n") // which files often end with
	if value == "" {
		return oauth.Endpoint{}, fmt.Errorf("secret of the client: Secret %s has no key %q", c.Secret.Name, c.Secret.Key)
	}
	return oauth.Endpoint{TokenURL: c.TokenURL, RevocationURL: c.RevocationURL, ClientID: c.ID, ClientSecret: oauth.SecretOf(value), Authentication: c.Authentication}, nil
}

// stale reports whether an object under the name is not the one of the UID.
func stale(c *v1alpha1.Connection, uid types.UID) bool {
	return c.UID != uid || c.DeletionTimestamp != nil
}
