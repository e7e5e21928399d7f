// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"encoding/binary"

	"k8s.io/apimachinery/pkg/types"
)

const headFormat = 1

// encodeHead returns the record of a stream.
func encodeHead(id *identity, s *state) []byte {
	b := []byte{headFormat, s.terminal, boolByte(s.mixed)}
	b = binary.AppendUvarint(b, uint64(s.last))
	b = binary.AppendUvarint(b, s.changed)
	b = binary.AppendUvarint(b, s.deleted)
	for _, text := range [...]string{string(id.uid), id.ns, id.task, s.session} {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	b = binary.AppendUvarint(b, uint64(s.end))
	b = binary.AppendUvarint(b, uint64(s.oldest))
	b = binary.AppendUvarint(b, uint64(s.bytes))
	b = binary.AppendUvarint(b, uint64(s.held))
	b = binary.AppendUvarint(b, uint64(len(id.root)))
	b = append(b, id.root...)
	b = binary.AppendUvarint(b, uint64(s.counted))
	return append(b, s.counts...)
}

func boolByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// trailingText reads a text towards the end of a record, which may be absent, and returns what follows it.
func trailingText(b []byte) (text string, rest []byte, err error) {
	if len(b) == 0 {
		return "", nil, nil
	}
	v, n := binary.Uvarint(b)
	if n <= 0 || v > uint64(len(b)-n) {
		return "", nil, errShort
	}
	return string(b[n : n+int(v)]), b[n+int(v):], nil
}

// decodeCounts reads the counts at the end of a head, which an early version did not write.
func (s *state) decodeCounts(b []byte) error {
	if len(b) == 0 {
		s.counted = s.last + 1
		return nil
	}
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return errShort
	}
	t, err := parseTally(b[n:])
	s.counted, s.counts = int64(v), string(t.append(nil))
	return err
}

// decodeHead reads the record of stream no.
func decodeHead(no uint64, b []byte) (id identity, s state, err error) {
	fail := func(err error) (identity, state, error) {
		return identity{}, state{}, &CorruptError{headKey(no), err}
	}
	if len(b) < 3 || b[0] != headFormat || int(b[1]) >= len(typeNames) {
		return fail(errFormat)
	}
	s.terminal, s.mixed = b[1], b[2] != 0
	b = b[3:]
	var numbers [3]uint64
	for i := range numbers {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return fail(errShort)
		}
		numbers[i], b = v, b[n:]
	}
	var words [4]string
	for i := range words {
		v, n := binary.Uvarint(b)
		if n <= 0 || v > uint64(len(b)-n) {
			return fail(errShort)
		}
		words[i], b = string(b[n:n+int(v)]), b[n+int(v):]
	}
	s.last, s.changed, s.deleted, s.session = int64(numbers[0]), numbers[1], numbers[2], words[3]
	s.oldest = 1
	if s.terminal != 0 {
		s.end = s.last
	}
	if len(b) > 0 { // absent in heads that an early version wrote
		for _, v := range [...]*int64{&s.end, &s.oldest} {
			u, n := binary.Uvarint(b)
			if n <= 0 {
				return fail(errShort)
			}
			*v, b = int64(u), b[n:]
		}
	}
	for _, v := range [...]*int64{&s.bytes, &s.held} { // absent in heads that an early version wrote
		if len(b) == 0 {
			break
		}
		u, n := binary.Uvarint(b)
		if n <= 0 {
			return fail(errShort)
		}
		*v, b = int64(u), b[n:]
	}
	root, b, err := trailingText(b)
	if err == nil {
		err = s.decodeCounts(b)
	}
	if err != nil {
		return fail(err)
	}
	return identity{no, types.UID(words[0]), words[1], words[2], root}, s, nil
}
