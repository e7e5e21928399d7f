// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/worker/cgroup"
	"github.com/platform-ai/platform/test/kit"
)

// hidingScript puts a process into a control group of the run, as a worker does with a program. The process leaves its
// session, its parent, its environment and its folder, so nothing but the group says whose it is.
const hidingScript = `g=$(mktemp -d "GROUPS/platform-$PLATFORM_TASK_UID-$PLATFORM_TASK_ATTEMPT.XXXXXX")
(setsid env -i /bin/sh -c "echo \$\$ >$g/cgroup.procs; w=\$PWD; cd /; echo \$\$ >>\$w/pids; exec sleep 1000" &)
while [ ! -s pids ]; do sleep 0.01; done
`

// TestGroupsAreClearedAfterAKill: what a killed worker left in its control groups is ended with the run, by the server that
// started it and by the next one.
func TestGroupsAreClearedAfterAKill(t *testing.T) {
	groups, err := cgroup.Find()
	if err != nil {
		t.Skipf("no control groups can be made here: %v", err)
	}
	for name, reopened := range map[string]bool{"by the same server": false, "by the next server": true} {
		t.Run(name, func(t *testing.T) {
			script := strings.ReplaceAll(hidingScript, "GROUPS", groups) + "while :; do sleep 1000; done"
			f := newFixture(t, script, func(o *Options) { o.Sandbox.Groups = groups })
			run := newRunSpec()
			started := f.start(run)
			pids := f.pids(run, 1)
			if started.Phase != executor.Running || !alive(pids[0]) {
				t.Fatalf("%+v, process %v", started, pids)
			}
			rec, err := readRecord(f.Executor.dir(run.Ref))
			if err != nil {
				t.Fatal(err)
			}
			if reopened {
				f.close()
				_ = unix.Kill(rec.PID, unix.SIGKILL)
				waitGone(t, rec.PID)
				f.opts.Sandbox.Groups = "" // it has none itself, or others
				f.open()
				kit.Await(t, "end", func() bool { return f.get(run).Phase != executor.Running })
			} else {
				_ = unix.Kill(rec.PID, unix.SIGKILL)
				f.wait(run)
			}
			f.allDead(pids)
			if left, _ := filepath.Glob(filepath.Join(groups, "platform-"+string(run.UID)+"-*")); len(left) > 0 {
				t.Errorf("control groups are left: %v", left)
			}
		})
	}
}
