// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/facade"
)

// DefaultRESTAddress is where the REST API is served without TLS unless told otherwise.
const DefaultRESTAddress = "127.0.0.1:7080"

const (
	// restHeaderTimeout is how long a client may take to send the head of a request, and restIdleTimeout how long a
	// connection may lie idle. Bodies and answers have no limit: streams stay open.
	restHeaderTimeout, restIdleTimeout = 30 * time.Second, 90 * time.Second
	// restShutdown is how long requests may take to end when the server stops.
	restShutdown = 5 * time.Second
)

// EnvCORSOrigins and its alias list the origins whose pages may use the REST API, separated by commas; unset is any.
const (
	EnvCORSOrigins      = "PLATFORM_CORS_ALLOWED_ORIGINS"
	EnvCORSOriginsAlias = "ORKA_CORS_ALLOWED_ORIGINS"
)

// CORSOrigins reads the allowed origins from the environment.
func CORSOrigins(getenv func(string) string) []string {
	value := getenv(EnvCORSOrigins)
	if value == "" {
		value = getenv(EnvCORSOriginsAlias)
	}
	var origins []string
	for o := range strings.SplitSeq(value, ",") {
		if o = strings.TrimSpace(o); o != "" {
			origins = append(origins, o)
		}
	}
	return origins
}

// checkREST refuses an address from which tokens would cross a network in the clear, unless the operator wants that.
func (o *Options) checkREST() error {
	if o.RESTBindAddress == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(o.RESTBindAddress)
	if err != nil {
		return fmt.Errorf("--rest-bind-address: %w", err)
	}
	ip, err := netip.ParseAddr(host)
	if loopback := host == "localhost" || err == nil && ip.IsLoopback(); loopback || o.RESTAllowRemote {
		return nil
	}
	return fmt.Errorf("--rest-bind-address: %q is not on loopback, and tokens would cross the network unencrypted; use the secure port, which serves the same paths, or say --rest-allow-remote behind a proxy that does TLS", o.RESTBindAddress)
}

// listenREST opens the plain listener and gives its URL; both are empty where there is none.
func (o *Options) listenREST(ctx context.Context) (net.Listener, string, error) {
	if o.RESTBindAddress == "" {
		return nil, "", nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", o.RESTBindAddress)
	if err != nil {
		return nil, "", fmt.Errorf("cannot listen for REST (another --rest-bind-address, or an empty one for none?): %w", err)
	}
	return l, "http://" + reachable(l.Addr().(*net.TCPAddr)), nil
}

// serveREST serves the REST paths, and whether the server is healthy, until ctx ends.
func (a *assembly) serveREST(ctx context.Context) error {
	mux := http.NewServeMux()
	health := facade.NewHealth(a.clock, map[string]facade.Check{"store": a.healthy, "kubernetes": a.apiReady})
	mux.HandleFunc("/healthz", health.Alive)
	mux.HandleFunc("/readyz", health.Ready)
	mux.Handle("/", a.server.REST)
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	s := &http.Server{
		Handler: mux, Protocols: &protocols, ReadHeaderTimeout: restHeaderTimeout, IdleTimeout: restIdleTimeout,
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		// Streams end by themselves: the API server tells them.
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), restShutdown)
		defer cancel()
		err := s.Shutdown(bounded)
		if err != nil {
			err = s.Close()
		}
		stopped <- err
	})
	err := s.Serve(a.restListener)
	if stop() || !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("REST listener: %w", err)
	}
	return <-stopped
}

// apiReady asks the API server whether it is ready.
func (a *assembly) apiReady(ctx context.Context) error {
	client, err := rest.HTTPClientFor(a.loopback)
	if err != nil {
		return fmt.Errorf("loopback client: %w", err)
	}
	return a.readyOnce(ctx, client)
}
