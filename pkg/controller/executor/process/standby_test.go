// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker"
	"github.com/platform-ai/platform/test/kit"
)

// seen is what the worker of TestHelperWorker found.
type seen struct {
	PID                              int
	Dir, Home, UID, Standby, Deliver string
	Credentials                      runspec.Credentials
}

// TestHelperWorker is the worker of the other tests in this file.
func TestHelperWorker(t *testing.T) { //nolint:paralleltest // another process
	if os.Getenv(runspec.EnvCredentials) == "" {
		t.Skip("this is a program of other tests")
	}
	if os.Getenv(runspec.EnvStandby) == "true" {
		if assigned, err := worker.StandBy(os.Stdin); err != nil || !assigned {
			os.Exit(runspec.ExitUsage)
		}
	}
	raw, err := io.ReadAll(os.Stdin)
	if err != nil || len(raw) == 0 {
		os.Exit(runspec.ExitUsage)
	}
	s := seen{PID: os.Getpid(), Home: os.Getenv("HOME"), UID: os.Getenv(runspec.EnvTaskUID), Standby: os.Getenv(runspec.EnvStandby), Deliver: os.Getenv(runspec.EnvDeliver)}
	s.Dir, _ = os.Getwd()
	if err := json.Unmarshal(raw, &s.Credentials); err != nil {
		os.Exit(runspec.ExitUsage)
	}
	if raw, err = json.Marshal(s); err != nil {
		os.Exit(runspec.ExitFailed)
	}
	_, _ = os.Stdout.WriteString("to the log\n")
	if err := os.WriteFile("seen", raw, 0o600); err != nil {
		os.Exit(runspec.ExitFailed)
	}
	os.Exit(0)
}

func newStandbyFixture(t *testing.T, change ...func(*Options)) *fixture {
	t.Helper()
	return newFixture(t, "exit 3", append([]func(*Options){func(o *Options) {
		o.ContainerCommand, o.Standby = []string{os.Args[0], "-test.run=^TestHelperWorker$"}, true
		o.Clock = clocktesting.NewFakeClock(time.Now()) // so that nobody is dismissed meanwhile
	}}, change...)...)
}

func newCommandSpec() executor.Run {
	run := newRunSpec()
	run.Task = &v1alpha1.Task{Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}}}
	run.Task.Name = run.Name
	return run
}

// command runs a command, and returns what its worker found.
func (f *fixture) command(run executor.Run) seen {
	f.t.Helper()
	f.start(run)
	if s := f.wait(run); s.Phase != executor.Exited || s.ExitCode != 0 {
		f.t.Fatalf("%+v", s)
	}
	raw, err := os.ReadFile(f.path(run, workName, "seen"))
	if err != nil {
		f.t.Fatal(err)
	}
	var s seen
	if err := json.Unmarshal(raw, &s); err != nil {
		f.t.Fatal(err)
	}
	return s
}

// standby waits until a worker stands by, and returns it.
func (f *fixture) standby() *standby {
	f.t.Helper()
	var s *standby
	kit.Await(f.t, "worker that stands by", func() bool {
		k := f.Executor.standbys
		k.mu.Lock()
		defer k.mu.Unlock()
		if len(k.ready) > 0 {
			s = k.ready[0]
		}
		return s != nil
	})
	return s
}

func (f *fixture) gone(s *standby) {
	f.t.Helper()
	kit.Await(f.t, "end of the worker", func() bool { return !isProcess(s.process.Pid, s.startTicks) })
}

// TestStandbyBecomesTheWorkerOfARun: the second run gets a worker that was started before it, which finds what a worker finds that
// is started for the run.
func TestStandbyBecomesTheWorkerOfARun(t *testing.T) {
	f := newStandbyFixture(t)
	cold := newCommandSpec()
	first := f.command(cold)
	s := f.standby()
	warm := newCommandSpec()
	second := f.command(warm)
	if second.PID != s.process.Pid {
		t.Errorf("worker %d ran, and %d stood by", second.PID, s.process.Pid)
	}
	for _, r := range []struct {
		run executor.Run
		got seen
	}{{cold, first}, {warm, second}} {
		work := f.path(r.run, workName)
		task, err := json.Marshal(r.run.Task)
		if err != nil {
			t.Fatal(err)
		}
		want := seen{PID: r.got.PID, Dir: work, Home: work, UID: string(r.run.UID), Deliver: "false", Credentials: runspec.Credentials{Token: secret, Task: task}}
		if d := cmp.Diff(want, r.got); d != "" {
			t.Error(d)
		}
		if log, err := os.ReadFile(f.path(r.run, logName)); err != nil || !strings.Contains(string(log), "to the log") {
			t.Errorf("log: %q, %v", log, err)
		}
		if rec, err := readRecord(f.Executor.dir(r.run.Ref)); err != nil || rec.PID != r.got.PID {
			t.Errorf("record: %+v, %v", rec, err)
		}
	}
}

// TestStandbyKnowsNothing: a worker that stands by has no credentials and nothing of an earlier run.
func TestStandbyKnowsNothing(t *testing.T) {
	f := newStandbyFixture(t)
	run := newCommandSpec()
	f.command(run)
	env, err := os.ReadFile(procFile(f.standby().process.Pid, "environ"))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{secret, string(run.UID), run.Name + "\x00"} {
		if strings.Contains(string(env), word) {
			t.Errorf("the environment has %q:\n%s", word, strings.ReplaceAll(string(env), "\x00", "\n"))
		}
	}
}

func procFile(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}

// TestStandbyThatEndedIsNotUsed: a run whose worker died before it was needed gets another one.
func TestStandbyThatEndedIsNotUsed(t *testing.T) {
	f := newStandbyFixture(t)
	f.command(newCommandSpec())
	s := f.standby()
	if err := signalFD(s.pidfd, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	kit.Await(t, "end of the worker", func() bool { return hasExited(s.pidfd) })
	if got := f.command(newCommandSpec()); got.PID == s.process.Pid {
		t.Error("a dead worker ran")
	}
}

// TestStandbysEndWithTheirServer, whether it stops or dies.
func TestStandbysEndWithTheirServer(t *testing.T) {
	f := newStandbyFixture(t)
	f.command(newCommandSpec())
	s := f.standby()
	f.reopen()
	f.gone(s)

	f.command(newCommandSpec())
	f.standby()
	s = f.Executor.standbys.take()
	if err := s.stdin.Close(); err != nil { // as the kernel does
		t.Fatal(err)
	}
	if p, err := s.process.Wait(); err != nil || p.ExitCode() != runspec.ExitUsage { // of TestHelperWorker
		t.Errorf("%v, %v", p, err)
	}
}

// TestStandbysAreDismissed: none is left some time after the last run.
func TestStandbysAreDismissed(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	f := newStandbyFixture(t, func(o *Options) { o.Clock = clock })
	f.command(newCommandSpec())
	s := f.standby()
	kit.Await(t, "dismissal", func() bool {
		clock.Step(standbyLife)
		return !isProcess(s.process.Pid, s.startTicks)
	})
}

// TestUndoEndsAStandby: if the server dies between the record of a start and the assignment, the next one ends the worker, and the
// attempt has not begun.
func TestUndoEndsAStandby(t *testing.T) {
	f := newStandbyFixture(t)
	f.command(newCommandSpec())
	s := f.standby()
	if s != f.Executor.standbys.take() {
		t.Fatal("another worker was taken")
	}
	run := newCommandSpec()
	r := newRun(f.Executor, run)
	r.rec.PID, r.rec.StartTicks = s.process.Pid, s.startTicks
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := r.rec.note(r.dir); err != nil {
		t.Fatal(err)
	}
	f.reopen()
	f.gone(s)
	if _, err := os.Stat(r.dir); !os.IsNotExist(err) {
		t.Errorf("folder of the run: %v, want %v", err, fs.ErrNotExist)
	}
	s.dismiss()
}
