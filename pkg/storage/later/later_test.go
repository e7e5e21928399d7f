// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package later_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/later"
)

// disk is where things are stored while it has room.
type disk struct {
	room atomic.Bool
	got  []string
}

func (d *disk) store(what string) func() error {
	return func() error {
		if !d.room.Load() {
			return fmt.Errorf("no: %w", engine.ErrFull)
		}
		d.got = append(d.got, what)
		return nil
	}
}

// TestOrder: what finds no room is stored once, in its order, as soon as it is asked for or a pause has passed, and what fails for another
// reason does not hold up the others.
func TestOrder(t *testing.T) {
	for name, flush := range map[string]bool{"asked for": true, "after a pause": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, q := &disk{}, later.New(clock.RealClock{})
				var lost error
				failed := func(err error) { lost = err }
				for _, what := range []string{"a", "b"} {
					q.Do(klog.Background(), what, d.store(what), failed)
				}
				broken := errors.New("broken")
				tries := 0
				q.Do(klog.Background(), "broken", func() error {
					if tries++; tries == 1 {
						return engine.ErrFull
					}
					return broken
				}, failed)
				q.Do(klog.Background(), "c", d.store("c"), failed)
				if err := q.Flush(); !errors.Is(err, engine.ErrFull) || len(d.got) > 0 {
					t.Errorf("on the full disk: %v, %v", err, d.got)
				}
				d.room.Store(true)
				if flush {
					if err := q.Flush(); err != nil {
						t.Error(err)
					}
				} else {
					time.Sleep(time.Minute)
					synctest.Wait()
				}
				if got := strings.Join(d.got, " "); got != "a b c" || !errors.Is(lost, broken) || tries != 2 {
					t.Errorf("stored %s, lost %v after %d tries", got, lost, tries)
				}
				time.Sleep(time.Minute) // the tries end
				synctest.Wait()
				d.room.Store(false)
				q.Do(klog.Background(), "d", d.store("d"), failed)
				d.room.Store(true)
				time.Sleep(time.Minute)
				synctest.Wait()
				if got := strings.Join(d.got, " "); got != "a b c d" {
					t.Errorf("stored %s", got)
				}
			})
		})
	}
}
