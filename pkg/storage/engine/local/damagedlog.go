// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"io"
	"slices"

	crdberrors "github.com/cockroachdb/errors"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// whole checks that what was acknowledged in a file is intact. It reads that part of the file.
func (c *continuity) whole(name string, log uint64, size int64) error {
	if size == 0 {
		return nil
	}
	n, err := intact(c.fs, c.fs.PathJoin(c.dir, name), log)
	if err != nil || n >= size {
		return err
	}
	c.lose(name, "the file %s is damaged after %d bytes; what the %d bytes behind them held was acknowledged", name, n, size-n)
	if log != 0 {
		c.damaged = append(c.damaged, log)
	}
	return nil
}

// cut makes a damaged log end before the damage. Later logs are not read either, because without what is lost between them the
// store would not be in the state of one revision. The originals are moved out of the way.
func (c *continuity) cut(log uint64, suffix string) error {
	aside := c.fs.PathJoin(c.dir, "lost-"+suffix)
	path, part := c.fs.PathJoin(c.dir, logName(log)), c.fs.PathJoin(c.dir, logName(log)+".tmp")
	n, err := intact(c.fs, path, log)
	if err != nil {
		return err
	}
	names, err := c.fs.List(c.dir)
	if err == nil {
		err = c.fs.MkdirAll(aside, 0o700)
	}
	if err == nil {
		err = copyPart(c.fs, path, part, n)
	}
	if err == nil {
		err = c.fs.Link(path, c.fs.PathJoin(aside, logName(log)))
	}
	for _, name := range names {
		if n, isLog := fileNumber(name, "", ".log"); isLog && n > log {
			err = errors.Join(err, c.fs.Rename(c.fs.PathJoin(c.dir, name), c.fs.PathJoin(aside, name)))
		}
	}
	if err = errors.Join(err, syncDir(c.fs, aside)); err != nil {
		return err
	}
	return errors.Join(c.fs.Rename(part, path), syncDir(c.fs, c.dir))
}

// copyPart makes a file of the first n bytes of another one.
func copyPart(fs vfs.FS, from, to string, n int64) error {
	src, err := fs.Open(from)
	if err != nil {
		return err
	}
	dst, err := fs.Create(to, vfs.WriteCategoryUnspecified)
	if err != nil {
		return errors.Join(err, src.Close())
	}
	_, err = io.Copy(dst, io.NewSectionReader(src, 0, n))
	return errors.Join(err, dst.Sync(), dst.Close(), src.Close())
}

// replaying notes the loss if Pebble found a log damaged, and reports whether it may be opened without what is lost.
func (c *continuity) replaying(err error, o *Options) (accepted bool, _ error) {
	if c.m == nil || !pebble.IsCorruptionError(err) {
		return false, err
	}
	var log uint64
	for _, detail := range crdberrors.GetAllDetails(err) {
		if _, scanErr := fmt.Sscanf(detail, "replaying wal %d,", &log); scanErr == nil {
			break
		}
	}
	if log == 0 || slices.Contains(c.cutLogs, log) {
		return false, err
	}
	n, readErr := intact(c.fs, c.fs.PathJoin(c.dir, logName(log)), log)
	if readErr != nil {
		return false, errors.Join(err, readErr)
	}
	c.lose(logName(log), "the file %s is damaged after %d bytes; it held what was acknowledged, and so do the logs after it", logName(log), n)
	c.damaged, c.cutLogs = []uint64{log}, append(c.cutLogs, log)
	if err := c.refused(o); err != nil {
		return false, err
	}
	return true, c.resolve(o)
}
