// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"encoding/binary"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const deletionFormat = 1

// Bits of a deletion's second byte.
const (
	deletionMixed = 1 << iota
	deletionPart  // not whole; its first event follows the texts
)

// encodeDeletion returns the record of a deletion, whose key holds the revision.
func encodeDeletion(d *deletion) []byte {
	flags := boolByte(d.mixed)
	if !d.whole {
		flags |= deletionPart
	}
	b := []byte{deletionFormat, flags}
	b = binary.AppendUvarint(b, d.no)
	b = binary.AppendUvarint(b, uint64(d.last))
	b = binary.AppendUvarint(b, uint64(d.at.UnixMicro()))
	for _, text := range [...]string{string(d.uid), d.ns, d.task, d.session} {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	b = binary.AppendUvarint(b, uint64(d.first))
	if d.root == "" {
		return b
	}
	b = binary.AppendUvarint(b, uint64(len(d.root)))
	return append(b, d.root...)
}

func decodeDeletion(k, b []byte) (*deletion, error) {
	if len(k) != len(spaceDeleted)+8 || len(b) < 2 || b[0] != deletionFormat {
		return nil, &CorruptError{append([]byte(nil), k...), errFormat}
	}
	d := &deletion{rev: binary.BigEndian.Uint64(k[2:]), mixed: b[1]&deletionMixed != 0, whole: b[1]&deletionPart == 0, first: 1}
	b = b[2:]
	var numbers [3]uint64
	for i := range numbers {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, &CorruptError{append([]byte(nil), k...), errShort}
		}
		numbers[i], b = v, b[n:]
	}
	var words [4]string
	for i := range words {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > uint64(len(b)-n) {
			return nil, &CorruptError{append([]byte(nil), k...), errShort}
		}
		words[i], b = string(b[n:n+int(v)]), b[n+int(v):]
	}
	d.identity = identity{numbers[0], types.UID(words[0]), words[1], words[2], ""}
	d.last, d.at, d.session = int64(numbers[1]), time.UnixMicro(int64(numbers[2])), words[3]
	if len(b) > 0 { // absent in records from before trimming existed
		first, n := binary.Uvarint(b)
		if n <= 0 {
			return nil, &CorruptError{append([]byte(nil), k...), errShort}
		}
		d.first = int64(first)
		root, _, err := trailingText(b[n:])
		if err != nil {
			return nil, &CorruptError{append([]byte(nil), k...), err}
		}
		d.root = root
	}
	return d, nil
}
