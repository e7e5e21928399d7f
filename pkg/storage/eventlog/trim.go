// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"context"
	"fmt"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// Trim removes the events of a stream whose seq is below before. The terminal
// event and what follows it always stay, and so does the newest event; Head.Oldest
// tells what was reached. Watches get a DELETED event for each that left; readers
// by seq or by a session's cursor get a Gap, and neither is ever given again. A
// stream that does not exist, is deleted or begins at before or behind it is no
// error. The cost does not depend on the number of events; Purge removes the bytes
// after the window of history.
func (l *Log) Trim(ctx context.Context, s Stream, before int64) error {
	if s.UID == "" {
		return fmt.Errorf("trim %s: %w", s, ErrBadStream)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("trim %s: %w", s, err)
	}
	if err := l.engine.Commit(&trimTxn{log: l, stream: s, before: before}); err != nil {
		return fmt.Errorf("trim %s: %w", s, err)
	}
	l.press()
	return nil
}

type trimTxn struct {
	log     *Log
	stream  Stream
	before  int64
	trimmed *deletion // nil: there was nothing to do
}

// Need says that it makes room.
func (t *trimTxn) Need() engine.Need { return engine.Free }

// Sequence runs on the commit leader.
func (t *trimTxn) Sequence(b *engine.Batch) error {
	h, err := t.log.sequencedHead(t.stream)
	if err != nil || h == nil || h.sequenced.deleted != 0 {
		return err
	}
	before := min(t.before, h.sequenced.last)
	if h.sequenced.terminal != 0 {
		before = min(before, h.sequenced.end)
	}
	if before <= h.sequenced.oldest {
		return nil
	}
	t.trimmed, err = t.log.sequenceDelete(b, h, before-1, false)
	return err
}

// Publish runs in order with all others.
func (t *trimTxn) Publish() {
	if t.trimmed == nil {
		return
	}
	l := t.log
	l.mu.Lock()
	defer l.mu.Unlock()
	l.publishDelete(t.trimmed)
	l.engine.Advance(t.trimmed.end())
}
