// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package later stores what a full disk has no room for once there is room.
package later

import (
	"errors"
	"sync"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// Queue repeats writes for which the disk has no room, in their order. They wait in memory, so a server that stops loses them; who uses
// a Queue says what that means, and what bounds how many wait. It is safe for concurrent use.
type Queue struct {
	clock clock.WithDelayedExecution
	// trying is held while those that wait are tried. It is locked before mu.
	trying sync.Mutex

	mu      sync.Mutex
	waiting []write
	pause   time.Duration // until the next try; 0 if nothing waits
}

// write is what is to be stored, and what happens if that fails for another reason than a full disk.
type write struct {
	store  func() error
	failed func(error)
}

// Pauses between tries.
const (
	firstTry = 100 * time.Millisecond
	lastTry  = 2 * time.Second
)

// New returns an empty Queue.
func New(c clock.WithDelayedExecution) *Queue { return &Queue{clock: c} }

// Do stores something now, or once there is room; what names it in the log. It does not wait for that. failed is called if it is lost.
// store may be called several times.
func (q *Queue) Do(log klog.Logger, what string, store func() error, failed func(error)) {
	err := store()
	switch {
	case err == nil:
	case errors.Is(err, engine.ErrFull):
		log.Info("Something is stored once the disk has room", "what", what, "err", err)
		q.mu.Lock()
		defer q.mu.Unlock()
		q.waiting = append(q.waiting, write{store, failed})
		if q.pause == 0 {
			q.pause = firstTry
			q.retry()
		}
	default:
		failed(err)
	}
}

// retry calls again after the pause. The caller holds mu.
func (q *Queue) retry() {
	q.clock.AfterFunc(q.pause, func() { go q.again() }) // ends when all are stored, or with the first that finds no room
}

// again tries all that wait, and calls itself after a longer pause if one finds no room.
func (q *Queue) again() {
	err := q.Flush()
	q.mu.Lock()
	defer q.mu.Unlock()
	if err == nil && len(q.waiting) == 0 {
		q.pause = 0
		return
	}
	q.pause = min(2*q.pause, lastTry)
	q.retry()
}

// Flush tries all that wait now, in their order, until one finds no room, whose error it returns. It is for who must not store something
// before them.
func (q *Queue) Flush() error {
	q.trying.Lock()
	defer q.trying.Unlock()
	for {
		q.mu.Lock()
		if len(q.waiting) == 0 {
			q.mu.Unlock()
			return nil
		}
		one := q.waiting[0]
		q.mu.Unlock()
		err := one.store() // only this function removes elements
		if errors.Is(err, engine.ErrFull) {
			return err
		}
		q.mu.Lock()
		q.waiting = q.waiting[1:]
		q.mu.Unlock()
		if err != nil {
			one.failed(err)
		}
	}
}
