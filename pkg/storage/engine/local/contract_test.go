// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/enginetest"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
)

// TestContract holds the engine to the contract of package engine.
func TestContract(t *testing.T) {
	enginetest.Run(t, func(*testing.T) enginetest.Place { return newPlace(localtest.NewDisk()) })
}

// The kit skips nothing.
var (
	_ enginetest.Damager = (*place)(nil)
	_ enginetest.Hanger  = (*place)(nil)
)

// place is a disk in memory.
type place struct {
	disk  *localtest.Disk
	clock *clocktesting.FakePassiveClock
}

func newPlace(d *localtest.Disk) *place {
	return &place{d, clocktesting.NewFakePassiveClock(time.Unix(1, 0))}
}

func (p *place) Open(fatal func(error)) (engine.Engine, error) {
	e, err := local.Open(context.Background(), local.Options{
		Dir: localtest.Dir, FS: p.disk.FS(), Mark: markFile, OnFatal: fatal, Clock: p.clock, MemTableBytes: 256 << 10,
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (p *place) Crash(seed uint64) enginetest.Place {
	return newPlace(p.disk.Crash(int(seed%4)*30, seed))
}

func (p *place) Fail() {
	p.disk.Fail(func(o localtest.Op) error {
		if o.Log() {
			return localtest.ErrInjected
		}
		return nil
	})
}

func (p *place) Leave(room enginetest.Room) {
	// The reserve of a GiB is 128 MiB: Upkeep needs half of it, and Free almost none.
	free := map[enginetest.Room]uint64{enginetest.Plenty: 1000, enginetest.ForUpkeep: 100, enginetest.ForFree: 50, enginetest.ForNothing: 2}[room]
	p.disk.SetSpace(1024*mib, free*mib)
	p.Pass(time.Second) // so the engine measures again
}

func (p *place) Pass(d time.Duration) { p.clock.SetTime(p.clock.Now().Add(d)) }

func (p *place) Hang() (resume func()) { return p.disk.Hang() }

func (p *place) Damage() error {
	_, err := flip(p.disk)
	return err
}

func (p *place) Restore(c engine.Checkpoint) (enginetest.Place, error) {
	d := localtest.NewDisk()
	if err := d.FS().MkdirAll(localtest.Dir, 0o700); err != nil {
		return nil, err
	}
	for _, f := range c.Files() {
		r, err := c.Open(f.Name)
		if err != nil {
			return nil, err
		}
		w, err := d.FS().Create(d.FS().PathJoin(localtest.Dir, f.Name), "restore")
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		_, err = io.Copy(w, r)
		if err := errors.Join(err, w.Sync(), w.Close(), r.Close()); err != nil {
			return nil, err
		}
	}
	return newPlace(d), nil
}
