// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

const (
	// checkpointDir is the folder of the checkpoint. It is inside the store's folder so that hard links work.
	checkpointDir = "checkpoint"
	// checkpointTries is how often a copy is attempted. The live log is copied while it is being written.
	// If it is a recycled file, old records between new ones can be copied. Such a copy does not open, and
	// another one is made.
	checkpointTries = 3
	checkpointCache = 1 << 20
)

// checkpoint is a consistent copy of the store's files, for reading. The files together, in their own
// folder, form a store that Open can open. Its methods may be called concurrently.
type checkpoint struct {
	engine   *Engine
	revision uint64
	files    []engine.CheckpointFile
}

// Checkpoint makes a consistent copy of the store's files, using hard links where the file system supports
// them. The copy lasts until it is closed; a copy left by a crash is removed when the store is opened. It
// holds every write that was acknowledged before the call. Only one checkpoint may be open at a time: a
// second call returns engine.ErrCheckpoint.
//
// Every copy is opened once for reading before it is returned, so it is known to open. Writers are not held
// up.
func (e *Engine) Checkpoint(ctx context.Context) (_ engine.Checkpoint, err error) {
	if err := e.acquire(); err != nil {
		return nil, err
	}
	if !e.copying.CompareAndSwap(false, true) {
		e.release()
		return nil, engine.ErrCheckpoint
	}
	c := &checkpoint{engine: e}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("checkpoint: %w", err), c.Close())
		}
	}()
	if f := e.failure.Load(); f != nil {
		return nil, f.err()
	}
	if err := e.flush(ctx); err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		err := c.make()
		if err == nil {
			return c, nil
		}
		if try == checkpointTries || !errors.Is(err, errUnreadable) || ctx.Err() != nil {
			return nil, err
		}
		e.log.Info("A checkpoint cannot be opened; making another", "reason", err.Error())
		if err := c.remove(); err != nil {
			return nil, err
		}
	}
}

var errUnreadable = errors.New("the checkpoint cannot be opened")

// flush writes the memtable to a table, so that the checkpoint has a short log and takes little memory to
// open.
func (e *Engine) flush(ctx context.Context) error {
	var flushed <-chan struct{}
	if err := guard(func() (err error) { flushed, err = e.db.AsyncFlush(); return err }); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	select {
	case <-flushed:
		return nil
	case <-ctx.Done(): // on a full disk Pebble retries the flush forever
		return fmt.Errorf("flush: %w", ctx.Err())
	}
}

func (c *checkpoint) make() error {
	fs, dir := c.engine.opts.FS, c.dir()
	if err := guard(func() error { return c.engine.db.Checkpoint(dir, pebble.WithFlushedWAL()) }); err != nil {
		return err
	}
	if err := writeLayout(fs, dir); err != nil {
		return err
	}
	var err error
	if c.revision, err = c.open(); err != nil {
		return fmt.Errorf("%w: %w", errUnreadable, err)
	}
	names, err := fs.List(dir)
	if err != nil {
		return err
	}
	slices.Sort(names)
	c.files = nil
	for _, name := range names {
		if name == lockFile {
			continue
		}
		info, err := fs.Stat(fs.PathJoin(dir, name))
		if err != nil {
			return err
		}
		c.files = append(c.files, engine.CheckpointFile{Name: name, Size: info.Size()})
	}
	return nil
}

// open opens the copy without changing it and returns its revision.
func (c *checkpoint) open() (revision uint64, err error) {
	cache := pebble.NewCache(checkpointCache)
	defer cache.Unref()
	var db *pebble.DB
	err = guard(func() (err error) {
		db, err = pebble.Open(c.dir(), &pebble.Options{
			Cache: cache, FS: c.engine.opts.FS, ReadOnly: true, ErrorIfNotExists: true, Logger: checkpointLog{pebbleLog{c.engine}},
		})
		return err
	})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, guard(db.Close)) }()
	return readNumber(db, revisionKey, firstRevision)
}

// checkpointLog is the logger of a copy. A fatal error in a copy does not stop the store.
type checkpointLog struct{ pebbleLog }

func (checkpointLog) Fatalf(format string, args ...any) {
	panic(fmt.Errorf("%w: "+format, append([]any{errPebble}, args...)...))
}

// readNumber reads a number in the engine's own keyspace.
func readNumber(db *pebble.DB, key []byte, absent uint64) (n uint64, err error) {
	v, closer, err := db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return absent, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", key, err)
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	if len(v) != 8 {
		return 0, fmt.Errorf("read %s: %w", key, errCorruptNumber)
	}
	return binary.BigEndian.Uint64(v), nil
}

// Layout returns the constant Layout.
func (c *checkpoint) Layout() string { return Layout }

// Revision returns the revision of the last write in the copy.
func (c *checkpoint) Revision() uint64 { return c.revision }

// Files lists all files of the copy by name.
func (c *checkpoint) Files() []engine.CheckpointFile { return slices.Clone(c.files) }

// Open opens a file of the copy for reading.
func (c *checkpoint) Open(name string) (io.ReadCloser, error) {
	if !slices.ContainsFunc(c.files, func(f engine.CheckpointFile) bool { return f.Name == name }) {
		return nil, fmt.Errorf("checkpoint: file %q: %w", name, os.ErrNotExist)
	}
	fs := c.engine.opts.FS
	return fs.Open(fs.PathJoin(c.dir(), name), vfs.SequentialReadsOption)
}

// Close removes the copy. It is called once; the engine's Close waits for it.
func (c *checkpoint) Close() error {
	err := c.remove()
	c.engine.copying.Store(false)
	c.engine.release()
	return err
}

func (c *checkpoint) dir() string { return c.engine.opts.FS.PathJoin(c.engine.opts.Dir, checkpointDir) }

func (c *checkpoint) remove() error {
	if err := removeCheckpoint(c.engine.opts.FS, c.engine.opts.Dir); err != nil {
		return fmt.Errorf("remove the checkpoint: %w", err)
	}
	return nil
}

func removeCheckpoint(fs vfs.FS, dir string) error {
	return fs.RemoveAll(fs.PathJoin(dir, checkpointDir))
}
