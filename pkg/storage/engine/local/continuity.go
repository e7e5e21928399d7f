// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	manifestPrefix = "MANIFEST-"
	optionsPrefix  = "OPTIONS-"
	// lostStore and lostRevisions are names of losses that are not files.
	lostStore     = "store"
	lostRevisions = "revisions"
)

// continuity compares a store with its mark.
type continuity struct {
	fs     vfs.FS
	dir    string
	m      *mark // nil if there is none
	losses []Loss
	// gone is set if nothing of the store can be opened.
	gone bool
	// damaged are the write-ahead logs of which only the beginning can be read. cutLogs were made to end there.
	damaged, cutLogs []uint64
	// reached is a revision that was published.
	reached uint64
}

func (c *continuity) lose(name, format string, args ...any) {
	c.losses = append(c.losses, Loss{Name: name, Text: fmt.Sprintf(format, args...)})
}

func (c *continuity) storeName() string {
	if c.m == nil {
		return lostStore
	}
	if id := c.m.current().Store; id != "" {
		return lostStore + ":" + id
	}
	return lostStore
}

// empty checks a directory that holds no store. keys are files that exist only where a store was made.
func (c *continuity) empty(keys []string) {
	if c.m != nil {
		c.gone = true
		s := c.m.current()
		c.lose(c.storeName(), "the folder is empty, but the store %s was kept here, up to revision %d. Is the volume mounted?", s.Store, s.Revision)
		return
	}
	for _, key := range keys {
		if _, err := c.fs.Stat(key); err == nil {
			c.gone = true
			c.lose(c.storeName(), "the folder is empty, but %s was made with a store. Is the volume mounted?", key)
			return
		}
	}
}

// files checks that the files that a store consists of exist. It opens none of them.
func (c *continuity) files() error {
	names, err := c.fs.List(c.dir)
	if err != nil {
		return err
	}
	desc, err := pebble.Peek(c.dir, c.fs)
	if err != nil {
		return err
	}
	if !desc.Exists {
		c.unmarked(names)
		return nil
	}
	manifest := c.fs.PathBase(desc.ManifestFilename)
	if !slices.Contains(names, manifest) {
		c.gone = true
		c.lose(manifest, "the file %s is missing, which lists all tables", manifest)
		return nil
	}
	if c.m == nil {
		return nil
	}
	if !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "marker.format-version.") }) {
		c.gone = true
		c.lose("marker.format-version", "the marker of the format is missing; it is an empty file: if nothing else is missing, make it with the name marker.format-version.000001.%s", pebbleFormat)
	}
	s, r := c.m.current(), c.m.reached.state
	switch n, _ := fileNumber(manifest, manifestPrefix, ""); {
	case n < s.Manifest:
		c.lose(manifestName(s.Manifest), "the file %s is missing; the store has an older one, %s", manifestName(s.Manifest), manifest)
	case n == s.Manifest && !c.least(manifest, s.ManifestBytes):
	case n == r.Manifest:
		if err := c.whole(manifest, 0, r.ManifestBytes); err != nil {
			return err
		}
	}
	// A version without marks does not record which logs it removed.
	if n, _ := fileNumber(c.fs.PathBase(desc.OptionsFilename), optionsPrefix, ""); n > s.Options {
		return nil
	}
	for _, l := range s.Logs {
		switch name := logName(l.Number); {
		case slices.Contains(names, name):
			if c.least(name, l.Bytes) && l.Number == r.Log {
				if err := c.whole(name, l.Number, r.LogBytes); err != nil {
					return err
				}
			}
		case l.From == 0 || !slices.Contains(names, logName(l.From)):
			c.lose(name, "the write-ahead log %s is missing, with the writes that were acknowledged last", name)
		}
	}
	return nil
}

// unmarked checks a store without the marker that names its manifest. A start that was interrupted while it made the store
// leaves a manifest at most.
func (c *continuity) unmarked(names []string) {
	data := slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, ".sst") || strings.HasSuffix(n, ".log") })
	if !data && c.m == nil {
		return
	}
	c.gone = true
	manifest, err := newest(c.fs, c.dir, manifestPrefix, "")
	if err != nil || manifest == 0 {
		c.lose("MANIFEST", "the manifest, which lists all tables, and its marker are missing")
		return
	}
	marker := "marker.manifest.000001." + manifestName(manifest)
	c.lose("marker.manifest", "the marker of the manifest is missing; it is an empty file: if nothing else is missing, make it with the name %s", marker)
}

// least checks that a file was not cut off.
func (c *continuity) least(name string, size int64) bool {
	info, err := c.fs.Stat(c.fs.PathJoin(c.dir, name))
	if err == nil && info.Size() < size {
		c.lose(name, "the file %s has %d bytes of %d", name, info.Size(), size)
		return false
	}
	return true
}

// opened checks an open store, of which the files are complete.
func (c *continuity) opened(id string, revision uint64) {
	if c.m == nil || c.gone {
		return
	}
	s := c.m.current()
	switch {
	case id != s.Store:
		c.lose(c.storeName(), "it is the store %s, and %s was kept here, up to revision %d", id, s.Store, s.Revision)
	case revision < max(s.Revision, c.reached) && len(c.losses) == 0:
		c.lose(lostRevisions, "it ends at revision %d, and %d was acknowledged", revision, max(s.Revision, c.reached))
	}
}

// refused returns an error if there is a loss that was not accepted.
func (c *continuity) refused(o *Options) error {
	if !slices.ContainsFunc(c.losses, func(l Loss) bool { return !slices.Contains(o.AcceptLoss, l.Name) }) {
		return nil
	}
	return &LossError{Dir: c.dir, Losses: c.losses}
}

// clear moves the remains of a store of which nothing can be opened out of the way.
func (c *continuity) clear(suffix string) error {
	names, err := c.fs.List(c.dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	aside := c.fs.PathJoin(c.dir, "lost-"+suffix)
	names = slices.DeleteFunc(names, func(n string) bool {
		return strings.HasPrefix(n, "lost") || slices.Contains([]string{lockFile, layoutFile, ballastFile}, n)
	})
	if len(names) == 0 {
		return nil
	}
	if err := c.fs.MkdirAll(aside, 0o700); err != nil {
		return err
	}
	for _, name := range names {
		if err := c.fs.Rename(c.fs.PathJoin(c.dir, name), c.fs.PathJoin(aside, name)); err != nil {
			return err
		}
	}
	return errors.Join(syncDir(c.fs, aside), syncDir(c.fs, c.dir))
}

// checkContinuity reads the mark and finds what the store has lost, as far as that shows before it is opened.
func checkContinuity(o *Options, fresh bool) (*continuity, error) {
	c := &continuity{fs: o.FS, dir: o.Dir}
	if o.Mark == "" {
		return c, nil
	}
	var err error
	if c.m, err = readMark(o.FS, o.Mark); err != nil {
		return nil, err
	}
	if c.m != nil {
		c.reached = c.m.reached.state.Revision
	}
	if fresh {
		c.empty(o.Keys)
	} else if err = c.files(); err != nil {
		return nil, errors.Join(err, c.m.close())
	}
	return c, nil
}

// resolve prepares a store for being opened without what it has lost.
func (c *continuity) resolve(o *Options) error {
	suffix := o.Clock.Now().UTC().Format("20060102-150405")
	if c.gone {
		return c.clear(suffix)
	}
	for _, log := range c.damaged {
		if err := c.cut(log, suffix); err != nil {
			return err
		}
	}
	c.damaged = nil
	return nil
}
