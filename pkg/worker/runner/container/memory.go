// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package container

import (
	"bufio"
	"io/fs"
	"strconv"
	"strings"
)

// oomKills is how many processes of the container the kernel has killed because
// its memory was used up, by the container's cgroup of version 2 or 1; 0 where
// neither tells. Without it nobody tells of a command that was killed so: the
// container itself goes on while its worker lives.
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

// counter is the value of a line "name value".
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
