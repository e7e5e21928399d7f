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

// calls are the calls of tools.
var calls = onces{kindCall, kindCallBytes, MaxCallBytes}

// KeepCall keeps a call of an owner by its id, unless it is kept already or there is no room for it among the calls of the
// owner. It returns when the call is durable. A *quota.LimitError means that there is no room in the namespace.
func (s *Store) KeepCall(ctx context.Context, ns string, uid types.UID, id string, call []byte) error {
	if _, _, err := s.keepOnce(ctx, ns, uid, calls, id, call); err != nil {
		return fmt.Errorf("keep call: %w", err)
	}
	return nil
}

// onces are rows that are each written once: the kinds of their keys and of the row with their bytes, and how many bytes an owner may have.
type onces struct {
	kind, sum byte
	most      int64
}

func (k onces) key(uid types.UID, id string) []byte { return append(space.Key(uid, k.kind), id...) }

// keepOnce keeps a row of an owner by its id, unless there is one already. full is set if the owner, who uses so many bytes, has no room.
func (s *Store) keepOnce(ctx context.Context, ns string, uid types.UID, k onces, id string, data []byte) (used int64, full bool, err error) {
	if owned.Bad(string(uid)) || id == "" {
		return 0, false, ErrName
	}
	o, done := s.hold(uid)
	defer done()
	o.Lock()
	defer o.Unlock()
	sum := space.Key(uid, k.sum)
	used, err = s.number(sum)
	if err != nil {
		return 0, false, err
	}
	if _, known, err := s.engine.Get(k.key(uid, id)); known || err != nil {
		return used, false, err
	}
	if used+int64(len(data)) > k.most {
		return used, true, nil
	}
	return used, false, s.write(ctx, change{need: engine.Grow, ns: ns, uid: uid, bytes: int64(len(data))}, func(b engine.Batch) error {
		return errors.Join(b.Set(k.key(uid, id), data), b.Set(sum, binary.BigEndian.AppendUint64(nil, uint64(used)+uint64(len(data)))))
	})
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
func (s *Store) Calls(_ context.Context, uid types.UID) (all [][]byte, err error) {
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
		all = append(all, bytes.Clone(it.Value()))
	}
	return all, nil
}
