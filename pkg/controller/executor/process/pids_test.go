// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"os/exec"
	"slices"
	"testing"
	"time"
)

func TestNotBegunAgain(t *testing.T) {
	t.Parallel()
	const load, large, small = "0.44 2.42 2.99 3/211 4711\n", "4194304\n", "32768\n"
	for _, c := range []struct {
		load, limit string
		pid         int
		age         time.Duration
		want        bool
	}{
		{load, large, 4711, 0, true},
		{load, large, 4000, time.Second, true},
		{load, large, 4712, 0, false},           // it has begun again
		{load, large, 4000, time.Minute, false}, // it may have gone through all of them
		{load, small, 4000, time.Second, false},
		{load, small, 4000, 10 * time.Millisecond, true},
		{load, large, 4000, -time.Second, false}, // two clocks
		{"", large, 4000, 0, false},              // not to be read
		{load, "", 4000, 0, false},
		{"0.44 2.42 2.99 3/211 x\n", large, 4, 0, false},
		{"0.44 2.42 2.99 3/211 4711\n", "x", 4, 0, false},
	} {
		if got := notBegunAgain([]byte(c.load), []byte(c.limit), c.pid, c.age); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// What the end of a run looks at has every process that began after the run's first, whether the others are left out by their pid
// or by their start.
func TestCandidates(t *testing.T) {
	t.Parallel()
	sleep := func() int {
		cmd := exec.Command("sleep", "60")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		return cmd.Process.Pid
	}
	leader := sleep()
	first, err := readStat(leader)
	if err != nil {
		t.Fatal(err)
	}
	later := sleep()
	for _, known := range []int{leader, 1 << 30} { // the second is higher than any pid, so all processes are looked at
		tree := &tree{leader: known, startTicks: first.startTicks}
		all, err := tree.candidates()
		if err != nil {
			t.Fatal(err)
		}
		for _, pid := range []int{leader, later} {
			if !slices.ContainsFunc(all, func(s stat) bool { return s.pid == pid }) {
				t.Errorf("leader %d: process %d is missing in %+v", known, pid, all)
			}
		}
		for _, s := range all {
			if s.startTicks < first.startTicks {
				t.Errorf("%+v is older than the run", s)
			}
		}
	}
}
