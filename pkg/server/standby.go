// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/sparse"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
)

// standbyHeaderTimeout is how long a client of a waiting server may take to send the header of a request.
const standbyHeaderTimeout = 5 * time.Second

// standby answers on the server's ports while it cannot start, because files or the store cannot be opened: the server is alive but not
// ready, unless it is one of several that are to be ready while another one has the store (Options.ReadyWhileWaiting). If a port is taken,
// for example by another server on the same machine, that is no error.
type standby struct {
	o      *Options
	reason atomic.Pointer[string]
	ready  atomic.Bool // all that is missing is the end of the server that has the store

	mu     sync.Mutex
	served bool // or it must not be served any more
	told   bool // why it is not served
	stop   []func()
}

// waits states why the server waits, and serves the ports from then on. If that fails, the next call tries again.
func (s *standby) waits(ctx context.Context, reason string) {
	s.reason.Store(&reason)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.served {
		return
	}
	err := s.serve(ctx)
	s.served = err == nil
	if err == nil || s.told {
		return
	}
	s.told = true
	const what = "The ports are not served while this server waits"
	if log := klog.FromContext(ctx); local.Exhausted(err) {
		log.Error(err, what)
	} else {
		log.Info(what, "cause", err.Error())
	}
}

func (s *standby) serve(ctx context.Context) error {
	l, err := s.o.Listen(ctx)
	if err != nil {
		return err
	}
	secure, err := s.secure(l.Secure)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	s.answer(ctx, secure)
	if l.Plain != nil {
		s.answer(ctx, l.Plain)
	}
	return nil
}

func (s *standby) answer(ctx context.Context, l net.Listener) {
	srv := &http.Server{
		Handler: http.HandlerFunc(s.respond), ReadHeaderTimeout: standbyHeaderTimeout, ErrorLog: sparse.New(s.o.Clock).Logger(ctx),
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = srv.Serve(l) // until it is closed
	}()
	s.stop = append(s.stop, func() {
		if err := srv.Close(); err != nil {
			klog.FromContext(ctx).Error(err, "A port that was served during the wait could not be closed")
		}
		<-ended
	})
}

// secure adds a certificate for this wait alone, because the server's own may be in use, or not exist yet.
func (s *standby) secure(l net.Listener) (net.Listener, error) {
	name := s.o.Name
	if name == "" {
		name = "localhost"
	}
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKey(name, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}), nil
}

func (s *standby) respond(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/livez" && r.URL.Path != "/healthz" && (r.URL.Path != "/readyz" || !s.ready.Load()) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = fmt.Fprintln(w, "waiting: "+*s.reason.Load())
}

// done closes the ports, for good.
func (s *standby) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.served = true
	for _, stop := range s.stop {
		stop()
	}
}
