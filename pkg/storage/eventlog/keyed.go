// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"context"
	"fmt"
)

// Has reports whether an event with a de-duplication key was appended to a task's stream, so that another append with
// this key would store nothing.
func (w *Writer) Has(_ context.Context, s Stream, key string) (bool, error) {
	has, err := unpurged(w.shared, func() (bool, error) {
		v, ok, err := w.byUID(s.UID)
		if err != nil || !ok || v.deleted != 0 {
			return false, err
		}
		seq, ok, err := w.number(dedupKey(v.no, key))
		return ok && int64(seq) <= v.last, err // the store may show a commit in flight
	})
	if err != nil {
		return false, fmt.Errorf("look up a key of %s: %w", s, err)
	}
	return has, nil
}
