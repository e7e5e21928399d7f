// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlogtest

import (
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

func step(d *Driver, c Command) (string, error) {
	by, err := time.ParseDuration(c.word())
	if err != nil {
		return "", err
	}
	d.clock.Step(by)
	return "", nil
}

func purge(d *Driver, c Command) (string, error) {
	n, err := d.log.Purge(d.t.Context())
	if err != nil {
		return said(err), nil
	}
	if c.Has("uncounted") {
		return fmt.Sprintf("floor %d\n", d.log.Floor()), nil
	}
	return fmt.Sprintf("purged %d, floor %d\n", n, d.log.Floor()), nil
}

func floor(d *Driver, _ Command) (string, error) {
	return fmt.Sprintf("floor %d of %d\n", d.log.Floor(), d.log.Revision()), nil
}

func options(d *Driver, c Command) (string, error) {
	number := func(key string) int {
		n, err := strconv.Atoi(c.Get(key, "0"))
		if err != nil {
			return 0
		}
		return n
	}
	d.opts = eventlog.Options{
		PurgeInterval: -1, WatchQueue: number("queue"), MaxWatchLag: int64(number("lag")),
		CachedStreams: number("cache"), ScanBudget: number("budget"),
	}
	if w := c.Get("window", ""); w != "" {
		window, err := time.ParseDuration(w)
		if err != nil {
			return "", err
		}
		d.opts.HistoryWindow = window
	}
	return reopen(d, c)
}

func reopen(d *Driver, _ Command) (string, error) {
	if err := d.close(); err != nil {
		return "", err
	}
	return "", d.open()
}

func crash(d *Driver, c Command) (string, error) {
	unsynced, err := strconv.Atoi(c.Get("unsynced", "0"))
	if err != nil {
		return "", err
	}
	seed, err := strconv.ParseUint(c.Get("seed", "1"), 10, 64)
	if err != nil {
		return "", err
	}
	after := d.disk.Crash(unsynced, seed)
	if err := d.close(); err != nil && d.fatal.Load() == nil && !d.faulty {
		return "", err
	}
	d.faulty = false
	failed := d.fatal.Swap(nil) != nil
	d.disk = after
	if err := d.open(); err != nil {
		return "", err
	}
	if failed {
		return "", d.settle()
	}
	return "", nil
}

// settle finds out whether the changes whose commands failed with an unknown outcome were kept or not.
func (d *Driver) settle() error {
	unsure := d.unsure
	d.unsure = nil
	for _, s := range unsure {
		if d.model.streams[s.UID] != nil {
			continue
		}
		p, err := d.log.TaskPage(d.t.Context(), s, 0, 100, nil)
		if err != nil {
			return err
		}
		if err := d.model.add(s, p.Events); err != nil {
			return err
		}
	}
	for _, s := range d.model.streams {
		if s.deleted {
			continue
		}
		p, err := d.log.TaskPage(d.t.Context(), s.Stream, int64(len(s.events)), 100, nil)
		if errors.Is(err, eventlog.ErrDeleted) {
			d.model.remove(s, d.log.Revision()-s.kept()+1)
			continue
		}
		if err != nil {
			return err
		}
		if err := d.model.add(s.Stream, p.Events); err != nil {
			return err
		}
		d.model.trim(s, p.Head.Oldest, d.log.Revision())
	}
	return nil
}

// fault makes the next sync of the journal fail, and everything after it.
func fault(d *Driver, _ Command) (string, error) {
	var failing atomic.Bool
	d.faulty = true
	d.disk.Fail(func(op localtest.Op) error {
		if op.Log() && op.Kind == localtest.Sync {
			failing.Store(true)
		}
		if failing.Load() {
			return localtest.ErrInjected
		}
		return nil
	})
	return "", nil
}
