// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
)

// A store that needs space or descriptors to open waits for them, with growing pauses, and then opens with all that was acknowledged.
// The pauses are real, a third of a second in all, because others wait on a lock meanwhile, which testing/synctest cannot see through.
// No result depends on how long they last.
func TestOpenWaits(t *testing.T) {
	for _, c := range []struct {
		errno syscall.Errno
		where string
	}{{syscall.ENOSPC, ".sst"}, {syscall.ENOSPC, "LOCK"}, {syscall.EMFILE, ".sst"}, {syscall.EMFILE, "LOCK"}, {syscall.ENFILE, ".dbtmp"}} {
		t.Run(fmt.Sprint(c.errno, c.where), func(t *testing.T) {
			t.Parallel()
			disk, _, acked := killed(t)
			var tries atomic.Int64
			var pauses []time.Duration
			disk.Fail(func(o localtest.Op) error {
				if strings.Contains(o.Path, c.where) && tries.Add(1) <= 3 {
					return c.errno
				}
				return nil
			})
			e, err := local.Open(context.Background(), local.Options{
				Dir: localtest.Dir, FS: disk.FS(), Mark: markFile, Waiting: func(cause error, pause time.Duration) {
					if !errors.Is(cause, c.errno) {
						t.Errorf("waits for %v", cause)
					}
					pauses = append(pauses, pause)
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := count(t, e); got != len(acked) {
				t.Errorf("%d of %d writes", got, len(acked))
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			if want := []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond}; fmt.Sprint(pauses) != fmt.Sprint(want) {
				t.Errorf("paused for %v, want %v", pauses, want)
			}
		})
	}
}

// An opening that waits ends when it is told to. What goes on in the background leaves the store as it was.
func TestOpenIsGivenUp(t *testing.T) {
	disk, _, acked := killed(t)
	disk.Fail(func(o localtest.Op) error {
		if strings.HasSuffix(o.Path, ".sst") {
			return syscall.ENOSPC
		}
		return nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	_, err := local.Open(ctx, local.Options{Dir: localtest.Dir, FS: disk.FS(), Mark: markFile, Waiting: func(error, time.Duration) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	crashed := disk.Crash(50, 1)
	disk.Fail(nil)
	unlocked(t, disk)
	holds(t, crashed, acked, len(acked))
}
