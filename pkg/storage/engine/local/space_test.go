// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
)

// sizedWrite is a write of a given size and Need.
type sizedWrite struct {
	key  string
	size int
	need engine.Need
}

func (w *sizedWrite) Need() engine.Need { return w.need }

func (w *sizedWrite) Sequence(b engine.Batch) error {
	b.Next()
	return b.Set([]byte("t"+w.key), make([]byte, w.size))
}

func (*sizedWrite) Publish() {}

const mib = 1 << 20

type volume struct {
	*localtest.Disk
	clock *clocktesting.FakePassiveClock
}

func (v *volume) open(t *testing.T) *local.Engine {
	t.Helper()
	e, err := local.Open(context.Background(), local.Options{Dir: localtest.Dir, FS: v.FS(), Clock: v.clock})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// has sets the free space in MiB, and advances the clock until the engine measures again.
func (v *volume) has(free uint64) {
	v.SetSpace(1024*mib, free*mib) // so the reserve is 128 MiB
	v.clock.SetTime(v.clock.Now().Add(time.Second))
}

// As the volume fills up, writes are refused in this order: Grow, Upkeep, Free. All are accepted again when
// there is room, without a restart, and the store counts as healthy meanwhile.
func TestReserve(t *testing.T) {
	v := &volume{localtest.NewDisk(), clocktesting.NewFakePassiveClock(time.Unix(1, 0))}
	v.has(1000)
	e := v.open(t)
	for _, step := range []struct {
		free   uint64
		needs  [3]bool // Grow, Upkeep, Free
		isFull bool
	}{
		{1000, [3]bool{true, true, true}, false},
		{129, [3]bool{true, true, true}, false},
		{127, [3]bool{false, true, true}, true},
		{63, [3]bool{false, false, true}, true},
		{3, [3]bool{false, false, false}, true},
		{65, [3]bool{false, true, true}, true},
		{200, [3]bool{true, true, true}, false},
	} {
		v.has(step.free)
		for need, want := range step.needs {
			err := e.Commit(&sizedWrite{key: "k", size: 10, need: engine.Need(need)})
			if (err == nil) != want || err != nil && !errors.Is(err, engine.ErrFull) {
				t.Errorf("%d MiB free, need %d: %v", step.free, need, err)
			}
		}
		if e.Full() != step.isFull || e.Healthy() != nil {
			t.Errorf("%d MiB free: full %v, %v", step.free, e.Full(), e.Healthy())
		}
		if _, ok, err := e.Get([]byte("tk")); !ok || err != nil {
			t.Errorf("%d MiB free: %v %v", step.free, ok, err)
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// A volume with room and few inodes is full, too.
func TestReserveOfInodes(t *testing.T) {
	v := &volume{localtest.NewDisk(), clocktesting.NewFakePassiveClock(time.Unix(1, 0))}
	v.has(1000)
	e := v.open(t)
	for _, step := range []struct {
		free, all int64
		needs     [3]bool // Grow, Upkeep, Free
	}{
		{0, 0, [3]bool{true, true, true}}, // not reported
		{100_000, 1 << 20, [3]bool{true, true, true}},
		{127, 1 << 20, [3]bool{false, true, true}},
		{63, 1 << 20, [3]bool{false, false, true}},
		{3, 1 << 20, [3]bool{false, false, false}},
		{13, 100, [3]bool{true, true, true}}, // an eighth is 12
		{11, 100, [3]bool{false, true, true}},
	} {
		v.SetInodes(step.free, step.all)
		v.has(1000)
		for need, want := range step.needs {
			err := e.Commit(&sizedWrite{key: "k", size: 10, need: engine.Need(need)})
			if (err == nil) != want || err != nil && (!errors.Is(err, engine.ErrFull) || !strings.Contains(err.Error(), fmt.Sprintf("%d more files", step.free))) {
				t.Errorf("%d inodes free, need %d: %v", step.free, need, err)
			}
		}
		if e.Full() == step.needs[0] || e.Healthy() != nil {
			t.Errorf("%d inodes free: full %v, %v", step.free, e.Full(), e.Healthy())
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// A burst of writes does not use up the reserve between two measurements of the volume.
func TestReserveUnderABurst(t *testing.T) {
	v := &volume{localtest.NewDisk(), clocktesting.NewFakePassiveClock(time.Unix(1, 0))}
	v.has(138) // 10 MiB above the reserve, which is room for 5 MiB in log and tables
	e := v.open(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	stored := 0
	for i := range 64 {
		wg.Go(func() {
			err := e.Commit(&sizedWrite{key: fmt.Sprint(i), size: mib})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				stored++
			} else if !errors.Is(err, engine.ErrFull) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if stored < 5 || stored > 7 {
		t.Errorf("%d MiB were stored", stored)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// A store opens on a full volume by removing its ballast, and makes a new ballast when there is room.
func TestBallast(t *testing.T) {
	v := &volume{localtest.NewDisk(), clocktesting.NewFakePassiveClock(time.Unix(1, 0))}
	v.has(1000)
	has := func() bool {
		_, err := v.FS().Stat(localtest.Dir + "/BALLAST")
		return err == nil
	}
	e := v.open(t)
	if err := e.Commit(&sizedWrite{key: "k", size: 10}); err != nil || !has() {
		t.Fatal(err, has())
	}
	for _, step := range []struct {
		free uint64
		want bool
	}{{100, true}, {1, false}, {150, false}, {1000, true}} {
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		v.has(step.free)
		e = v.open(t)
		if has() != step.want {
			t.Errorf("opened with %d MiB: ballast %v", step.free, has())
		}
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
