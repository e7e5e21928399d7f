// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/test/kit"
)

func empties(o *Options) { o.Keep = false }

// names returns what is in the folder of a run.
func (f *fixture) names(run executor.Run) string {
	f.t.Helper()
	all, err := os.ReadDir(f.path(run))
	if err != nil {
		f.t.Fatal(err)
	}
	text := ""
	for _, d := range all {
		text += d.Name() + " "
	}
	return text
}

// awaitEmpty waits until only the record is left.
func (f *fixture) awaitEmpty(run executor.Run) {
	f.t.Helper()
	f.close() // waits for what is being removed
	if got := f.names(run); got != recordName+" " {
		f.t.Errorf("the folder has %s", got)
	}
	f.open()
}

// The folder of a run is emptied once the server has everything, also when the worker was killed and another one delivered it,
// and when the server ended in between. The state is remembered.
func TestFoldersAreEmptied(t *testing.T) {
	t.Run("delivered", func(t *testing.T) {
		f := newFixture(t, "mkdir -p \"$PLATFORM_SPOOL_DIR\" ro/x; chmod 500 ro; echo a >\"$PLATFORM_ARTIFACTS_DIR/a\"; "+delivers, empties)
		run := newRunSpec()
		f.start(run)
		f.wait(run)
		f.awaitEmpty(run)
		if s := f.get(run); !s.Succeeded() {
			t.Errorf("%+v", s)
		}
	})
	t.Run("killed", func(t *testing.T) {
		f := newFixture(t, spoolScript(delivers, "sleep 1000"), empties)
		run := newRunSpec()
		f.start(run)
		_ = unix.Kill(f.pids(run, 1)[0], unix.SIGKILL)
		f.wait(run)
		f.reopen()
		if got := f.read(run, "work", "ran"); got != "worked\n" {
			t.Errorf("before the delivery: %q", got)
		}
		f.deliver(run)
		f.wait(run)
		f.awaitEmpty(run)
		if s := f.get(run); !s.Succeeded() || s.Undelivered {
			t.Errorf("%+v", s)
		}
	})
	t.Run("killed early", func(t *testing.T) {
		f := newFixture(t, `mkdir -p "$PLATFORM_SPOOL_DIR"; kill -9 $$`, empties)
		run := newRunSpec()
		f.start(run)
		f.wait(run)
		f.awaitEmpty(run)
	})
	t.Run("server killed", func(t *testing.T) {
		f := newFixture(t, "mkdir -p \"$PLATFORM_SPOOL_DIR\"; "+delivers)
		run := newRunSpec()
		f.start(run)
		f.wait(run)
		f.close()
		f.opts.Keep = false
		f.open()
		f.awaitEmpty(run)
	})
}

// A folder whose content the server may lack stays as it is.
func TestFoldersStay(t *testing.T) {
	for name, script := range map[string]string{
		"undelivered":          spoolScript("exit 1", "kill -9 $$"),
		"artifacts":            `mkdir -p "$PLATFORM_SPOOL_DIR"; echo a >"$PLATFORM_ARTIFACTS_DIR/a"; kill -9 $$`,
		"not a worker of ours": "exit 0",
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, script, empties)
			run := newRunSpec()
			f.start(run)
			f.wait(run)
			before := f.names(run)
			f.reopen()
			f.close()
			if got := f.names(run); got != before {
				t.Errorf("the folder has %s instead of %s", got, before)
			}
			f.open()
		})
	}
}

// A run that fills the disk ends, also if it ignores that it should, and its state names the limit.
func TestDiskLimit(t *testing.T) {
	for name, trap := range map[string]string{"heeds": "", "ignores": "trap '' TERM; "} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clocktesting.NewFakeClock(time.Now())
			f := newFixture(t, trap+`while :; do head -c 1000000 /dev/zero >>full; ln full name$i; i=$((i+1)); sleep 0.01; done`, func(o *Options) {
				o.DiskBytes, o.Grace, o.Clock = 4<<20, time.Hour, c
			})
			run := newRunSpec()
			f.start(run)
			kit.Await(t, "end", func() bool {
				c.Step(checkInterval) // the disk is measured again
				return f.get(run).Phase != executor.Running
			})
			s := f.get(run)
			if s.Cause != executor.CauseDisk || s.Reason != v1alpha1.ReasonDiskLimitExceeded || s.Succeeded() {
				t.Errorf("%+v", s)
			}
			if n := diskBytes(f.path(run)); n < 4<<20 || n > 2<<30 {
				t.Errorf("%d bytes", n)
			}
		})
	}
}
