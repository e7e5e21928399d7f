// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package modelrequest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/server/modelrequest"
	"github.com/platform-ai/platform/pkg/server/models"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
	"github.com/platform-ai/platform/pkg/storage/later"
	"github.com/platform-ai/platform/pkg/storage/ledger"
	"github.com/platform-ai/platform/pkg/storage/spending"
	"github.com/platform-ai/platform/pkg/usage"
	"github.com/platform-ai/platform/test/kit"
)

const mib = 1 << 20

// filling is a server's meter on a disk that fills up and empties. Its reserve is 128 MiB.
type filling struct {
	t      *testing.T
	disk   *localtest.Disk
	clock  *clocktesting.FakeClock
	ledger *ledger.Ledger
	spent  *spending.Store
	models.Meter
}

func onDisk(t *testing.T) *filling {
	t.Helper()
	f := &filling{t: t, disk: localtest.NewDisk(), clock: clocktesting.NewFakeClock(time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))}
	f.free(1000)
	e, err := local.Open(t.Context(), local.Options{Dir: localtest.Dir, FS: f.disk.FS(), Clock: f.clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	if f.ledger, err = ledger.Open(e, f.clock); err != nil {
		t.Fatal(err)
	}
	if f.spent, err = spending.Open(e, f.clock); err != nil {
		t.Fatal(err)
	}
	ends := later.New(f.clock)
	limits := modelrequest.New(modelrequest.Options{Readers: modelrequest.Readers{
		Budgets: func(context.Context, string) ([]v1alpha1.Budget, error) {
			return []v1alpha1.Budget{{ObjectMeta: metav1.ObjectMeta{Name: "all", Namespace: "team", UID: "all"}, Spec: v1alpha1.BudgetSpec{
				Limit: v1alpha1.BudgetLimit{Tokens: new(int64(1 << 40))}, Window: v1alpha1.BudgetMonth,
			}}}, nil
		},
		Provider: func(context.Context, string) (*v1alpha1.Provider, error) {
			return nil, apierrors.NewNotFound(schema.GroupResource{}, "p")
		},
	}, Clock: f.clock, Accounts: f.spent, Ends: ends})
	f.Meter = models.Meters{limits, models.Recorded{Ledger: f.ledger, Ends: ends}}
	return f
}

// free sets the free space, in MiB, and lets time pass until the store measures it.
func (f *filling) free(n uint64) {
	f.disk.SetSpace(1024*mib, n*mib)
	f.clock.Step(3 * time.Second)
}

// balance returns what the Budget has spent and reserved.
func (f *filling) balance() (spent, reserved int64) {
	for _, b := range f.spent.Balances("all")["all"] {
		spent, reserved = spent+b.Spent, reserved+b.Reserved
	}
	return spent, reserved
}

// recorded returns the input of each complete observation by the ID of its request, and how many are not complete.
func (f *filling) recorded() (inputs map[string]int64, incomplete int) {
	f.t.Helper()
	v, err := f.ledger.At(f.t.Context(), "team", f.clock.Now())
	if err != nil {
		f.t.Fatal(err)
	}
	inputs = map[string]int64{}
	for o, err := range v.Observations(usage.Period{}) {
		if err != nil {
			f.t.Fatal(err)
		}
		if _, twice := inputs[o.AttemptID]; twice {
			f.t.Errorf("request %s is recorded twice", o.AttemptID)
		}
		if !o.Complete {
			incomplete++
			continue
		}
		inputs[o.AttemptID] = *o.InputTokens
	}
	return inputs, incomplete
}

// TestFullDisk: while the disk is full, no request is sent. The ends of those that were sent before are stored once there is
// room. Whatever the order of all this, ledger and Budget then have each request that was sent once, and no other.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	refused, waited := 0, 0
	for seed := range uint64(30) {
		f, r := onDisk(t), rand.New(rand.NewPCG(seed, 5))
		sent, sum := map[string]int64{}, int64(0)
		open := map[string]models.Measurement{}
		finish := func(id string) {
			open[id].End(models.Ended{Usage: llm.Usage{InputTokens: new(sent[id]), OutputTokens: new(int64(1))}, Status: usage.StatusCompleted})
			sum += sent[id] + 1
			delete(open, id)
		}
		for i := range 60 {
			switch r.IntN(4) {
			case 0:
				f.free([]uint64{1000, 100, 30, 2, 1}[r.IntN(5)])
			case 1:
				for id := range open {
					finish(id)
					break
				}
			default:
				id := fmt.Sprint(i)
				m, err := f.Start(t.Context(), models.Asked{Namespace: "team", Provider: "p", Model: "m", ID: id, Candidate: 1, MaxTokens: 10, MaxInput: 1000, Caller: &user.DefaultInfo{Name: "u"}})
				if err != nil {
					if s, ok := err.(apierrors.APIStatus); !ok || s.Status().Code != http.StatusInsufficientStorage {
						t.Fatalf("seed %d: %v", seed, err)
					}
					refused++
					continue
				}
				open[id], sent[id] = m, r.Int64N(1000)
			}
		}
		f.free(1)
		for id := range open {
			finish(id)
		}
		if _, incomplete := f.recorded(); incomplete > 0 {
			waited++
		}
		f.free(1000)
		var got map[string]int64
		kit.Await(t, fmt.Sprintf("seed %d: all ends are stored", seed), func() bool {
			var incomplete int
			got, incomplete = f.recorded()
			_, reserved := f.balance()
			if incomplete == 0 && reserved == 0 {
				return true
			}
			f.clock.Step(3 * time.Second) // the next try, which another goroutine makes
			return false
		})
		if spent, _ := f.balance(); spent != sum {
			t.Errorf("seed %d: the Budget has %d spent, want %d", seed, spent, sum)
		}
		for id, n := range sent {
			if has, ok := got[id]; !ok || has != n {
				t.Errorf("seed %d: request %s used %d, and %d is recorded (%v)", seed, id, n, has, ok)
			}
			delete(got, id)
		}
		for id, n := range got {
			if n != 0 { // a request that was refused after its start was recorded used nothing
				t.Errorf("seed %d: request %s was never sent", seed, id)
			}
		}
	}
	if refused < 30 || waited < 15 {
		t.Errorf("%d requests were refused, and ends waited in %d histories", refused, waited)
	}
}
