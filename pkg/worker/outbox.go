// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
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
//
// With a journal, items are on disk before they are sent, and stay there until
// they were accepted or refused.
type outbox[T any] struct {
	name string
	// journal keeps what is queued; nil for none. encode makes a record of an item.
	journal *spool.File
	encode  func(T) ([]byte, error)
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
	// ends are the offsets after the items of queue in the journal, 0 for one that
	// is not there.
	ends  []int64
	bytes int
	lost  int
	// unkept is set when the journal took no item, which is told once.
	unkept bool
	// shut: the server takes no more. ending: close was called.
	shut, ending bool
	// refusal is why the server last refused an item.
	refusal error
	// empty are closed when nothing is queued any more.
	empty []chan struct{}

	wake chan struct{}
	done chan struct{}
	// hurry is closed by close: no window is waited out any more.
	hurry  chan struct{}
	cancel context.CancelFunc
}

// start begins to send. The goroutine ends with close.
func (o *outbox[T]) start(ctx context.Context) {
	ctx, o.cancel = context.WithCancel(context.WithoutCancel(ctx)) //nolint:gosec // close calls it
	o.wake, o.done, o.hurry = make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	go o.loop(ctx)
}

// add puts an item at the end. It never blocks.
func (o *outbox[T]) add(item T) {
	n := o.size(item)
	o.mu.Lock()
	if o.shut || o.bytes+n > maxQueueBytes {
		o.lost++
	} else {
		o.queue, o.ends = append(o.queue, item), append(o.ends, o.keep(item))
		o.bytes += n
	}
	o.mu.Unlock()
	o.signal()
}

// keep puts an item into the journal and returns the offset after it, or 0: a full
// disk is no reason to lose what can be sent. The caller holds mu.
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
		klog.Background().Error(err, "What is to be sent is not kept on disk", "outbox", o.name)
	}
	return 0
}

// restore queues an item that an earlier worker kept. It is called before start.
func (o *outbox[T]) restore(item T, end int64) {
	o.queue, o.ends = append(o.queue, item), append(o.ends, end)
	o.bytes += o.size(item)
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
	o.queue, o.ends = nil, nil
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
	if o.window == 0 {
		return
	}
	t := o.clock.NewTimer(o.window)
	defer t.Stop()
	select {
	case <-t.C():
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
		case client.Temporary(err):
			if !client.Sleep(ctx, o.clock, pause) {
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
	o.acknowledge(n)
	o.queue, o.ends = o.queue[n:], o.ends[n:]
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
	// Items that are not in the journal have no offset; the others' grow.
	if err := o.journal.Acknowledge(slices.Max(o.ends[:n])); err != nil {
		klog.Background().Error(err, "What was sent stays on disk", "outbox", o.name)
	}
}

// shutDown ends an outbox whose items the server takes no more. What it refuses
// because of the worker's token another worker may bring.
func (o *outbox[T]) shutDown(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lost += len(o.queue)
	if !errors.Is(err, client.ErrToken) {
		o.acknowledge(len(o.queue))
	}
	o.queue, o.ends, o.bytes, o.shut, o.refusal = nil, nil, 0, true, err
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
