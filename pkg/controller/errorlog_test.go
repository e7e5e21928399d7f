// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/sparse"
)

// What a stop interrupts is no error once the stop has begun. Everything else is, before and after.
func TestStopIsNoError(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var lines []string
	c := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	log := newErrorLog(ctx, funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}), sparse.New(c)).WithName("controller").WithValues("task", "a")
	errs := []error{fmt.Errorf("status: %w", context.Canceled), errors.New("leader election lost"), errors.New("the disk is on fire")}
	for stopped, want := range [][]bool{{true, true, true}, {false, false, true}} {
		if lines = nil; stopped == 1 {
			stop()
			c.SetTime(c.Now().Add(sparse.Interval))
		}
		for _, err := range errs {
			log.Error(err, "Reconciler error")
		}
		for i, line := range lines {
			if !strings.Contains(line, errs[i].Error()) || !strings.Contains(line, `"task"="a"`) {
				t.Errorf("line %s", line)
			}
			if got := !strings.Contains(line, `"level"=0`); got != want[i] {
				t.Errorf("stopped %d: an error %v, want %v: %s", stopped, got, want[i], line)
			}
		}
	}
}

// In an outage every object of every controller fails again and again: one line a cause and interval says so, with how many it stands
// for.
func TestOutageIsOneLine(t *testing.T) {
	var lines []string
	c := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	log := newErrorLog(t.Context(), funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}), sparse.New(c))
	for range 2 {
		for n := range 1000 {
			log.WithValues("task", n).Error(fmt.Errorf("Get \"https://10.0.0.1:443/tasks/%d\": dial tcp 10.0.0.1:443: connect: connection refused", n), "Reconciler error")
			log.Error(fmt.Errorf("task %d: the disk is on fire", n), "Reconciler error")
		}
		c.SetTime(c.Now().Add(sparse.Interval))
	}
	if len(lines) != 4 || !strings.Contains(lines[3], "on fire") || !strings.Contains(lines[3], `"alsoDropped"=999`) {
		t.Errorf("%d lines: %.300q", len(lines), lines)
	}
}
