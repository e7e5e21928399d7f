// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"context"
	"slices"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/server/host/pki"
)

// renewEvery is how often a running server checks whether its certificate is about to expire.
const renewEvery = 12 * time.Hour

// certificate is the serving certificate of the server.
type certificate struct {
	certFile, keyFile string
	made              *pki.Authority // nil if the certificate files were given by the operator
	clock             clock.WithTicker
	renewed           chan struct{} // receives at most one pending value when the authority may have changed
}

func (o *Options) certificate() (*certificate, error) {
	c := &certificate{certFile: o.CertFile, keyFile: o.KeyFile, clock: o.Clock, renewed: make(chan struct{}, 1)}
	if o.CertFile != "" {
		return c, nil
	}
	var err error
	c.made, err = pki.Open(pki.Options{Dir: o.Path("pki"), Hosts: o.names(), Name: DefaultService, ServingOnly: true, Clock: o.Clock})
	if err != nil {
		return nil, err
	}
	c.certFile, c.keyFile = c.made.ServingFiles()
	return c, nil
}

// names returns the names by which kube-apiserver and clients in the cluster call the server, and those that the
// operator configured.
func (o *Options) names() []string {
	service := o.ServiceName + "." + o.Namespace
	return slices.Concat([]string{o.ServiceName, service, service + ".svc", service + ".svc.cluster.local", o.BindAddress}, o.TLSNames)
}

// ca returns the CA that verifies the certificate; nil if the certificate was given by the operator.
func (c *certificate) ca() []byte {
	if c.made == nil {
		return nil
	}
	return c.made.CAPEM()
}

// run renews the certificate in time, until ctx ends. The listener reads the files again. The authority is renewed
// with its own key, so clients that still have its former certificate can verify the server too.
func (c *certificate) run(ctx context.Context) error {
	ticker := c.clock.NewTicker(renewEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
		if c.made == nil {
			continue
		}
		changed, err := c.made.Renew()
		if err != nil {
			klog.FromContext(ctx).Error(err, "Certificates could not be renewed")
		}
		if changed {
			select {
			case c.renewed <- struct{}{}:
			default:
			}
		}
	}
}
