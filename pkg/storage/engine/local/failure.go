// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// failure is the reason why the store stopped for good.
type failure struct {
	cause error
	stuck bool // Pebble panicked, and cannot be closed
}

func (f *failure) err() error { return fmt.Errorf("%w: %w", engine.ErrFailed, f.cause) }

// fail stops the store. If a write may or may not be on disk, neither success nor failure is a correct
// answer, and after a failed fsync the kernel may have dropped the data.
func (e *Engine) fail(cause error) {
	if e.failure.CompareAndSwap(nil, &failure{cause: cause, stuck: errors.Is(cause, errPebble)}) {
		e.opts.OnFatal(e.failure.Load().err())
	}
}

// pebbleLog is Pebble's logger.
type pebbleLog struct{ e *Engine }

var _ pebble.Logger = pebbleLog{}

func (l pebbleLog) Infof(format string, args ...any) {
	if log := l.e.log.V(5); log.Enabled() {
		log.Info("Pebble", "message", fmt.Sprintf(format, args...))
	}
}

func (l pebbleLog) Errorf(format string, args ...any) {
	l.e.log.Error(nil, "Pebble", "message", fmt.Sprintf(format, args...))
}

// Fatalf must not return, because Pebble would continue in a state that it considers impossible. On a
// writer's own goroutine it unwinds to guard; on one of Pebble's goroutines it blocks.
func (l pebbleLog) Fatalf(format string, args ...any) {
	err := fmt.Errorf("%w: "+format, append([]any{errPebble}, args...)...)
	if strings.HasPrefix(format, "pebble: fatal commit error") {
		panic(err)
	}
	if l.e.wait.open.Load() {
		l.e.fail(err)
	} else {
		l.e.wait.fail(err)
	}
	select {}
}

// events returns a listener that keeps the outcome of background work for Healthy.
func (e *Engine) events() *pebble.EventListener {
	done := func(err error) {
		if err == nil && e.degraded.Swap(nil) != nil {
			e.log.Info("Background work of the store succeeds again")
		}
	}
	l := &pebble.EventListener{
		BackgroundError: func(err error) {
			e.metrics.backgroundErrors.Inc()
			if e.degraded.Swap(&err) == nil { // log only the first error, because Pebble retries at once and repeatedly
				e.log.Error(err, "Background work of the store failed, retrying")
			}
		},
		FlushEnd:      func(i pebble.FlushInfo) { done(i.Err) },
		CompactionEnd: func(i pebble.CompactionInfo) { done(i.Err) },
		WriteStallBegin: func(i pebble.WriteStallBeginInfo) {
			e.metrics.stalls.Inc()
			e.log.Info("Writes are stalled until background work catches up", "reason", i.Reason)
		},
	}
	l.DataCorruption = e.damage.note
	if e.opts.OnCorruption != nil {
		l.DataCorruption = func(i pebble.DataCorruptionInfo) { e.opts.OnCorruption(fmt.Errorf("%s: %w", i.Path, i.Details)) }
	}
	return l
}
