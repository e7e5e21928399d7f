// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// probes answers the kubelet's probes even before the manager exists: a process that waits for
// the API is alive, but not ready.
type probes struct {
	ready  atomic.Bool
	server *http.Server
	done   chan struct{}
}

// serveProbes starts to listen before it returns. It serves nothing if the address is empty.
func serveProbes(ctx context.Context, address string) (*probes, error) {
	p := &probes{done: make(chan struct{})}
	if address == "" {
		close(p.done)
		return p, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("probes: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !p.ready.Load() {
			http.Error(w, "waiting for the platform's API", http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok"))
	})
	p.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { // ends with close
		defer close(p.done)
		_ = p.server.Serve(listener)
	}()
	return p, nil
}

func (p *probes) close() {
	if p.server != nil {
		_ = p.server.Close()
	}
	<-p.done
}
