// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/test/quickclock"
)

// When the clock is set, or the machine slept, all tasks are looked at within ten seconds, once; otherwise never.
func TestWallClockWakesTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		c, lists, fail := &quickclock.Ahead{}, 0, false
		one := types.NamespacedName{Namespace: "n", Name: "a"}
		var woken []types.NamespacedName
		w := wallClock{clock: c, list: func(context.Context) ([]types.NamespacedName, error) {
			if lists++; fail {
				return nil, errors.New("no")
			}
			return []types.NamespacedName{one}, nil
		}}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.watch(ctx, func(n types.NamespacedName) { woken = append(woken, n) })
		}()
		for _, step := range []struct {
			set   time.Duration
			fail  bool
			lists int
			woken int
		}{
			{0, false, 0, 0},
			{time.Second, false, 0, 0},       // the drift of a clock
			{75 * time.Second, false, 1, 1},  // a suspend
			{-30 * time.Second, false, 1, 1}, // set back
			{720 * time.Hour, true, 1, 0},
			{0, false, 1, 1}, // tried again
			{0, false, 0, 0},
		} {
			lists, woken, fail = 0, nil, step.fail
			c.By.Add(int64(step.set))
			time.Sleep(wallCheck)
			synctest.Wait()
			if lists != step.lists || len(woken) != step.woken || step.woken > 0 && !slices.Contains(woken, one) {
				t.Errorf("set by %v: listed %d times, woke %v", step.set, lists, woken)
			}
		}
		stop()
		<-ended
	})
}
