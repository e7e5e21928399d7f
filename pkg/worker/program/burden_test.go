// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package program

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/worker/sandbox"
	"github.com/platform-ai/platform/test/kit"
)

const mib = 1 << 20

// hoards are programs that take 240 MiB, of which no process has more than 80 MiB of data, print a line and wait.
var hoards = []struct {
	name, python, bash string
	root               bool // only root can see what it took
	disk               bool // it takes disk and no memory
}{
	{name: "many processes", python: `
for i in range(4):
    if os.fork() == 0:
        own = bytearray(b"x") * (60 << 20); os.write(2, b"."); time.sleep(1000)
while os.path.getsize("said") < 4: time.sleep(0.01)
`},
	{name: "shared memory", python: `
maps = [mmap.mmap(-1, 60 << 20) for i in range(4)]
for m in maps: m.write(b"x" * (60 << 20))
`},
	{name: "files in memory", python: `
files = [os.memfd_create("x") for i in range(4)]
for f in files:
    for i in range(60): os.write(f, b"x" * (1 << 20))
`},
	{name: "files in memory that are mapped alone", root: true, python: `
maps = []
for i in range(4):
    f = os.memfd_create("x")
    for j in range(60): os.write(f, b"x" * (1 << 20))
    maps.append(mmap.mmap(f, 4096)); os.close(f)
    for d in os.listdir("/proc/self/fd"):
        try:
            if "memfd:" in os.readlink("/proc/self/fd/" + d): os.close(int(d))
        except OSError: pass
`},
	{name: "shared memory that is not mapped any more", root: true, python: `
maps = [mmap.mmap(-1, 60 << 20) for i in range(4)]
for m in maps: m.write(b"x" * (60 << 20)); m.madvise(mmap.MADV_DONTNEED)
`},
	{name: "deleted files", disk: true, bash: `for i in 3 4 5 6; do eval "exec $i>f$i"; rm f$i; head -c 60M /dev/zero >&$i; done`},
	{name: "deleted files of a child that left", disk: true, bash: `setsid sh -c 'exec 3>f; rm f; head -c 240M /dev/zero >&3; echo . >&2; exec sleep 1000' & while [ ! -s said ]; do sleep 0.01; done`},
}

// arguments returns the command of a hoard.
func arguments(t *testing.T, python, bash string) []string {
	t.Helper()
	if python == "" {
		return []string{"/bin/bash", "-c", bash + "; echo ready; sleep 1000"}
	}
	const interpreter = "/usr/bin/python3"
	if _, err := os.Stat(interpreter); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return []string{interpreter, "-c", "import mmap, os, sys, time\n" + python + "\nprint('ready', flush=True); time.sleep(1000)"}
}

// TestBurden counts what programs take in ways that the limits of the kernel do not see.
func TestBurden(t *testing.T) { //nolint:paralleltest // each takes much memory
	for _, h := range hoards {
		t.Run(h.name, func(t *testing.T) {
			if h.root && os.Getuid() != 0 {
				t.Skip("only root sees it")
			}
			got := taken(t, arguments(t, h.python, h.bash))
			if h.disk && (got.disk < 240*mib || got.disk > 300*mib || got.memory > 100*mib) || !h.disk && (got.memory < 240*mib || got.memory > 360*mib || got.disk > 0) {
				t.Errorf("%d MiB of memory, %d MiB of disk", got.memory/mib, got.disk/mib)
			}
		})
	}
	// What is shared counts once, and what is cached of a file does not count.
	got := taken(t, arguments(t, `
own = bytearray(b"x") * (60 << 20)
for i in range(6):
    if os.fork() == 0:
        os.write(2, b"."); time.sleep(1000)
while os.path.getsize("said") < 6: time.sleep(0.01)
with open("f", "wb") as f: f.write(own)
f = open("f", "rb"); m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ); sum(m[::4096])
`, ""))
	if got.memory < 60*mib || got.memory > 150*mib || got.disk != 0 {
		t.Errorf("of what is shared: %d MiB of memory, %d MiB of disk", got.memory/mib, got.disk/mib)
	}
}

// taken starts a program and returns what it uses once it says that it is ready.
func taken(t *testing.T, args []string) burden {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.SysProcAttr = t.TempDir(), &syscall.SysProcAttr{Setsid: true}
	marker := "HOARD=" + rand.Text()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), marker}
	said, err := os.Create(cmd.Dir + "/said")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = said
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	of := &tree{leader: cmd.Process.Pid, marker: marker}
	defer func() {
		if err := of.kill(); err != nil {
			t.Error(err)
		}
		_ = cmd.Wait()
	}()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		text, _ := os.ReadFile(said.Name())
		t.Fatalf("%q, %v: %s", line, err, text)
	}
	got, err := of.burden()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestHoardsEnd: a program that takes more than its limits is ended with all that it started, in a sandbox, and the error names
// the limit.
func TestHoardsEnd(t *testing.T) { //nolint:paralleltest // each takes much memory
	for _, h := range hoards {
		t.Run(h.name, func(t *testing.T) {
			if h.root && os.Getuid() != 0 {
				t.Skip("only root sees it")
			}
			ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
			defer cancel()
			dir, marker := t.TempDir(), "HOARD="+rand.Text()
			var out bytes.Buffer
			said, err := os.Create(dir + "/said")
			if err != nil {
				t.Fatal(err)
			}
			_, err = Run(ctx, Command{
				Args: arguments(t, h.python, h.bash), Env: []string{"PATH=" + os.Getenv("PATH"), marker}, Dir: dir, Stdout: &out, Stderr: said, Sole: true,
				Policy: sandbox.Policy{Read: sandbox.System(), Write: []string{dir}}, Limits: sandbox.Limits{MemoryBytes: 128 * mib, DeletedBytes: 128 * mib}, Clock: clock.RealClock{},
			})
			text, _ := os.ReadFile(said.Name())
			switch {
			case errors.Is(err, sandbox.ErrUnavailable):
				t.Skip(err)
			case h.disk && !errors.Is(err, ErrDeleted), !h.disk && !errors.Is(err, ErrMemory):
				t.Errorf("%v: %q %s", err, out.String(), text)
			case !strings.Contains(err.Error(), "may "):
				t.Errorf("the error does not name the limit: %v", err)
			}
			if left := carrying(t, marker, dir); len(left) > 0 {
				t.Errorf("%d processes are left: %v", len(left), left)
			}
		})
	}
}
