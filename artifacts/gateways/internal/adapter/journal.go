// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package adapter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// journal is a file of records, each a line: the CRC-32C of the JSON in eight hexadecimal digits, a space, the JSON. A record is written by one
// write and is synced before append returns, so after a crash the last line alone may be cut off, and is dropped. After an error of the disk
// nothing is known about the end of the file, and nothing is appended any more.
type journal struct {
	path string
	// live returns the records that a rewritten file has.
	live func() []any

	mu        sync.Mutex
	file      *os.File
	size      int64
	rewriteAt int64
	err       error
	lock      *os.File
}

// leastRewrite is the size at which a journal is rewritten for the first time.
const leastRewrite = 4 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// openJournal reads a journal, record by record, and opens it for more. Another process must not have it open.
func openJournal(path string, each func(raw []byte) error, live func() []any) (*journal, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("folder of the journal: %w", err)
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock of the journal: %w", err)
	}
	j := &journal{path: path, live: live, lock: lock}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("another process has %s open: %w", path, err), lock.Close())
	}
	if err := j.load(each); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return j, nil
}

// load reads the file, removes a line that was cut off, and opens the file.
func (j *journal) load(each func(raw []byte) error) error {
	raw, err := os.ReadFile(j.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read the journal: %w", err)
	}
	good, rest := 0, raw
	for len(rest) > 0 {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		record, ok := unframe(line)
		if !whole || !ok {
			if bytes.ContainsFunc(after, func(r rune) bool { return r != 0 }) {
				return fmt.Errorf("the journal %s is damaged at byte %d: restore it from a copy, or move it away and accept that deliveries may be posted again", j.path, good)
			}
			break
		}
		if err := each(record); err != nil {
			return fmt.Errorf("the journal %s at byte %d: %w", j.path, good, err)
		}
		good, rest = good+len(line)+1, after
	}
	if j.file, err = os.OpenFile(j.path, os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		return fmt.Errorf("open the journal: %w", err)
	}
	j.size, j.rewriteAt = int64(good), max(leastRewrite, 2*int64(good))
	if err := j.file.Truncate(j.size); err != nil {
		return fmt.Errorf("truncate the journal: %w", err)
	}
	if _, err := j.file.Seek(j.size, 0); err != nil {
		return fmt.Errorf("open the journal: %w", err)
	}
	return errors.Join(j.file.Sync(), syncFolder(j.path))
}

// unframe returns the record of a line.
func unframe(line []byte) ([]byte, bool) {
	const digits = 8
	if len(line) < digits+1 || line[digits] != ' ' {
		return nil, false
	}
	sum, err := strconv.ParseUint(string(line[:digits]), 16, 32)
	record := line[digits+1:]
	return record, err == nil && uint32(sum) == crc32.Checksum(record, castagnoli)
}

// frame returns the line of a record.
func frame(record any) ([]byte, error) {
	raw, err := json.Marshal(record)
	if err != nil {
		return nil, fmt.Errorf("encode a record: %w", err)
	}
	return fmt.Appendf(nil, "%08x %s\n", crc32.Checksum(raw, castagnoli), raw), nil
}

// append appends a record, and then has apply bring what live returns up to it, before the file can be rewritten. With durable the record is on
// disk before that; without, it may be lost with the machine.
func (j *journal) append(record any, durable bool, apply func() error) error {
	line, err := frame(record)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err != nil {
		return j.err
	}
	if j.size > j.rewriteAt {
		if err := j.rewrite(); err != nil {
			return j.fail(err)
		}
	}
	if _, err := j.file.Write(line); err != nil {
		return j.fail(err)
	}
	if durable {
		if err := j.file.Sync(); err != nil {
			return j.fail(err)
		}
	}
	j.size += int64(len(line))
	return apply()
}

// fail ends the journal.
func (j *journal) fail(err error) error {
	j.err = fmt.Errorf("the journal cannot be written any more, and the adapter must be started again: %w", err)
	return j.err
}

// rewrite replaces the file by one that has what is live.
func (j *journal) rewrite() error {
	var all bytes.Buffer
	for _, record := range j.live() {
		line, err := frame(record)
		if err != nil {
			return err
		}
		all.Write(line)
	}
	file, err := os.OpenFile(j.path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("rewrite the journal: %w", err)
	}
	if _, err := file.Write(all.Bytes()); err != nil {
		return fmt.Errorf("rewrite the journal: %w", errors.Join(err, file.Close()))
	}
	if err := file.Sync(); err != nil {
		return fmt.Errorf("rewrite the journal: %w", errors.Join(err, file.Close()))
	}
	if err := os.Rename(j.path+".new", j.path); err != nil {
		return fmt.Errorf("rewrite the journal: %w", errors.Join(err, file.Close()))
	}
	_ = j.file.Close() // nothing of it is needed
	j.file, j.size = file, int64(all.Len())
	j.rewriteAt = max(leastRewrite, 2*j.size)
	return syncFolder(j.path)
}

// syncFolder makes the name of a file durable.
func syncFolder(path string) error {
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("folder of the journal: %w", err)
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// failed returns why nothing can be appended, or nil.
func (j *journal) failed() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// close ends the journal.
func (j *journal) close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		j.err = errStopped
	}
	return errors.Join(j.file.Sync(), j.file.Close(), j.lock.Close())
}
