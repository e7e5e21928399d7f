// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package program

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Where the kernel counts the processes that it ended for lack of memory, relative to the root folder.
var (
	// containerKills are the files of the container, of control groups of version 2 and 1.
	containerKills = []string{"sys/fs/cgroup/memory.events", "sys/fs/cgroup/memory/memory.oom_control"}
	// machineKills is the file of the whole machine. It also counts what was ended in a group of its own.
	machineKills = []string{"proc/vmstat"}
)

// kills counts processes that the kernel ended for lack of memory. Nothing else shows that a program was ended this way: a
// container keeps running as long as its worker lives, and the signal alone may come from anybody.
type kills struct{ container, machine uint64 }

func killsNow() kills {
	root := os.DirFS("/")
	return kills{counted(root, containerKills), counted(root, machineKills)}
}

// lossMillis is the time between two looks at what the kernel ended.
const lossMillis = 250

// watchLosses begins to look at what the kernel ends for lack of memory in the container of the program, and kills the tree when it
// has ended a part of it: what is left would wait for that part, often forever. Where the kernel ends the container as a whole, as
// Kubernetes asks it to do with control groups of version 2, nothing is left that could look.
func (t *tree) watchLosses(c Command, before kills) (*watcher, error) {
	if !c.Container {
		return nil, nil //nolint:nilnil // nothing to do
	}
	return watch(func() (pause int, err error) {
		if counted(os.DirFS("/"), containerKills) == before.container {
			return lossMillis, nil
		}
		return 0, errors.Join(fmt.Errorf("%w: the kernel ended a part of it, because its container had no memory left", ErrMemory), t.kill())
	})
}

// explain reports whether a program ended for lack of memory, given what was counted before it began and after it
// ended. Of the container, any failure counts, because the program may have outlived a child; and its success does, too, if the
// container is there for the program alone, which then ends as a whole. The rest of the machine concerns the program only if SIGKILL
// ended it, or a child whose end a shell passed on.
func (before kills) explain(after kills, o Outcome, alone bool) bool {
	if (alone || o.ExitCode != 0) && after.container > before.container {
		return true
	}
	return after.machine > before.machine && o.ExitCode == 128+int(unix.SIGKILL)
}

// counted returns the counter of the first of these files that exists; 0 if there is none.
func counted(root fs.FS, names []string) uint64 {
	for _, name := range names {
		f, err := root.Open(name)
		if err != nil {
			continue
		}
		n := counter(bufio.NewScanner(f), "oom_kill")
		_ = f.Close()
		return n
	}
	return 0
}

// counter returns the value in a line of the form "name value".
func counter(lines *bufio.Scanner, name string) uint64 {
	for lines.Scan() {
		if key, value, ok := strings.Cut(lines.Text(), " "); ok && key == name {
			n, err := strconv.ParseUint(value, 10, 64)
			if err != nil {
				return 0
			}
			return n
		}
	}
	return 0
}
