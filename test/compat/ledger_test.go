// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/standalone"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/ledger"
	"github.com/platform-ai/platform/pkg/usage"
)

var cuts = flag.Int("cuts", 320, "clients that leave in TestLedgerOfCutClients")

// TestLedgerOfCutClients: clients leave after a random number of bytes. The ledger then has what the vendor counted,
// request by request, and a gap for each request whose usage the vendor did not report.
func TestLedgerOfCutClients(t *testing.T) {
	const atOnce = 16
	reg := prometheus.NewRegistry()
	s := start(t, func(o *standalone.Options) { o.Metrics = reg })
	s.namespace("team")
	var asked, input, silent atomic.Int64
	v := newVendor(t, func(w http.ResponseWriter, _ *http.Request) {
		n := asked.Add(1)
		w.Header().Set("Content-Type", eventKind)
		for range 5 {
			_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", strings.Repeat("x", 400))
			_ = http.NewResponseController(w).Flush()
		}
		if n%8 == 0 {
			silent.Add(1)
		} else {
			input.Add(n)
			_, _ = fmt.Fprintf(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d}}\n\n", n, 2*n)
		}
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	})
	s.provider("team", "default", v1alpha1.ProviderOpenAI, v.URL, "m")
	token := s.token("team", "client", "chat")
	slots, all := make(chan struct{}, atOnce), sync.WaitGroup{}
	for i := range *cuts {
		r := rand.New(rand.NewPCG(uint64(i), 7))
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			ctx, leave := context.WithCancel(context.Background())
			defer leave()
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.RESTURL+"/openai/v1/chat/completions", strings.NewReader(`{"stream":true,"messages":[1]}`))
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("X-Api-Key", token)
			req.Header.Set("X-Platform-Tools", "disabled")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.CopyN(io.Discard, resp.Body, r.Int64N(3000))
			leave()
			_ = resp.Body.Close()
		})
	}
	all.Wait()
	deadline, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for tick := time.NewTicker(10 * time.Millisecond); tokens(t, reg, "input") != float64(input.Load()) || tokens(t, reg, "output") != float64(2*input.Load()); {
		select {
		case <-tick.C:
		case <-deadline.Done():
			t.Fatalf("%v tokens of input were counted, the vendor counted %d", tokens(t, reg, "input"), input.Load())
		}
	}
	s.Stop(t)

	e, err := local.Open(t.Context(), local.Options{Dir: filepath.Join(s.DataDir, "store")})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	l, err := ledger.Open(e, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	view, err := l.At(t.Context(), "team", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	seen, gaps := map[int64]bool{}, int64(0)
	for o, err := range view.Observations(usage.Period{}) {
		switch {
		case err != nil:
			t.Fatal(err)
		case o.Provider != "default" || !strings.HasSuffix(o.User, ":client") || o.NamespaceUID == "" || o.Source != usage.SourceProvider:
			t.Errorf("an observation is %+v", o)
		case o.Gap != "":
			if gaps++; o.Complete || o.Some() {
				t.Errorf("a gap is %+v", o)
			}
		case !o.Complete || *o.OutputTokens != 2**o.InputTokens || seen[*o.InputTokens]:
			t.Errorf("an observation is %+v", o)
		default:
			seen[*o.InputTokens] = true
		}
	}
	if int64(len(seen)) != asked.Load()-silent.Load() || gaps != silent.Load() || asked.Load() != int64(*cuts) {
		t.Errorf("the ledger has %d measurements and %d gaps of %d requests, of which %d are without usage", len(seen), gaps, asked.Load(), silent.Load())
	}
}
