// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Write-ahead logs and manifests consist of blocks, and a block of chunks with a checksum each; see the comment of Pebble's package
// record. Pebble's own reader takes most kinds of damage for the end of the file, so it cannot tell how much of a file is intact.
const (
	chunkBlock = 32 << 10
	// Sizes of headers: checksum(4), length(2), type(1), which is all in a manifest; in a log number(4) of the log; and then synced(8),
	// which is not used here. The first log of a new store lacks synced.
	manifestHeader, oldLogHeader, logHeader = 7, 11, 19
)

// chunkHeader returns the size of the header of a type of chunks, which has one of four values in each format.
func chunkHeader(kind byte) int {
	switch {
	case kind == 0 || kind > 12:
		return 0
	case kind <= 4:
		return manifestHeader
	case kind <= 8:
		return oldLogHeader
	}
	return logHeader
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// chunkSum is the checksum of a chunk.
func chunkSum(content []byte) uint32 {
	c := crc32.Checksum(content, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// intact returns how many bytes at the beginning of a log with that number are intact chunks. Of a manifest the number is 0.
func intact(fs vfs.FS, path string, number uint64) (n int64, err error) {
	f, err := fs.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	block := make([]byte, chunkBlock)
	for {
		got, err := f.ReadAt(block, n)
		if err != nil && !errors.Is(err, io.EOF) {
			return n, err
		}
		good, ended := chunks(block[:got], uint32(number))
		n += int64(good)
		if ended || good < chunkBlock {
			return n, nil
		}
	}
}

// chunks returns how many bytes of a block are intact chunks, and whether the last of them ends the log.
func chunks(block []byte, number uint32) (n int, ended bool) {
	header := logHeader
	if number == 0 {
		header = manifestHeader
	}
	for {
		rest := block[n:]
		if n+header > chunkBlock { // the end of a block has no room for a chunk, and is empty
			if slices.ContainsFunc(rest, func(b byte) bool { return b != 0 }) {
				return n, false
			}
			return len(block), false
		}
		if number != 0 && closes(rest, number) {
			return n + oldLogHeader, true
		}
		if len(rest) < manifestHeader {
			return n, false
		}
		if header = chunkHeader(rest[6]); (header == manifestHeader) != (number == 0) || header > len(rest) {
			return n, false
		}
		size := header + int(binary.LittleEndian.Uint16(rest[4:]))
		if header == 0 || size > len(rest) || number != 0 && binary.LittleEndian.Uint32(rest[7:]) != number ||
			binary.LittleEndian.Uint32(rest) != chunkSum(rest[6:size]) {
			return n, false
		}
		n += size
	}
}

// closes reports whether a log ends here: Pebble writes an empty header with the next number when it closes one.
func closes(rest []byte, number uint32) bool {
	const kind = 5
	return len(rest) >= oldLogHeader && binary.LittleEndian.Uint32(rest) == 0 && binary.LittleEndian.Uint16(rest[4:]) == 0 &&
		rest[6] == kind && binary.LittleEndian.Uint32(rest[7:]) == number+1
}
