// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/worker/client"
	"github.com/platform-ai/platform/pkg/worker/spool"
)

const (
	// maxBatchItems and maxBatchBytes bound one request. What arrives while a request is under way goes with the next, so
	// a slow way to the server makes larger requests and not a lower rate: 10,000 events a second at 50 ms a request.
	maxBatchItems = 500
	maxBatchBytes = 512 << 10
	// maxQueueBytes bounds what is queued while the API is unavailable.
	maxQueueBytes = 32 << 20
)

// outbox sends items to the API in order, without making their producer wait. Items that are
// added during a request form the next batch, so a quiet run sends each item at once and a busy
// one sends many together.
//
// An outbox neither loses nor reorders items while the API is temporarily unavailable: it
// repeats the same batch until it succeeds or the patience given to close runs out. It counts
// the items that it must drop because the server refuses them permanently or the queue is full.
//
// With a journal, items are on disk before they are sent, and stay there until the server has
// accepted or refused them.
//
//large:fields how a queue sends, and the queue with all that changes with it under one lock
type outbox[T any] struct {
	name string
	// journal keeps what is queued; nil for none. encode makes a record of an item.
	journal *spool.File
	encode  func(T) ([]byte, error)
	// send delivers a batch. After an error it may be called again with the same batch, so it must
	// be idempotent.
	send func(context.Context, []T) error
	size func(T) int
	// window is how long a first item waits for others.
	window time.Duration
	// opening is how long the very first item waits for others instead, unless flush is called. A short run then sends all
	// that it has in one request.
	opening time.Duration
	// windowed, if not nil, is called after each window.
	windowed func()
	clock    clock.Clock

	// mu guards what follows.
	mu    sync.Mutex
	queue []T
	// sizes holds the size of each item of queue.
	sizes []int
	// ends holds, for each item of queue, the offset after it in the journal; 0 for an item that
	// is not in the journal.
	ends  []int64
	bytes int
	lost  int
	// unkept is set when the journal failed to store an item, which is logged once.
	unkept bool
	// shut means that the server accepts no more items; ending means that close was called.
	shut, ending bool
	// refusal is why the server last refused an item.
	refusal error
	// empty holds channels that are closed when the queue is empty.
	empty []chan struct{}

	wake chan struct{}
	done chan struct{}
	// rush ends the opening.
	rush chan struct{}
	// hurry is closed by close, to end the current window and all later ones at once.
	hurry  chan struct{}
	cancel context.CancelFunc
}

// start starts the goroutine that sends. It ends with close.
func (o *outbox[T]) start(ctx context.Context) {
	ctx, o.cancel = context.WithCancel(context.WithoutCancel(ctx)) //nolint:gosec // close calls it
	o.wake, o.rush, o.done, o.hurry = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	go o.loop(ctx)
}

// add puts an item at the end. It never blocks.
func (o *outbox[T]) add(item T) {
	n := o.size(item)
	o.mu.Lock()
	if o.shut || o.bytes+n > maxQueueBytes {
		o.lost++
	} else {
		o.queue, o.sizes, o.ends = append(o.queue, item), append(o.sizes, n), append(o.ends, o.keep(item))
		o.bytes += n
	}
	o.mu.Unlock()
	o.signal()
}

// keep puts an item into the journal and returns the offset after it. It returns 0 if that
// fails: the item can still be sent, even if the disk is full. The caller holds mu.
func (o *outbox[T]) keep(item T) int64 {
	if o.journal == nil {
		return 0
	}
	record, err := o.encode(item)
	if err == nil {
		var end int64
		if end, err = o.journal.Append(record); err == nil {
			return end
		}
	}
	if !o.unkept {
		o.unkept = true
		klog.Background().Error(err, "Cannot write unsent data to disk", "outbox", o.name)
	}
	return 0
}

// restore queues an item that an earlier worker kept. It is called before start.
func (o *outbox[T]) restore(item T, end int64) {
	n := o.size(item)
	o.queue, o.sizes, o.ends = append(o.queue, item), append(o.sizes, n), append(o.ends, end)
	o.bytes += n
}

func (o *outbox[T]) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// close sends what is left, for at most the time patience, and returns the number of items that
// were lost. Nothing may be added afterwards.
func (o *outbox[T]) close(patience time.Duration) int {
	o.mu.Lock()
	if !o.ending {
		o.ending = true
		close(o.hurry)
	}
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
	o.queue, o.sizes, o.ends = nil, nil, nil
	o.tellEmpty()
	return o.lost
}

// flush returns when everything that was added has been accepted. The error is that of ctx, or
// reports that items were lost since lostSoFar returned before.
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
	case o.rush <- struct{}{}:
	default:
	}
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
		return fmt.Errorf("%s: the queue is full", o.name)
	}
}

// lostSoFar returns the number of items that were lost.
func (o *outbox[T]) lostSoFar() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lost
}

// tellEmpty wakes the callers of flush. The caller holds mu.
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

// gather waits for the length of a window for more items, unless close was called.
func (o *outbox[T]) gather(ctx context.Context) {
	window := cmp.Or(o.opening, o.window)
	o.opening = 0
	if window == 0 {
		return
	}
	t := o.clock.NewTimer(window)
	defer t.Stop()
	select {
	case <-t.C():
	case <-o.rush:
	case <-o.hurry:
		return
	case <-ctx.Done():
		return
	}
	if o.windowed != nil {
		o.windowed()
	}
}

// next returns the items that go into one request; they stay in the queue.
func (o *outbox[T]) next() (batch []T, ending bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	bytes := 0
	for i, item := range o.queue[:min(len(o.queue), maxBatchItems)] {
		bytes += o.sizes[i]
		if len(batch) > 0 && bytes > maxBatchBytes {
			break
		}
		batch = append(batch, item)
	}
	return batch, o.ending
}

// deliver sends a batch until it is accepted or permanently refused. An item over which the server fails each time is refused, too. It reports false if ctx
// ended first.
func (o *outbox[T]) deliver(ctx context.Context, batch []T) bool {
	return o.try(ctx, batch, client.Faults{Most: client.WorkFaults})
}

// aloneFaults is how often the server may fail over one item of a batch over which it has failed all the time.
const aloneFaults = 3

func (o *outbox[T]) try(ctx context.Context, batch []T, faults client.Faults) bool {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := o.send(ctx, batch)
		switch {
		case err == nil:
			o.settle(len(batch), nil)
			return true
		case ctx.Err() != nil:
			return false
		case faults.Again(err):
			if !client.Sleep(ctx, o.clock, max(pause, client.RetryAfter(err))) {
				return false
			}
		case unfit(err) && len(batch) > 1:
			// At least one item is bad. Send each one alone, so that the others are not lost.
			for i := range batch {
				if !o.try(ctx, batch[i:i+1], client.Faults{Most: aloneFaults}) {
					return false
				}
				if o.isShut() { // the rest of the batch is no longer queued
					return true
				}
			}
			return true
		case unfit(err):
			klog.FromContext(ctx).Info("The server refused an item", "outbox", o.name, "err", err.Error())
			o.settle(1, err)
			return true
		default:
			klog.FromContext(ctx).Info("The server accepts no more items", "outbox", o.name, "err", err.Error())
			o.shutDown(err)
			return true
		}
	}
}

// settle removes n items from the front of the queue. They were accepted if refused is nil.
func (o *outbox[T]) settle(n int, refused error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, size := range o.sizes[:n] {
		o.bytes -= size
	}
	o.acknowledge(n)
	o.queue, o.sizes, o.ends = o.queue[n:], o.sizes[n:], o.ends[n:]
	if refused != nil {
		o.lost += n
		o.refusal = refused
	}
	o.tellEmpty()
}

// acknowledge takes the first n items out of the journal. The caller holds mu.
func (o *outbox[T]) acknowledge(n int) {
	if o.journal == nil || n == 0 {
		return
	}
	// Items that are not in the journal have the offset 0; the other offsets increase.
	if err := o.journal.Acknowledge(slices.Max(o.ends[:n])); err != nil {
		klog.Background().Error(err, "Cannot record on disk what was sent; it may be sent once more", "outbox", o.name)
	}
}

// shutDown ends an outbox whose items the server no longer accepts. If the reason is the
// worker's token, another worker may deliver the items.
func (o *outbox[T]) shutDown(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lost += len(o.queue)
	if !errors.Is(err, client.ErrToken) {
		o.acknowledge(len(o.queue))
	}
	o.queue, o.sizes, o.ends, o.bytes, o.shut, o.refusal = nil, nil, nil, 0, true, err
	o.tellEmpty()
}

func (o *outbox[T]) isShut() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.shut
}

// unfit reports whether the server will never accept this item, but may accept others.
func unfit(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	if cancelled(err) { // others report what has been done
		return true
	}
	switch status.Status().Code {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusInternalServerError:
		return true
	default:
		return false
	}
}
