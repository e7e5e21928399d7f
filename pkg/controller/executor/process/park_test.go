// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"context"
	"errors"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/controller/executor"
)

// TestParked: the time that a run is parked does not count, even if the server is restarted
// meanwhile.
func TestParked(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	f := newFixture(t, `echo $$ >pids; sleep 1000`, func(o *Options) { o.Clock = clk })
	run := newRunSpec()
	run.Timeout = time.Hour
	f.start(run)
	f.pids(run, 1)
	park := func(parked bool) {
		t.Helper()
		if err := f.Park(t.Context(), run.Ref, parked); err != nil {
			t.Fatal(err)
		}
	}
	park(false) // it is not parked, which is fine
	clk.Step(30 * time.Minute)
	park(true)
	clk.Step(5 * time.Hour)
	f.reopen()
	clk.Step(5 * time.Hour)
	park(true)
	park(false)
	if s := f.get(run); s.Phase != executor.Running || s.Cause != "" {
		t.Fatalf("after it was parked: %+v", s)
	}
	rec, err := readRecord(f.Executor.dir(run.Ref))
	if err != nil {
		t.Fatal(err)
	}
	if left, ok := rec.left(clk.Now()); !ok || left != 30*time.Minute || rec.Parked != 10*time.Hour {
		t.Errorf("%s left, %t, parked for %s", left, ok, rec.Parked)
	}
	clk.Step(30 * time.Minute)
	if s := f.wait(run); s.Cause != executor.CauseDeadline {
		t.Errorf("state = %+v", s)
	}
	park(true) // over, which is fine
	other := newRunSpec().Ref
	if err := f.Park(t.Context(), other, true); !errors.Is(err, executor.ErrNotFound) {
		t.Errorf("unknown run: %v", err)
	}
}

func TestParkWhileClosing(t *testing.T) {
	f := newFixture(t, `sleep 1000`)
	run := newRunSpec()
	f.start(run)
	r := f.live[keyOf(run.Ref)]
	f.close()
	if err := r.requestPark(context.Background(), true); !errors.Is(err, errClosed) {
		t.Errorf("park of a closed executor: %v", err)
	}
	f.open()
}
