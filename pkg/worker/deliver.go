// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker/client"
	"github.com/platform-ai/platform/pkg/worker/runner"
	"github.com/platform-ai/platform/pkg/worker/spool"
)

// openSpool opens the run's spool, and queues what an earlier worker left in it.
func (w *worker) openSpool() error {
	if w.config.SpoolDir == "" {
		return nil
	}
	s, err := spool.Open(w.config.SpoolDir)
	if err != nil {
		return err
	}
	w.spool = s
	w.events.out.journal, w.log.out.journal = s.Events, s.Log
	for _, r := range s.PendingEvents {
		e := &v1alpha1.ExecutionEvent{}
		if json.Unmarshal(r.Data, e) == nil {
			w.events.out.restore(e, r.End)
		}
	}
	for _, r := range s.PendingLog {
		w.log.out.restore(string(r.Data), r.End)
	}
	s.PendingEvents, s.PendingLog = nil, nil
	return nil
}

func (w *worker) closeSpool(log klog.Logger) {
	if w.spool == nil {
		return
	}
	if err := w.spool.Close(); err != nil {
		log.Error(err, "Cannot close the spool")
	}
}

// keep stores in the spool how the work ended, before any of it is sent.
func (w *worker) keep(ctx context.Context, end spool.End) {
	if w.spool == nil || notOurs(end) || end.Termination.Reason == v1alpha1.ReasonServerUnreachable {
		return
	}
	if err := w.spool.Keep(end); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot write the end of the work to disk")
	}
}

// notOurs reports whether the task of this name is now another one, to whose stream this worker
// must not write.
func notOurs(end spool.End) bool { return end.Termination.Reason == v1alpha1.ReasonTaskReplaced }

// conclude describes how the work ended.
func conclude(d runner.Result, err error, s *secrets) spool.End {
	end := spool.End{Result: fitResult(d.Text, s), Content: d.Content, Termination: runspec.Termination{Reason: v1alpha1.ReasonCompleted, ExitCode: runspec.ExitSucceeded}}
	if err != nil {
		f := classify(err)
		end.Termination = cleanTermination(f.Reason, f.Error(), f.Exit, s)
	}
	return end
}

// key returns the de-duplication key for something that is recorded once in an attempt,
// regardless of which worker delivers it.
func (w *worker) key(what string) string { return w.events.prefix + what }

// deliver uploads the artifacts and the result, and sends the last event and everything that is
// queued. It returns how the worker ends, and whether the server has everything.
func (w *worker) deliver(ctx context.Context, end spool.End) (spool.End, bool) {
	// This must happen even if ctx has ended, but then quickly.
	after, cancel := outlast(ctx, w.clock, 2*stopPatience)
	defer cancel()
	arrived := true
	if !notOurs(end) && end.Termination.Reason != v1alpha1.ReasonServerUnreachable {
		end, arrived = w.submit(after, end)
	}
	if arrived && !notOurs(end) {
		w.recordEnd(end)
	}
	events, lines := w.closeOutboxes(ctx)
	if events > 0 || lines > 0 {
		klog.FromContext(ctx).Info("The server lacks events or log lines of the run", "events", events, "logLines", lines)
	}
	arrived = arrived && !w.kept()
	if arrived && w.spool != nil {
		if err := w.spool.Delivered(); err != nil {
			klog.FromContext(ctx).Error(err, "Cannot mark the run as delivered; it may be delivered once more")
		}
	}
	return end, arrived
}

// outlast returns a context for the remaining work; it ends some time after ctx.
func outlast(ctx context.Context, clk clock.WithDelayedExecution, d time.Duration) (context.Context, context.CancelFunc) {
	after, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { clk.AfterFunc(d, cancel) })
	return after, func() { stop(); cancel() }
}

// submit uploads the artifacts, what changed in the workspace, and the result. A failed run uploads what it produced; its own
// error remains the one that is reported. submit reports whether the server has answered every
// upload.
func (w *worker) submit(ctx context.Context, end spool.End) (spool.End, bool) {
	err := w.submitArtifacts(ctx, end.Artifacts)
	if err == nil && end.Delta {
		err = w.submitDelta(ctx)
	}
	if err == nil {
		err = w.submitResult(ctx, end.Result)
	}
	if err == nil {
		return end, true
	}
	if end.Termination.ExitCode == runspec.ExitSucceeded {
		end.Termination = cleanTermination(v1alpha1.ReasonResultNotSubmitted, "the work is done, but its result did not reach the server: "+err.Error(), runspec.ExitUnavailable, w.secret)
	}
	return end, !undelivered(ctx, err)
}

// undelivered reports whether another worker may still deliver what failed with err, because
// the server did not refuse it.
func undelivered(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || errors.Is(err, client.ErrToken))
}

// recordEnd records the worker's last event.
func (w *worker) recordEnd(end spool.End) {
	content := map[string]any{"attempt": w.config.Attempt}
	maps.Copy(content, end.Content)
	t := end.Termination
	if t.ExitCode == runspec.ExitSucceeded {
		w.events.Record(event.New(v1alpha1.EventWorkerCompleted, v1alpha1.SeverityInfo, w.key("end"), "the work is done", content))
		return
	}
	content["reason"], content["exitCode"] = t.Reason, t.ExitCode
	w.events.Record(event.New(v1alpha1.EventWorkerFailed, v1alpha1.SeverityError, w.key("end"), t.Message, content))
}

// closeOutboxes sends what is queued, and returns how many items were lost. A worker that was
// asked to stop, before or meanwhile, allows only a moment for it.
func (w *worker) closeOutboxes(ctx context.Context) (events, lines int) {
	defer context.AfterFunc(ctx, func() {
		w.clock.AfterFunc(stopPatience, func() {
			w.events.out.cancel()
			w.log.out.cancel()
		})
	})()
	var both sync.WaitGroup
	both.Go(func() { events = w.events.out.close(endPatience) })
	both.Go(func() { lines = w.log.close(endPatience) })
	both.Wait()
	return events, lines
}

// kept reports whether the spool holds events or log that the server lacks.
func (w *worker) kept() bool {
	return w.spool != nil && (w.spool.Events.Pending() || w.spool.Log.Pending())
}

// redeliver sends what is left in the spool of a run whose worker is gone, and returns how that
// worker ended. It returns an error if it could not send everything, or if the work never
// ended, which is for the executor to judge.
func (w *worker) redeliver(ctx context.Context) (spool.End, error) {
	end, err := spool.ReadEnd(w.config.SpoolDir)
	if err != nil {
		return spool.End{}, err
	}
	w.log.out.start(ctx)
	w.events.out.start(ctx)
	if end == nil {
		w.closeOutboxes(ctx)
		if w.kept() {
			return spool.End{}, errors.New("events or log lines could not be delivered")
		}
		return spool.End{}, errors.Join(fmt.Errorf("attempt %d broke off before its end; its events and its log were delivered", w.config.Attempt), w.spool.Delivered())
	}
	ended, arrived := w.deliver(ctx, *end)
	if !arrived {
		return ended, errors.New(ended.Termination.Message)
	}
	return ended, nil
}
