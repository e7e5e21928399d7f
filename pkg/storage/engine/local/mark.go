// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// MarkFile is the name of the mark in the data folder of a server.
const MarkFile = "store.mark"

const (
	markFormat = "platform-store-mark/1"
	// markSlot is the size of a slot. It is a block of the file system, so a torn write damages one slot only.
	markSlot = 4096
	// markLogs bounds the logs of a mark. Pebble stops writes before it has so many.
	markLogs = 64
)

// markState is what a store was known to hold durably at some moment.
type markState struct {
	// Generation counts the writes of the file; the slot with the higher one is valid.
	Generation uint64 `json:"generation"`
	// Store is the identity.
	Store string `json:"store"`
	// Revision was durable and published.
	Revision uint64 `json:"revision"`
	// Logs are the write-ahead logs whose content is not known to be in tables.
	Logs []markLog `json:"logs"`
	// Manifest is the number of the manifest, and ManifestBytes its size after a clean shutdown, otherwise 0.
	Manifest      uint64 `json:"manifest"`
	ManifestBytes int64  `json:"manifestBytes,omitempty"`
	// Options is the number of the newest OPTIONS file. Each program that opens a store writes a new one, so a higher number
	// means that a version without marks has had the store open.
	Options uint64 `json:"options"`
}

// markLog is a write-ahead log that must exist.
type markLog struct {
	Number uint64 `json:"number"`
	// From is the number of the log that this one is made of by renaming it; 0 if it is a new file. The one or the other exists.
	From uint64 `json:"from,omitempty"`
	// Bytes is the least size of the file. It is known after a clean shutdown.
	Bytes int64 `json:"bytes,omitempty"`
}

// mark is a small file outside the store's directory that records which files and revisions the store must have. A store
// that is missing some of them is then refused, instead of being opened without what they held.
//
// The file has two slots, which are overwritten in turn and in place. So a write needs no free space, is one sync, and
// leaves the state before it intact if it is torn. It is written when a log begins, before a log is removed, and when a store
// is opened or closed, and never in a commit. Two more slots are written in each commit; see reached.
type mark struct {
	fs      vfs.FS
	path    string
	reached *reached

	mu    sync.Mutex
	file  vfs.File
	state markState
}

// readMark opens the file. A nil mark means that there is none.
func readMark(fs vfs.FS, path string) (*mark, error) {
	if _, err := fs.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	f, err := fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.NewSectionReader(f, 0, 4*markSlot))
	m := &mark{fs: fs, path: path, file: f, reached: &reached{file: f, dirty: make(chan struct{}, 1)}}
	for slot := range slices.Chunk(content, markSlot) {
		var s markState
		if decodeSlot(slot, markFormat, &s) && s.Generation > m.state.Generation {
			m.state = s
		}
		var r reachedState
		if decodeSlot(slot, reachedFormat, &r) && r.Generation > m.reached.state.Generation {
			m.reached.state = r
		}
	}
	if err == nil && m.state.Generation == 0 {
		err = errors.New("it holds no valid record; if the store beside it is complete, remove the file, and it is made again")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", path, err), f.Close())
	}
	return m, nil
}

// decodeSlot reads a slot into state, and reports whether it is a whole record of that format.
func decodeSlot(slot []byte, format string, state any) bool {
	line, _, _ := bytes.Cut(slot, []byte("\n"))
	var is string
	var sum uint32
	if _, err := fmt.Fscanf(bytes.NewReader(line), "%s %08x", &is, &sum); err != nil || is != format {
		return false
	}
	parts := bytes.SplitN(line, []byte(" "), 3)
	return len(parts) == 3 && crc32.ChecksumIEEE(parts[2]) == sum && json.Unmarshal(parts[2], state) == nil
}

func encodeSlot(format string, state any) ([]byte, error) {
	content, err := json.Marshal(state)
	if err != nil {
		return nil, err
	}
	line := fmt.Appendf(nil, "%s %08x %s\n", format, crc32.ChecksumIEEE(content), content)
	if len(line) > markSlot {
		return nil, fmt.Errorf("the mark of the store needs %d bytes, and has %d", len(line), markSlot)
	}
	return line, nil
}

// encodeMark fills a slot.
func encodeMark(s *markState) ([]byte, error) {
	line, err := encodeSlot(markFormat, s)
	if err != nil {
		return nil, err
	}
	return append(line, bytes.Repeat([]byte("\n"), markSlot-len(line))...), nil
}

// createMark makes the file, with the state in both slots. A file that exists is replaced.
func createMark(fs vfs.FS, path string, s markState) (_ *mark, err error) {
	s.Generation = 1
	slot, err := encodeMark(&s)
	if err != nil {
		return nil, err
	}
	f, err := fs.Create(path+".tmp", vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(append(slot, slot...))
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = fs.Rename(path+".tmp", path)
	}
	if err == nil {
		err = syncDir(fs, fs.PathDir(path))
	}
	if err != nil {
		return nil, fmt.Errorf("make the mark of the store: %w", err)
	}
	return readMark(fs, path)
}

// update changes the state and makes it durable. A write that fails changes nothing, and the next one uses the same slot.
func (m *mark) update(change func(*markState)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := m.state
	next.Logs = slices.Clone(next.Logs)
	change(&next)
	next.Generation = m.state.Generation + 1
	slot, err := encodeMark(&next)
	if err != nil {
		return err
	}
	if _, err = m.file.WriteAt(slot, int64(next.Generation%2)*markSlot); err == nil {
		err = m.file.SyncData()
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", m.path, err)
	}
	m.state = next
	return nil
}

// current returns the state. Pebble removes logs, which changes it, as soon as it has the store open.
func (m *mark) current() markState {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state
}

// has reports whether the mark lists a log.
func (m *mark) has(log uint64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.state.Logs, func(l markLog) bool { return l.Number == log })
}

func (m *mark) close() error {
	if m == nil {
		return nil
	}
	return m.file.Close()
}

// RemoveMark removes the mark of a store that is replaced by another one, durably.
func RemoveMark(path string) error {
	fs := vfs.Default
	if err := fs.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return syncDir(fs, fs.PathDir(path))
}
