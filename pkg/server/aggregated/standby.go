// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"
)

// standbyHeaderTimeout is how long a client of a waiting server may take to send the header of a request.
const standbyHeaderTimeout = 5 * time.Second

// standBy answers on the server's port while another server has the store: the server is alive but not ready. Calling
// done closes the port again. If the port is taken, for example by the other server on the same machine, that is no
// error.
func (o *Options) standBy(ctx context.Context) (done func()) {
	log := klog.FromContext(ctx)
	l, err := o.listenStandby(ctx)
	if err != nil {
		log.Info("The port is not served while this server waits for the store", "cause", err.Error())
		return func() {}
	}
	s := &http.Server{Handler: http.HandlerFunc(answerStandby), ReadHeaderTimeout: standbyHeaderTimeout}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Serve(l) // until it is closed
	}()
	return func() {
		if err := s.Close(); err != nil {
			log.Error(err, "The port that was served during the wait could not be closed")
		}
		<-ended
	}
}

// listenStandby listens with a certificate for this wait alone, because the server's own is in the directory that
// another server is using.
func (o *Options) listenStandby(ctx context.Context) (net.Listener, error) {
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey(o.ServiceName, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(o.BindAddress, strconv.Itoa(o.Port)))
	if err != nil {
		return nil, err
	}
	return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}), nil
}

func answerStandby(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/livez" {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = fmt.Fprintln(w, "waiting: another server has the store open")
}
