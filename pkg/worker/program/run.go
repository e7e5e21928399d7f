// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package program runs one program in a sandbox, and makes sure that none of its processes is left when it returns.
//
// It also enforces the limits that hold for all processes of a program together. The kernel enforces limits of each
// process alone (sandbox.Limits), so a program could exceed them by starting more processes:
//
//   - Processes and threads. A control group of the program has the limit where the server can make control groups (group.go,
//     package cgroup). Elsewhere RLIMIT_NPROC has it if the kernel counts for this user, and otherwise this process counts
//     (crowd.go).
//   - Memory, with files in memory. This process counts it, by what each process maps in proportion (PSS) and by the files in
//     memory that processes keep open (burden.go, usage.go).
//   - Files that were deleted and are still open. No folder shows them, so this process counts them as well (burden.go).
//
// Where the kernel enforces a limit, it refuses more. Where this process counts, a program that exceeds a limit is killed as a
// whole. It cannot hide from the counting: the sandbox refuses PR_SET_DUMPABLE, which would make its entries in /proc unreadable.
//
// Counting leaves gaps. A program on a machine with many processors can take more between two looks, and a fork bomb on a busy
// machine can outrun them. If this process is not root, it does not see memory and files that a program has mapped but neither
// keeps open nor has touched, and of a program whose file it may not read it sees the private memory only. In a Pod the control
// group of the container counts all of it; when the kernel then ends one process, memory.go ends the rest.
package program

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/worker/sandbox"
)

// markerEnv is an environment variable with a random value in every process of a Run. By it
// processes are found that left the session and lost their parent.
const markerEnv = "PLATFORM_EXEC_ID"

// drainTime is how long Run waits for output when the tree is dead but a process that could not
// be killed still holds a pipe open.
const drainTime = 2 * time.Second

// Command is a program to run.
type Command struct {
	// Args is the program and its arguments. The program is looked up in those folders of PATH that Policy allows.
	Args []string
	Dir  string
	// Env is the whole environment; nothing is inherited.
	Env            []string
	Stdout, Stderr io.Writer
	// Said is called when nothing more comes to Stdout: a program may close its output and go on. nil for nothing.
	Said func()
	// Stdin is the program's standard input; nil for none. Run closes it.
	Stdin *os.File
	// Policy is what the program may reach.
	Policy sandbox.Policy
	// Limits bound its processes.
	Limits sandbox.Limits
	// Grace is the time between SIGTERM and SIGKILL when ctx ends. 0 means to kill at once.
	Grace time.Duration
	// Sole says that the calling process has no other children and runs one Command at a time.
	// Then it adopts orphans, so that even a process that has left its session, its parent and its
	// environment is found.
	Sole bool
	// Container says that the container of the calling process is there for this program. Then the program ends as a whole when
	// the kernel ends one of its processes because the container has no memory left.
	Container bool
	Clock     clock.WithDelayedExecution
}

// Outcome is how a program ended.
type Outcome struct {
	// ExitCode is the program's, or 128 plus the signal that ended it.
	ExitCode int
	// Signal is the name of that signal, empty for a normal exit.
	Signal string
	// OutOfMemory says that the kernel ended the program, or a part of it, because there was no memory left.
	OutOfMemory bool
	// Began says that the program was started, also if Run returns an error because it lost control of it.
	Began bool
}

// ErrNotFound is in the chain of the error for a program that does not exist.
var ErrNotFound = exec.ErrNotFound

// ErrSandbox is in the chain of the error for a program that was not run because
// there is no sandbox for it.
var ErrSandbox = sandbox.ErrUnavailable

// Run starts the program in a session of its own and waits for it. Whether it ends by itself or
// because ctx ends, all processes that it started are dead when Run returns. An error means
// that the program could not be run or controlled. A failed program is not an error but an
// Outcome.
func Run(ctx context.Context, c Command) (Outcome, error) {
	if c.Stdin != nil {
		defer func() { _ = c.Stdin.Close() }() // again, unless the program did not start
	}
	if err := ctx.Err(); err != nil {
		return Outcome{}, err
	}
	path := c.Args[0]
	if !strings.ContainsRune(path, os.PathSeparator) {
		if path = Lookup(c.Policy, os.Getenv("PATH"), path); path == "" {
			return Outcome{}, fmt.Errorf("%s: %w", c.Args[0], ErrNotFound)
		}
	}
	type result struct {
		Outcome
		error
	}
	done := make(chan result, 1)
	go func() {
		// The parent-death signal is bound to the thread that started the child:
		// the thread must live as long as the child, so it is kept to this goroutine,
		// which ends with Run.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		o, err := run(ctx, c, path)
		done <- result{o, err}
	}()
	r := <-done
	return r.Outcome, r.error
}

func run(ctx context.Context, c Command, path string) (Outcome, error) {
	marker := markerEnv + "=" + rand.Text()
	if c.Sole {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return Outcome{}, fmt.Errorf("adopt orphans: %w", err)
		}
	}
	limits, err := rlimits(c.Limits)
	if err != nil {
		return Outcome{}, err
	}
	out, err := newDrains(c)
	if err != nil {
		return Outcome{}, err
	}
	defer out.wait(c.Clock)
	killed := killsNow()
	cmd, group, startErr := launch(c, out, sandbox.Program{
		Path: path, Args: append([]string{path}, c.Args[1:]...), Env: slices.Concat(c.Env, []string{marker}), Policy: c.Policy, Limits: limits,
	})
	err = errors.Join(startErr, out.started())
	if c.Stdin != nil {
		_ = c.Stdin.Close() // so that writing fails when the program is gone
	}
	if startErr != nil {
		return Outcome{}, err
	}
	defer cmd.Close()
	firstToGo(cmd.Process.Pid)
	t := &tree{leader: cmd.Process.Pid, marker: marker, sole: c.Sole, group: group}
	began := false
	if err = errors.Join(err, cmd.Confirm()); err != nil {
		err = errors.Join(fmt.Errorf("start %s: %w", c.Args[0], err), t.kill())
	} else {
		began = true
		err = supervise(ctx, c, t, killed)
	}
	_ = cmd.Wait()
	if group != nil {
		_ = group.Remove() // it is empty; what is left of it is removed with the run
	}
	o := outcomeOf(cmd.ProcessState)
	o.Began = began
	o.OutOfMemory = ctx.Err() == nil && killed.explain(killsNow(), o, c.Container)
	return o, err
}

// firstToGo makes the kernel end the program, and what it starts, before other processes if memory is short. That the kernel
// does not let us is no reason not to run the program.
func firstToGo(pid int) {
	_ = os.WriteFile(procPath(pid, "oom_score_adj"), []byte("1000"), 0)
}

// supervise waits until the leader has ended, by itself or because ctx ended, and kills what is
// left. The leader is not reaped before that, so that no other process can get its pid or
// session.
func supervise(ctx context.Context, c Command, t *tree, before kills) error {
	ended := make(chan error, 1)
	go func() { ended <- awaitExit(t.leader) }()
	crowd, err1 := t.watchCrowd(c.Limits.Processes)
	burden, err2 := t.watchBurden(c)
	losses, err3 := t.watchLosses(c, before)
	exceeded := sync.OnceValue(func() error { return errors.Join(crowd.end(), burden.end(), losses.end()) })
	defer func() { _ = exceeded() }()
	if err := errors.Join(err1, err2, err3); err != nil {
		return errors.Join(err, t.kill())
	}
	select {
	case err := <-ended:
		if err = errors.Join(exceeded(), err); err == nil && t.gone() {
			return nil
		}
		return errors.Join(err, t.kill())
	case <-ctx.Done():
	}
	if c.Grace > 0 {
		if err := t.signal(unix.SIGTERM); err != nil {
			return errors.Join(err, t.kill())
		}
		timer := c.Clock.NewTimer(c.Grace)
		defer timer.Stop()
		select {
		case err := <-ended:
			return errors.Join(err, t.kill())
		case <-timer.C():
		}
	}
	return errors.Join(t.kill(), <-ended)
}

// awaitExit returns when the child has ended. It does not reap the child.
func awaitExit(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func outcomeOf(s *os.ProcessState) Outcome {
	if s == nil {
		return Outcome{ExitCode: -1}
	}
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return Outcome{ExitCode: 128 + int(ws.Signal()), Signal: unix.SignalName(ws.Signal())}
	}
	return Outcome{ExitCode: s.ExitCode()}
}

// drain copies one output of the child.
type drain struct {
	r, w *os.File
	done chan struct{}
}

// drains are standard output and standard error.
type drains [2]*drain

func newDrains(c Command) (d drains, err error) {
	for i, target := range []io.Writer{c.Stdout, c.Stderr} {
		p := &drain{done: make(chan struct{})}
		if p.r, p.w, err = os.Pipe(); err != nil {
			d.wait(clock.RealClock{})
			return d, err
		}
		d[i] = p
		// Ends when all writers of the pipe are gone, or wait closes it.
		go func() {
			defer close(p.done)
			if target == nil {
				target = io.Discard
			}
			_, _ = io.Copy(target, p.r)
			// A target that fails must not block the program.
			_, _ = io.Copy(io.Discard, p.r)
			if i == 0 && c.Said != nil {
				c.Said()
			}
		}()
	}
	return d, nil
}

// started closes this process's copies of the child's ends.
func (d drains) started() error { return errors.Join(d[0].w.Close(), d[1].w.Close()) }

// wait returns when everything was copied, or after drainTime.
func (d drains) wait(c clock.WithDelayedExecution) {
	for _, p := range d {
		if p == nil {
			continue
		}
		_ = p.w.Close()
		timer := c.AfterFunc(drainTime, func() { _ = p.r.Close() })
		<-p.done
		timer.Stop()
		_ = p.r.Close()
	}
}

// Lookup finds the first program in the folders of a PATH that can be executed under the policy; empty if there is none.
func Lookup(p sandbox.Policy, list string, programs ...string) string {
	reaches := p.Reaches()
	for _, name := range programs {
		for _, dir := range filepath.SplitList(list) {
			path := filepath.Join(dir, name)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 && reaches(path) { //nolint:gosec // reaches decides
				return path
			}
		}
	}
	return ""
}
