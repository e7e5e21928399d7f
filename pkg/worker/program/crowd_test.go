// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package program

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/worker/cgroup"
	"github.com/platform-ai/platform/pkg/worker/sandbox"
	"github.com/platform-ai/platform/test/kit"
)

// TestForkBombs: a program that forks on and on is ended, with all that it started, however it starts them. The bombs are slow and
// have ten generations at most, so that the machine survives them if nothing stops them.
func TestForkBombs(t *testing.T) { //nolint:paralleltest // they fill the machine
	kit.Needs(t, kit.Minutes)
	const most = 150
	const function = `bomb() { sleep 0.05; if [ $1 -lt 9 ]; then bomb $(($1+1)) & bomb $(($1+1)) & fi; sleep 1000; }; `
	const python = `python=$(ls /usr/bin/python3 2>/dev/null) && exec $python -c 'import threading, time; [threading.Thread(target=time.sleep, args=(1000,)).start() for _ in range(300)]'; `
	script := func(start string) string {
		return `echo 'sleep 0.05; n=$(($1+1)); if [ $n -lt 10 ]; then ` + start + ` fi; sleep 1000' > bomb; `
	}
	groups, err := cgroup.Find()
	if err != nil {
		t.Logf("without control groups: %v", err)
	}
	bombs := map[string]string{
		"in one group":        function + "bomb 0",
		"a session for each":  script(`setsid sh "$0" $n & setsid sh "$0" $n &`) + "exec sh bomb 0",
		"nobody waits":        script(`(sh "$0" $n &); (sh "$0" $n &);`) + "sh bomb 0 & exit",
		"without environment": script(`(setsid env -i /bin/sh "$0" $n &); (setsid env -i /bin/sh "$0" $n &);`) + "sh bomb 0; sleep 1000",
		"threads":             python + function + "bomb 0",
	}
	for name, line := range bombs {
		for _, dir := range slices.Compact([]string{"", groups}) {
			t.Run(fmt.Sprintf("%s, %s", name, LimitedBy(cgroup.Place{Dir: dir})), func(t *testing.T) {
				explode(t, line, cgroup.PlaceOf(dir, "bomb-"+strconv.Itoa(os.Getpid()), 1), most, name == "nobody waits")
			})
		}
	}
}

// explode runs a bomb, which must be stopped. The leader of a brief one may end before the bomb is seen.
func explode(t *testing.T, line string, groups cgroup.Place, most uint64, brief bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
	defer cancel()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	stderr := &heard{}
	if groups.Dir != "" { // it can do no harm, so nothing ends it before its time: it is stopped once the kernel has refused
		stderr.enough = func() {
			if refused(stderr.text.String()) {
				stop()
			}
		}
	}
	dir, marker := t.TempDir(), "BOMB="+rand.Text()
	_, err := Run(ctx, Command{
		Args: []string{"bash", "-c", line}, Env: []string{"PATH=" + os.Getenv("PATH"), marker}, Dir: dir, Stderr: stderr, Sole: true,
		Policy: sandbox.Policy{Read: sandbox.System(), Write: []string{dir}, Groups: groups}, Limits: sandbox.Limits{Processes: most}, Clock: clock.RealClock{},
	})
	stopped := (kernelCounts() || groups.Dir != "") && refused(stderr.text.String()) || errors.Is(err, ErrCrowded)
	if !stopped && !brief {
		t.Errorf("it was not stopped: %v\n%.500s", err, stderr.text.String())
	}
	if left := carrying(t, marker, dir); len(left) > 0 {
		t.Errorf("%d processes are left: %v", len(left), left)
	}
	if left, _ := filepath.Glob(filepath.Join(groups.Dir, groups.Run+".*")); groups.Dir != "" && len(left) > 0 {
		t.Errorf("control groups are left: %v", left)
	}
}

// refused reports whether a bomb says that it got no more processes.
func refused(said string) bool {
	return strings.Contains(said, "fork") || strings.Contains(said, "start new thread")
}

// heard is the standard error of a program. It looks at it after each part.
type heard struct {
	text   bytes.Buffer
	enough func()
}

func (h *heard) Write(p []byte) (int, error) {
	n, err := h.text.Write(p)
	if h.enough != nil {
		h.enough()
	}
	return n, err
}

// carrying returns the living processes with a variable, or that work in a folder.
func carrying(t *testing.T, variable, dir string) (pids []int) {
	t.Helper()
	all, err := allProcesses()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		env, _ := os.ReadFile(procPath(p.pid, "environ"))
		cwd, _ := os.Readlink(procPath(p.pid, "cwd"))
		if !p.dead && (bytes.Contains(env, []byte(variable)) || filepath.Clean(cwd) == dir) {
			pids = append(pids, p.pid)
		}
	}
	return pids
}

// TestFirstToGo: a program and its children are ended before others if memory is short.
func TestFirstToGo(t *testing.T) {
	var out bytes.Buffer
	dir := t.TempDir()
	_, err := Run(t.Context(), Command{
		Args: []string{"sh", "-c", "cat /proc/self/oom_score_adj"}, Env: []string{"PATH=" + os.Getenv("PATH")}, Dir: dir, Stdout: &out,
		Policy: sandbox.Policy{Read: sandbox.System(), Write: []string{dir}, Off: true}, Clock: clock.RealClock{},
	})
	if err != nil || strings.TrimSpace(out.String()) != "1000" {
		t.Errorf("%q, %v", out.String(), err)
	}
}
