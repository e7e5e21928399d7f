// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package spool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync"
)

// A file is a header and records, all numbers little-endian:
//
//	header  magic (8 bytes), base (8), acknowledged (8)
//	record  length (4), CRC-32C of the data (4), data
//
// Offsets count the bytes of all records that were ever appended, so they do not change when
// the file is rewritten without its acknowledged part. base is the offset of the first record
// in the file.
const (
	magic        = "pspool1\n"
	headerBytes  = 24
	ackPosition  = 16
	recordHeader = 8
	// MaxRecord is the largest record, in bytes.
	MaxRecord = 16 << 20
	// rewriteBytes is how many bytes of a file must be acknowledged before the rest is written to
	// a new file.
	rewriteBytes = 1 << 20
)

var crcTable = crc32.MakeTable(crc32.Castagnoli)

// Record is a record that has not been acknowledged.
type Record struct {
	Data []byte
	// End is the offset after the record, for Acknowledge.
	End int64
}

// File is an append-only list of records with a mark up to which they are acknowledged. It is
// safe for concurrent use. Written records survive the end of the process. After Sync they also
// survive a crash of the machine.
type File struct {
	path string
	// mu guards what follows.
	mu sync.Mutex
	f  *os.File
	// base is the offset of the first byte, end the offset after the last one. Records up to acked
	// are acknowledged.
	base, end, acked int64
	// broken is set when the content of the file is no longer known.
	broken error
}

// OpenFile opens a file or creates a new one. It cuts off an incomplete record at the end. It
// also returns the records that are not acknowledged.
func OpenFile(path string) (*File, []Record, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("the spool of the run: %w", err)
	}
	s := &File{path: path, f: f}
	pending, err := s.load()
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("the spool %s of the run: %w", path, err), f.Close())
	}
	return s, pending, nil
}

// load reads the file and prepares it for appending.
func (s *File) load() ([]Record, error) {
	all, err := io.ReadAll(s.f)
	if err != nil {
		return nil, err
	}
	c, ok := parse(all)
	if !ok { // new, or torn before its first record
		if err := s.f.Truncate(0); err != nil {
			return nil, err
		}
		_, err := s.f.WriteAt(header(0, 0), 0)
		return nil, err
	}
	s.base, s.end, s.acked = c.base, c.end, c.acked
	if err := s.f.Truncate(s.position(s.end)); err != nil || bytes.Equal(all[:headerBytes], header(s.base, s.acked)) {
		return c.pending, err
	}
	// A mark that was ignored would be at the end of a later record by chance, and hide it.
	_, err = s.f.WriteAt(header(s.base, s.acked), 0)
	return c.pending, err
}

func (s *File) position(offset int64) int64 { return headerBytes + offset - s.base }

func header(base, acked int64) []byte {
	b := binary.LittleEndian.AppendUint64([]byte(magic), uint64(base))
	return binary.LittleEndian.AppendUint64(b, uint64(acked))
}

// content is the parsed content of a file.
type content struct {
	base, end, acked int64
	pending          []Record
}

// parse reads records up to the first incomplete one. It returns false if there is no header. A
// mark that is not at the end of a record is ignored: it is better to send records twice than
// not at all.
func parse(all []byte) (content, bool) {
	if len(all) < headerBytes || string(all[:len(magic)]) != magic {
		return content{}, false
	}
	base := int64(binary.LittleEndian.Uint64(all[len(magic):]))
	acked := int64(binary.LittleEndian.Uint64(all[ackPosition:]))
	if base < 0 {
		return content{}, false
	}
	c := content{base: base, end: base, acked: base}
	var records []Record
	for rest := all[headerBytes:]; len(rest) >= recordHeader; {
		n := int64(binary.LittleEndian.Uint32(rest))
		if n > MaxRecord || int64(len(rest)) < recordHeader+n {
			break
		}
		data := rest[recordHeader : recordHeader+n]
		if crc32.Checksum(data, crcTable) != binary.LittleEndian.Uint32(rest[4:]) {
			break
		}
		c.end += recordHeader + n
		records = append(records, Record{Data: data, End: c.end})
		rest = rest[recordHeader+n:]
	}
	if acked == c.base {
		c.pending = records
		return c, true
	}
	for i := range records {
		if records[i].End == acked {
			c.acked, c.pending = acked, records[i+1:]
			return c, true
		}
	}
	c.pending = records
	return c, true
}

// Append adds a record and returns the offset after it. After an error the file is unchanged.
func (s *File) Append(data []byte) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return 0, s.broken
	}
	if len(data) > MaxRecord {
		return 0, fmt.Errorf("the spool of the run: a record of %d bytes is too large, at most %d are allowed", len(data), MaxRecord)
	}
	b := binary.LittleEndian.AppendUint32(make([]byte, 0, recordHeader+len(data)), uint32(len(data)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(data, crcTable))
	if _, err := s.f.WriteAt(append(b, data...), s.position(s.end)); err != nil {
		// Remove what was written of the record, because it would hide the records after it.
		if terr := s.f.Truncate(s.position(s.end)); terr != nil {
			s.broken = fmt.Errorf("the spool of the run: %w", errors.Join(err, terr))
		}
		return 0, fmt.Errorf("the spool of the run: %w", err)
	}
	s.end += recordHeader + int64(len(data))
	return s.end, nil
}

// Acknowledge notes that all records up to an offset need not be kept.
func (s *File) Acknowledge(offset int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil || offset <= s.acked {
		return s.broken
	}
	if offset > s.end {
		return fmt.Errorf("the spool of the run: offset %d is after the end, %d", offset, s.end)
	}
	s.acked = offset
	if s.acked-s.base >= rewriteBytes && s.acked-s.base >= s.end-s.acked {
		return s.rewrite()
	}
	_, err := s.f.WriteAt(binary.LittleEndian.AppendUint64(nil, uint64(offset)), ackPosition)
	if err != nil {
		return fmt.Errorf("the spool of the run: %w", err)
	}
	return nil
}

// rewrite replaces the file by one without the acknowledged records. The caller holds mu.
func (s *File) rewrite() error {
	rest := make([]byte, s.end-s.acked)
	if _, err := s.f.ReadAt(rest, s.position(s.acked)); err != nil {
		return fmt.Errorf("the spool of the run: %w", err)
	}
	path := s.path + ".new"
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("the spool of the run: %w", err)
	}
	if _, err = f.Write(append(header(s.acked, s.acked), rest...)); err == nil {
		err = os.Rename(path, s.path)
	}
	if err != nil {
		return fmt.Errorf("the spool of the run: %w", errors.Join(err, f.Close(), os.Remove(path)))
	}
	err = s.f.Close()
	s.f, s.base = f, s.acked
	if err != nil {
		return fmt.Errorf("the spool of the run: %w", err)
	}
	return nil
}

// Pending reports whether there is a record that is not acknowledged.
func (s *File) Pending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acked < s.end
}

// Sync writes everything to the disk.
func (s *File) Sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return s.broken
	}
	if err := s.f.Sync(); err != nil {
		return fmt.Errorf("the spool of the run: %w", err)
	}
	return nil
}

// Close closes the file.
func (s *File) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.f.Close()
}
