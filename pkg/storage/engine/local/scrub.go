// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
)

const (
	// scrubRate is how many bytes a second are verified, so that this takes little of the disk.
	scrubRate = 8 << 20
	// scrubEvery is the time between two verifications of the whole store.
	scrubEvery = 24 * time.Hour
	// scrubAfter is the time between the start and the first one.
	scrubAfter = 10 * time.Minute
)

// scrub verifies the checksums of all tables from time to time, so that damage is found while there is a backup without it.
func (e *Engine) scrub(ctx context.Context) {
	for pause := scrubAfter; sleep(ctx, pause); pause = scrubEvery {
		if err := e.Verify(ctx, scrubRate); err != nil && ctx.Err() == nil {
			e.log.Error(err, "Not all of the store could be verified")
		}
	}
}

// Verify reads every table of the store and compares its checksums, at about rate bytes a second; 0 is no limit. What is damaged is logged
// and counted, and Verify returns the first of these errors.
func (e *Engine) Verify(ctx context.Context, rate int64) (err error) {
	if err := e.acquire(); err != nil {
		return err
	}
	levels, err := e.db.SSTables()
	e.release()
	if err != nil {
		return err
	}
	for _, tables := range levels {
		for _, t := range tables {
			if rate > 0 && !sleep(ctx, time.Duration(t.Size)*time.Second/time.Duration(rate)) {
				return errors.Join(err, ctx.Err())
			}
			if ctx.Err() != nil {
				return errors.Join(err, ctx.Err())
			}
			path := e.opts.FS.PathJoin(e.opts.Dir, fmt.Sprintf("%s.sst", t.BackingSSTNum))
			switch broken := e.verify(ctx, path); {
			case errors.Is(broken, os.ErrNotExist): // compacted meanwhile
			case pebble.IsCorruptionError(broken):
				i := pebble.DataCorruptionInfo{Path: path, Details: broken}
				i.Bounds.Start, i.Bounds.End.Key = t.Smallest.UserKey, t.Largest.UserKey
				e.damage.note(i)
				if err == nil {
					err = readable(broken)
				}
			case broken != nil && err == nil:
				err = broken
			}
		}
	}
	return err
}

func (e *Engine) verify(ctx context.Context, path string) (err error) {
	if err := e.acquire(); err != nil {
		return err
	}
	defer e.release()
	f, err := e.opts.FS.Open(path)
	if err != nil {
		return err
	}
	content, err := sstable.NewSimpleReadable(f)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	r, err := sstable.NewReader(ctx, content, e.readerOptions)
	if err != nil {
		return errors.Join(err, content.Close())
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return r.ValidateBlockChecksums()
}

// sleep waits, and reports whether ctx goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d) //nolint:forbidigo // of a real disk
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
