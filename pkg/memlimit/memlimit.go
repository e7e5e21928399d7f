// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memlimit limits the memory of a process to what its control group allows.
package memlimit

import (
	"context"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"

	"k8s.io/klog/v2"
)

// Set tells the garbage collector how much memory the process may use: 90 % of the limit of its control group, so that
// memory is given back before the kernel ends the process. GOMEMLIMIT takes precedence.
func Set(ctx context.Context) {
	if _, set := os.LookupEnv("GOMEMLIMIT"); set {
		return
	}
	limit := memoryOfGroup(os.DirFS("/"))
	if limit == 0 {
		return
	}
	limit = limit / 10 * 9
	debug.SetMemoryLimit(limit)
	klog.FromContext(ctx).V(1).Info("Limited the memory of this process to 90 % of that of its control group", "bytes", limit)
}

// memoryOfGroup returns the least limit of the control group of this process and of those above it, in bytes; 0 if there is none.
// It knows both versions of control groups.
func memoryOfGroup(root fs.FS) int64 {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	least := int64(math.MaxInt64)
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		base, file := "sys/fs/cgroup", "memory.max"
		switch parts[1] {
		case "": // version 2
		case "memory":
			base, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for dir := path.Clean("/" + parts[2]); ; dir = path.Dir(dir) {
			if n, ok := bytesIn(root, path.Join(base, dir, file)); ok {
				least = min(least, n)
			}
			if dir == "/" {
				break
			}
		}
	}
	if least >= 1<<60 { // version 1 states a number near the maximum if there is no limit
		return 0
	}
	return least
}

func bytesIn(root fs.FS, file string) (int64, bool) {
	content, err := fs.ReadFile(root, file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64) // "max" is none
	return n, err == nil && n > 0
}
