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
)

const (
	// authenticationMap in kube-system holds the authorities of client certificates: of the cluster's users under
	// clientCAKey, and of the proxies that may name their callers.
	authenticationMap = "extension-apiserver-authentication"
	clientCAKey       = "client-ca-file"
	// authorityPoll is how often a start looks whether the authorities are known.
	authorityPoll = 2 * time.Millisecond
)

// delegate lets the cluster tell who callers are and what they may do. The name that a proxy gives in headers counts
// only with the proxy's client certificate, whose authority the cluster publishes in kube-system. What is asked for of
// every probe, the paths of health, is open to everybody.
//
// It returns when the authorities are known. A server that accepts connections before cannot tell kube-apiserver which
// certificate to show, and everything on such a connection, which may live for hours, would be anonymous.
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

// authorities are certificates that are followed already. The generic server would only begin to follow them when it
// opens its port; as they are no dynamiccertificates.ControllerRunner, it does not do so once more.
type authorities struct {
	dynamiccertificates.CAContentProvider

	mu        sync.Mutex // guards listeners
	listeners []dynamiccertificates.Listener
}

// start follows certificates until ctx ends.
func start(ctx context.Context, c dynamiccertificates.CAContentProvider) *authorities {
	a := &authorities{CAContentProvider: c}
	c.AddListener(a)
	if r, ok := c.(dynamiccertificates.ControllerRunner); ok {
		go r.Run(ctx, 1)
	}
	return a
}

// AddListener adds a listener, at any time.
func (a *authorities) AddListener(l dynamiccertificates.Listener) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.listeners = append(a.listeners, l)
}

// Enqueue tells all listeners of a change.
func (a *authorities) Enqueue() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.listeners {
		l.Enqueue()
	}
}
