// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// in returns the names of the values that are in some bytes: as they are, or as a part of something in base64.
func in(data []byte, values map[string]string) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if slices.ContainsFunc(forms(values[name]), func(form []byte) bool { return bytes.Contains(data, form) }) {
			found = append(found, name)
		}
	}
	return found
}

// forms returns a value, and what base64 makes of it wherever it begins, without the characters that depend on its neighbours.
func forms(value string) [][]byte {
	all := [][]byte{[]byte(value)}
	for before := range 3 {
		encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + value))
		all = append(all, []byte(encoded[(before*8+5)/6:len(encoded)-1]))
	}
	return all
}

// longest is longer than each form of a value.
const longest = 256

// inMemory returns the names of the values that are in the memory of a process, which may have ended.
func inMemory(pid int, values map[string]string) []string {
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return nil
	}
	defer memory.Close()
	regions, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil
	}
	var found []string
	block := make([]byte, 1<<20)
	for line := range strings.Lines(string(regions)) {
		var from, to int64
		var rights string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &rights); err != nil || rights[0] != 'r' {
			continue
		}
		for at := from; at < to; at += int64(len(block)) - longest {
			n, err := memory.ReadAt(block[:min(int64(len(block)), to-at)], at)
			if err != nil && n == 0 {
				break // the kernel's own pages
			}
			found = append(found, in(block[:n], values)...)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// inProcFiles returns the names of the values that are in the environment or the arguments of a process.
func inProcFiles(pid int, values map[string]string) []string {
	var found []string
	for _, file := range []string{"environ", "cmdline"} {
		data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file)) // a process that has ended has neither
		found = append(found, in(data, values)...)
	}
	return found
}

// below returns the processes that a process has started, with all that these have.
func below(pid int) []int {
	parents := map[int]int{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
		id, err1 := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		parent, err2 := strconv.Atoi(fields[1])
		if err1 == nil && err2 == nil {
			parents[id] = parent
		}
	}
	var all []int
	for id := range parents {
		for up := parents[id]; up > 0; up = parents[up] {
			if up == pid {
				all = append(all, id)
				break
			}
		}
	}
	return all
}
