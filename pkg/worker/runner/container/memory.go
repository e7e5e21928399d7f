// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package container

import (
	"bufio"
	"io/fs"
	"strconv"
	"strings"
)

// oomKills returns how many processes of the container the kernel has killed for lack of
// memory, according to the container's cgroup, version 2 or 1; 0 if neither reports it. Nothing
// else shows that a command was killed this way: the container keeps running as long as its
// worker lives.
func oomKills(cgroup fs.FS) uint64 {
	for _, name := range []string{"memory.events", "memory/memory.oom_control"} {
		f, err := cgroup.Open(name)
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
