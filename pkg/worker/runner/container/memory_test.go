// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package container

import (
	"testing"
	"testing/fstest"
)

func TestOOMKills(t *testing.T) {
	file := func(name, text string) fstest.MapFS { return fstest.MapFS{name: {Data: []byte(text)}} }
	for _, tc := range []struct {
		cgroup fstest.MapFS
		want   uint64
	}{
		{file("memory.events", "low 0\nhigh 0\nmax 41\noom 3\noom_kill 2\noom_group_kill 0\n"), 2},
		{file("memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n"), 7},
		{file("memory/memory.oom_control", "oom_kill_disable 0\n"), 0},
		{file("memory.events", "oom_kill many\n"), 0},
		{fstest.MapFS{}, 0},
	} {
		if got := oomKills(tc.cgroup); got != tc.want {
			t.Errorf("%v: %d, want %d", tc.cgroup, got, tc.want)
		}
	}
}
