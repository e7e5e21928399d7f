// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/test/kit"
)

// spoolScript is a worker that does its work and stores how that ended, but does not deliver
// it; then it runs the script end. If it is started only to deliver, it notes what it was
// given, and runs the script deliver.
func spoolScript(deliver, end string) string {
	return `mkdir -p "$PLATFORM_SPOOL_DIR"
		if [ "$PLATFORM_DELIVER_ONLY" = true ]; then echo "$CREDENTIALS" >>delivery; ` + deliver + `; fi
		echo worked >>ran
		echo '{"termination":{"reason":"Completed","exitCode":0}}' >"$PLATFORM_SPOOL_DIR/end.json"
		echo $$ >pids
		` + end
}

const delivers = `touch "$PLATFORM_SPOOL_DIR/delivered"; echo '{"reason":"Completed","exitCode":0}' >"$PLATFORM_TERMINATION_LOG"; exit 0`

func (f *fixture) deliver(run executor.Run) executor.State {
	f.t.Helper()
	s, err := f.Deliver(f.t.Context(), run.Ref, "another-token")
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

func (f *fixture) read(run executor.Run, elem ...string) string {
	f.t.Helper()
	b, err := os.ReadFile(f.path(run, elem...))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(b)
}

// TestDeliver: if a worker dies after its work is done, another one delivers what it left,
// whether the executor saw it die, was not running, or the machine was restarted.
func TestDeliver(t *testing.T) {
	for name, die := range map[string]func(f *fixture, run executor.Run, pid int){
		"watched": func(f *fixture, run executor.Run, pid int) {
			_ = unix.Kill(pid, unix.SIGKILL)
			f.wait(run)
		},
		"unwatched": func(f *fixture, _ executor.Run, pid int) {
			f.close()
			_ = unix.Kill(pid, unix.SIGKILL)
			waitGone(f.t, pid)
			f.open()
		},
		"reboot": func(f *fixture, run executor.Run, pid int) {
			f.close()
			_ = unix.Kill(-pid, unix.SIGKILL) // with all that it started
			waitGone(f.t, pid)
			f.edit(run, func(r *record) { r.BootID = "another" })
			f.open()
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, spoolScript(delivers, "sleep 1000"))
			run := newRunSpec()
			f.start(run)
			die(f, run, f.pids(run, 1)[0])
			if s := f.get(run); s.Phase == executor.Running || !s.Undelivered || s.Succeeded() {
				t.Fatalf("after the end of the worker: %+v", s)
			}
			f.reopen() // it is remembered
			f.deliver(run)
			if s := f.wait(run); s.Undelivered || !s.Succeeded() || s.ID != run.ID {
				t.Errorf("after the delivery: %+v", s)
			}
			if got := f.read(run, "work", "delivery"); got != `{"token":"another-token"}`+"\n" {
				t.Errorf("the worker was given %q", got)
			}
			if got := f.read(run, "work", "ran"); got != "worked\n" {
				t.Errorf("the work was done again: %q", got)
			}
			if s := f.deliver(run); s.Phase != executor.Exited || strings.Count(f.read(run, "work", "delivery"), "\n") != 1 {
				t.Errorf("delivered again: %+v", s)
			}
			noSecretOnDisk(t, f.dir)
		})
	}
}

// TestDeliveryOfUnfinishedWork: events of a run that was killed are delivered, and its outcome
// stays the same.
func TestDeliveryOfUnfinishedWork(t *testing.T) {
	f := newFixture(t, `mkdir -p "$PLATFORM_SPOOL_DIR"
		if [ "$PLATFORM_DELIVER_ONLY" = true ]; then touch "$PLATFORM_SPOOL_DIR/delivered"; exit 75; fi
		printf 'pspool1\n' >"$PLATFORM_SPOOL_DIR/events"; head -c 24 /dev/zero >>"$PLATFORM_SPOOL_DIR/events" # one empty record
		kill -9 $$`)
	run := newRunSpec()
	f.start(run)
	s := f.wait(run)
	if !s.Undelivered || s.Signal != "killed" {
		t.Fatalf("after the end of the worker: %+v", s)
	}
	f.deliver(run)
	if s := f.wait(run); s.Undelivered || s.Signal != "killed" || s.ExitCode != -1 || s.Termination != nil {
		t.Errorf("after the delivery: %+v", s)
	}
}

// TestDeliveriesEnd: the number of workers that die while they deliver is limited, and a result
// that never arrived is not a success.
func TestDeliveriesEnd(t *testing.T) {
	f := newFixture(t, spoolScript("kill -9 $$", "kill -9 $$"))
	run := newRunSpec()
	f.start(run)
	for n := 0; ; n++ {
		s := f.wait(run)
		if s.Undelivered && n < maxDeliveries {
			f.deliver(run)
			continue
		}
		if n != maxDeliveries || s.Undelivered || s.Succeeded() || s.Termination == nil || s.Termination.Reason != v1alpha1.ReasonResultNotSubmitted {
			t.Errorf("after %d deliveries: %+v, %+v", n, s, s.Termination)
		}
		break
	}
}

// TestStoppedRunDeliversNothing: cancelling a task does not wait for a delivery.
func TestStoppedRunDeliversNothing(t *testing.T) {
	f := newFixture(t, spoolScript(delivers, "while :; do sleep 0.01; done"))
	run := newRunSpec()
	f.start(run)
	f.pids(run, 1)
	if err := f.Stop(t.Context(), run.Ref); err != nil {
		t.Fatal(err)
	}
	if s := f.wait(run); s.Undelivered || s.Succeeded() || s.Cause != executor.CauseStopped {
		t.Errorf("state = %+v", s)
	}
}

// TestDeadlineWhileDelivering: the deadline applies to the work. A worker that only has to
// deliver may continue for a while.
func TestDeadlineWhileDelivering(t *testing.T) {
	for name, meanwhile := range map[string]func(f *fixture){"watched": func(*fixture) {}, "the server restarts": (*fixture).reopen} {
		t.Run(name, func(t *testing.T) {
			c := clocktesting.NewFakeClock(time.Now())
			f := newFixture(t, spoolScript(delivers, "while :; do sleep 0.01; done"), func(o *Options) { o.Clock = c })
			run := newRunSpec()
			run.Timeout = time.Hour
			f.start(run)
			f.pids(run, 1)
			meanwhile(f)
			c.Step(time.Hour)
			kit.Await(t, "end", func() bool { c.Step(10 * time.Second); return f.get(run).Phase != executor.Running })
			if s := f.get(run); s.Cause != "" || !s.Undelivered {
				t.Errorf("state = %+v", s)
			}
			if late := c.Since(f.get(run).StartedAt); late < time.Hour+deliveryTime {
				t.Errorf("it was ended %v after its start", late)
			}
			f.deliver(run)
			kit.Await(t, "delivery", func() bool { return !f.get(run).Undelivered && f.get(run).Phase != executor.Running })
			if s := f.get(run); !s.Succeeded() || s.Cause != "" {
				t.Errorf("after the delivery: %+v", s)
			}
		})
	}
}

// TestNotBegun: a worker that got no credentials because its server died did nothing, and its
// attempt is started again.
func TestNotBegun(t *testing.T) {
	const says = `if [ ! -e "$PLATFORM_WORK_DIR/../../again" ]; then touch "$PLATFORM_WORK_DIR/../../again"
		echo '{"reason":"NotBegun","exitCode":75}' >"$PLATFORM_TERMINATION_LOG"; exit 75; fi; exit 0`
	f := newFixture(t, says)
	run := newRunSpec()
	f.start(run)
	<-f.ended
	if _, err := f.State(t.Context(), run.Ref); !errors.Is(err, executor.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	f.start(run)
	if s := f.wait(run); !s.Succeeded() {
		t.Errorf("state = %+v", s)
	}
}
