// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"errors"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// Later stores the ends of requests, and repeats those for which the disk has no room. They wait in memory. Since no request
// begins on a full disk, they are at most as many as requests were open. A server that stops loses them: the ledger then has
// a gap for each, and Budgets are charged what was reserved.
type Later struct {
	clock clock.WithDelayedExecution

	mu      sync.Mutex
	waiting []end
	pause   time.Duration // until the next try; 0 if nothing waits
}

// end is what is to be stored, and what happens if that fails for another reason than a full disk.
type end struct {
	store  func() error
	failed func(error)
}

// Pauses between tries.
const (
	firstTry = 100 * time.Millisecond
	lastTry  = 2 * time.Second
)

// NewLater returns an empty Later.
func NewLater(c clock.WithDelayedExecution) *Later { return &Later{clock: c} }

// Do stores an end now, or once there is room. It does not wait for that. failed is called if the end is lost.
func (l *Later) Do(log klog.Logger, store func() error, failed func(error)) {
	err := store()
	switch {
	case err == nil:
	case errors.Is(err, engine.ErrFull):
		log.Info("The end of a model request is stored once the disk has room", "err", err)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.waiting = append(l.waiting, end{store, failed})
		if l.pause == 0 {
			l.pause = firstTry
			l.retry()
		}
	default:
		failed(err)
	}
}

// retry calls again after the pause. The caller holds mu.
func (l *Later) retry() {
	l.clock.AfterFunc(l.pause, func() { go l.again() }) // ends when all are stored, or with the first that finds no room
}

// again tries all that wait, in their order, until one finds no room.
func (l *Later) again() {
	for {
		l.mu.Lock()
		if len(l.waiting) == 0 {
			l.pause = 0
			l.mu.Unlock()
			return
		}
		one := l.waiting[0]
		l.mu.Unlock()
		err := one.store() // only this function removes elements
		l.mu.Lock()
		if errors.Is(err, engine.ErrFull) {
			l.pause = min(2*l.pause, lastTry)
			l.retry()
			l.mu.Unlock()
			return
		}
		l.waiting = l.waiting[1:]
		l.mu.Unlock()
		if err != nil {
			one.failed(err)
		}
	}
}

// startRefused returns the API error of a request that is not sent because its start cannot be stored on a full disk, and
// other errors as they are.
func startRefused(err error) error {
	if !errors.Is(err, engine.ErrFull) {
		return err
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInsufficientStorage, Reason: "InsufficientStorage",
		Message: "the model request cannot be recorded, and was not sent: " + err.Error(),
	}}
}
