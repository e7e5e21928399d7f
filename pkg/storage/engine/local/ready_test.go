// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
	"github.com/platform-ai/platform/test/kit"
)

// A disk that hangs makes the store unready after two seconds, whether or not something is written meanwhile, and counts once. The
// store stays healthy, and is ready when the disk answers.
func TestDiskThatHangs(t *testing.T) {
	for _, writing := range []bool{true, false} {
		disk, clock, registry := localtest.NewDisk(), clocktesting.NewFakePassiveClock(time.Unix(1000, 0)), prometheus.NewRegistry()
		e, err := local.Open(context.Background(), local.Options{Dir: localtest.Dir, FS: disk.FS(), Clock: clock, Mark: markFile, Registerer: registry})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Ready(); err != nil {
			t.Fatal(err)
		}
		resume, written := disk.Hang(), make(chan error, 1)
		if writing {
			go func() { written <- newLedger().write(e, "a") }()
		}
		kit.Await(t, "the store is not ready", func() bool {
			clock.SetTime(clock.Now().Add(time.Second)) // the hanging operation begins at some time
			err := e.Ready()
			return err != nil && strings.Contains(err.Error(), "the disk has not answered for 3 s")
		})
		for range 2 {
			if got := metric(t, registry, "platform_store_disk_slow_total"); got != 1 {
				t.Errorf("writing %v: counted %v times", writing, got)
			}
		}
		if got := metric(t, registry, "platform_store_disk_wait_seconds"); got < 3 {
			t.Errorf("writing %v: waits for %v s", writing, got)
		}
		if err := e.Healthy(); err != nil {
			t.Errorf("writing %v: %v", writing, err)
		}
		resume()
		if writing {
			if err := <-written; err != nil {
				t.Error(err)
			}
		}
		kit.Await(t, "the store is ready again", func() bool { return e.Ready() == nil })
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// set is a clock that was set forward by 30 days; the monotonic one is not.
type set struct {
	*clocktesting.FakePassiveClock
	by atomic.Int64
}

func (c *set) Now() time.Time { return c.FakePassiveClock.Now().Add(time.Duration(c.by.Load())) }

// A clock that is set forward while the disk works does not count as a disk that does not answer.
func TestDiskWhenTheClockIsSet(t *testing.T) {
	disk, registry := localtest.NewDisk(), prometheus.NewRegistry()
	clock := &set{FakePassiveClock: clocktesting.NewFakePassiveClock(time.Unix(1000, 0))}
	e, err := local.Open(t.Context(), local.Options{Dir: localtest.Dir, FS: disk.FS(), Clock: clock, Mark: markFile, Registerer: registry})
	if err != nil {
		t.Fatal(err)
	}
	resume, written := disk.Hang(), make(chan error, 1)
	go func() { written <- newLedger().write(e, "a") }()
	for metric(t, registry, "platform_store_disk_wait_seconds") == 0 { // until the write has begun and waits
		clock.SetTime(clock.FakePassiveClock.Now().Add(time.Millisecond))
	}
	clock.by.Store(int64(30 * 24 * time.Hour))
	if got := metric(t, registry, "platform_store_disk_wait_seconds"); got > 2 {
		t.Errorf("waits for %v s", got)
	}
	resume()
	if err := errors.Join(<-written, e.Ready()); err != nil {
		t.Error(err)
	}
	if got := metric(t, registry, "platform_store_disk_slow_total"); got != 0 {
		t.Errorf("counted %v times", got)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

func metric(t *testing.T, g prometheus.Gatherer, name string) float64 {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue() + f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}
