// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package integration tests the API from outside: the whole standalone server in this process, on a real folder and a
// real port, with real clients. README.md lists the numbered points that tests refer to.
package integration

import (
	"context"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2/ktesting"

	"github.com/platform-ai/platform/pkg/server/standalone"
	"github.com/platform-ai/platform/test/kit"
)

// Server is a standalone server in this process.
type Server struct {
	standalone.Info
	opts standalone.Options
	stop context.CancelFunc
	done chan error
}

// Start starts a server on a temporary folder and a free port, without controllers unless configure sets them, and
// waits until it is ready. It is stopped at the end of the test.
func Start(t testing.TB, configure ...func(*standalone.Options)) *Server {
	t.Helper()
	o := standalone.NewOptions()
	o.DataDir, o.Port, o.RESTBindAddress = t.TempDir(), 0, "127.0.0.1:0"
	o.Controllers = func(ctx context.Context, _ *rest.Config) error {
		<-ctx.Done()
		return nil
	}
	for _, f := range configure {
		f(o)
	}
	s := &Server{opts: *o}
	t.Cleanup(func() { kit.EndRuns(o.DataDir) }) // after the server's own end
	s.start(t)
	t.Cleanup(func() { s.Stop(t) })
	return s
}

func (s *Server) start(t testing.TB) {
	t.Helper()
	_, ctx := ktesting.NewTestContext(t)
	ctx, s.stop = context.WithCancel(ctx)
	ready := make(chan standalone.Info, 1)
	s.opts.Ready = func(_ context.Context, i standalone.Info) error {
		ready <- i
		return nil
	}
	done := make(chan error, 1)
	go func() { done <- standalone.Run(ctx, s.opts) }()
	select {
	case s.Info = <-ready:
		s.done = done
		s.Admin = rest.CopyConfig(s.Admin)
		s.Admin.QPS = -1 // tests are not slowed down by their own client
	case err := <-done:
		t.Fatalf("the server ended before it was ready: %v", err)
	}
}

// Stop stops the server gracefully and waits for its end. Stopping a stopped server does nothing.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if s.done == nil {
		return
	}
	s.stop()
	if err := <-s.done; err != nil {
		t.Errorf("the server ended with: %v", err)
	}
	s.done = nil
}

// Restart stops the server and starts it again on the same folder. Its port changes, so clients must be made again.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Stop(t)
	s.start(t)
}

// Dynamic returns a client of the administrator for any kind.
func (s *Server) Dynamic(t testing.TB) dynamic.Interface {
	t.Helper()
	c, err := dynamic.NewForConfig(s.client())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Kubernetes returns a typed client of the administrator for the host API.
func (s *Server) Kubernetes(t testing.TB) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(s.client())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// client is a copy of the administrator's configuration.
func (s *Server) client() *rest.Config { return rest.CopyConfig(s.Admin) }
