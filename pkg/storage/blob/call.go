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

// MaxCallBytes bounds the calls that are kept of an owner. Later ones are not kept.
const MaxCallBytes = 4 << 20

func callKey(uid types.UID, id string) []byte {
	return append(space.Key(uid, kindCall), id...)
}

// KeepCall keeps a call of an owner by its id, unless it is kept already or there is no room for it among the calls of the
// owner. It returns when the call is durable. A *quota.LimitError means that there is no room in the namespace.
func (s *Store) KeepCall(ctx context.Context, ns string, uid types.UID, id string, call []byte) error {
	if owned.Bad(string(uid)) || id == "" {
		return fmt.Errorf("keep call: %w", ErrName)
	}
	o, done := s.hold(uid)
	defer done()
	o.Lock()
	defer o.Unlock()
	sum := space.Key(uid, kindCallBytes)
	kept, err := s.number(sum)
	if err != nil {
		return fmt.Errorf("keep call: %w", err)
	}
	_, known, err := s.engine.Get(callKey(uid, id))
	if err != nil {
		return fmt.Errorf("keep call: %w", err)
	}
	if known || kept+int64(len(call)) > MaxCallBytes {
		return nil
	}
	err = s.write(ctx, change{need: engine.Grow, ns: ns, uid: uid, bytes: int64(len(call))}, func(b engine.Batch) error {
		return errors.Join(b.Set(callKey(uid, id), call), b.Set(sum, binary.BigEndian.AppendUint64(nil, uint64(kept)+uint64(len(call)))))
	})
	if err != nil {
		return fmt.Errorf("keep call: %w", err)
	}
	return nil
}

// number reads a row that holds a number; 0 if there is none.
func (s *Store) number(key []byte) (int64, error) {
	row, ok, err := s.engine.Get(key)
	switch {
	case err != nil || !ok:
		return 0, err
	case len(row) != 8:
		return 0, &CorruptError{key}
	}
	return int64(binary.BigEndian.Uint64(row)), nil
}

// Calls returns the calls that are kept of an owner, by their ids.
func (s *Store) Calls(_ context.Context, uid types.UID) (calls [][]byte, err error) {
	if owned.Bad(string(uid)) {
		return nil, nil
	}
	o, done := s.hold(uid)
	defer done()
	o.RLock()
	defer o.RUnlock()
	prefix := space.Key(uid, kindCall)
	it, err := s.engine.NewIter(prefix, owned.After(prefix))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		calls = append(calls, bytes.Clone(it.Value()))
	}
	return calls, nil
}
