// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package spending_test

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/budget"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/spending"
	"github.com/platform-ai/platform/pkg/usage"
)

// fixed is a clock that stands still, so that no window ends during a test.
func fixed() clock.PassiveClock { return still{time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)} }

type still struct{ at time.Time }

func (s still) Now() time.Time                  { return s.at }
func (s still) Since(t time.Time) time.Duration { return s.at.Sub(t) }

func open(t *testing.T, dir string) (*spending.Store, engine.Engine) {
	t.Helper()
	e, err := local.Open(t.Context(), local.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	s, err := spending.Open(e, fixed())
	if err != nil {
		t.Fatal(err)
	}
	return s, e
}

func charge(name, identity string, limit int64) budget.Charge {
	return budget.Charge{Budget: types.UID(name), Name: name, Identity: identity, Limit: limit, Window: v1alpha1.BudgetMonth}
}

func balance(s *spending.Store, name string) (sum budget.Account) {
	for _, b := range s.Balances(types.UID(name))[types.UID(name)] {
		sum.Spent += b.Spent
		sum.Reserved += b.Reserved
		sum.Currency = b.Currency
	}
	return sum
}

// tokens is the need of a request without a price.
func tokens(n int64) budget.Need { return budget.NeedOf(0, n, nil) }

// output is the usage of a request that used n tokens.
func output(n int64) *usage.Outcome {
	return &usage.Outcome{Counts: usage.Counts{InputTokens: new(int64), OutputTokens: &n}}
}

func isExhausted(err error) bool {
	_, ok := errors.AsType[*budget.ExhaustedError](err)
	return ok
}

// TestFirstRequests: of 1,000 first requests of an identity that begin at the same time, as many are admitted as its
// budget has room for, and no more.
func TestFirstRequests(t *testing.T) {
	t.Parallel()
	s, e := open(t, t.TempDir())
	defer e.Close()
	var admitted atomic.Int64
	var all sync.WaitGroup
	for i := range 1000 {
		all.Go(func() {
			err := s.Commit(engine.Grow, s.Begin(strconv.Itoa(i), []budget.Charge{charge("each", "never-seen", 700)}, tokens(10)))
			switch {
			case err == nil:
				admitted.Add(1)
			case !isExhausted(err):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := balance(s, "each"); admitted.Load() != 70 || got.Reserved != 700 {
		t.Errorf("admitted %d, reserved %d; want 70 and 700", admitted.Load(), got.Reserved)
	}
}

// TestOverlappingBudgets: requests that count towards three budgets at once are reserved in all or in none. Nobody ever
// sees more than the limit, and the rows that a restart reads are those of the requests that ended.
func TestOverlappingBudgets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, e := open(t, dir)
	limits := map[string]int64{"a": 900, "b": 700, "c": 500}
	sets := [][]string{{"a", "b", "c"}, {"a", "b"}, {"b", "c"}, {"a", "c"}, {"c"}}
	spent := map[string]*atomic.Int64{"a": {}, "b": {}, "c": {}}
	stop := make(chan struct{})
	var watch, work sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for name, limit := range limits {
				if got := balance(s, name); got.Spent+got.Reserved > limit {
					t.Errorf("%s: %+v exceeds %d", name, got, limit)
					return
				}
			}
		}
	})
	for worker := range 16 {
		work.Go(func() {
			r := rand.New(rand.NewPCG(uint64(worker), 7))
			for i := range 60 {
				set := sets[r.IntN(len(sets))]
				var charges []budget.Charge
				for _, name := range set {
					charges = append(charges, charge(name, "", limits[name]))
				}
				call, n := fmt.Sprint(worker, "-", i), 1+r.Int64N(60)
				if err := s.Commit(engine.Grow, s.Begin(call, charges, tokens(n))); isExhausted(err) {
					continue
				} else if err != nil {
					t.Error(err)
					return
				}
				used := 1 + r.Int64N(n/4+1)
				if err := s.Commit(engine.Upkeep, s.End(call, output(used), nil)); err != nil {
					t.Error(err)
				}
				for _, name := range set {
					spent[name].Add(used)
				}
			}
		})
	}
	work.Wait()
	close(stop)
	watch.Wait()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	s, e = open(t, dir)
	defer e.Close()
	for name := range limits {
		if got := balance(s, name); got.Spent != spent[name].Load() || got.Reserved != 0 {
			t.Errorf("%s: %+v after a restart, want %d spent", name, got, spent[name].Load())
		}
	}
}

const childDir = "SPENDING_TEST_DIR"

// TestKilled: a process that is killed between reserving and settling leaves what it had acknowledged: what was spent
// stays spent, what was reserved was never above the limit, and is spent when the store is opened again, because the vendor may
// have answered.
func TestKilled(t *testing.T) {
	if dir := os.Getenv(childDir); dir != "" {
		spend(t, dir)
		return
	}
	t.Parallel()
	dir := t.TempDir()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilled$", "-test.v")
	child.Env = append(os.Environ(), childDir+"="+dir)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	var acknowledged, reserved int64
	for lines := bufio.NewScanner(out); lines.Scan(); {
		text := lines.Text()
		if n, ok := strings.CutPrefix(text, "spent "); ok {
			acknowledged, _ = strconv.ParseInt(n, 10, 64)
		}
		if strings.HasPrefix(text, "reserved") {
			reserved++
		}
		if acknowledged >= 200 && reserved > 30 {
			break
		}
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	s, e := open(t, dir)
	defer e.Close()
	// One more may have begun, and each end spends all that was reserved.
	if got := balance(s, "killed"); got.Reserved != 0 || got.Spent < 8*reserved || got.Spent > 1000 || acknowledged < 200 {
		t.Errorf("after the kill: %+v, with %d requests begun", got, reserved)
	}
	if err := s.Commit(engine.Grow, s.Begin("next", []budget.Charge{charge("killed", "", 1000)}, tokens(1000-balance(s, "killed").Spent))); err != nil {
		t.Errorf("what is left cannot be reserved: %v", err)
	}
}

// spend reserves and settles until it is killed. Every other request never ends.
func spend(t *testing.T, dir string) {
	s, _ := open(t, dir)
	var spent int64
	for i := 0; spent < 990; i++ {
		call := strconv.Itoa(i)
		if err := s.Commit(engine.Grow, s.Begin(call, []budget.Charge{charge("killed", "", 1000)}, tokens(8))); err != nil {
			break
		}
		fmt.Println("reserved")
		if i%2 == 0 {
			continue
		}
		if err := s.Commit(engine.Upkeep, s.End(call, output(8), nil)); err != nil {
			t.Fatal(err)
		}
		spent += 8
		fmt.Println("spent", spent)
	}
	select {} // the parent kills this process
}
