// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
)

// What a stop interrupts is no error once the stop has begun. Everything else is, before and after.
func TestStopIsNoError(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var lines []string
	log := newStopLog(ctx, funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})).WithName("controller").WithValues("task", "a")
	errs := []error{fmt.Errorf("status: %w", context.Canceled), errors.New("leader election lost"), errors.New("the disk is on fire")}
	for stopped, want := range [][]bool{{true, true, true}, {false, false, true}} {
		if lines = nil; stopped == 1 {
			stop()
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
