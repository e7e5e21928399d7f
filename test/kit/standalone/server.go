// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package standalone runs the whole standalone server in the process of a test, on a real folder and a real port, for real clients.
package standalone

import (
	"context"
	"net/http"
	"strconv"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2/ktesting"

	"github.com/platform-ai/platform/pkg/server/panics"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/quickclock"
)

// Server is a standalone server in this process.
type Server struct {
	host.Host
	URL        string // of the API
	DataDir    string
	Kubeconfig string // the administrator's, a path
	opts       Options
	stop       context.CancelFunc
	done       chan error
}

// Start starts a server on a temporary folder and a free port, without controllers unless configure sets them, and
// waits until it is ready. It is stopped at the end of the test, which fails if a request made a server of this process panic.
func Start(t testing.TB, configure ...func(*Options)) *Server {
	t.Helper()
	o := NewOptions()
	o.DataDir, o.Port, o.RESTBindAddress = t.TempDir(), 0, "127.0.0.1:0"
	o.Controllers = func(ctx context.Context, _ *rest.Config) error {
		<-ctx.Done()
		return nil
	}
	for _, f := range configure {
		f(o)
	}
	s := &Server{opts: *o}
	before := panics.Total()
	t.Cleanup(func() {
		if panics.Total() != before {
			t.Error("a request made the server panic")
		}
	})
	kit.EndRunsAfter(t, o.DataDir) // after the server's own end
	s.StartAgain(t)
	t.Cleanup(func() { s.Stop(t) })
	return s
}

// StartAgain starts a stopped server on its folder. Its port changes unless OnAPort gave it one, so clients must be made again.
func (s *Server) StartAgain(t testing.TB) {
	t.Helper()
	_, ctx := ktesting.NewTestContext(t)
	ctx, s.stop = context.WithCancel(ctx)
	ready := make(chan Info, 1)
	s.opts.Ready = func(_ context.Context, i Info) error {
		ready <- i
		return nil
	}
	done := make(chan error, 1)
	go func() { done <- Run(ctx, s.opts) }()
	select {
	case i := <-ready:
		s.done = done
		s.Host, s.URL, s.DataDir, s.Kubeconfig = host.Of(i.Admin, i.RESTURL), i.URL, i.DataDir, i.Kubeconfig
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

// Restart stops the server and starts it again.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Stop(t)
	s.StartAgain(t)
}

// AwaitReadyz waits until the server is ready: on a busy disk it may not be for a moment.
func (s *Server) AwaitReadyz(t testing.TB) {
	t.Helper()
	kit.Await(t, "readiness", func() bool { return s.Ask(t, s.Admin, http.MethodGet, "/readyz", "").Code == http.StatusOK })
}

// OnAPort gives a server a port on which clients find it again after a restart. Nobody else is assigned it meanwhile.
func OnAPort(t testing.TB) func(*Options) {
	t.Helper()
	port := kit.Must[int](t)(strconv.Atoi(kit.FreePort(t)))
	return func(o *Options) { o.Port = port }
}

// ManyBookmarks makes watches get a bookmark every 10 ms instead of every minute.
func ManyBookmarks(o *Options) {
	o.Clock = quickclock.Hasty{Takes: map[time.Duration]time.Duration{time.Minute: 10 * time.Millisecond}}
}
