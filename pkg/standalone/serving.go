// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"fmt"
	"net"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apiserver"
	"github.com/platform-ai/platform/pkg/host/pki"
)

// streamsPerConnection bounds the HTTP/2 streams of one client connection; Go's own default is 250, of which a
// client with many watches runs out.
const streamsPerConnection = 1000

// generic makes the configuration of the generic server: TLS from the host's certificates, a loopback client whose
// token only this process knows, and the audit log.
func (o *Options) generic(scheme *runtime.Scheme, certs *pki.Authority, l net.Listener, url string) (*genericapiserver.Config, error) {
	g := apiserver.NewGeneric(scheme)
	certFile, keyFile := certs.ServingFiles()
	serving, err := dynamiccertificates.NewDynamicServingContentFromFiles("serving", certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("serving certificate: %w", err)
	}
	g.SecureServing = &genericapiserver.SecureServingInfo{
		Listener: l, Cert: serving, HTTP2MaxStreamsPerConnection: streamsPerConnection,
	}
	g.ExternalAddress = l.Addr().String()
	g.LoopbackClientConfig = &rest.Config{
		Host: url, BearerToken: string(uuid.NewUUID()), QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: certs.CAPEM()},
	}
	if o.AuditLog != "" {
		audit := options.NewAuditOptions()
		audit.PolicyFile, audit.LogOptions.Path = o.AuditPolicy, o.AuditLog
		if errs := audit.Validate(); len(errs) > 0 {
			return nil, fmt.Errorf("audit: %w", errs[0])
		}
		if err := audit.ApplyTo(g); err != nil {
			return nil, fmt.Errorf("audit: %w", err)
		}
	}
	return g, nil
}
