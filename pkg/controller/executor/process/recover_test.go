// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/test/kit"
)

func (f *fixture) reopen() {
	f.t.Helper()
	f.close()
	f.open()
}

// edit changes the record of a run while no executor is open.
func (f *fixture) edit(run executor.Run, change func(*record)) {
	f.t.Helper()
	dir := f.Executor.dir(run.Ref)
	rec, err := readRecord(dir)
	if err != nil {
		f.t.Fatal(err)
	}
	change(rec)
	if err := rec.write(dir); err != nil {
		f.t.Fatal(err)
	}
}

// TestEndOfWhatGoesOn: a folder that no server uses any more is cleared of runs, with all of their processes.
func TestEndOfWhatGoesOn(t *testing.T) {
	f := newFixture(t, treeScript+`sleep 1000`)
	run := newRunSpec()
	f.start(run)
	pids := f.pids(run, 6)
	if n := f.Running(); n != 1 {
		t.Errorf("%d runs, want 1", n)
	}
	if _, err := End(t.Context(), f.opts.Dir, f.opts.Clock); !errors.Is(err, ErrLocked) {
		t.Errorf("beside a server: %v", err)
	}
	f.close()
	if n, err := End(t.Context(), f.opts.Dir, f.opts.Clock); n != 1 || err != nil {
		t.Fatalf("%d runs were ended, %v", n, err)
	}
	f.allDead(pids)
	if n, err := End(t.Context(), f.opts.Dir, f.opts.Clock); n != 0 || err != nil {
		t.Errorf("again: %d runs, %v", n, err)
	}
	f.open()
	if s := f.get(run); s.Phase == executor.Running {
		t.Errorf("a server finds %+v", s)
	}
}

func TestReopenFindsLivingRun(t *testing.T) {
	f := newFixture(t, treeScript+`while [ ! -e go ]; do sleep 0.01; done
		echo '{"reason":"Completed","exitCode":0}' >"$PLATFORM_TERMINATION_LOG"`)
	run := newRunSpec()
	started := f.start(run)
	pids := f.pids(run, 6)
	f.reopen()
	if s := f.get(run); s.Phase != executor.Running || !s.StartedAt.Equal(started.StartedAt) {
		t.Fatalf("after reopening: %+v", s)
	}
	if s := f.start(run); s.Phase != executor.Running {
		t.Fatalf("start after reopening: %+v", s)
	}
	if err := os.WriteFile(f.path(run, "work", "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s := f.wait(run); !s.Succeeded() || s.Termination == nil {
		t.Errorf("state = %+v", s)
	}
	f.allDead(pids)
}

func TestReopenedRunCanBeStopped(t *testing.T) {
	f := newFixture(t, treeScript+"trap '' TERM; while :; do sleep 1000; done")
	run := newRunSpec()
	f.start(run)
	pids := f.pids(run, 6)
	f.reopen()
	if err := f.Stop(t.Context(), run.Ref); err != nil {
		t.Fatal(err)
	}
	if s := f.wait(run); s.Phase != executor.Lost || s.Cause != executor.CauseStopped {
		t.Errorf("state = %+v", s)
	}
	f.allDead(pids)
}

func TestReopenKeepsDeadline(t *testing.T) {
	f := newFixture(t, `echo $$ >pids; sleep 1000`)
	run := newRunSpec()
	run.Timeout = time.Hour
	f.start(run)
	f.pids(run, 1)
	f.close()
	f.edit(run, func(r *record) { r.Timeout = time.Millisecond })
	f.open()
	// The run may be over before a listener is registered.
	kit.Await(t, "end", func() bool { return f.get(run).Phase != executor.Running })
	if s := f.get(run); s.Cause != executor.CauseDeadline {
		t.Errorf("state = %+v", s)
	}
}

// waitGone waits for the worker, whose parent is this test.
func waitGone(t *testing.T, pid int) {
	t.Helper()
	kit.Await(t, "end of worker", func() bool { return !alive(pid) })
	_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
}

func TestEndedWhileNobodyWatched(t *testing.T) {
	for _, tc := range []struct {
		name, end string
		want      executor.Phase
		succeeded bool
	}{
		{"with a good report", `echo '{"reason":"Completed","exitCode":0}' >"$PLATFORM_TERMINATION_LOG"`, executor.Exited, true},
		{"with a bad report", `echo '{"reason":"ModelError","exitCode":1}' >"$PLATFORM_TERMINATION_LOG"; exit 1`, executor.Exited, false},
		{"without a word", `exit 0`, executor.Lost, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t, treeScript+"while [ ! -e go ]; do sleep 0.01; done\n"+tc.end)
			run := newRunSpec()
			f.start(run)
			pids := f.pids(run, 6)
			f.close()
			if err := os.WriteFile(f.path(run, "work", "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			waitGone(t, pids[5])
			f.open()
			s := f.get(run)
			if s.Phase != tc.want || s.Succeeded() != tc.succeeded {
				t.Errorf("state = %+v", s)
			}
			f.allDead(pids)
			again := f.get(run)
			f.reopen()
			if s := f.get(run); s.Phase != again.Phase || !s.FinishedAt.Equal(again.FinishedAt) {
				t.Errorf("second look = %+v, first %+v", s, again)
			}
		})
	}
}

// TestReusedPID gives the record of a dead worker the pid of an unrelated process.
func TestReusedPID(t *testing.T) {
	stranger := exec.CommandContext(t.Context(), "sleep", "1000")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Process.Kill(); _ = stranger.Wait() }()
	for name, change := range map[string]func(*record){
		"pid and older start time": func(r *record) { r.PID, r.StartTicks = stranger.Process.Pid, 1 },
		"pid and start time of another boot": func(r *record) {
			s, err := readStat(stranger.Process.Pid)
			if err != nil {
				t.Fatal(err)
			}
			r.PID, r.StartTicks, r.BootID = stranger.Process.Pid, s.startTicks, "other"
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, `exit 0`)
			run := newRunSpec()
			f.start(run)
			f.wait(run)
			f.close()
			f.edit(run, func(r *record) { r.State = stateRunning; change(r) })
			f.open()
			if s := f.get(run); s.Phase != executor.Lost {
				t.Errorf("state = %+v", s)
			}
			if err := f.Stop(t.Context(), run.Ref); err != nil {
				t.Error(err)
			}
			if !alive(stranger.Process.Pid) {
				t.Error("a stranger was killed")
			}
		})
	}
}

// TestCrashDuringStart: the worker waits for credentials that nobody will send.
// The attempt did nothing, and starts anew.
func TestCrashDuringStart(t *testing.T) {
	t.Run("before its record", func(t *testing.T) { testCrashDuringStart(t, false) })
	t.Run("before its credentials", func(t *testing.T) { testCrashDuringStart(t, true) })
}

func testCrashDuringStart(t *testing.T, confirmed bool) {
	t.Helper()
	f := newFixture(t, `echo $$ >>pids; sleep 1000`)
	run := newRunSpec()
	run.Attempt = 2
	r := newRun(f.Executor, run)
	for _, d := range []string{"work", "artifacts", "tmp"} {
		if err := os.MkdirAll(f.path(run, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.rec.write(r.dir); err != nil {
		t.Fatal(err)
	}
	stdin, err := r.spawn(run)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	if confirmed {
		if err := r.confirm(run); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(f.path(run, begunName)); err != nil {
			t.Fatal(err)
		}
	}
	r.detach()
	f.reopen()
	waitGone(t, r.rec.PID)
	if s, err := f.State(t.Context(), run.Ref); !errors.Is(err, executor.ErrNotFound) {
		t.Errorf("state = %+v, %v", s, err)
	}
	f.start(run)
	if pid := f.pids(run, 1)[0]; pid == r.rec.PID {
		t.Error("the first worker did something")
	}
	f.reopen()
	if s := f.start(run); s.Phase != executor.Running {
		t.Errorf("state = %+v", s)
	}
	f.pids(run, 1)
}

func TestFolderIsLocked(t *testing.T) {
	f := newFixture(t, "")
	o, c := f.opts, clocktesting.NewFakeClock(time.Now())
	o.Clock = c
	second := make(chan error, 1)
	go func() {
		_, err := Open(context.WithoutCancel(t.Context()), o)
		second <- err
	}()
	kit.Await(t, "the second open ends", func() bool {
		c.Step(lockPatience)
		return len(second) > 0
	})
	if err := <-second; !errors.Is(err, ErrLocked) {
		t.Errorf("second open: %v", err)
	}
}

// TestPIDReusedByThread: numbers of threads come from the same space as pids.
func TestPIDReusedByThread(t *testing.T) {
	tid := 0
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && n != os.Getpid() {
			tid = n
		}
	}
	if tid == 0 {
		t.Fatal("this process has one thread")
	}
	f := newFixture(t, `exit 0`)
	run := newRunSpec()
	f.start(run)
	f.wait(run)
	f.close()
	f.edit(run, func(r *record) { r.State, r.PID = stateRunning, tid })
	f.open()
	if s := f.get(run); s.Phase != executor.Lost {
		t.Errorf("state = %+v", s)
	}
}

// TestOtherAttemptsAreNotTheRuns: a process that carries the number of the
// attempt twice, and the UID of another task, is not of the run.
func TestOtherAttemptsAreNotTheRuns(t *testing.T) {
	attempt := runspec.EnvAttempt + "=1"
	// os/exec would leave out one of the two.
	p, err := os.StartProcess("/bin/sleep", []string{"sleep", "1000"}, &os.ProcAttr{Env: []string{runspec.EnvTaskUID + "=other", attempt, attempt}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error("it was killed: ", err)
		}
		_, _ = p.Wait()
	})
	members, err := newTree(t.TempDir(), &record{UID: "mine", Attempt: 1}, false).members()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		if m.pid == p.Pid {
			t.Error("it is taken for one of the run")
		}
	}
}
