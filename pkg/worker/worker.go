// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package worker runs one attempt of one task and reports it. It reads the configuration that
// package runspec defines, resolves through the API what the task refers to, runs the task, and
// sends events, log, artifacts and result to the API.
//
// The result must arrive: a run whose result was refused has failed. Events and the log are
// best effort and never fail a run. All of these survive an unavailable API: they are kept in
// the run's spool, and sent in order for as long as the worker's token is valid. If a worker
// ends before that, another one is started that only delivers the spool.
package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker/client"
	"github.com/platform-ai/platform/pkg/worker/runner"
	"github.com/platform-ai/platform/pkg/worker/spool"
)

const (
	// endPatience is how long a worker tries to send what it has. In practice its token expires
	// sooner.
	endPatience = 365 * 24 * time.Hour
	// stopPatience is the same for a worker that was asked to stop. An executor gives it 10 s,
	// which must suffice for commandGrace, twice stopPatience for artifacts and result, and once
	// for events and log.
	stopPatience = 1500 * time.Millisecond
)

// Runners has the runner of each type of task that a worker can run.
type Runners map[v1alpha1.TaskType]runner.Runner

// of returns the runner of a type of tasks.
func (all Runners) of(t v1alpha1.TaskType) (runner.Runner, error) {
	r, ok := all[t]
	if !ok {
		return nil, runner.Fail(v1alpha1.ReasonRuntimeNotAvailable, "this worker has no runner for tasks of type %q; it runs tasks of the types %v", t, slices.Sorted(maps.Keys(all)))
	}
	return r, nil
}

// Main runs the worker and returns its exit code. It stops when ctx ends.
func Main(ctx context.Context, getenv func(string) string, stdin io.Reader, runners Runners) int {
	return mainWith(ctx, getenv, stdin, runners, clock.RealClock{})
}

// mainWith is Main on a clock.
func mainWith(ctx context.Context, getenv func(string) string, stdin io.Reader, runners Runners, clk clock.WithDelayedExecution) int {
	log := klog.FromContext(ctx)
	config, err := LoadConfig(getenv, stdin)
	if err != nil {
		path := getenv(runspec.EnvTerminationLog)
		if getenv(runspec.EnvDeliver) == "true" {
			path = "" // the report of the work itself must not be replaced
		}
		return giveUp(ctx, path, err)
	}
	api, err := newAPI(config, clk)
	if err != nil {
		return giveUp(ctx, config.TerminationLog, err)
	}
	w := newWorker(config, api, clk)
	w.runners = runners
	if err := w.openSpool(); err != nil {
		if config.Deliver {
			return giveUp(ctx, "", err) // the termination log may belong to another worker
		}
		log.Error(err, "Cannot write unsent data to disk")
	}
	defer w.closeSpool(log)
	end := spool.End{}
	if config.Deliver {
		if end, err = w.redeliver(ctx); err != nil {
			log.Error(err, "Could not deliver everything")
			return runspec.ExitUnavailable
		}
	} else {
		end = w.run(ctx)
	}
	t := end.Termination
	if err := writeTermination(config.TerminationLog, termination(t, w.secret)); err != nil {
		log.Error(err, "Cannot write the termination file")
	}
	log.Info("Worker has ended", "reason", t.Reason, "exitCode", t.ExitCode)
	return t.ExitCode
}

// giveUp ends a worker that cannot report to the API.
func giveUp(ctx context.Context, terminationLog string, err error) int {
	log := klog.FromContext(ctx)
	f := classify(err)
	log.Error(err, "Worker cannot begin")
	if err := writeTermination(terminationLog, termination(runspec.Termination{Reason: f.Reason, Message: f.Error(), ExitCode: f.Exit}, &secrets{})); err != nil {
		log.Error(err, "Cannot write the termination file")
	}
	return f.Exit
}

// worker is one run.
type worker struct {
	config *Config
	api    *client.API
	clock  clock.WithDelayedExecution
	// runners is empty for a worker that only delivers.
	runners Runners
	secret  *secrets
	log     *taskLog
	events  *recorder
	// spool stores on disk what is to be sent; nil for none.
	spool *spool.Spool
	// commit is what the run's workspace was made from; empty without one.
	commit string
	// frozen is set when what the run changed in its workspace is in the spool.
	frozen bool
	// post uploads raw bytes to a subresource of the task.
	post func(ctx context.Context, contentType string, body []byte, path ...string) error
}

func newWorker(c *Config, a *client.API, clk clock.WithDelayedExecution) *worker {
	w := &worker{config: c, api: a, clock: clk, secret: secretsOf(c)}
	w.log = newTaskLog(c, a, clk, w.secret)
	w.events = newRecorder(c, a, clk, w.secret, w.log)
	w.post = func(ctx context.Context, contentType string, body []byte, path ...string) error {
		return postBytes(ctx, a, c, contentType, body, path...)
	}
	return w
}

// run does the work, sends what it produced, and returns how the worker ends.
func (w *worker) run(ctx context.Context) spool.End {
	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w.events.cancelled = func() { stop(errCancelled) }
	w.log.out.start(ctx)
	w.events.out.start(ctx)
	d, err := w.work(working)
	if err != nil && errors.Is(context.Cause(working), errCancelled) {
		err = w.awaitHalt(ctx)
	}
	end := conclude(d, err, w.secret)
	end.Artifacts, end.Delta = shownNames(w.config.ArtifactsDir, w.secret), w.frozen
	stopped := ctx.Err() != nil
	end.Termination.Ended = err != nil && !stopped
	w.keep(ctx, end)
	if err == nil || !stopped {
		var cancel context.CancelFunc
		ctx, cancel = outlast(ctx, w.clock, w.config.DeliveryTime)
		defer cancel()
	}
	end, _ = w.deliver(ctx, end)
	return end
}

// errCancelled ends the work of a task that was cancelled.
var errCancelled = errors.New("the task was cancelled")

// haltPatience is how long a worker that has stopped, because its task was cancelled, waits for its end. Its controller ends it, and
// records the cancellation instead of a failure.
const haltPatience = 30 * time.Second

// awaitHalt waits until the worker is asked to stop, because the server said that its task was cancelled, and returns how it ends.
func (w *worker) awaitHalt(ctx context.Context) error {
	timer := w.clock.NewTimer(haltPatience)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
	return runner.Fail(v1alpha1.ReasonCancelled, "%v", errCancelled)
}

// work reads the task and runs it.
func (w *worker) work(ctx context.Context) (runner.Result, error) {
	task, err := w.task(ctx)
	if err != nil {
		return runner.Result{}, err
	}
	given := w.given(task)
	w.events.Record(w.started(task, given))
	r, err := w.runners.of(task.Spec.Type)
	if err != nil {
		return runner.Result{}, err
	}
	if err := w.prepare(ctx, task); err != nil {
		return runner.Result{}, err
	}
	result, err := r.Run(ctx, given)
	if err == nil {
		w.frozen, err = w.freeze(ctx, task)
	}
	return result, err
}

// started returns the event that the worker begins. It is a warning if values of secrets can be shown by the run.
func (w *worker) started(task *v1alpha1.Task, given *runner.Run) *v1alpha1.ExecutionEvent {
	summary := fmt.Sprintf("attempt %d of a task of type %s", w.config.Attempt, task.Spec.Type)
	content := map[string]any{"attempt": w.config.Attempt, "taskType": task.Spec.Type, "sandbox": given.Policy.String()}
	if warning := w.secret.warning(); warning != "" {
		content["unhidden"] = w.secret.shown
		return event.New(v1alpha1.EventWorkerStarted, v1alpha1.SeverityWarning, "", summary+"; "+warning, content)
	}
	return event.New(v1alpha1.EventWorkerStarted, v1alpha1.SeverityInfo, "", summary, content)
}

// task returns the task that the executor passed on, or else reads it.
func (w *worker) task(ctx context.Context) (*v1alpha1.Task, error) {
	if raw := w.config.Credentials.Task; raw != nil {
		task := &v1alpha1.Task{}
		if err := json.Unmarshal(raw, task); err != nil {
			return nil, fmt.Errorf("%w: the task: %w", ErrUsage, err)
		}
		return task, nil
	}
	task, err := w.api.CoreV1alpha1().Tasks(w.config.TaskNamespace).Get(ctx, w.config.TaskName, metav1.GetOptions{})
	switch {
	case ctx.Err() != nil:
		return nil, runner.Fail(v1alpha1.ReasonWorkerStopped, "the worker was stopped")
	case err != nil && (client.Temporary(err) || errors.Is(err, client.ErrToken)):
		return nil, runner.Unavailable(v1alpha1.ReasonServerUnreachable, "read task: %w", err)
	case err != nil:
		return nil, fmt.Errorf("read task: %w", err)
	case string(task.UID) != w.config.TaskUID:
		return nil, runner.Fail(v1alpha1.ReasonTaskReplaced, "the task was deleted, and another one has its name")
	}
	return task, nil
}

// given returns what a runner may use for a task.
func (w *worker) given(task *v1alpha1.Task) *runner.Run {
	given := &runner.Run{
		Task: task, Attempt: w.config.Attempt, API: w.api, Recorder: w.events, Log: w.log, Scrub: w.secret.scrub, SecretsIn: w.secret.in, Clock: w.clock,
		Config: w.config.Config, Policy: w.config.policy(task),
	}
	if task.Spec.Workspace != nil && w.config.Remote != nil {
		given.Repository = checkout{w, task}
	}
	given.Credentials.Token, given.Credentials.RepositoryToken, given.Credentials.Task = "", "", nil // only the worker uses them
	if task.Spec.Workspace != nil {
		given.HomeDir = w.home()
	}
	return given
}
