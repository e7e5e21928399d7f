// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/connrotation"
	"k8s.io/client-go/util/keyutil"

	"github.com/platform-ai/platform/pkg/server/apiserver"
)

const (
	// streamsPerConnection bounds the HTTP/2 streams of one client connection. Go's own default is 250, which is too
	// few for a client with many watches.
	streamsPerConnection = 1000
	// loopbackLife is longer than any process runs.
	loopbackLife = 10 * 365 * 24 * time.Hour
)

// Generic makes the configuration of the generic server. It contains the listener with its certificate files, which
// are read again when they change; a loopback client, whose token and certificate only this process has; and the
// audit log.
func (o *Options) Generic(scheme *runtime.Scheme, l *Listeners, certFile, keyFile string) (*genericapiserver.Config, error) {
	g := apiserver.NewGeneric(scheme)
	serving, err := dynamiccertificates.NewDynamicServingContentFromFiles("serving", certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("serving certificate: %w", err)
	}
	g.SecureServing = &genericapiserver.SecureServingInfo{
		Listener: l.Secure, Cert: serving, HTTP2MaxStreamsPerConnection: streamsPerConnection,
	}
	g.EnableProfiling = false // on by default in the library
	g.ExternalAddress = l.Secure.Addr().String()
	if err := o.addLoopback(g); err != nil {
		return nil, fmt.Errorf("loopback client: %w", err)
	}
	return g, o.audit(g)
}

// addLoopback makes the client with which the server calls itself. It has a separate certificate, selected by a
// server name that nobody else uses, because the serving certificate may come from anywhere and may change.
func (o *Options) addLoopback(g *genericapiserver.Config) error {
	const name = genericapiserver.LoopbackClientServerNameOverride
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	now := o.Clock.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(loopbackLife),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	certPEM := pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
	content, err := dynamiccertificates.NewStaticSNICertKeyContent("loopback", certPEM, keyPEM, name)
	if err != nil {
		return err
	}
	g.SecureServing.SNICerts = append(g.SecureServing.SNICerts, content)
	if g.LoopbackClientConfig, err = g.SecureServing.NewLoopbackClientConfig(string(uuid.NewUUID()), certPEM); err != nil {
		return err
	}
	g.LoopbackClientConfig.DisableCompression = true
	// On HTTP/2, a listener that stops waits a second for each connection that its client does not close.
	own := connrotation.NewDialer((&net.Dialer{}).DialContext)
	g.LoopbackClientConfig.Dial = own.DialContext
	go func() { // ends when the server has no more requests
		<-g.DrainedNotify()
		own.CloseAll()
	}()
	return nil
}
