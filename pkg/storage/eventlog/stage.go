// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"errors"
	"fmt"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine"
)

// Stage prepares an append that is committed together with other changes. It is for events of the server that only
// report those changes: if the stream takes no more events, none are appended and the rest is committed. See Append for
// the other errors, which refuse the whole Txn.
func (w *Writer) Stage(s Stream, events ...*v1alpha1.ExecutionEvent) (engine.Part, error) {
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("append to %s: %w", s, err)
	}
	if err := validate(events); err != nil {
		return nil, fmt.Errorf("append to %s: %w", s, err)
	}
	t, err := w.prepare(s, Sanitize(events))
	if err != nil {
		return nil, fmt.Errorf("append to %s: %w", s, err)
	}
	return &staged{appendTxn: t}, nil
}

// Commit commits staged changes of this log and of other stores of its engine, all or none.
func (w *Writer) Commit(need engine.Need, parts ...engine.Part) error {
	return w.engine.Commit(engine.Join(need, parts...))
}

// staged is an append as a part of a Txn.
type staged struct {
	*appendTxn
	// idle is set by Check if nothing is to be appended.
	idle bool
}

var _ engine.Part = (*staged)(nil)

// Check runs the steps of Sequence that refuse. It keeps what it found from being evicted while other parts are checked.
func (p *staged) Check() error {
	t := p.appendTxn
	if err := t.locate(); err != nil {
		return err
	}
	n, err := t.decide()
	if errors.Is(err, ErrClosed) || errors.Is(err, ErrDeleted) {
		n, err = 0, nil
	}
	if err != nil {
		return err
	}
	if p.idle = n == 0; p.idle {
		return nil
	}
	if err := t.neighbours(); err != nil {
		return err
	}
	// Another task of this name had the stream that is still there. Its removal could refuse, so the event is left out.
	if p.idle = t.rival != nil; !p.idle {
		p.hold(1)
	}
	return nil
}

// hold counts the part as a commit in flight of its stream and its session.
func (p *staged) hold(n int) {
	t := p.appendTxn
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	t.head.inflight += n
	if t.cursor != nil {
		t.cursor.inflight += n
	}
}

// Abandon reverts Check.
func (p *staged) Abandon() {
	if !p.idle {
		p.hold(-1)
	}
}

// Write runs the steps of Sequence that write.
func (p *staged) Write(b engine.Batch) error {
	if p.idle {
		return nil
	}
	t := p.appendTxn
	r := &recorder{batch: b}
	t.number(r)
	if err := t.write(r); err != nil {
		return err
	}
	t.pin()
	p.hold(-1)
	return nil
}

// Publish shows the append.
func (p *staged) Publish() {
	if !p.idle {
		p.appendTxn.Publish()
	}
}
