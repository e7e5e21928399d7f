// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package toolbox

import (
	"net/http"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
)

// callers makes clients of this server that act as its callers. All share the connections of one transport.
type callers struct {
	config    *rest.Config
	transport http.RoundTripper
}

func newCallers(loopback *rest.Config) (*callers, error) {
	c := rest.CopyConfig(loopback)
	c.QPS = -1 // callers are limited where their requests arrive
	t, err := rest.TransportFor(c)
	if err != nil {
		return nil, err
	}
	return &callers{c, t}, nil
}

// client returns a client that acts as the user or, if as is nil, as the server itself.
func (c *callers) client(as user.Info) (versioned.Interface, error) {
	t := c.transport
	if as != nil {
		t = transport.NewImpersonatingRoundTripper(transport.ImpersonationConfig{
			UserName: as.GetName(), UID: as.GetUID(), Groups: as.GetGroups(), Extra: as.GetExtra(),
		}, t)
	}
	config := rest.AnonymousClientConfig(c.config)
	config.TLSClientConfig, config.Dial = rest.TLSClientConfig{}, nil
	return versioned.NewForConfigAndClient(config, &http.Client{Transport: t})
}
