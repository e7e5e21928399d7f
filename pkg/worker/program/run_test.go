// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package program

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/worker/sandbox"
	"github.com/platform-ai/platform/test/kit"
)

// TestStopOfTheRun cancels the context of a running program: SIGTERM first,
// which the program may answer, then the end of Run.
func TestStopOfTheRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dir := t.TempDir()
	r, w := io.Pipe()
	var stderr bytes.Buffer
	done := make(chan Outcome, 1)
	go func() {
		o, err := Run(ctx, Command{
			Args: []string{"bash", "-c", `trap 'echo bye; exit 9' TERM; echo ready; while :; do sleep 0.05; done`},
			Env:  []string{"PATH=" + os.Getenv("PATH")}, Dir: dir, Stdout: w, Stderr: &stderr, Policy: sandbox.Policy{Read: sandbox.System(), Write: []string{dir}},
			Grace: time.Minute, Clock: clock.RealClock{},
		})
		if err != nil {
			t.Error(err)
		}
		_ = w.Close()
		done <- o
	}()
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if lines.Text() == "ready" {
			cancel()
		}
		if lines.Text() == "bye" {
			break
		}
	}
	_, _ = io.Copy(io.Discard, r)
	if got := <-done; got.ExitCode != 9 || lines.Text() != "bye" {
		t.Errorf("got %+v after %q, %s", got, lines.Text(), stderr.String())
	}
}

func TestProgramThatIsNotThere(t *testing.T) {
	_, err := Run(t.Context(), Command{Args: []string{"no-such-program-here"}, Clock: clock.RealClock{}})
	if !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

// TestGone: a sole tree is gone when its leader is a zombie and nobody else is alive, and not before.
func TestGone(t *testing.T) { //nolint:paralleltest // it looks at all children of the test
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]bool{
		"exit 3": true, "sleep 1010 & exit 3": false, "(setsid sleep 1011 &) & wait": false, "(exit 4 &); sleep 0.1": true,
	} {
		cmd := exec.Command("sh", "-c", line)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		tr := &tree{leader: cmd.Process.Pid, sole: true}
		if err := awaitExit(tr.leader); err != nil {
			t.Fatal(err)
		}
		if want {
			kit.Await(t, line+": the tree is gone", tr.gone) // an orphan may not have run yet
		} else if tr.gone() {
			t.Errorf("%s: the tree is gone", line)
		}
		if (&tree{leader: tr.leader}).gone() {
			t.Errorf("%s: a tree that is not sole is gone", line)
		}
		if err := tr.kill(); err != nil {
			t.Error(err)
		}
		if !tr.gone() {
			t.Errorf("%s: not gone after all was killed", line)
		}
		_ = cmd.Wait()
	}
}

// TestStrangers: a tree consists of its own processes, also one without a marker, which would otherwise be all processes of
// the machine that are younger than its leader.
func TestStrangers(t *testing.T) {
	start := func() *exec.Cmd {
		cmd := exec.Command("sleep", "1020")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		return cmd
	}
	leader, stranger := start(), start()
	for _, marker := range []string{"", markerEnv + "=of-this-tree"} {
		members, err := (&tree{leader: leader.Process.Pid, marker: marker}).members()
		if err != nil || len(members) != 1 || members[0].pid != leader.Process.Pid {
			t.Errorf("marker %q: members %+v, %v; the leader is %d and a stranger %d", marker, members, err, leader.Process.Pid, stranger.Process.Pid)
		}
	}
}
