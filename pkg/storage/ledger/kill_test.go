// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/platform-ai/platform/pkg/usage"
)

// envChild is set in the process that TestKilled kills; its value is the folder of the store.
const envChild = "LEDGER_TEST_STORE"

// TestKilled: of a process that is killed between the start record and the final usage, one gap is left for a request
// of a client, and one for a worker's once its attempt is over. What had ended is as it was.
func TestKilled(t *testing.T) {
	if dir := os.Getenv(envChild); dir != "" {
		s := open(t)
		s.stop()
		s.dir = dir
		s.start()
		s.append("a", worker(1), begin(1), end(1, 1, 1), begin(2))
		if _, err := s.Start(t.Context(), usage.Observation{Namespace: "ns", AttemptID: "r", CounterID: "1", Model: "m"}); err != nil {
			t.Fatal(err)
		}
		fmt.Println("started")
		select {} // until it is killed
	}
	t.Parallel()
	s := open(t)
	s.stop()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilled$", "-test.v")
	child.Env = append(os.Environ(), envChild+"="+s.dir, "TMPDIR="+t.TempDir()) // it does not live to clean up
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ready := false
	for lines := bufio.NewScanner(out); !ready && lines.Scan(); {
		ready = lines.Text() == "started"
	}
	if err := child.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = child.Wait() // it was killed
	s.start()
	if !ready {
		t.Fatal("the process ended before it was killed")
	}
	s.clock.SetTime(noon.AddDate(0, 0, 1))
	done, gap := "a/1 1/1 call m completed 1 1 - - complete", "/r 1 call m started - - - - (missing final usage)"
	sorted(s, t, []string{done, gap, "a/1 2/1 call m started - - - -"})
	s.append("a", "TaskFailed") // the worker was killed, too
	s.restart(false)
	sorted(s, t, []string{done, gap, "a/1 2/1 call m started - - - - (missing final usage)"})
}
