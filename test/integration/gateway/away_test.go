// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
	"github.com/platform-ai/platform/test/chatadapter"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// TestAwayUnderLoad: an adapter is away for ten minutes, while people write on. Nothing is spent or lost meanwhile, and no process is started
// again: once it is back, all answers of each conversation come in order and once, after the platform has looked at it at most twice. Those
// that were written ten minutes ago say so.
func TestAwayUnderLoad(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	const threads, before, during = 5, 3, 2
	x := newConnected(t, chatadapter.Echo, func(o *standalone.Options) { o.Gateways.Limits.Pending = 1000 })
	x.adapter.Leave()
	var events []string
	write := func(from, to int) {
		t.Helper()
		for n := from; n < to; n++ {
			for thread := range threads {
				events = append(events, x.accept(chatadapter.Event(fmt.Sprint("e-", thread, "-", n), fmt.Sprint("t-", thread), fmt.Sprint("message ", n))))
			}
		}
		for _, name := range events[from*threads:] {
			x.awaitEvent(name, v1alpha1.GatewayEventCompleted) // its answer is written
		}
	}
	write(0, before)
	x.clock.By.Store(int64(10 * time.Minute))
	write(before, before+during)
	for _, name := range events {
		d := x.delivery(name, func(*v1alpha1.GatewayDelivery) bool { return true })
		if s := d.Status; s.AttemptCount != 0 || s.OutcomeUnknown || s.State != v1alpha1.GatewayDeliveryPending && s.State != v1alpha1.GatewayDeliveryRetryScheduled {
			t.Errorf("while the adapter is away: %+v", s)
		}
	}
	looks := backAndCounting(t, x.adapter)
	for _, name := range events {
		if d := x.delivery(name, delivered); d.Status.AttemptCount != 1 || d.Status.OutcomeUnknown {
			t.Errorf("%+v", d.Status)
		}
	}
	// The controller looks at the gateway besides: each time it asks for the capabilities, too.
	if n := looks(); n > 2 {
		t.Errorf("the adapter was looked at %d times until all was delivered", n)
	}
	for thread := range threads {
		got := x.adapter.Said(fmt.Sprint("t-", thread))
		late := 0
		for i := range got {
			if line, text, ok := strings.Cut(got[i], "\n"); ok && strings.HasPrefix(line, "[late: written at ") {
				late, got[i] = late+1, text
			}
		}
		var want []string
		for n := range before + during {
			want = append(want, fmt.Sprint("You said: message ", n))
		}
		if !slices.Equal(got, want) || late != before {
			t.Errorf("thread %d: %q, %d late", thread, got, late)
		}
	}
	if all := kit.Must[*v1alpha1.GatewayDeliveryList](t)(x.API().GatewayDeliveries("default").List(t.Context(), metav1.ListOptions{})); len(all.Items) != len(events) {
		t.Errorf("%d deliveries of %d events", len(all.Items), len(events))
	}
}

// backAndCounting starts an adapter again at its address. looks returns how often it was asked for its health and not for its capabilities.
func backAndCounting(t *testing.T, a *chatadapter.Adapter) (looks func() int64) {
	t.Helper()
	var health, capabilities atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case protocol.PathHealth:
			health.Add(1)
		case protocol.PathCapabilities:
			capabilities.Add(1)
		}
		a.ServeHTTP(w, r)
	}))
	_ = s.Listener.Close()
	s.Listener = kit.Must[net.Listener](t)(net.Listen("tcp", a.Host()))
	s.StartTLS()
	t.Cleanup(s.Close)
	return func() int64 { return health.Load() - capabilities.Load() }
}
