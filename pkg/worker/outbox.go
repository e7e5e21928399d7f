// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// maxBatchItems and maxBatchBytes bound one request.
	maxBatchItems = 100
	maxBatchBytes = 512 << 10
	// maxQueueBytes bounds what waits while the API is away.
	maxQueueBytes = 32 << 20
)

// outbox sends items to the API in order, without making their producer wait.
// While one request is under way the next batch gathers by itself, so that a
// quiet run sends each item at once and a busy one sends many together.
//
// An outbox neither loses nor reorders while the API is away for a time: it
// tries again, the same batch first, until close has run out of patience. What
// it must drop, because the server refuses it for good or the queue is full, it counts.
type outbox[T any] struct {
	name string
	// send delivers a batch. It may be called again with the same batch after an
	// error, so what it does must be repeatable.
	send func(context.Context, []T) error
	size func(T) int
	// window is how long a first item waits for others.
	window time.Duration
	// windowed, if there is one, is called after each window.
	windowed func()
	clock    clock.Clock

	// mu guards what follows.
	mu    sync.Mutex
	queue []T
	bytes int
	lost  int
	// shut: the server takes no more. ending: close was called.
	shut, ending bool
	// refusal is why the server last refused an item.
	refusal error
	// empty are closed when nothing is queued any more.
	empty []chan struct{}

	wake   chan struct{}
	done   chan struct{}
	cancel context.CancelFunc
}

// start begins to send. The goroutine ends with close.
func (o *outbox[T]) start(ctx context.Context) {
	ctx, o.cancel = context.WithCancel(context.WithoutCancel(ctx)) //nolint:gosec // close calls it
	o.wake, o.done = make(chan struct{}, 1), make(chan struct{})
	go o.loop(ctx)
}

// add puts an item at the end. It never blocks.
func (o *outbox[T]) add(item T) {
	n := o.size(item)
	o.mu.Lock()
	if o.shut || o.bytes+n > maxQueueBytes {
		o.lost++
	} else {
		o.queue = append(o.queue, item)
		o.bytes += n
	}
	o.mu.Unlock()
	o.signal()
}

func (o *outbox[T]) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// close sends what is left, for at most the given time, and returns the
// number of items that were lost. Nothing may be added afterwards.
func (o *outbox[T]) close(patience time.Duration) int {
	o.mu.Lock()
	o.ending = true
	o.mu.Unlock()
	o.signal()
	t := o.clock.NewTimer(patience)
	defer t.Stop()
	select {
	case <-o.done:
	case <-t.C():
	}
	o.cancel()
	<-o.done
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lost += len(o.queue)
	o.queue = nil
	o.tellEmpty()
	return o.lost
}

// flush returns when everything that was added has been accepted. The error is
// that of ctx, or tells that items were lost since before, which lostSoFar gave.
func (o *outbox[T]) flush(ctx context.Context, before int) error {
	o.mu.Lock()
	done := make(chan struct{})
	if len(o.queue) == 0 {
		close(done)
	} else {
		o.empty = append(o.empty, done)
	}
	o.mu.Unlock()
	select {
	case <-done:
	case <-ctx.Done():
		return ctx.Err()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.lost == before:
		return nil
	case o.refusal != nil:
		return fmt.Errorf("%s: the server refused: %w", o.name, o.refusal)
	default:
		return fmt.Errorf("%s: too much is queued", o.name)
	}
}

// lostSoFar is the number of items that were lost.
func (o *outbox[T]) lostSoFar() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lost
}

// tellEmpty wakes those who flush. The caller holds mu.
func (o *outbox[T]) tellEmpty() {
	if len(o.queue) > 0 {
		return
	}
	for _, done := range o.empty {
		close(done)
	}
	o.empty = nil
}

func (o *outbox[T]) loop(ctx context.Context) {
	defer close(o.done)
	for {
		batch, ending := o.next()
		if len(batch) > 0 {
			if !o.deliver(ctx, batch) {
				return
			}
			continue
		}
		if ending {
			return
		}
		select {
		case <-o.wake:
		case <-ctx.Done():
			return
		}
		o.gather(ctx)
	}
}

// gather waits a window long for more, unless the end is near.
func (o *outbox[T]) gather(ctx context.Context) {
	o.mu.Lock()
	wait := o.window > 0 && !o.ending
	o.mu.Unlock()
	if !wait {
		return
	}
	sleep(ctx, o.clock, o.window)
	if o.windowed != nil {
		o.windowed()
	}
}

// next returns the items that go into one request; they stay in the queue.
func (o *outbox[T]) next() (batch []T, ending bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	bytes := 0
	for _, item := range o.queue[:min(len(o.queue), maxBatchItems)] {
		bytes += o.size(item)
		if len(batch) > 0 && bytes > maxBatchBytes {
			break
		}
		batch = append(batch, item)
	}
	return batch, o.ending
}

// deliver sends a batch until it is accepted or refused for good. It reports
// false when ctx ended first.
func (o *outbox[T]) deliver(ctx context.Context, batch []T) bool {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := o.send(ctx, batch)
		switch {
		case err == nil:
			o.settle(len(batch), nil)
			return true
		case ctx.Err() != nil:
			return false
		case temporary(err):
			if !sleep(ctx, o.clock, pause) {
				return false
			}
		case unfit(err) && len(batch) > 1:
			// One of them is bad; the others are not to suffer.
			for i := range batch {
				if !o.deliver(ctx, batch[i:i+1]) {
					return false
				}
			}
			return true
		case unfit(err):
			klog.FromContext(ctx).Info("The server refused an item", "outbox", o.name, "err", err.Error())
			o.settle(1, err)
			return true
		default:
			klog.FromContext(ctx).Info("The server takes no more items", "outbox", o.name, "err", err.Error())
			o.shutDown(err)
			return true
		}
	}
}

// settle takes n items from the front of the queue: accepted, or refused with an error.
func (o *outbox[T]) settle(n int, refused error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, item := range o.queue[:n] {
		o.bytes -= o.size(item)
	}
	o.queue = o.queue[n:]
	if refused != nil {
		o.lost += n
		o.refusal = refused
	}
	o.tellEmpty()
}

func (o *outbox[T]) shutDown(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lost += len(o.queue)
	o.queue, o.bytes, o.shut, o.refusal = nil, 0, true, err
	o.tellEmpty()
}

// unfit reports whether the server will never take this item, but may take others.
func unfit(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch status.Status().Code {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	default:
		return false
	}
}
