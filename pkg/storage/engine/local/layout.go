// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// Layout is the version of everything below the store's directory: keyspaces,
// their records, and the file format. The file LAYOUT holds it as one line.
const Layout = "platform-store/1"

const (
	layoutFile = "LAYOUT"
	lockFile   = "LOCK" // Pebble's name
	// pebbleFormat is pinned so that a newer Pebble does not upgrade the format of an existing store by
	// itself. Changing it requires a new Layout.
	pebbleFormat = pebble.FormatValueSeparation
)

// LayoutError reports that a directory does not hold a store of this version. Nothing in it was modified.
type LayoutError struct {
	// Have is the layout that the directory states, empty if it states none.
	Have string
	// Want is Layout.
	Want string
}

func (e *LayoutError) Error() string {
	if e.Have == "" {
		return fmt.Sprintf("engine: the directory is not empty and has no %s file, so it is not a store; use an empty directory", layoutFile)
	}
	return fmt.Sprintf("engine: the directory has layout %q, this program reads and writes %q only; "+
		"run the version that wrote it, or restore a back-up made by this one", e.Have, e.Want)
}

// claim checks the layout of the directory, locks it, and makes it a store if it is empty. It checks before it locks, because
// locking creates a file, and again afterwards, because another process may have been faster. The continuity that it
// returns has found what a store has lost.
func claim(o *Options) (_ *pebble.Lock, _ *continuity, err error) {
	fs, dir := o.FS, o.Dir
	fresh, err := checkLayout(fs, dir)
	if err != nil {
		return nil, nil, err
	}
	if fresh { // an empty directory may be the place where a volume should be mounted, so nothing is written there
		c, err := checkContinuity(o, true)
		if err != nil {
			return nil, nil, err
		}
		if err := errors.Join(c.refused(o), c.m.close()); err != nil {
			return nil, nil, err
		}
	}
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	lock, err := lockDir(fs, dir)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, lock.Close())
		}
	}()
	if fresh, err = checkLayout(fs, dir); err != nil {
		return nil, nil, err
	}
	c, err := checkContinuity(o, fresh)
	if err != nil {
		return nil, nil, err
	}
	if err = c.refused(o); err == nil && fresh {
		err = errors.Join(writeLayout(fs, dir), syncDir(fs, fs.PathDir(dir)))
	}
	if err != nil {
		return nil, nil, errors.Join(err, c.m.close())
	}
	return lock, c, nil
}

func isLocked(err error) bool {
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) ||
		strings.Contains(err.Error(), "lock held by current process")
}

// checkLayout reports whether dir is still empty. It returns a *LayoutError if dir holds anything but a
// store of this version.
func checkLayout(fs vfs.FS, dir string) (fresh bool, err error) {
	f, err := fs.Open(fs.PathJoin(dir, layoutFile))
	if err == nil {
		data, err := io.ReadAll(io.LimitReader(f, 256))
		if err := errors.Join(err, f.Close()); err != nil {
			return false, fmt.Errorf("read %s: %w", layoutFile, err)
		}
		if have := strings.TrimSpace(string(data)); have != Layout {
			return false, &LayoutError{Have: have, Want: Layout}
		}
		return false, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	names, err := fs.List(dir)
	if errors.Is(err, os.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	// An empty volume may hold lost+found. An interrupted Open leaves LOCK and the temporary file.
	harmless := []string{"lost+found", lockFile, layoutFile + ".tmp"}
	if i := slices.IndexFunc(names, func(n string) bool { return !slices.Contains(harmless, n) }); i >= 0 {
		return false, &LayoutError{Want: Layout}
	}
	return true, nil
}

// writeLayout makes dir a store, atomically and durably.
func writeLayout(fs vfs.FS, dir string) error {
	path := fs.PathJoin(dir, layoutFile)
	f, err := fs.Create(path+".tmp", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(Layout + "\n"))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", layoutFile, err)
	}
	if err := fs.Rename(path+".tmp", path); err != nil {
		return err
	}
	return syncDir(fs, dir)
}

func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Lock creates dir, into which files of a store are to be put, and locks it as Open does. Until the lock is
// closed, another process gets engine.ErrLocked.
func Lock(dir string) (io.Closer, error) {
	if err := vfs.Default.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return lockDir(vfs.Default, dir)
}

func lockDir(fs vfs.FS, dir string) (*pebble.Lock, error) {
	lock, err := pebble.LockDirectory(dir, fs)
	if err != nil && isLocked(err) {
		err = errors.Join(engine.ErrLocked, err)
	}
	return lock, err
}
