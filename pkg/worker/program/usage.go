// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package program

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// burden is what processes use, in bytes.
type burden struct {
	// memory is resident or swapped out, without what files on disk are cached.
	memory uint64
	// disk is that of files that were deleted and are still open.
	disk uint64
}

// burden returns what the living processes of the tree use together. What several of them share counts once.
func (t *tree) burden() (burden, error) {
	members, err := t.members()
	if err != nil {
		return burden{}, err
	}
	var own, mapped, files, disk uint64
	seen := map[inode]bool{}
	for _, m := range members {
		a, s := memoryOf(m.pid)
		own, mapped = own+a, mapped+s
		deletedFiles(m.pid, func(id inode, size uint64, memory bool) {
			switch {
			case seen[id]:
			case memory:
				files += size
			default:
				disk += size
			}
			seen[id] = true
		})
	}
	// A file in memory that is both open and mapped is in both sums.
	return burden{memory: own + max(mapped, files), disk: disk}, nil
}

// memoryOf returns the memory of a process that is its own, and what it has mapped of files in memory. Memory that it shares with
// n processes counts as an n-th.
func memoryOf(pid int) (own, mapped uint64) {
	b, err := os.ReadFile(procPath(pid, "smaps_rollup"))
	if err != nil {
		return residentOf(pid), 0
	}
	for line := range bytes.Lines(b) {
		fields := bytes.Fields(line)
		if len(fields) != 3 {
			continue
		}
		kib, err := strconv.ParseUint(string(fields[1]), 10, 64)
		if err != nil {
			continue
		}
		switch string(fields[0]) {
		case "Pss_Anon:", "SwapPss:":
			own += kib << 10
		case "Pss_Shmem:":
			mapped += kib << 10
		}
	}
	return own, mapped
}

// residentOf returns the private memory of a process that hides how its memory is mapped.
func residentOf(pid int) uint64 {
	b, err := os.ReadFile(procPath(pid, "statm"))
	fields := strings.Fields(string(b))
	if err != nil || len(fields) < 3 {
		return 0
	}
	resident, err1 := strconv.ParseUint(fields[1], 10, 64)
	shared, err2 := strconv.ParseUint(fields[2], 10, 64)
	if err1 != nil || err2 != nil || shared > resident {
		return 0
	}
	return (resident - shared) * uint64(os.Getpagesize())
}

// inode identifies a file that has no name.
type inode struct{ device, number uint64 }

// deletedFiles calls f for each file without a name that a process has open, and for those that it has mapped, if this process
// may look at them, which takes privileges. memory says that the file is in memory.
func deletedFiles(pid int, f func(id inode, size uint64, memory bool)) {
	open := procPath(pid, "fd")
	names, _ := os.ReadDir(open) // a process that has ended has no files
	for _, n := range names {
		deletedFile(filepath.Join(open, n.Name()), f)
	}
	maps, err := os.Open(procPath(pid, "maps"))
	if err != nil {
		return
	}
	defer func() { _ = maps.Close() }()
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		if line := lines.Text(); strings.HasSuffix(line, " (deleted)") {
			at, _, _ := strings.Cut(line, " ")
			deletedFile(procPath(pid, filepath.Join("map_files", at)), f)
		}
	}
}

// deletedFile calls f if the path leads to a file without a name.
func deletedFile(path string, f func(id inode, size uint64, memory bool)) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink > 0 {
		return
	}
	var volume unix.Statfs_t
	memory := unix.Statfs(path, &volume) == nil && (volume.Type == unix.TMPFS_MAGIC || volume.Type == unix.HUGETLBFS_MAGIC)
	f(inode{st.Dev, st.Ino}, uint64(st.Blocks)*512, memory)
}
