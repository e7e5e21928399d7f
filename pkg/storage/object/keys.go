// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Keyspaces; the FORMAT.md of package engine describes the keys.
const (
	spaceVersion = 'v' // every retained version's stored bytes
	spaceLive    = 'k' // the live keys: revision and size, no value
	spaceChange  = 'l' // changelog
	spaceExpiry  = 'x' // versions with a time to live
	spaceField   = 'f' // values of indexed fields
)

// The operation of a change.
const (
	opCreate byte = 1 + iota
	opUpdate
	opDelete
)

const (
	revisionLen     = 8
	liveRecordLen   = revisionLen + 4 // revision, size
	changeHeaderLen = 1 + revisionLen // operation, previous revision
)

// floorKey holds the compacted revision. It sorts before the first change.
var floorKey = []byte{spaceChange}

var errRecord = errors.New("malformed record")

// versionKey appends the key of a version: newer versions of a key sort first.
func versionKey(dst []byte, key string, rev uint64) []byte {
	dst = append(append(append(dst, spaceVersion), key...), 0)
	return binary.BigEndian.AppendUint64(dst, ^rev)
}

func liveKey(dst []byte, key string) []byte {
	return append(append(dst, spaceLive), key...)
}

func changeKey(rev uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{spaceChange}, rev)
}

func expiryKey(unix int64, rev uint64) []byte {
	k := binary.BigEndian.AppendUint64([]byte{spaceExpiry}, uint64(unix))
	return binary.BigEndian.AppendUint64(k, rev)
}

// change is a record of the changelog.
type change struct {
	rev  uint64
	op   byte
	prev uint64 // revision of the version that it replaced or deleted; 0 for a create
	key  string
}

func parseChange(k, v []byte) (change, error) {
	if len(k) != 1+revisionLen || len(v) < changeHeaderLen {
		return change{}, fmt.Errorf("%w at %x", errRecord, k)
	}
	return change{
		rev:  binary.BigEndian.Uint64(k[1:]),
		op:   v[0],
		prev: binary.BigEndian.Uint64(v[1:]),
		key:  string(v[changeHeaderLen:]),
	}, nil
}

// upperBound returns the end of the range of keys that start with prefix.
func upperBound(prefix []byte) []byte {
	u := append([]byte(nil), prefix...)
	for i := len(u) - 1; i >= 0; i-- {
		if u[i]++; u[i] != 0 {
			return u[:i+1]
		}
	}
	return nil
}
