// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"crypto/rand"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"testing"
)

// envOf is set in the environment of what a test binary starts, to a value that no other test binary has. What those programs start
// inherits it, but for the workers of runs, which workOf finds.
const envOf = "PLATFORM_TEST_BINARY"

// janitor ends, once its standard input ends, the processes that have one of the lines it read there in their environment. It
// asks them first, and gives them 10 s, so that they can stop what they started themselves.
const janitor = `
marks=()
while IFS= read -r mark; do marks+=(-e "$mark"); done
found() { grep -lzsF "${marks[@]}" /proc/[0-9]*/environ | sed 's|^/proc/||; s|/environ$||'; }
kill $(found) 2>/dev/null
for _ in {1..100}; do [ -n "$(found)" ] || exit 0; sleep 0.1; done
while pids=$(found); [ -n "$pids" ]; do kill -KILL $pids || exit; sleep 0.1; done
`

// leftovers is what is told to the janitor of this test binary.
var leftovers struct {
	once sync.Once
	err  error
	mu   sync.Mutex // guards in
	in   io.Writer
	mark string
}

// ifKilled has the processes with a mark in their environment end when this test binary has ended, however it ends: a binary that runs
// out of time, or is interrupted, calls no clean-up. It returns the mark of the binary itself.
func ifKilled(t testing.TB, marks ...string) string {
	t.Helper()
	leftovers.once.Do(startJanitor)
	if leftovers.err != nil {
		t.Fatalf("the janitor: %v", leftovers.err)
	}
	leftovers.mu.Lock()
	defer leftovers.mu.Unlock()
	for _, mark := range marks {
		if _, err := fmt.Fprintln(leftovers.in, mark); err != nil {
			t.Fatalf("the janitor: %v", err)
		}
	}
	return leftovers.mark
}

func startJanitor() {
	leftovers.mark = fmt.Sprintf("%s=%s", envOf, rand.Text())
	cmd := exec.Command("bash", "-c", janitor)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // so that an interrupt from the terminal does not end it
	cmd.Dir = "/"
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = fmt.Fprintln(in, leftovers.mark)
	}
	leftovers.in, leftovers.err = in, err
}
