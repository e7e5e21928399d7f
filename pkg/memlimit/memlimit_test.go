// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package memlimit

import (
	"testing"
	"testing/fstest"
)

// The least limit of the own group and of those above it counts, in both versions of control groups.
func TestMemoryOfGroup(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"none":         {map[string]string{}, 0},
		"unlimited":    {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 0},
		"container":    {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1073741824\n"}, 1 << 30},
		"parent":       {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "4096\n"}, 4096},
		"least":        {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "8192\n", "sys/fs/cgroup/a/memory.max": "4096\n"}, 4096},
		"version 1":    {map[string]string{"proc/self/cgroup": "9:cpu:/x\n4:memory:/a\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "4096\n"}, 4096},
		"1, unlimited": {map[string]string{"proc/self/cgroup": "4:memory:/a\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		"elsewhere":    {map[string]string{"proc/self/cgroup": "0::/../outside\n", "sys/fs/cgroup/memory.max": "4096\n"}, 4096},
	} {
		root := fstest.MapFS{}
		for path, content := range c.files {
			root[path] = &fstest.MapFile{Data: []byte(content)}
		}
		if got := memoryOfGroup(root); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
