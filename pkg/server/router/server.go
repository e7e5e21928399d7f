// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/memlimit"
)

const (
	// maxHeader is the maximum size of a request's header, in bytes. A token and what SDKs send take less than 8 KiB.
	maxHeader = 64 << 10
	// idleTimeout is how long a connection without a request is kept.
	idleTimeout = 2 * time.Minute
)

// Run serves until ctx ends, and then until the requests in progress have ended or the shutdown timeout has passed.
func Run(ctx context.Context, o Options) error {
	memlimit.Set(ctx)
	if err := o.validate(); err != nil {
		return err
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	stopProfiling, err := o.Profiling.Serve(ctx)
	if err != nil {
		return err
	}
	defer stopProfiling()
	rt, err := o.router()
	if err != nil {
		return err
	}
	s, err := o.server(ctx, rt)
	if err != nil {
		return err
	}
	listener, err := listen(ctx, o.BindAddress)
	if err != nil {
		return fmt.Errorf("--bind-address: %w", err)
	}
	defer listener.Close() //nolint:errcheck // the server closes it, too
	helpers, stop := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop() // helpers serve the requests in progress, so they end after these
	metrics, err := o.serveMetrics(helpers, &wg, rt)
	if err != nil {
		return fmt.Errorf("--metrics-bind-address: %w", err)
	}
	if o.RoutesReloadInterval > 0 {
		wg.Go(func() { rt.follow(helpers, o.RoutesFile, o.Clock, o.RoutesReloadInterval) })
	}
	klog.FromContext(ctx).Info("Serving", "address", listener.Addr().String(), "tls", o.TLSCertFile != "", "namespaces", rt.routes.Load().Len())
	if o.Ready != nil {
		o.Ready(listener.Addr(), metrics)
	}
	return o.serve(ctx, s, listener)
}

// serve runs the server until ctx has ended and its requests have finished.
func (o *Options) serve(ctx context.Context, s *http.Server, l net.Listener) error {
	ended := make(chan error, 1)
	go func() { // ends with the server
		if o.TLSCertFile != "" {
			ended <- s.ServeTLS(l, "", "")
			return
		}
		ended <- s.Serve(l)
	}()
	select {
	case err := <-ended:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	klog.FromContext(ctx).Info("Stopping; requests under way may go on", "for", o.ShutdownTimeout)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.ShutdownTimeout)
	defer cancel()
	if err := s.Shutdown(bounded); err != nil {
		_ = s.Close() // breaks the remaining connections
		return errors.New("requests were broken off: they did not end within --shutdown-timeout")
	}
	return nil
}

// server returns the server of the shared listener: the router, and the probes of the listener itself.
func (o *Options) server(ctx context.Context, rt *Router) (*http.Server, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", alive)
	mux.HandleFunc("GET /readyz", alive)
	s := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			// The mux would redirect paths that are not clean, so it gets only the exact paths of probes.
			if p := r.URL.EscapedPath(); p == "/healthz" || p == "/readyz" {
				out := newWriter(w, r, o.Clock, o.WriteTimeout)
				mux.ServeHTTP(out, r)
				out.finish()
				return
			}
			rt.ServeHTTP(w, r)
		}),
		DisableGeneralOptionsHandler: true, ReadTimeout: o.ReadTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		ErrorLog:    rt.sparse.Logger(ctx),
	}
	if o.TLSCertFile == "" {
		return s, nil
	}
	pair := &keyPair{certFile: o.TLSCertFile, keyFile: o.TLSKeyFile}
	if _, err := pair.get(nil); err != nil {
		return nil, fmt.Errorf("--tls-cert-file, --tls-private-key-file: %w", err)
	}
	s.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: pair.get}
	return s, nil
}

// alive answers a probe. It reports only on this listener, because the failure of one installation must not make the
// others unreachable.
func alive(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set(headerCacheControl, "no-store")
	_, _ = io.WriteString(w, `{"status":"ok"}`+"\n")
}

// serveMetrics serves /metrics on a separate listener until ctx ends, so that callers cannot read metrics and their
// tokens are not sent there.
func (o *Options) serveMetrics(ctx context.Context, wg *sync.WaitGroup, rt *Router) (net.Addr, error) {
	if o.MetricsBindAddress == "" {
		return nil, nil
	}
	registry := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{
		rt.Metrics(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := registry.Register(c); err != nil {
			return nil, err
		}
	}
	l, err := listen(ctx, o.MetricsBindAddress)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	s := &http.Server{Handler: mux, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	wg.Go(func() {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			klog.FromContext(ctx).Error(err, "Metrics are not served any more")
		}
	})
	return l.Addr(), nil
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	var lc net.ListenConfig
	return lc.Listen(ctx, "tcp", address)
}

// keyPair is a certificate that is loaded again when one of its files changes.
type keyPair struct {
	certFile, keyFile string

	mu    sync.Mutex // guards the rest
	cert  *tls.Certificate
	stamp [2]time.Time // of the files, when cert was read
}

// get is for tls.Config. If the files cannot be read any more, the last certificate stays in use.
func (k *keyPair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	stamp, err := stamps(k.certFile, k.keyFile)
	if err == nil && (k.cert == nil || stamp != k.stamp) {
		var pair tls.Certificate
		if pair, err = tls.LoadX509KeyPair(k.certFile, k.keyFile); err == nil {
			k.cert, k.stamp = &pair, stamp
		}
	}
	if k.cert == nil {
		return nil, err
	}
	return k.cert, nil
}

func stamps(paths ...string) (s [2]time.Time, err error) {
	for i, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return s, err
		}
		s[i] = info.ModTime()
	}
	return s, nil
}
