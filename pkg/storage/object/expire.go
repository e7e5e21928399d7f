// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

const (
	sweepInterval = 500 * time.Millisecond
	// sweepAtOnce is the maximum number of deletes in one sweep, so that a jump of the clock does not stall
	// other writers. The next sweep continues.
	sweepAtOnce = 1000
	// sweepRetry is the time after which expiries of a resource that is not served are checked again.
	sweepRetry = time.Minute
)

const never = math.MaxInt64

// lower makes v the smaller of itself and to.
func lower(v *atomic.Int64, to int64) {
	for {
		have := v.Load()
		if have <= to || v.CompareAndSwap(have, to) {
			return
		}
	}
}

// expiryOf returns the Unix time at which an object written now with a time to live of ttl seconds expires;
// 0 for never.
func (db *DB) expiryOf(ttl uint64) int64 {
	if ttl == 0 {
		return 0
	}
	return db.opts.Clock.Now().Unix() + int64(min(ttl, math.MaxInt32))
}

// runSweeper deletes expired objects until the DB is closed. While nothing is due, a tick costs one
// comparison.
func (db *DB) runSweeper() {
	tick := db.opts.Clock.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		select {
		case <-db.ctx.Done():
			return
		case <-tick.C():
		}
		now := db.opts.Clock.Now().Unix()
		if now < db.nextExpiry.Load() {
			continue
		}
		if err := db.sweep(now); err != nil && !errors.Is(err, engine.ErrClosed) {
			db.log.Error(err, "Deleting expired objects failed, will retry")
		}
	}
}

// due is a version that has expired.
type due struct {
	index []byte
	key   string
	rev   uint64
}

func (db *DB) sweep(now int64) error {
	expired, err := db.expired(now)
	if err != nil {
		return err
	}
	unserved := false
	for _, d := range expired {
		if db.ctx.Err() != nil {
			return nil //nolint:nilerr // closing; the rest is due the next time
		}
		t := db.topicOf(d.key)
		if t == nil {
			unserved = true
			continue
		}
		w := &write{topic: t, key: d.key, expect: d.rev}
		db.deriveExpiry(w)
		// On a conflict the object was written again, with a new time to live or none.
		if err := w.commit(); err != nil && !errors.Is(err, errConflict) {
			return fmt.Errorf("delete expired %s: %w", d.key, err)
		}
		if err := db.dropExpiry(d.index); err != nil {
			return err
		}
	}
	from := int64(0)
	if unserved {
		from = now + 1
	}
	if err := db.readNextExpiry(from); err != nil {
		return err
	}
	if unserved {
		lower(&db.nextExpiry, now+int64(sweepRetry/time.Second))
	}
	return nil
}

// deriveExpiry sets what is derived from the expired object of w, which leaves with it. An object that cannot be read leaves its rows,
// as it does when it is deleted.
func (db *DB) deriveExpiry(w *write) {
	db.mu.Lock()
	var s *Store
	for other := range db.stores {
		if other.topic == w.topic && (other.index != nil || len(other.fields) > 0) {
			s = other
		}
	}
	db.mu.Unlock()
	if s == nil {
		return
	}
	stored, err := w.topic.value(&entry{key: w.key, rev: w.expect})
	if err != nil {
		return
	}
	if plain, _, err := s.untransform(db.ctx, w.key, stored); err == nil {
		w.index, _ = indexed(s, w, plain, nil, nil)
	}
}

func (db *DB) expired(now int64) (all []due, err error) {
	it, err := db.engine.NewIter([]byte{spaceExpiry}, expiryKey(now+1, 0))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok && len(all) < sweepAtOnce; ok = it.Next() {
		k := append([]byte(nil), it.Key()...)
		if len(k) != 1+2*revisionLen {
			return nil, fmt.Errorf("%w at %x", errRecord, k)
		}
		all = append(all, due{index: k, key: string(it.Value()), rev: binary.BigEndian.Uint64(k[1+revisionLen:])})
	}
	return all, it.Error()
}

func (db *DB) dropExpiry(index []byte) error {
	b, err := db.engine.NewBatch()
	if err != nil {
		return err
	}
	if err := b.Delete(index); err != nil {
		b.Discard()
		return err
	}
	return db.engine.Apply(b, engine.NoSync)
}

// readNextExpiry finds the first expiry at or after unix time from.
func (db *DB) readNextExpiry(from int64) (err error) {
	db.nextExpiry.Store(never) // before reading, so that a concurrent write lowers it
	it, err := db.engine.NewIter(expiryKey(from, 0), []byte{spaceExpiry + 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if it.First() && len(it.Key()) == 1+2*revisionLen {
		lower(&db.nextExpiry, int64(binary.BigEndian.Uint64(it.Key()[1:])))
	}
	return it.Error()
}

// topicOf returns the open topic that serves key, or nil.
func (db *DB) topicOf(key string) *topic {
	for _, t := range db.allTopics() {
		if strings.HasPrefix(key, t.prefix) {
			return t
		}
	}
	return nil
}
