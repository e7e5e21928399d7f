// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package worker runs one attempt of one task and reports it: it reads the
// contract of package runspec, resolves what the task refers to through the
// API, runs it, and brings events, log, artifacts and result to the API.
//
// What must arrive and what may be lost: the result is required, and a run
// whose result was not accepted has failed. Events and the log are best
// effort: they never fail a run, but they survive an API that is away for a
// while, in order and without repetition.
package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/runspec"
)

const (
	// endPatience is how long the last events and log lines may take when the
	// API is away. The result has been accepted by then.
	endPatience = 2 * time.Minute
	// stopPatience is the same for a worker that was told to stop. An executor
	// gives it 10 s: commandGrace, twice this for what the run brought, and once
	// each for events and log.
	stopPatience = 1500 * time.Millisecond
)

// Main runs the worker and returns its exit code. It stops when ctx ends.
func Main(ctx context.Context, getenv func(string) string, stdin io.Reader) int {
	log := klog.FromContext(ctx)
	clk := clock.RealClock{}
	config, err := LoadConfig(getenv, stdin)
	if err != nil {
		return giveUp(ctx, getenv(runspec.EnvTerminationLog), err)
	}
	api, err := newAPI(config, clk)
	if err != nil {
		return giveUp(ctx, config.TerminationLog, err)
	}
	w := newWorker(config, api, clk)
	reason, message, code := w.run(ctx)
	if err := writeTermination(config.TerminationLog, termination(reason, message, code, w.secret)); err != nil {
		log.Error(err, "Termination was not written")
	}
	log.Info("Worker is done", "reason", reason, "exitCode", code)
	return code
}

// giveUp ends a worker that cannot even report to the API.
func giveUp(ctx context.Context, terminationLog string, err error) int {
	log := klog.FromContext(ctx)
	f := classify(err)
	log.Error(err, "Worker was started wrongly")
	if err := writeTermination(terminationLog, termination(f.reason, f.Error(), f.exit, &secrets{})); err != nil {
		log.Error(err, "Termination was not written")
	}
	return f.exit
}

// worker is one run.
type worker struct {
	config *Config
	api    *api
	clock  clock.Clock
	secret *secrets
	log    *taskLog
	events *recorder
	// post uploads raw bytes to a subresource of the task.
	post func(ctx context.Context, contentType string, body []byte, path ...string) error
}

func newWorker(c *Config, a *api, clk clock.Clock) *worker {
	w := &worker{config: c, api: a, clock: clk, secret: secretsOf(c)}
	w.log = newTaskLog(c, a, w.secret)
	w.events = newRecorder(c, a, w.secret, w.log)
	w.post = func(ctx context.Context, contentType string, body []byte, path ...string) error {
		return a.postBytes(ctx, c, contentType, body, path...)
	}
	return w
}

// done is what a run brought, whether it failed or not.
type done struct {
	// text is the result.
	text string
	// content goes into the worker's last event.
	content map[string]any
}

// run does the work and returns the termination.
func (w *worker) run(ctx context.Context) (reason, message string, code int) {
	w.log.out.start(ctx)
	w.events.out.start(ctx)
	d, err := w.work(ctx)
	// What follows must happen although ctx has ended, but then quickly.
	patience := endPatience
	after := context.WithoutCancel(ctx)
	if ctx.Err() != nil {
		patience = stopPatience
		limited, cancel := context.WithTimeout(after, 2*stopPatience)
		defer cancel()
		after = limited
	}
	err = w.deliver(after, d, err)
	reason, message, code = w.conclude(d, err)
	lost := w.events.out.close(patience)
	if lines := w.log.close(patience); lost > 0 || lines > 0 {
		klog.FromContext(ctx).Info("Not everything reached the server", "events", lost, "logLines", lines)
	}
	return reason, message, code
}

// work gets the task and runs it.
func (w *worker) work(ctx context.Context) (done, error) {
	var task *v1alpha1.Task
	err := patiently(ctx, w.clock, startPatience, func(ctx context.Context) (err error) {
		task, err = w.api.CoreV1alpha1().Tasks(w.config.TaskNamespace).Get(ctx, w.config.TaskName, metav1.GetOptions{})
		return err
	})
	switch {
	case ctx.Err() != nil:
		return done{}, fail(ReasonStopped, "the worker was stopped")
	case err != nil && temporary(err):
		return done{}, unavailable(ReasonServerUnreachable, "read task: %w", err)
	case err != nil:
		return done{}, fmt.Errorf("read task: %w", err)
	case string(task.UID) != w.config.TaskUID:
		return done{}, fail(ReasonTaskReplaced, "the task was deleted, and another one has its name")
	}
	w.events.Record(event.New(v1alpha1.EventWorkerStarted, v1alpha1.SeverityInfo, "",
		fmt.Sprintf("attempt %d of a task of type %s", w.config.Attempt, task.Spec.Type), map[string]any{"attempt": w.config.Attempt, "taskType": task.Spec.Type}))
	switch task.Spec.Type {
	case v1alpha1.TaskTypeAI:
		return w.runAI(ctx, task)
	case v1alpha1.TaskTypeContainer:
		return w.runContainer(ctx, task)
	case v1alpha1.TaskTypeAgent:
		return done{}, fail(ReasonRuntimeNotAvailable, "tasks of type agent need an agent runtime, and there is none here")
	default:
		return done{}, fail(ReasonReferenceInvalid, "tasks of type %q are not known", task.Spec.Type)
	}
}

// deliver uploads artifacts and result. A failed run delivers what it has; its
// own error stays the one that counts.
func (w *worker) deliver(ctx context.Context, d done, err error) error {
	var f *failure
	if errors.As(err, &f) && (f.reason == ReasonTaskReplaced || f.reason == ReasonServerUnreachable) {
		return err
	}
	w.submitArtifacts(ctx)
	rerr := w.submitResult(ctx, d.text)
	switch {
	case err != nil:
		return err
	case rerr != nil:
		return unavailable(ReasonResultNotSubmitted, "%w", rerr)
	default:
		return nil
	}
}

// conclude records the worker's last event.
func (w *worker) conclude(d done, err error) (reason, message string, code int) {
	content := map[string]any{"attempt": w.config.Attempt}
	maps.Copy(content, d.content)
	if err == nil {
		w.events.Record(event.New(v1alpha1.EventWorkerCompleted, v1alpha1.SeverityInfo, "", "the work is done", content))
		return ReasonCompleted, "", runspec.ExitSucceeded
	}
	f := classify(err)
	if f.reason == ReasonTaskReplaced {
		// The stream of that name is not ours.
		return f.reason, f.Error(), f.exit
	}
	content["reason"], content["exitCode"] = f.reason, f.exit
	w.events.Record(event.New(v1alpha1.EventWorkerFailed, v1alpha1.SeverityError, "", f.Error(), content))
	return f.reason, f.Error(), f.exit
}
