// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/server/apiserver"
	facaderest "github.com/platform-ai/platform/pkg/server/facade/rest"
)

const (
	// restHeaderTimeout is how long a client may take to send the header of a request, and restIdleTimeout how long a
	// connection may be idle. Bodies and answers have no limit, because streams stay open.
	restHeaderTimeout, restIdleTimeout = 30 * time.Second, 90 * time.Second
	// restShutdown is how long requests may take to finish when the server stops.
	restShutdown = 5 * time.Second
)

// serveREST serves the REST paths and the health checks until ctx ends.
func (p *Process) serveREST(ctx context.Context) error {
	mux := http.NewServeMux()
	health := newHealth(p.Clock, p.Loopback, p.Ready)
	mux.HandleFunc("/healthz", health.Alive)
	mux.HandleFunc("/readyz", health.Ready)
	mux.Handle("/", p.API.REST)
	handler := ownHost(p.Listeners.Plain, nil)(p.API.Guard(mux))
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	s := &http.Server{
		Handler: apiserver.NoSniff(handler), Protocols: &protocols, ReadHeaderTimeout: restHeaderTimeout, IdleTimeout: restIdleTimeout,
		ErrorLog:    p.Sparse.Logger(ctx),
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		// Streams end by themselves, because the API server ends their contexts.
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), restShutdown)
		defer cancel()
		err := s.Shutdown(bounded)
		if err != nil {
			err = s.Close()
		}
		stopped <- err
	})
	err := s.Serve(p.Listeners.Plain)
	if stop() || !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("REST listener: %w", err)
	}
	return <-stopped
}

// newHealth answers probes as the REST paths do. ready checks the store, and the API server is asked whether it is ready.
func newHealth(c clock.WithTicker, loopback *rest.Config, ready func() error) *facaderest.Health {
	return facaderest.NewHealth(c, map[string]facaderest.Check{
		"store": func(context.Context) error { return cmp.Or(descriptors(), ready()) },
		"kubernetes": func(ctx context.Context) error {
			client, err := rest.HTTPClientFor(loopback)
			if err != nil {
				return fmt.Errorf("loopback client: %w", err)
			}
			return readyOnce(ctx, loopback, client)
		},
	})
}
