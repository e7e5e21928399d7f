// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"flag"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/ledger"
	"github.com/platform-ai/platform/pkg/usage"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

var cuts = flag.Int("cuts", 160, "clients that leave in TestLedgerOfCutClients")

// TestLedgerOfCutClients: clients leave before the answer or after a random number of its bytes, at every endpoint. The ledger then
// has what the vendor counted, request by request, and a gap for each request whose usage the vendor did not report or whose answer
// it broke off.
func TestLedgerOfCutClients(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	const atOnce = 16
	reg := prometheus.NewRegistry()
	s := start(t, func(o *standalone.Options) { o.Metrics = reg })
	var asked, input, gaps atomic.Int64
	var leaving early
	var mu sync.Mutex
	counted := map[string][]int64{} // by the ID of the request what the vendor counted, 0 for a gap
	v := mixedVendor(t, func(number int) (fate, int64) {
		n := asked.Add(1)
		end, told := complete, n
		if n%8 == 0 || n%8 == 3 {
			end, told = map[int64]fate{0: silent, 3: broken}[n%8], 0
			gaps.Add(1)
		}
		input.Add(told)
		id := "n-" + strconv.Itoa(number)
		mu.Lock()
		counted[id] = append(counted[id], told)
		mu.Unlock()
		leaving.asked(number)
		return end, n
	})
	kinds, token := onMix(t, s, v)
	slots, all := make(chan struct{}, atOnce), sync.WaitGroup{}
	for i := range *cuts {
		r := rand.New(rand.NewPCG(uint64(i), 7))
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			ctx, leave := context.WithCancel(context.Background())
			defer leave()
			if i%3 == 0 {
				leaving.on(i, leave)
			}
			resp, err := http.DefaultClient.Do(kinds[i%len(kinds)].request(ctx, i, token))
			if err != nil {
				if ctx.Err() == nil {
					t.Errorf("%s: %v", kinds[i%len(kinds)].name, err)
				}
				return
			}
			_, _ = io.CopyN(io.Discard, resp.Body, r.Int64N(3000))
			leave()
			_ = resp.Body.Close()
		})
	}
	all.Wait()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%v tokens of input and %v gaps of %v requests were counted, the vendor counted %d, %d and %d", tokens(t, reg, "input"),
				counter(t, reg, "platform_compat_model_requests_unreported_total"), counter(t, reg, "platform_compat_model_requests_total"), input.Load(), gaps.Load(), asked.Load())
		}
	})
	kit.Await(t, "all requests are counted as the vendor counted them", func() bool {
		return tokens(t, reg, "input") == float64(input.Load()) && tokens(t, reg, "output") == float64(2*input.Load()) &&
			counter(t, reg, "platform_compat_model_requests_unreported_total") == float64(gaps.Load()) && counter(t, reg, "platform_compat_model_requests_total") == float64(asked.Load())
	})
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
	recorded := map[string][]int64{}
	for o, err := range view.Observations(usage.Period{}) {
		switch {
		case err != nil:
			t.Fatal(err)
		case !slices.Contains([]string{"default", "claude"}, o.Provider) || !strings.HasSuffix(o.User, ":client") || o.NamespaceUID == "" || o.Source != usage.SourceProvider:
			t.Errorf("an observation is %+v", o)
		case o.Gap != "":
			if o.Complete || o.Some() {
				t.Errorf("a gap is %+v", o)
			}
			recorded[o.AttemptID] = append(recorded[o.AttemptID], 0)
		case !o.Complete || *o.OutputTokens != 2**o.InputTokens:
			t.Errorf("an observation is %+v", o)
		default:
			recorded[o.AttemptID] = append(recorded[o.AttemptID], *o.InputTokens)
		}
	}
	for _, all := range []map[string][]int64{counted, recorded} {
		for id := range all {
			slices.Sort(all[id])
		}
	}
	if d := cmp.Diff(counted, recorded); d != "" {
		t.Errorf("the ledger differs from what the vendor counted (-vendor +ledger):\n%s", d)
	}
	if len(counted) != *cuts {
		t.Errorf("the vendor got requests of %d clients of %d", len(counted), *cuts)
	}
	t.Logf("%d clients, %d requests to the vendor, %d gaps, %d tokens of input", *cuts, asked.Load(), gaps.Load(), input.Load())
}

// counter returns the sum of a counter over its labels.
func counter(t *testing.T, reg *prometheus.Registry, name string) (sum float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	return sum
}
