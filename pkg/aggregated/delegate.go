// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"fmt"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
)

// delegate lets the cluster tell who callers are and what they may do. The name that a proxy gives in headers counts
// only with the proxy's client certificate, whose authority the cluster publishes in kube-system. What is asked for of
// every probe, the paths of health, is open to everybody.
func (o *Options) delegate(g *genericapiserver.Config) error {
	authentication := options.NewDelegatingAuthenticationOptions()
	authentication.RemoteKubeConfigFile = o.Kubeconfig
	if err := authentication.ApplyTo(&g.Authentication, g.SecureServing, nil); err != nil {
		return fmt.Errorf("delegated authentication: %w", err)
	}
	authorization := options.NewDelegatingAuthorizationOptions()
	authorization.RemoteKubeConfigFile = o.Kubeconfig
	if err := authorization.ApplyTo(&g.Authorization); err != nil {
		return fmt.Errorf("delegated authorization: %w", err)
	}
	return nil
}
