// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/executor"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker/spool"
)

const (
	// deliveryTime is how long a worker whose work is over may take, beyond the run's deadline, to
	// send its results to this server. After that, another worker is started for the rest.
	deliveryTime = 5 * time.Minute
	// maxDeliveries is how many workers are started to deliver one run. A worker waits while the
	// server is away, so an outage does not use them up.
	maxDeliveries = 5
)

// deliveryTime returns, once, how much longer a run may take of which only the delivery is
// left; false for a run that still works.
func (r *run) deliveryTime() (time.Duration, bool) {
	if r.late || r.rec.First == nil && !spool.Ended(filepath.Join(r.dir, spoolName)) {
		return 0, false
	}
	r.late = true
	return deliveryTime, true
}

// lateCause returns why a run that exceeded its time is ended. It is not the deadline if the work was done by then.
func (r *run) lateCause() executor.Cause {
	if r.late {
		return ""
	}
	return executor.CauseDeadline
}

// settleSpool takes into account what a run left to be delivered. The spool says how the work
// ended; that becomes the outcome when the server has everything.
func (r *record) settleSpool(dir string) {
	ended := spool.Ended(dir)
	if r.First != nil && !ended {
		r.setOutcome(*r.First) // the outcome of the delivery does not count
	}
	// A run that was stopped need not deliver anything.
	left := spool.Undelivered(dir)
	r.Undelivered = left && r.Cause != executor.CauseStopped && r.Deliveries < maxDeliveries
	if r.Termination != nil || !ended {
		return
	}
	r.State, r.Message = stateExited, ""
	r.Termination = &runspec.Termination{
		Reason: v1alpha1.ReasonResultNotSubmitted, Message: "the work is done, but its result did not reach the server", ExitCode: runspec.ExitUnavailable,
	}
	if end, err := spool.ReadEnd(dir); err == nil && end != nil && !left {
		r.Termination = &end.Termination // it was killed after the last byte
	}
	if r.Signal == "" {
		r.ExitCode = r.Termination.ExitCode
	}
}

// notBegun reports whether the worker reported that it got no credentials. Then nothing was
// done, and the attempt may be started again.
func (r *record) notBegun() bool {
	return r.First == nil && r.Termination != nil && r.Termination.Reason == v1alpha1.ReasonNotBegun
}

// Deliver starts a worker for what a run left. See executor.Executor.
func (e *Executor) Deliver(_ context.Context, ref executor.Ref, token string) (executor.State, error) {
	if err := checkRef(ref); err != nil {
		return executor.State{}, err
	}
	r := newRun(e, executor.Run{Ref: ref})
	if other, err := e.reserve(r); err != nil {
		return executor.State{}, err
	} else if other != nil {
		return *other, nil
	}
	rec, err := readRecord(r.dir)
	if err != nil || !rec.state().Undelivered {
		e.release(r)
		if err != nil {
			return executor.State{}, err
		}
		return rec.state(), nil
	}
	if err := r.deliver(*rec, token); err != nil {
		e.release(r)
		return executor.State{}, fmt.Errorf("deliver %s: %w", ref, err)
	}
	e.mu.Lock()
	delete(e.unsaved, keyOf(ref))
	e.mu.Unlock()
	e.watches.Go(r.watch)
	return r.state(), nil
}

// deliver starts the worker. After an error the run is as it was.
func (r *run) deliver(rec record, token string) error {
	credentials, err := json.Marshal(runspec.Credentials{Token: token})
	if err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	before := rec
	if rec.First == nil {
		first := rec.outcome()
		rec.First = &first
	}
	rec.setOutcome(outcome{State: stateRunning})
	rec.Deliveries++
	rec.BootID, rec.FinishedAt = r.e.bootID, time.Time{}
	r.rec = rec
	// The termination of the last worker is that of one that did not deliver.
	if err := os.Remove(filepath.Join(r.dir, terminationName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("run folder: %w", err)
	}
	spec := executor.Run{Ref: rec.ref()}
	stdin, err := r.spawn(spec)
	if err != nil {
		return err
	}
	if err := r.confirm(spec); err != nil {
		_ = stdin.Close()
		return errors.Join(err, r.discard(), before.write(r.dir))
	}
	giveCredentials(stdin, append(credentials, '\n'))
	return nil
}
