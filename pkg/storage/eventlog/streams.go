// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
)

// streamsChunk is how many streams Streams reads at a time, so that it does not
// keep files of an old state on disk while its caller works.
const streamsChunk = 512

// Streams calls f with each live stream, by namespace and task, until f fails.
// Streams that appear or leave meanwhile may be told of or not.
func (l *Log) Streams(ctx context.Context, f func(Stream) error) error {
	from := []byte(spaceName)
	for from != nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		numbers, next, err := l.nameChunk(from)
		if err != nil {
			return fmt.Errorf("list streams: %w", err)
		}
		for _, no := range numbers {
			id, s, ok, err := l.stored(no)
			if err != nil {
				return fmt.Errorf("list streams: %w", err)
			}
			if !ok || s.deleted != 0 {
				continue
			}
			if err := f(Stream{Namespace: id.ns, Task: id.task, UID: id.uid, Session: s.session}); err != nil {
				return err
			}
		}
		from = next
	}
	return nil
}

// nameChunk reads stream numbers at and behind a key, and where to go on; nil at
// the end.
func (l *Log) nameChunk(from []byte) (numbers []uint64, next []byte, err error) {
	it, err := l.engine.NewIter(from, after([]byte(spaceName)))
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		if len(numbers) == streamsChunk {
			return numbers, bytes.Clone(it.Key()), nil
		}
		v := it.Value()
		if len(v) != 8 {
			return nil, nil, &CorruptError{bytes.Clone(it.Key()), errShort}
		}
		numbers = append(numbers, binary.BigEndian.Uint64(v))
	}
	return numbers, nil, nil
}
