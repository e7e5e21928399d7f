// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/owned"
)

func logKey(uid types.UID, offset int64) []byte {
	return binary.BigEndian.AppendUint64(space.Key(uid, kindLog), uint64(offset))
}

// MaxLogBytes bounds the log of an owner. Data beyond it is dropped, and a mark at the end of the log says
// so.
const MaxLogBytes = 10 << 20

// logMark ends a log that reached its bound. A log longer than the bound already has the mark.
const logMark = "\n[log truncated: 10 MiB is the limit]\n"

// AppendLog adds data to the end of an owner's log, all or none, except that data beyond MaxLogBytes is
// dropped. It returns when the data is durable. A *quota.RateError states when to retry, and a
// *quota.LimitError means that there is no room in the namespace.
func (s *Store) AppendLog(ctx context.Context, ns string, uid types.UID, data []byte) error {
	if owned.Bad(string(uid)) {
		return fmt.Errorf("append log: %w", ErrName)
	}
	if len(data) == 0 {
		return nil
	}
	if err := s.checkLogRate(ns, uid, len(data)); err != nil {
		return fmt.Errorf("append log: %w", err)
	}
	o, done := s.hold(uid)
	defer done()
	o.Lock()
	defer o.Unlock()
	end, err := s.LogEnd(uid)
	if err == nil && end > MaxLogBytes {
		return nil // the log is full and has its mark
	}
	if over := end + int64(len(data)) - MaxLogBytes; over > 0 {
		data = append(data[:int64(len(data))-over:int64(len(data))-over], logMark...)
	}
	if err == nil {
		err = s.write(ctx, change{need: engine.Grow, ns: ns, uid: uid, bytes: int64(len(data))}, func(b engine.Batch) error {
			for rest := data; len(rest) > 0; {
				n := min(len(rest), pieceSize)
				if err := b.Set(logKey(uid, end), rest[:n]); err != nil {
					return err
				}
				end, rest = end+int64(n), rest[n:]
			}
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("append log: %w", err)
	}
	return nil
}

// LogEnd returns the length of an owner's log, in bytes.
func (s *Store) LogEnd(uid types.UID) (end int64, err error) {
	it, err := s.logIter(uid)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if !it.Last() {
		return 0, nil
	}
	offset, err := logOffset(it.Key())
	return offset + int64(len(it.Value())), err
}

func (s *Store) logIter(uid types.UID) (engine.Iter, error) {
	prefix := space.Key(uid, kindLog)
	return s.engine.NewIter(prefix, owned.After(prefix))
}

func logOffset(key []byte) (int64, error) {
	if len(key) < 8 {
		return 0, &CorruptError{bytes.Clone(key)}
	}
	return int64(binary.BigEndian.Uint64(key[len(key)-8:])), nil
}

// ReadLog reads an owner's log from offset on, at most about 1 MiB. At the end it returns nothing.
func (s *Store) ReadLog(_ context.Context, uid types.UID, offset int64) (data []byte, err error) {
	if owned.Bad(string(uid)) || offset < 0 {
		return nil, nil
	}
	o, done := s.hold(uid)
	defer done()
	o.RLock()
	defer o.RUnlock()
	it, err := s.logIter(uid)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	// The piece that offset is in begins at or before it.
	ok := it.SeekLT(logKey(uid, offset+1))
	for ; ok && len(data) < readSize; ok = it.Next() {
		at, err := logOffset(it.Key())
		if err != nil {
			return nil, err
		}
		v := it.Value()
		switch skip := offset + int64(len(data)) - at; {
		case skip < 0:
			return nil, &CorruptError{bytes.Clone(it.Key())}
		case skip < int64(len(v)):
			data = append(data, v[skip:]...)
		}
	}
	return data, nil
}
