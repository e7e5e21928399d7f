// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"context"
	"fmt"
)

// Reader is the reading side of a log. It reads only published state and never makes a writer wait.
type Reader struct {
	*shared
	watches *watches
}

// Revision returns the newest revision that readers see.
func (r *Reader) Revision() uint64 { return r.engine.Revision() }

// Floor returns the oldest revision that can still be read or resumed from.
func (r *Reader) Floor() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.floor
}

// Head returns the published state of a stream. A stream without events is not
// an error.
func (r *Reader) Head(_ context.Context, s Stream) (Head, error) {
	v, ok, err := r.byUID(s.UID)
	if err != nil || !ok {
		return Head{}, err
	}
	return v.head(), nil
}

// streamsChunk is how many streams Streams reads at a time. Between chunks no iterator is open, so files of
// an old state are not kept on disk while the caller works.
const streamsChunk = 512

// Streams calls f with each live stream, by namespace and task, until f fails. It may or may not see
// streams that are created or deleted meanwhile.
func (r *Reader) Streams(ctx context.Context, f func(Stream) error) error {
	from := []byte(spaceName)
	for from != nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		numbers, next, err := r.names(from, streamsChunk)
		if err != nil {
			return fmt.Errorf("list streams: %w", err)
		}
		for _, no := range numbers {
			id, s, ok, err := r.stored(no)
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
