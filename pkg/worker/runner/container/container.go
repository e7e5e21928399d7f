// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package container runs tasks of type container: one command, in the worker's own container or
// directly on this host.
package container

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan/command"
	"github.com/platform-ai/platform/pkg/plan/refusal"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker/program"
	"github.com/platform-ai/platform/pkg/worker/runner"
	"github.com/platform-ai/platform/pkg/worker/sandbox"
)

const (
	// commandGrace is the time a command has between SIGTERM and SIGKILL. It is
	// shorter than an executor's own, so that the worker can still report.
	commandGrace = 3 * time.Second
	// maxOutput is how much of the end of a command's output becomes the result, in bytes.
	maxOutput = 5 << 20
	// maxProcesses is how many processes and threads a command may have, unless the operator says otherwise.
	maxProcesses = 4096
)

// Runner runs the task's command, in the task's own container if the worker runs there,
// otherwise on this host.
var Runner runner.Runner = runner.Func(work)

func work(ctx context.Context, given *runner.Run) (runner.Result, error) {
	return (&run{given}).command(ctx, given.Task)
}

// run is one run of a task of type container.
type run struct{ *runner.Run }

func (r *run) command(ctx context.Context, t *v1alpha1.Task) (runner.Result, error) {
	if refused, ok := errors.AsType[*refusal.Error](r.place().Check(t)); ok {
		return runner.Result{}, runner.Fail(refused.Reason, "%s", refused.Message)
	}
	args := append(append([]string{}, t.Spec.Command...), t.Spec.Args...)
	env, dir := r.containerEnv(), r.containerDir()
	network, closeNetwork, err := r.OpenNetwork(ctx, command.Public(t))
	if err != nil {
		return runner.Result{}, err
	}
	defer closeNetwork()
	policy, err := r.Policy.Resolved()
	if err != nil {
		return runner.Result{}, runner.Fail(v1alpha1.ReasonCommandNotRun, "%s: %w", args[0], err)
	}
	if !r.Contained {
		dir = r.WorkDir
		if env, err = r.commandEnv(policy); err != nil {
			return runner.Result{}, err
		}
	}
	output := &tail{limit: maxOutput}
	outcome, err := program.Run(ctx, program.Command{
		Args: args, Dir: dir, Env: append(env, network...), Sole: true, Container: r.Contained, Grace: commandGrace, Clock: clock.RealClock{},
		Stdout: fanOut{r.Log, output}, Stderr: r.Log, Policy: policy, Limits: sandbox.Limits{Processes: cmp.Or(r.CodeLimits.Processes, maxProcesses), DeletedBytes: r.CodeLimits.DeletedBytes},
	})
	content := map[string]any{"exitCode": outcome.ExitCode, "resultLength": output.size()}
	if outcome.Signal != "" {
		content["signal"] = outcome.Signal
	}
	d := runner.Result{Text: output.text(), Content: content}
	switch {
	case ctx.Err() != nil:
		return d, runner.Fail(v1alpha1.ReasonWorkerStopped, "the command was stopped")
	case errors.Is(err, program.ErrNotFound):
		return d, runner.Fail(v1alpha1.ReasonCommandNotRun, "%s: not found where programs of a run may look for it", args[0])
	case errors.Is(err, program.ErrSandbox):
		return d, runner.Fail(v1alpha1.ReasonSandboxUnavailable, "%w", err)
	case errors.Is(err, program.ErrCrowded):
		return d, runner.Fail(v1alpha1.ReasonCommandFailed, "the command was ended: %w", err)
	case errors.Is(err, program.ErrMemory):
		return d, runner.Fail(v1alpha1.ReasonOOMKilled, "the command was ended: %w", err)
	case errors.Is(err, program.ErrDeleted):
		return d, runner.Fail(v1alpha1.ReasonDiskLimitExceeded, "the command was ended: %w", err)
	case err != nil:
		return d, uncontrolled(args[0], outcome, err)
	case outcome.OutOfMemory && r.Contained:
		return d, runner.Fail(v1alpha1.ReasonOOMKilled, "the command needed more memory than the limit of its container")
	case outcome.OutOfMemory:
		return d, runner.Fail(v1alpha1.ReasonOOMKilled, "the kernel ended the command because there was no memory left for it on this machine")
	case outcome.Signal != "":
		return d, runner.Fail(v1alpha1.ReasonCommandFailed, "the command was ended by %s", outcome.Signal)
	case outcome.ExitCode != 0:
		return d, runner.Fail(v1alpha1.ReasonCommandFailed, "%s", command.Exited(outcome.ExitCode))
	}
	return d, nil
}

// uncontrolled returns the failure of a command that could not be run or controlled. One that was started did run.
func uncontrolled(name string, o program.Outcome, err error) error {
	if o.Began {
		return runner.Fail(v1alpha1.ReasonCommandFailed, "the command ran and ended with exit code %d, but not everything that it started could be ended: %w", o.ExitCode, err)
	}
	return runner.Fail(v1alpha1.ReasonCommandNotRun, "%s: %w", name, err)
}

// place describes where the run is. The controller applied the same rules before it started the run, to the task as it was
// then.
func (r *run) place() command.Place {
	var p command.Place
	if !r.HostCommands && !r.Contained {
		p.NoContainers = "tasks of type container run as commands of the host here, and the operator has not allowed that (start the server with --allow-host-commands)"
	}
	if !r.Contained {
		p.NoImages = "tasks of type container run as commands of the host here: another program than that of the image would run; leave spec.image out"
		p.NoPodFields = "commands of the host have none; set value, or use a Secret or a ConfigMap"
	}
	if err := r.Policy.Check(); err != nil {
		p.NoPrograms = err.Error()
	}
	if err := r.Policy.CheckProxy(); err != nil {
		p.NoNetwork = err.Error()
	}
	return p
}

// containerEnv returns the environment of a command in the task's own container: the variables
// of the image and the task, which the kubelet has merged, without the worker's own.
func (r *run) containerEnv() []string {
	own := map[string]bool{}
	for _, name := range runspec.WorkerEnv() {
		own[name] = true
	}
	env := slices.DeleteFunc(r.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return own[name]
	})
	return append(env, r.Env()...)
}

// containerDir returns the image's working folder, or the run's if the image has none.
func (r *run) containerDir() string {
	if dir, err := os.Getwd(); err == nil && dir != "/" {
		return dir
	}
	return r.WorkDir
}

// commandEnv returns the environment of a command on the host: what every program needs, the
// task's own variables, and those that describe the run.
func (r *run) commandEnv(policy sandbox.Policy) ([]string, error) {
	env := []string{"HOME=" + r.Home(), "TMPDIR=" + r.TempDir, "PATH=" + policy.SearchPath(r.Getenv("PATH"))}
	for _, name := range []string{"LANG", "LC_ALL", "TZ"} {
		if v := r.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	own, err := r.Variables()
	if err != nil {
		return nil, err
	}
	transaction := slices.DeleteFunc(r.Environ(), func(v string) bool { return !strings.HasPrefix(v, runspec.EnvTransactionPrefix) })
	// Later values override earlier ones: a task may not set the platform's variables.
	env = slices.Concat(env, own, r.Env(), transaction)
	return append(env, "PWD="+r.WorkDir), nil
}

// fanOut writes to the log and to the result.
type fanOut struct {
	log    runner.Log
	result *tail
}

func (f fanOut) Write(p []byte) (int, error) {
	_, _ = f.log.Write(p)
	return f.result.Write(p)
}

// tail keeps the last limit bytes.
type tail struct {
	limit int
	mu    sync.Mutex
	b     []byte
	total int
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total += len(p)
	t.b = append(t.b, p...)
	// The buffer may grow to twice the limit, so that each byte is moved at most once on average.
	if len(t.b) > 2*t.limit {
		t.b = append(t.b[:0], t.b[len(t.b)-t.limit:]...)
	}
	return len(p), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b[max(0, len(t.b)-t.limit):])
}

func (t *tail) size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return min(t.total, t.limit)
}
