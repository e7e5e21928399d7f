// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"context"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/server/auth/clientcert"
)

const (
	// authenticationMap in kube-system holds the authorities of client certificates: that of the cluster's users
	// under clientCAKey, and that of the proxies that may name their callers.
	authenticationMap = "extension-apiserver-authentication"
	clientCAKey       = "client-ca-file"
	// authorityPoll is the time between two checks, during the start, of whether the authorities are known.
	authorityPoll = 2 * time.Millisecond
)

// delegate makes the cluster authenticate and authorize callers. A user name in the headers of a proxy counts only
// with the proxy's client certificate, whose authority the cluster publishes in kube-system. The health paths, which
// every probe requests, are open to everybody.
//
// delegate returns when the authorities are known. If the server accepted connections before, it could not tell
// kube-apiserver which client certificate to present. Every request on such a connection, which may live for hours,
// would then be anonymous.
func (a *assembly) delegate(ctx context.Context, g *genericapiserver.Config) error {
	users, err := dynamiccertificates.NewDynamicCAFromConfigMapController("client-ca", metav1.NamespaceSystem, authenticationMap, clientCAKey, a.host)
	if err != nil {
		return fmt.Errorf("delegated authentication: %w", err)
	}
	authentication := options.NewDelegatingAuthenticationOptions()
	authentication.RemoteKubeConfigFile = a.Kubeconfig
	authentication.ClientCert.CAContentProvider = users
	if err := authentication.ApplyTo(&g.Authentication, g.SecureServing, nil); err != nil {
		return fmt.Errorf("delegated authentication: %w", err)
	}
	g.Authentication.Authenticator = clientcert.Proxied(g.Authentication.RequestHeaderConfig, g.Authentication.Authenticator, clock.RealClock{})
	authorization := options.NewDelegatingAuthorizationOptions()
	authorization.RemoteKubeConfigFile = a.Kubeconfig
	if err := authorization.ApplyTo(&g.Authorization); err != nil {
		return fmt.Errorf("delegated authorization: %w", err)
	}
	g.SecureServing.ClientCA = start(ctx, g.SecureServing.ClientCA)
	return wait.PollUntilContextCancel(ctx, authorityPoll, true, func(context.Context) (bool, error) {
		_, proxies := g.Authentication.RequestHeaderConfig.CAContentProvider.VerifyOptions()
		_, known := users.VerifyOptions()
		return proxies && (known || a.authorities.Data[clientCAKey] == ""), nil
	})
}

// authorities provides certificates whose changes are already being followed. The generic server would start
// following them only when it opens its port. This type is not a dynamiccertificates.ControllerRunner, so the generic
// server does not follow them a second time.
type authorities struct {
	dynamiccertificates.CAContentProvider

	mu        sync.Mutex // guards listeners
	listeners []dynamiccertificates.Listener
}

// start follows the certificates until ctx ends.
func start(ctx context.Context, c dynamiccertificates.CAContentProvider) *authorities {
	a := &authorities{CAContentProvider: c}
	c.AddListener(a)
	if r, ok := c.(dynamiccertificates.ControllerRunner); ok {
		go r.Run(ctx, 1)
	}
	return a
}

// AddListener adds a listener. It may be called at any time.
func (a *authorities) AddListener(l dynamiccertificates.Listener) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.listeners = append(a.listeners, l)
}

// Enqueue notifies all listeners of a change.
func (a *authorities) Enqueue() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.listeners {
		l.Enqueue()
	}
}
