// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"fmt"
	"net"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/audit/policy"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	auditlog "k8s.io/apiserver/plugin/pkg/audit/log"
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
	return g, o.audit(g)
}

// audit sets up the audit log. Its file is appended to; it stays open until the process ends.
func (o *Options) audit(g *genericapiserver.Config) error {
	if o.AuditLog == "" {
		return nil
	}
	rules, err := policy.LoadPolicyFromFile(o.AuditPolicy)
	if err != nil {
		return fmt.Errorf("audit policy: %w", err)
	}
	out := o.Out
	if o.AuditLog != "-" {
		if out, err = os.OpenFile(o.AuditLog, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
			return fmt.Errorf("audit log: %w", err)
		}
	}
	g.AuditBackend = auditlog.NewBackend(out, auditlog.FormatJson, auditv1.SchemeGroupVersion)
	g.AuditPolicyRuleEvaluator = policy.NewPolicyRuleEvaluator(rules)
	return nil
}
