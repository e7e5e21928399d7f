// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2"
	"github.com/go-logr/logr"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// damage remembers the tables in which a checksum did not match. Everything else is served.
type damage struct {
	log logr.Logger

	mu    sync.Mutex
	files map[string]struct{}
}

// note logs a damaged table once.
func (d *damage) note(i pebble.DataCorruptionInfo) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.files[i.Path]; known {
		return
	}
	if d.files == nil {
		d.files = map[string]struct{}{}
	}
	d.files[i.Path] = struct{}{}
	d.log.Error(i.Details, "A file of the store is damaged: some of the keys in the range cannot be read. Everything else is served. Check the disk, and restore a backup",
		"file", i.Path, "from", fmt.Sprintf("%q", i.Bounds.Start), "to", fmt.Sprintf("%q", i.Bounds.End.Key))
}

func (d *damage) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.files)
}

// readable makes an error of reading say what is damaged and what to do.
func readable(err error) error {
	if err == nil || !pebble.IsCorruptionError(err) {
		return err
	}
	where := "a file"
	if i := pebble.ExtractDataCorruptionInfo(err); i != nil {
		where = fmt.Sprintf("the file %s, with keys from %q to %q,", filepath.Base(i.Path), i.Bounds.Start, i.Bounds.End.Key)
	}
	return &damagedError{where, err}
}

type damagedError struct {
	where string
	cause error
}

func (e *damagedError) Error() string {
	cause, _, _ := strings.Cut(e.cause.Error(), "\n") // the rest is for programs
	return fmt.Sprintf("%v: %s has a wrong checksum; restore a backup with the restore command: %s", engine.ErrDamaged, e.where, cause)
}

func (e *damagedError) Unwrap() error { return e.cause }

// Is makes every such error an engine.ErrDamaged.
func (e *damagedError) Is(target error) bool { return target == engine.ErrDamaged }

// corrupted reports whether background work failed because of a damaged table, which a restart does not mend.
func corrupted(err error) bool {
	return pebble.IsCorruptionError(err) || errors.Is(err, engine.ErrDamaged)
}
