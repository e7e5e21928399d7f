// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

func newMarkedFS(o *Options, m *mark, e *Engine) *markedFS {
	f := &markedFS{dir: o.FS.PathDir(o.FS.PathJoin(o.Dir, layoutFile)), m: m, revision: e.Revision, logger: e.log}
	f.follow(m)
	return f
}

// fileSystem returns the file system as Pebble sees it.
func (e *Engine) fileSystem() vfs.FS {
	fs := e.space.wrap(e.opts.FS)
	if e.marked == nil {
		return fs
	}
	e.marked.FS = fs
	return e.marked
}

// continued compares the open store with its mark, records losses that were accepted, and brings the mark up to date.
func (e *Engine) continued(c *continuity) error {
	if e.marked == nil {
		return nil
	}
	c.opened(e.id, e.Revision())
	if err := c.refused(&e.opts); err != nil {
		return err
	}
	if len(c.losses) > 0 {
		if err := recordLoss(e, c); err != nil {
			return fmt.Errorf("record what was lost: %w", err)
		}
	}
	state := markState{Store: e.id, Revision: e.Revision()}
	var err error
	if state.Options, err = newest(e.opts.FS, e.marked.dir, optionsPrefix, ""); err != nil {
		return err
	}
	desc, err := pebble.Peek(e.opts.Dir, e.opts.FS)
	if err != nil {
		return err
	}
	state.Manifest, _ = fileNumber(e.opts.FS.PathBase(desc.ManifestFilename), manifestPrefix, "")
	err = e.marked.settle(e.opts.Mark, state)
	if c.m == nil && errors.Is(err, syscall.ENOSPC) {
		e.log.Error(err, "The disk is full, so it is not recorded which files the store must have; the next start does that")
	} else if err != nil {
		return err
	}
	return reportLosses(e)
}

// shut closes the database, and records what it holds.
func (e *Engine) shut() error {
	if err := e.db.Close(); err != nil || e.marked == nil {
		return err
	}
	return errors.Join(e.marked.finish(), e.marked.close())
}
