// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/platform-ai/platform/pkg/durable"
	"github.com/platform-ai/platform/pkg/storage/archive"
	"github.com/platform-ai/platform/pkg/storage/engine"
)

const (
	// restoringFolder is where a store is prepared before it is moved into place. No server opens it.
	restoringFolder = "store.restoring"
	// rebaseBy exceeds what a server can have written after the backup: a hundred thousand writes a second for half a day.
	rebaseBy = 1 << 32

	filePerm   = 0o600
	folderPerm = 0o700
)

// ErrStoreExists refuses to restore over an existing store.
var ErrStoreExists = errors.New("there is a store already")

// Stores is what Restore needs of the engine whose stores are in folders of files. All fields are required.
type Stores struct {
	// Lock creates dir, into which the files of a store are to be put, and locks it as an open store does. Until the lock
	// is closed, another process gets engine.ErrLocked.
	Lock func(dir string) (io.Closer, error)
	// Open opens the store in dir. Restore reads all of it, so damage need not be reported in any other way than by the
	// engine.ErrDamaged that reading returns.
	Open func(ctx context.Context, dir string) (engine.Engine, error)
	// Forget removes, durably, what the engine has recorded beside the store of a data folder about what that store
	// must have. It succeeds if there is nothing.
	Forget func(dataDir string) error
	// Aside is the path to which Restore moves a store that is there, once the backup has proved to be whole. If it is empty,
	// Restore refuses a folder that has a store.
	Aside string
}

// Restored describes a restored store.
type Restored struct {
	archive.Manifest
	Contents
	// Dir is the folder of the store.
	Dir string
	// Base is the revision that the store continues from; see Rebase of engine.Committer.
	Base uint64
}

// Restore makes the store DIR/store from a backup. DIR is a server's data folder, which is created if
// needed. It refuses a folder that already has a store, unless Aside says where to put it. The store is moved into place only after everything
// was unpacked, synced, opened and read, and matched the manifest of the backup. Before that, and if the
// restore fails, the folder holds nothing that a server would open.
//
// Only one restore at a time can run on a folder; another returns engine.ErrLocked. The next restore
// removes the remains of one that was killed.
func Restore(ctx context.Context, r io.Reader, dataDir string, stores Stores) (_ *Restored, err error) {
	target := filepath.Join(dataDir, archive.StoreFolder)
	if err := absent(target); err != nil && (stores.Aside == "" || !errors.Is(err, ErrStoreExists)) {
		return nil, err
	}
	if err := os.MkdirAll(dataDir, folderPerm); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	temporary := filepath.Join(dataDir, restoringFolder)
	lock, err := stores.Lock(temporary)
	if err != nil {
		return nil, fmt.Errorf("restore in %s: %w", temporary, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary), lock.Close()) }()
	dir := filepath.Join(temporary, archive.StoreFolder)
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("what an earlier restore left: %w", err)
	}
	if err := os.Mkdir(dir, folderPerm); err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	m, err := unpack(ctx, r, dir)
	if err != nil {
		return nil, err
	}
	restored := &Restored{Manifest: *m, Dir: target}
	if restored.Contents, restored.Base, err = prove(ctx, dir, m.Revision, stores); err != nil {
		return nil, err
	}
	if err := makeRoom(dataDir, target, stores); err != nil {
		return nil, err
	}
	if err := os.Rename(dir, target); err != nil {
		return nil, fmt.Errorf("restore: %w", err)
	}
	return restored, durable.SyncFolder(dataDir)
}

// makeRoom moves the store that is there away, unless a server has it open; without Aside it requires that there is none, as a server
// may have started meanwhile. A record that is still there describes the store that was lost or is moved away. The next start makes a
// new one.
func makeRoom(dataDir, target string, stores Stores) error {
	err := absent(target)
	if err == nil {
		if err := stores.Forget(dataDir); err != nil {
			return fmt.Errorf("restore: %w", err)
		}
		return nil
	}
	if stores.Aside == "" || !errors.Is(err, ErrStoreExists) {
		return err
	}
	lock, err := stores.Lock(target)
	if err != nil {
		return fmt.Errorf("restore: the store in %s: %w", target, err)
	}
	if err = absent(stores.Aside); err == nil {
		err = stores.Forget(dataDir)
	}
	if err == nil {
		err = os.Rename(target, stores.Aside)
	}
	if err := errors.Join(err, lock.Close()); err != nil {
		return fmt.Errorf("restore: move the store in %s away: %w", target, err)
	}
	return nil
}

func absent(target string) error {
	_, err := os.Lstat(target)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	return fmt.Errorf("%w: move %s away first, and stop the server that uses it", ErrStoreExists, target)
}

// unpack writes the files of a backup into an empty folder, durably.
func unpack(ctx context.Context, r io.Reader, dir string) (*archive.Manifest, error) {
	m, err := archive.Read(ctx, r, func(f archive.File, content io.Reader) error {
		file, err := os.OpenFile(filepath.Join(dir, f.Name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, filePerm)
		if err != nil {
			return fmt.Errorf("restore: %w", err)
		}
		if _, err = io.Copy(file, content); err == nil {
			err = file.Sync()
		}
		if err := errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("restore: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m, durable.SyncFolder(dir)
}

// prove opens the store in dir, reads all of it, which checks the checksum of each block, and gives it a
// new base.
func prove(ctx context.Context, dir string, revision uint64, stores Stores) (c Contents, base uint64, err error) {
	e, err := stores.Open(ctx, dir)
	if err != nil {
		return c, 0, fmt.Errorf("restore: %w", err)
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if got := e.Revision(); got != revision {
		return c, 0, fmt.Errorf("%w: its store is at revision %d, its manifest says %d", archive.ErrInvalid, got, revision)
	}
	if c, err = count(ctx, e); err != nil {
		return c, 0, fmt.Errorf("read the restored store: %w", err)
	}
	if base, err = e.Rebase(rebaseBy); err != nil {
		return c, 0, fmt.Errorf("restore: %w", err)
	}
	return c, base, nil
}
