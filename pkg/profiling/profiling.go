// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package profiling serves the profiles of net/http/pprof. It listens on loopback addresses only, because a profile
// shows what the process works on, and clients are not authenticated.
package profiling

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
)

// Flag is the name of the flag, which every long-running program has.
const Flag = "profiling-bind-address"

// headerTimeout bounds how long a client takes to send the header of a request.
const headerTimeout = 5 * time.Second

// Address is where profiles are served, as address:port; empty disables them. It implements pflag.Value and refuses
// an address that is not a loopback address.
type Address string

var _ pflag.Value = (*Address)(nil)

// AddFlag binds the address to the flag.
func (a *Address) AddFlag(fs *pflag.FlagSet) {
	fs.Var(a, Flag, "loopback address:port that serves /debug/pprof without TLS and credentials; port 0 takes a free one, empty disables it")
}

// String returns the address.
func (a *Address) String() string { return string(*a) }

// Type returns the type's name for the help of the flag.
func (*Address) Type() string { return "address" }

// Set sets the address, which must be a loopback address or empty.
func (a *Address) Set(s string) error {
	if s != "" {
		host, _, err := net.SplitHostPort(s)
		if err != nil {
			return err
		}
		if ip, err := netip.ParseAddr(host); err != nil || !ip.IsLoopback() {
			return fmt.Errorf("%q is not a loopback address, such as 127.0.0.1 or ::1: profiles show what the process works on, and anybody who reaches them may read them", host)
		}
	}
	*a = Address(s)
	return nil
}

// Serve serves the profiles until stop is called, and logs the address. The caller must always call stop.
func (a *Address) Serve(ctx context.Context) (stop func(), err error) {
	if *a == "" {
		return func() {}, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", string(*a))
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", Flag, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index) // the index serves every profile but those below
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	s := &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout}
	done := make(chan struct{})
	go func() { // ends with stop
		defer close(done)
		_ = s.Serve(listener)
	}()
	klog.FromContext(ctx).Info("Profiles are served", "url", "http://"+listener.Addr().String()+"/debug/pprof/")
	return func() {
		_ = s.Close()
		<-done
	}, nil
}
