// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package remoteagent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/platform-ai/platform/pkg/harness"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/worker/client"
)

// promptID is the name of the only prompt of a session.
const promptID = "prompt"

// errLease is in the chain of the error for a prompt whose lease may have ended.
var errLease = errors.New("the lease of the prompt was lost")

// prompt has the agent answer the prompt of the task, and returns the result that the runtime reports. If ctx ends, the prompt is
// cancelled, and its result is awaited for a moment.
func (r *run) prompt(ctx context.Context) (*harness.Result, error) {
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	defer context.AfterFunc(ctx, func() { r.cancel(life, end) })()
	spec := harness.PromptSpec{Texts: r.question, LeaseMillis: r.Remote.LeaseMillis, MaxTurns: int64(plan.MaxTurns(r.Task, r.plan.Agent))}
	var stream *harness.Stream
	err := r.again(ctx, func(context.Context) (err error) {
		stream, err = r.session.Start(life, r.operation("start"), promptID, spec)
		return err
	})
	if err != nil {
		return nil, err
	}
	r.talk.RecordPrompt(spec.Texts)
	keeping, release := context.WithCancel(life)
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		if err := r.session.Keep(keeping, promptID, r.Remote.LeaseMillis); err != nil {
			r.lost(keeping, end, err)
		}
	}()
	result, err := r.follow(life, stream)
	release()
	<-kept
	return result, err
}

// cancel cancels the prompt, and gives it up if it has not ended soon.
func (r *run) cancel(life context.Context, end context.CancelCauseFunc) {
	ctx, stop := context.WithTimeout(life, cancelGrace)
	defer stop()
	if _, err := r.session.Cancel(ctx, r.operation("cancel"), promptID, "the run was stopped"); err != nil {
		r.Log.Line("the prompt could not be cancelled: %v", err)
	}
	<-ctx.Done() // life ends when the result has come
	end(context.DeadlineExceeded)
}

// lost ends the reading of a prompt whose lease could not be renewed. Its result may still come within one lease.
func (r *run) lost(keeping context.Context, end context.CancelCauseFunc, err error) {
	r.Log.Line("the lease could not be renewed: %v", err)
	wait := r.lease
	if harness.Refused(err, harness.StaleEpoch) || harness.Refused(err, harness.WrongInstance) {
		wait = 0
	} else {
		err = fmt.Errorf("%w: %w", errLease, err)
	}
	if client.Sleep(keeping, r.clock, wait) {
		end(err)
	}
}

// follow reads the events of the prompt until its result. A stream that was cut is read on from where it ended.
func (r *run) follow(life context.Context, stream *harness.Stream) (*harness.Result, error) {
	t := newTranslator(life, r)
	defer t.close()
	for {
		result, err := t.read(stream) //nolint:contextcheck // the translator has that of the prompt, which outlives a stream
		last := stream.Last()
		_ = stream.Close() // it was only read
		if result != nil {
			return result, nil
		}
		if cause := context.Cause(life); cause != nil {
			return nil, cause
		}
		if !errors.Is(err, harness.ErrCut) {
			return nil, err
		}
		r.Log.Line("the stream of events is read on from event %d: %v", last, err)
		err = r.again(life, func(context.Context) (err error) {
			stream, err = r.session.Resume(life, promptID, last)
			if gone, ok := errors.AsType[*harness.Error](err); ok && gone.Reason == harness.EventsGone {
				r.Log.Line("the runtime has forgotten what happened before event %d", gone.FirstSeq)
				stream, err = r.session.Resume(life, promptID, gone.FirstSeq-1)
			}
			return err
		})
		if cause := context.Cause(life); cause != nil {
			return nil, cause
		}
		if err != nil {
			return nil, err
		}
	}
}

// tidy deletes the session, which ends whatever goes on in it.
func (r *run) tidy(ctx context.Context) {
	patience := tidyPatience
	if ctx.Err() != nil {
		patience = deleteGrace
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer stop()
	var err error
	for pause := firstPause; ; pause = min(2*pause, time.Second) {
		err = r.session.Delete(ctx, deletion(uint64(r.Attempt)))
		if !errors.Is(err, harness.ErrUnreachable) && !busy(err) || !client.Sleep(ctx, r.clock, pause) {
			break
		}
	}
	if err != nil && !harness.Refused(err, harness.NotFound) {
		r.Log.Line("the session %s could not be deleted at the runtime: %v", r.sessionID(), err)
	}
}
