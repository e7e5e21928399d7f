// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"fmt"
	"time"
)

// Ready returns nil while the store works, can open files, and its disk answers. If nothing was asked of the disk for a
// while, it has the mark written again, and the next call knows whether that took too long.
func (e *Engine) Ready() error {
	if err := e.Healthy(); err != nil {
		return err
	}
	if err := e.wait.lacks(); err != nil {
		return err
	}
	if err := e.degraded.Load(); err != nil && Exhausted(*err) {
		return fmt.Errorf("background work: %w", *err)
	}
	if e.disk.idle() && e.marked != nil && e.acquire() == nil {
		if e.probing.CompareAndSwap(false, true) {
			go e.probe()
		} else {
			e.release()
		}
	}
	return e.disk.hangs()
}

// probe writes the mark.
func (e *Engine) probe() {
	defer e.release()
	defer e.probing.Store(false)
	if err := e.marked.refresh(); err != nil {
		e.log.Error(err, "The mark of the store cannot be written")
	}
}

// slow counts an operation of the disk that takes too long.
func (e *Engine) slow(took time.Duration) {
	e.metrics.slowDisk.Inc()
	e.log.Error(nil, "The disk does not answer", "dir", e.opts.Dir, "duration", took)
}
