// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"context"

	"k8s.io/utils/clock"
)

// End stops the runs that go on in a folder although their server has ended, waits until they are over, and returns how many
// these were. What they left is delivered once a server uses the folder again. It returns ErrLocked if a server does.
func End(ctx context.Context, dir string, c clock.WithTicker) (int, error) {
	e, err := Open(ctx, Options{Dir: dir, Command: []string{"none"}, Clock: c}) // it starts no worker
	if err != nil {
		return 0, err
	}
	runs := e.running()
	over := make(chan struct{})
	go func() {
		defer close(over)
		e.watches.Wait()
	}()
	for _, r := range runs {
		r.requestStop()
	}
	select {
	case <-over:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if closed := e.Close(); err == nil {
		err = closed
	}
	return len(runs), err
}

// Running returns how many runs are not over.
func (e *Executor) Running() int { return len(e.running()) }

func (e *Executor) running() []*run {
	e.mu.Lock()
	defer e.mu.Unlock()
	runs := make([]*run, 0, len(e.live))
	for _, r := range e.live {
		runs = append(runs, r)
	}
	return runs
}
