// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm/wire"
	"github.com/platform-ai/platform/pkg/server/models"
	"github.com/platform-ai/platform/pkg/usage"
	"github.com/platform-ai/platform/test/kit"
)

// ends is a meter that receives the end of the only request.
type ends chan models.Ended

func (e ends) Start(context.Context, models.Asked) (models.Measurement, error) { return e, nil }
func (e ends) End(end models.Ended)                                            { e <- end }

// leaving is a client whose writes can be made to fail. It reports each flush.
type leaving struct {
	*httptest.ResponseRecorder

	gone    atomic.Bool
	flushed chan struct{}
}

func (l *leaving) Write(p []byte) (int, error) {
	if l.gone.Load() {
		return 0, errors.New("the connection is closed")
	}
	return l.ResponseRecorder.Write(p)
}

func (l *leaving) FlushError() error {
	l.flushed <- struct{}{}
	return nil
}

// TestDrain: after its client has left, an answer that is passed on is read for as long as its Provider says. What it says about its use
// until then counts, and its slot is free afterwards.
func TestDrain(t *testing.T) {
	t.Parallel()
	const drain = 2 * time.Minute
	const begin, middle = "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}}\n\n", "event: ping\ndata: {}\n\n"
	const last = "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":7}}\n\n"
	for name, tc := range map[string]struct {
		fails  bool // a write fails, while the request's context goes on
		talks  bool // the vendor has sent more since the client left
		ends   bool // the vendor's answer ends
		timers int  // that run while the answer is read: of idleness, and those of the time to drain it
		want   usage.Status
		output bool
	}{
		"a silent vendor":             {timers: 2, want: usage.StatusCancelled},
		"a vendor that goes on":       {talks: true, timers: 3, want: usage.StatusCancelled},
		"an answer that ends":         {talks: true, ends: true, timers: 3, want: usage.StatusCompleted, output: true},
		"a failed write":              {fails: true, talks: true, timers: 2, want: usage.StatusCancelled},
		"a failed write, and it ends": {fails: true, talks: true, ends: true, timers: 2, want: usage.StatusCompleted, output: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			say := make(chan string)
			vendor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				for {
					select {
					case s, more := <-say:
						if !more {
							return
						}
						_, _ = io.WriteString(w, s)
						_ = http.NewResponseController(w).Flush()
					case <-r.Context().Done():
						return
					}
				}
			}))
			t.Cleanup(vendor.Close)
			client, leave := context.WithCancel(t.Context())
			clock, ended, released := clocktesting.NewFakeClock(time.Now()), make(ends, 1), make(chan struct{})
			w := &leaving{ResponseRecorder: httptest.NewRecorder(), flushed: make(chan struct{}, 8)}
			x := &exchange{
				h: &Handler{o: Options{Clock: clock, WriteTimeout: time.Hour}, meter: ended}, w: w, caller: &user.DefaultInfo{},
				r: httptest.NewRequestWithContext(client, http.MethodPost, "/anthropic/v1/messages", nil), call: &call{}, meter: ended,
			}
			in, err := read(opMessages, []byte(`{"model":"m","max_tokens":9,"stream":true,"messages":[1]}`))
			if err != nil {
				t.Fatal(err)
			}
			a := &attempt{exchange: x, in: in, candidate: models.Candidate{Provider: &v1alpha1.Provider{Spec: v1alpha1.ProviderSpec{DrainSeconds: new(int32(drain / time.Second))}}}, release: func() { close(released) }}
			if err := a.start(); err != nil {
				t.Fatal(err)
			}
			a.idle = clock.AfterFunc(wire.HeaderTimeout, func() { a.cancel(errIdle) })
			req, err := http.NewRequestWithContext(a.ctx, http.MethodPost, vendor.URL, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			go func() { say <- begin }()
			resp, err := http.DefaultClient.Do(req) //nolint:bodyclose // stream closes it
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				if err := a.stream(resp); err != nil {
					t.Error(err)
				}
			}()
			<-w.flushed
			w.gone.Store(tc.fails)
			if !tc.fails {
				leave()
			}
			if tc.talks {
				say <- middle
				<-done // the rest is read without the client
			}
			kit.Await(t, "its timers run", func() bool { return clock.Waiters() == tc.timers })
			clock.Step(drain - time.Second)
			if tc.ends {
				say <- last
				close(say)
			} else {
				select {
				case e := <-ended:
					t.Fatalf("the end came before the time was over: %+v", e)
				default:
				}
				clock.Step(time.Second)
			}
			e := <-ended
			if e.Status != tc.want || e.Usage.InputTokens == nil || *e.Usage.InputTokens != 5 || (e.Usage.OutputTokens != nil) != tc.output {
				t.Errorf("the end says %+v", e)
			}
			<-released
			<-done
			leave()
		})
	}
}
