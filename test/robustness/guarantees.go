// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package robustness kills real processes at random moments under load and
// checks what clients saw against the guarantees named here. Each guarantee has an
// error in this list, so that a failure names the guarantee that was broken.
package robustness

import (
	"errors"
	"fmt"
	"slices"
)

// The guarantees of an event stream.
var (
	errBrokeDurable   = errors.New("broke Durable - an acknowledged event is in the stream after a crash")
	errBrokeOnce      = errors.New("broke Once - a retried append is stored exactly once")
	errBrokeDense     = errors.New("broke Dense - the sequence of a stream runs from 1 without holes")
	errBrokeStable    = errors.New("broke Stable - an event keeps the sequence and revision it was acknowledged with")
	errBrokeStreamed  = errors.New("broke Streamed - a stream resumed at the last id it saw delivers each later event exactly once, in order")
	errBrokeOrder     = errors.New("broke SessionOrder - the timeline of a session has every event of its tasks once, in the order of the revisions, with dense cursors")
	errBrokeResumable = errors.New("broke Resumable - a watch resumed at the last revision it saw delivers each later event exactly once, in order")
)

// record is an event as a client saw it.
type record struct {
	task     string
	key      string // the de-duplication key, unique within the task
	seq      int64
	revision uint64
}

// checkStored compares what was acknowledged to the writers with what is stored.
func checkStored(acknowledged, stored []record) error {
	type id struct{ task, key string }
	byKey := map[id]record{}
	lastSeq := map[string]int64{}
	for _, r := range stored {
		if first, twice := byKey[id{r.task, r.key}]; twice && r.key != "" {
			return fmt.Errorf("%w: key %s has seq %d and %d of %s", errBrokeOnce, r.key, first.seq, r.seq, r.task)
		}
		if r.key != "" {
			byKey[id{r.task, r.key}] = r
		}
		if r.seq != lastSeq[r.task]+1 {
			return fmt.Errorf("%w: %s has %d after %d", errBrokeDense, r.task, r.seq, lastSeq[r.task])
		}
		lastSeq[r.task] = r.seq
	}
	for _, a := range acknowledged {
		r, ok := byKey[id{a.task, a.key}]
		if !ok {
			return fmt.Errorf("%w: %s/%d (%s) is lost", errBrokeDurable, a.task, a.seq, a.key)
		}
		if r != a {
			return fmt.Errorf("%w: acknowledged as %+v, stored as %+v", errBrokeStable, a, r)
		}
	}
	return nil
}

// checkWatched compares what one watcher got, over all its reconnections, with
// what is stored.
func checkWatched(watched, stored []record) error {
	inOrder := slices.Clone(stored)
	slices.SortFunc(inOrder, func(a, b record) int {
		if a.revision < b.revision {
			return -1
		}
		return 1
	})
	for i, want := range inOrder {
		if i >= len(watched) {
			return fmt.Errorf("%w: got %d of %d events, missing %+v", errBrokeResumable, len(watched), len(inOrder), want)
		}
		if watched[i] != want {
			return fmt.Errorf("%w: event %d is %+v, want %+v", errBrokeResumable, i, watched[i], want)
		}
	}
	if len(watched) > len(inOrder) {
		return fmt.Errorf("%w: %d events too many, first %+v", errBrokeResumable, len(watched)-len(inOrder), watched[len(inOrder)])
	}
	return nil
}

// row is an event as a page or a stream of a task or session shows it.
type row struct {
	id   int64 // seq of a task, cursor of a session
	task string
	seq  int64
	text string
}

// checkStreamed compares what one stream got, over all its reconnections, with
// what is stored.
func checkStreamed(streamed, stored []row) error {
	for i, want := range stored {
		if i >= len(streamed) {
			return fmt.Errorf("%w: got %d of %d events, missing %+v", errBrokeStreamed, len(streamed), len(stored), want)
		}
		if streamed[i] != want {
			return fmt.Errorf("%w: event %d is %+v, want %+v", errBrokeStreamed, i, streamed[i], want)
		}
	}
	if len(streamed) > len(stored) {
		return fmt.Errorf("%w: %d events too many, first %+v", errBrokeStreamed, len(streamed)-len(stored), streamed[len(stored)])
	}
	return nil
}

// checkTimeline compares a session's timeline with the stored events of its tasks.
func checkTimeline(timeline []row, stored []record) error {
	type id struct {
		task string
		seq  int64
	}
	revisions := map[id]uint64{}
	for _, r := range stored {
		revisions[id{r.task, r.seq}] = r.revision
	}
	last := uint64(0)
	for i, r := range timeline {
		rev, ok := revisions[id{r.task, r.seq}]
		switch {
		case !ok:
			return fmt.Errorf("%w: %s/%d is not there, or twice", errBrokeOrder, r.task, r.seq)
		case r.id != int64(i+1):
			return fmt.Errorf("%w: cursor %d is the %d. event", errBrokeOrder, r.id, i+1)
		case rev <= last:
			return fmt.Errorf("%w: cursor %d is of revision %d, behind %d", errBrokeOrder, r.id, rev, last)
		}
		last = rev
		delete(revisions, id{r.task, r.seq})
	}
	for missing := range revisions {
		return fmt.Errorf("%w: %d events are missing, %s/%d is one", errBrokeOrder, len(revisions), missing.task, missing.seq)
	}
	return nil
}
