// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/klog/v2/ktesting"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/test/kit"
)

// secret must not be seen anywhere but on the worker's standard input.
const secret = "sk-planted-secret-7f3a"

// fixture is an executor of shell scripts and a channel of the runs that ended.
type fixture struct {
	t    *testing.T
	dir  string
	opts Options
	*opened
}

type opened struct {
	*Executor
	ended chan executor.Ref
}

// newFixture runs script as worker. The script starts with the credentials read.
func newFixture(t *testing.T, script string, change ...func(*Options)) *fixture {
	t.Helper()
	dir := t.TempDir()
	f := &fixture{t: t, dir: dir, opts: Options{
		Dir: dir, Command: []string{"/bin/sh", "-c", "read -r CREDENTIALS || exit 2\n" + script},
		ControllerURL: "https://127.0.0.1:1", CAFile: "/ca", Grace: 200 * time.Millisecond, Keep: true,
	}}
	for _, c := range change {
		c(&f.opts)
	}
	f.open()
	t.Cleanup(func() { // whatever a failing test left alive
		refs, err := f.List(t.Context())
		if err != nil {
			t.Error(err)
		}
		for _, r := range refs {
			rec, err := readRecord(f.Executor.dir(r))
			if err != nil {
				t.Error(err)
				continue
			}
			if err := newTree(f.Executor.dir(r), rec, false).kill(); err != nil {
				t.Error(err)
			}
		}
		f.close()
	})
	return f
}

func (f *fixture) open() {
	f.t.Helper()
	_, ctx := ktesting.NewTestContext(f.t)
	e, err := Open(context.WithoutCancel(ctx), f.opts)
	if err != nil {
		f.t.Fatal(err)
	}
	ended := make(chan executor.Ref, 10)
	e.OnExit(f.t.Context(), func(r executor.Ref) { ended <- r })
	f.opened = &opened{e, ended}
}

func (f *fixture) close() {
	f.t.Helper()
	if err := f.Close(); err != nil {
		f.t.Fatal(err)
	}
}

func newRunSpec() executor.Run {
	return executor.Run{
		Ref: executor.Ref{Namespace: "ns", Name: "task", UID: uuid.NewUUID(), Attempt: 1},
		ID:  string(uuid.NewUUID()), Credentials: runspec.Credentials{Token: secret},
	}
}

func (f *fixture) start(run executor.Run) executor.State {
	f.t.Helper()
	s, err := f.Start(f.t.Context(), run)
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

func (f *fixture) wait(run executor.Run) executor.State {
	f.t.Helper()
	ctx, stop := context.WithTimeout(f.t.Context(), kit.Patience)
	defer stop()
	select {
	case got := <-f.ended:
		if got != run.Ref {
			f.t.Fatalf("ended: %s, want %s", got, run.Ref)
		}
	case <-ctx.Done():
		f.t.Fatal("run did not end")
	}
	return f.get(run)
}

func (f *fixture) get(run executor.Run) executor.State {
	f.t.Helper()
	s, err := f.State(f.t.Context(), run.Ref)
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

// path of a file in the run's folder.
func (f *fixture) path(run executor.Run, elem ...string) string {
	return filepath.Join(append([]string{f.Executor.dir(run.Ref)}, elem...)...)
}

// pids waits for a file with as many pids as asked for.
func (f *fixture) pids(run executor.Run, n int) []int {
	f.t.Helper()
	var pids []int
	kit.Await(f.t, "pids", func() bool {
		b, _ := os.ReadFile(f.path(run, "work", "pids"))
		pids = nil
		for s := range strings.FieldsSeq(string(b)) {
			p, err := strconv.Atoi(s)
			if err != nil {
				return false
			}
			pids = append(pids, p)
		}
		return len(pids) == n && bytes.HasSuffix(b, []byte("\n"))
	})
	return pids
}

func alive(pid int) bool {
	s, err := readStat(pid)
	return err == nil && !s.dead
}

func (f *fixture) allDead(pids []int) {
	f.t.Helper()
	for _, p := range pids {
		if alive(p) {
			f.t.Errorf("process %d is alive", p)
		}
	}
}

func TestOutcomes(t *testing.T) {
	for _, tc := range []struct {
		name, script string
		want         executor.State
		succeeded    bool
	}{
		{"success", `exit 0`, executor.State{Phase: executor.Exited}, true},
		{"failure", `exit 1`, executor.State{Phase: executor.Exited, ExitCode: 1}, false},
		{
			"failure with report", `echo '{"reason":"ModelError","message":"no such model","exitCode":1}' >"$PLATFORM_TERMINATION_LOG"; exit 1`,
			executor.State{Phase: executor.Exited, ExitCode: 1, Termination: &runspec.Termination{Reason: "ModelError", Message: "no such model", ExitCode: 1}},
			false,
		},
		{"killed", `kill -9 $$`, executor.State{Phase: executor.Exited, ExitCode: -1, Signal: "killed"}, false},
		{
			"killed after a good report", `echo '{"reason":"Completed","exitCode":0}' >"$PLATFORM_TERMINATION_LOG"; kill -9 $$`,
			executor.State{Phase: executor.Exited, ExitCode: -1, Signal: "killed", Termination: &runspec.Termination{Reason: "Completed"}},
			true,
		},
		{
			"report contradicted by exit code", `echo '{"reason":"Completed","exitCode":0}' >"$PLATFORM_TERMINATION_LOG"; exit 3`,
			executor.State{Phase: executor.Exited, ExitCode: 3, Termination: &runspec.Termination{Reason: "Completed"}},
			false,
		},
		{"report too long", `yes | head -c 5000 >"$PLATFORM_TERMINATION_LOG"; exit 1`, executor.State{Phase: executor.Exited, ExitCode: 1}, false},
		{"report is a pipe", `mkfifo "$PLATFORM_TERMINATION_LOG"; exit 1`, executor.State{Phase: executor.Exited, ExitCode: 1}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t, tc.script)
			run := newRunSpec()
			f.start(run)
			got := f.wait(run)
			if got.ID != run.ID || got.StartedAt.IsZero() || got.FinishedAt.IsZero() {
				t.Errorf("state lacks id or times: %+v", got)
			}
			if got.Succeeded() != tc.succeeded {
				t.Errorf("succeeded = %v", got.Succeeded())
			}
			term := got.Termination
			if (term == nil) != (tc.want.Termination == nil) || term != nil && *term != *tc.want.Termination {
				t.Errorf("termination = %+v", term)
			}
			if got.Phase != tc.want.Phase || got.ExitCode != tc.want.ExitCode || got.Signal != tc.want.Signal || got.Cause != "" {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestEnvironmentIsCleanAndSecretIsOnlyOnStdin(t *testing.T) {
	t.Setenv("SERVER_PRIVATE", "not for workers")
	f := newFixture(t, `env >env; pwd >pwd; printf '%s' "$CREDENTIALS" | wc -c >length; echo $$ >pids; exec sleep 1000`)
	run := newRunSpec()
	f.start(run)
	pid := f.pids(run, 1)[0]

	env, err := os.ReadFile(f.path(run, "work", "env"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for line := range strings.Lines(string(env)) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), "=")
		got[k] = v
	}
	for k, v := range map[string]string{
		"HOME": f.path(run, "work"), "TMPDIR": f.path(run, "tmp"), "PATH": os.Getenv("PATH"),
		runspec.EnvTaskName: "task", runspec.EnvTaskNamespace: "ns", runspec.EnvTaskUID: string(run.UID), runspec.EnvAttempt: "1",
		runspec.EnvControllerURL: "https://127.0.0.1:1", runspec.EnvCAFile: "/ca", runspec.EnvCredentials: "stdin",
		runspec.EnvWorkDir: f.path(run, "work"), runspec.EnvHostCommands: "false",
	} {
		if got[k] != v {
			t.Errorf("%s = %q, want %q", k, got[k], v)
		}
	}
	if _, ok := got["SERVER_PRIVATE"]; ok {
		t.Error("the server's environment reached the worker")
	}
	if b, _ := os.ReadFile(f.path(run, "work", "length")); strings.TrimSpace(string(b)) == "0" {
		t.Error("no credentials on standard input")
	}
	for _, name := range []string{"environ", "cmdline"} {
		b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), name))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte(secret)) {
			t.Errorf("secret in %s", name)
		}
	}
	noSecretOnDisk(t, f.dir)
}

func TestCredentialsLargerThanAPipe(t *testing.T) {
	f := newFixture(t, `printf '%s' "$CREDENTIALS" | wc -c >length`)
	run := newRunSpec()
	run.Credentials.ToolKeys = map[string]string{"tool": strings.Repeat("k", 3*pipeBytes)}
	f.start(run)
	if s := f.wait(run); !s.Succeeded() {
		t.Fatalf("state = %+v", s)
	}
	b, err := os.ReadFile(f.path(run, "work", "length"))
	if n, _ := strconv.Atoi(strings.TrimSpace(string(b))); err != nil || n < 3*pipeBytes {
		t.Errorf("the worker got %d bytes, %v", n, err)
	}
}

func noSecretOnDisk(t *testing.T, dir string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		files++
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(secret)) {
			t.Errorf("secret in %s", path)
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files searched: %v", files, err)
	}
}

// treeScript leaves a child, a grandchild, one in a session of its own, one that
// also was given to init, and one without the run's environment.
const treeScript = `
(sleep 1000 & echo $! >>p; wait) & echo $! >>p
setsid sleep 1000 & echo $! >>p
(setsid sh -c 'echo $$ >>p; exec sleep 1000' &)
(setsid env -i PATH="$PATH" sh -c 'echo $$ >>p; exec sleep 1000' &)
while [ $(wc -l <p) -lt 5 ]; do sleep 0.01; done
(tr '\n' ' ' <p; echo $$) >pids.new; mv pids.new pids
`

func TestTreeIsKilled(t *testing.T) {
	for _, tc := range []struct {
		name, end string
		stop      bool
	}{
		{"when the worker ends", "exit 0", false},
		{"when the worker is killed", "kill -9 $$", false},
		{"when stopped", "wait; sleep 1000", true},
		{"when stopped and deaf", "trap '' TERM; while :; do sleep 1000; done", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t, treeScript+tc.end)
			run := newRunSpec()
			f.start(run)
			pids := f.pids(run, 6)
			if tc.stop {
				if err := f.Stop(t.Context(), run.Ref); err != nil {
					t.Fatal(err)
				}
			}
			s := f.wait(run)
			f.allDead(pids)
			if tc.stop != (s.Cause == executor.CauseStopped) {
				t.Errorf("cause = %q", s.Cause)
			}
		})
	}
}

func TestTimeout(t *testing.T) {
	c := clocktesting.NewFakeClock(time.Now())
	f := newFixture(t, `echo $$ >pids; sleep 1000`, func(o *Options) { o.Clock = c })
	run := newRunSpec()
	run.Timeout = time.Hour
	f.start(run)
	f.pids(run, 1)
	c.Step(time.Hour - 1)
	if s := f.get(run); s.Phase != executor.Running || s.Cause != "" {
		t.Errorf("before its time was over: %+v", s)
	}
	c.Step(1)
	kit.Await(t, "the end of the run", func() bool {
		c.Step(0) // a timer that is set only now, for a time that is over, fires with the next step
		return f.get(run).Phase == executor.Exited
	})
	s := f.wait(run)
	if s.Cause != executor.CauseDeadline || s.Phase != executor.Exited || s.Succeeded() {
		t.Errorf("state = %+v", s)
	}
}

func TestStartIsOnce(t *testing.T) {
	f := newFixture(t, `echo $$ >>started; sleep 1000`)
	run := newRunSpec()
	first := f.start(run)
	if second := f.start(run); second.StartedAt != first.StartedAt {
		t.Errorf("second start gave %+v, want %+v", second, first)
	}
	other := run
	other.ID = "other"
	if _, err := f.Start(t.Context(), other); !errors.Is(err, executor.ErrConflict) {
		t.Errorf("start as another run: %v", err)
	}
	if err := f.Remove(t.Context(), run.UID); !errors.Is(err, executor.ErrRunning) {
		t.Errorf("remove of a living run: %v", err)
	}
	started := f.path(run, "work", "started")
	kit.Await(t, "start", func() bool { b, _ := os.ReadFile(started); return len(b) > 0 }) // it is there a moment before it is written
	if err := f.Stop(t.Context(), run.Ref); err != nil {
		t.Fatal(err)
	}
	f.wait(run)
	if s := f.start(run); s.Phase != executor.Exited {
		t.Errorf("start after the end gave %+v", s)
	}
	b, _ := os.ReadFile(started)
	if n := len(strings.Fields(string(b))); n != 1 {
		t.Errorf("worker ran %d times", n)
	}
	if err := os.Chmod(f.path(run, "work"), 0o500); err != nil {
		t.Fatal(err)
	}
	if err := f.Remove(t.Context(), run.UID); err != nil {
		t.Fatal(err)
	}
	if _, err := f.State(t.Context(), run.Ref); !errors.Is(err, executor.ErrNotFound) {
		t.Errorf("after remove: %v", err)
	}
	if refs, err := f.List(t.Context()); err != nil || len(refs) != 0 {
		t.Errorf("list after remove: %v %v", refs, err)
	}
}

func TestStartErrorLeavesNothing(t *testing.T) {
	f := newFixture(t, "", func(o *Options) { o.Command = []string{"/no/such/worker"} })
	run := newRunSpec()
	if _, err := f.Start(t.Context(), run); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("start = %v", err)
	}
	if _, err := f.State(t.Context(), run.Ref); !errors.Is(err, executor.ErrNotFound) {
		t.Errorf("state = %v", err)
	}
}

func TestRefIsChecked(t *testing.T) {
	f := newFixture(t, "")
	for _, uid := range []types.UID{"", "..", "a/b", "../x"} {
		run := newRunSpec()
		run.UID = uid
		if _, err := f.Start(t.Context(), run); err == nil {
			t.Errorf("start with UID %q", uid)
		}
		if err := f.Remove(t.Context(), uid); err == nil {
			t.Errorf("remove of UID %q", uid)
		}
	}
}

func TestLimits(t *testing.T) {
	f := newFixture(t, `ulimit -c; ulimit -n; ulimit -d; (yes | head -c 2000000 >big); wc -c <big`, func(o *Options) {
		o.OpenFiles, o.FileBytes = 77, 1<<20
	})
	run := newRunSpec()
	run.MemoryBytes = 64 << 20
	f.start(run)
	f.wait(run)
	b, err := os.ReadFile(f.path(run, "log"))
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Fields(string(b))
	want := []string{"0", "77", "65536", "1048576"}
	var numbers []string
	for _, s := range got {
		if _, err := strconv.Atoi(s); err == nil {
			numbers = append(numbers, s)
		}
	}
	if strings.Join(numbers, " ") != strings.Join(want, " ") {
		t.Errorf("limits = %v, want %v", got, want)
	}
}

func TestLogIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, bytes.Repeat([]byte("0123456789"), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := boundLog(path, 1000); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(path); len(b) != 1000 {
		t.Errorf("a log within its bound was cut to %d", len(b))
	}
	if err := boundLog(path, 100); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(path)
	if want := "[older output was cut]\n" + strings.Repeat("0123456789", 5); string(b) != want {
		t.Errorf("log = %q", b)
	}
}

func TestParseStat(t *testing.T) {
	line := "42 (a) b (c) S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 123456 0\n"
	got, err := parseStat(42, []byte(line))
	if want := (stat{pid: 42, ppid: 7, session: 9, startTicks: 123456}); err != nil || got != want {
		t.Errorf("got %+v %v, want %+v", got, err, want)
	}
	for _, bad := range []string{"", "42 (a", "42 (a) S 1 2", strings.Replace(line, " 7 8 9", " x 8 9", 1)} {
		if _, err := parseStat(42, []byte(bad)); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
	self, err := readStat(os.Getpid())
	if err != nil || self.ppid != os.Getppid() {
		t.Errorf("own stat = %+v %v", self, err)
	}
	if sid, _ := unix.Getsid(0); sid != self.session {
		t.Errorf("own session = %d, want %d", self.session, sid)
	}
}

// TestRecordCannotBeWritten: the worker put a folder where the record goes.
func TestRecordCannotBeWritten(t *testing.T) {
	f := newFixture(t, `mkdir ../run.json.new; exit 1`)
	run := newRunSpec()
	f.start(run)
	if s := f.wait(run); s.Phase != executor.Exited || s.ExitCode != 1 {
		t.Errorf("state = %+v", s)
	}
	if err := f.Remove(t.Context(), run.UID); err != nil {
		t.Error(err)
	}
	if _, err := f.State(t.Context(), run.Ref); !errors.Is(err, executor.ErrNotFound) {
		t.Errorf("state after removal: %v", err)
	}
}

// TestContainerCommand: tasks of type container have a worker program of their own; without one they have that of all tasks.
func TestContainerCommand(t *testing.T) {
	t.Parallel()
	own := func(o *Options) {
		o.ContainerCommand = []string{"/bin/sh", "-c", "read -r CREDENTIALS || exit 2\nexit 3"}
	}
	for name, tc := range map[string]struct {
		change []func(*Options)
		task   *v1alpha1.Task
		want   int
	}{
		"container":              {[]func(*Options){own}, &v1alpha1.Task{Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer}}, 3},
		"ai":                     {[]func(*Options){own}, &v1alpha1.Task{Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeAI}}, 4},
		"container, one program": {nil, &v1alpha1.Task{Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer}}, 4},
	} {
		f := newFixture(t, "exit 4", tc.change...)
		run := newRunSpec()
		run.Task = tc.task
		f.start(run)
		<-f.ended
		if s, err := f.State(t.Context(), run.Ref); err != nil || s.ExitCode != tc.want {
			t.Errorf("%s: exit code %d, %v, want %d", name, s.ExitCode, err, tc.want)
		}
	}
}
