// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Loss is a part of a store that should exist and does not.
type Loss struct {
	// Name identifies it: the name of a file, "revisions", or "store" with the identity of the store if that is known.
	Name string `json:"name"`
	// Text says what is missing and how to get it back.
	Text string `json:"text"`
}

// LossError refuses to open a store that has lost data. Nothing in it was modified, so what is missing can be put back.
type LossError struct {
	Dir    string
	Losses []Loss
}

// acceptFlag is the flag of the server programs that sets Options.AcceptLoss.
const acceptFlag = "--accept-data-loss"

// Error lists the losses and what to do.
func (e *LossError) Error() string {
	var names, texts []string
	for _, l := range e.Losses {
		names, texts = append(names, acceptFlag+"="+l.Name), append(texts, l.Text)
	}
	return fmt.Sprintf("the store %s has lost data: %s. Put back what is missing, or move the store away and restore a backup. To go on without what is lost, for good, start once with %s",
		e.Dir, strings.Join(texts, "; "), strings.Join(names, " "))
}

// tablesLost adds to an error of opening the store what to do if tables are missing or have another size, which cannot be accepted.
func tablesLost(err error) error {
	if errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "size mismatch") {
		return fmt.Errorf("%w. Files of the store are missing or cut off: put them back, or move the store away and restore a backup", err)
	}
	return err
}

// lossPrefix precedes the records of accepted losses.
var lossPrefix = []byte("mloss")

// lossRebase exceeds the number of revisions that were assigned and lost.
const lossRebase = 1 << 32

// lossRecord is what remains of an accepted loss.
type lossRecord struct {
	Time     time.Time `json:"time"`
	Revision uint64    `json:"revision"`
	Losses   []Loss    `json:"losses"`
}

// recordLoss moves the store to a new base, because clients may have seen revisions that it does not have, and keeps a record.
func recordLoss(e *Engine, c *continuity) error {
	revision := e.sequenced
	if c.m != nil {
		revision = max(revision, c.m.current().Revision)
	}
	record, err := json.Marshal(lossRecord{Time: e.opts.Clock.Now().UTC(), Revision: e.sequenced, Losses: c.losses})
	if err != nil {
		return err
	}
	number := binary.BigEndian.AppendUint64(nil, revision+lossRebase)
	b := e.db.NewBatch()
	err = errors.Join(b.Set(revisionKey, number, nil), b.Set(baseKey, number, nil), b.Set(slices.Concat(lossPrefix, number), record, nil))
	if err == nil {
		err = guard(func() error { return b.Commit(pebble.Sync) })
	}
	if err != nil {
		return err
	}
	e.sequenced, e.base = revision+lossRebase, revision+lossRebase
	e.published.Store(e.sequenced)
	return b.Close()
}

// reportLosses logs the losses that were ever accepted, because what depends on the lost data may show later.
func reportLosses(e *Engine) (err error) {
	it, err := e.db.NewIter(&pebble.IterOptions{LowerBound: lossPrefix, UpperBound: []byte("mlost")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		var r lossRecord
		if err := json.Unmarshal(it.Value(), &r); err != nil {
			return fmt.Errorf("read the record of a loss: %w", err)
		}
		for _, l := range r.Losses {
			e.losses++
			e.log.Error(nil, "This store has lost data, and was opened without it at that time", "time", r.Time, "name", l.Name, "lost", l.Text)
		}
	}
	return it.Error()
}
