// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package spending

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/budget"
)

func (s *Store) load() error {
	it, err := s.engine.NewIter([]byte{keyspace}, []byte{keyspace + 1})
	if err != nil {
		return err
	}
	for ok := it.First(); ok; ok = it.Next() {
		key := it.Key()
		a, b, split := bytes.Cut(key[min(2, len(key)):], []byte{0})
		if !split {
			err = errors.Join(err, fmt.Errorf("corrupt key %q", key))
			continue
		}
		var wrong error
		switch key[1] {
		case kindAccount:
			var v budget.Account
			wrong = json.Unmarshal(it.Value(), &v)
			s.accounts[accountID{types.UID(a), string(b)}] = v
		case kindReservation:
			var v reservation
			wrong = json.Unmarshal(it.Value(), &v)
			s.note(requestID{types.UID(a), string(b)}, &v)
		}
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("corrupt record %q: %w", key, wrong))
		}
	}
	return errors.Join(err, it.Close())
}

// note records an open request in memory; nil for one that is no longer open.
func (s *Store) note(id requestID, r *reservation) {
	if r == nil {
		delete(s.open, id)
		if delete(s.calls[id.owner], id.call); len(s.calls[id.owner]) == 0 {
			delete(s.calls, id.owner)
		}
		return
	}
	s.open[id] = *r
	if s.calls[id.owner] == nil {
		s.calls[id.owner] = map[string]bool{}
	}
	s.calls[id.owner][id.call] = true
}
