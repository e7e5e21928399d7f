// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker/sandbox"
	"github.com/platform-ai/platform/pkg/worker/tool/exec"
)

const (
	// commandGrace is the time a command has between SIGTERM and SIGKILL. It is
	// shorter than an executor's own, so that the worker can still report.
	commandGrace = 3 * time.Second
	// maxOutput is how much of a command's output becomes the result: its end (D2 §3.1).
	maxOutput = 5 << 20
)

// runContainer runs a task of type container: as a command of its own
// container where the worker is in that, or else as one of this host.
func (w *worker) runContainer(ctx context.Context, t *v1alpha1.Task) (done, error) {
	if !w.config.HostCommands && !w.config.Contained {
		return done{}, fail(ReasonHostCommandsNotAllowed,
			"tasks of type container run as commands of the host here, and the operator has not allowed that (start the server with --allow-host-commands)")
	}
	args := append(append([]string{}, t.Spec.Command...), t.Spec.Args...)
	if len(t.Spec.Command) == 0 {
		return done{}, fail(ReasonCommandNotRun, "spec.command is required: the worker runs the command, and cannot know what an image would run by itself")
	}
	policy := w.config.policy()
	if err := policy.Check(); err != nil {
		return done{}, fail(ReasonSandboxUnavailable, "%w", err)
	}
	env, dir := w.containerEnv(), w.containerDir()
	if !w.config.Contained {
		if t.Spec.Image != "" {
			return done{}, fail(ReasonImageNotUsed, "spec.image is %s, and tasks of type container run as commands of the host here: "+
				"another program than that of the image would run; leave spec.image out", t.Spec.Image)
		}
		var err error
		dir = w.config.WorkDir
		if env, err = w.commandEnv(ctx, t, policy); err != nil {
			return done{}, err
		}
	}
	output := &tail{limit: maxOutput}
	cgroup := os.DirFS("/sys/fs/cgroup")
	killed := oomKills(cgroup)
	outcome, err := exec.Run(ctx, exec.Command{
		Args: args, Dir: dir, Env: env, Sole: true, Grace: commandGrace, Clock: clock.RealClock{},
		Stdout: fanOut{w.log, output}, Stderr: w.log, Policy: policy,
	})
	content := map[string]any{"exitCode": outcome.ExitCode, "resultLength": output.size()}
	if outcome.Signal != "" {
		content["signal"] = outcome.Signal
	}
	d := done{text: output.text(), content: content}
	switch {
	case ctx.Err() != nil:
		return d, fail(ReasonStopped, "the command was stopped")
	case errors.Is(err, exec.ErrNotFound):
		return d, fail(ReasonCommandNotRun, "%s: not found where programs of a run may look for it", args[0])
	case errors.Is(err, exec.ErrSandbox):
		return d, fail(ReasonSandboxUnavailable, "%w", err)
	case err != nil:
		return d, fail(ReasonCommandNotRun, "%s: %w", args[0], err)
	case w.config.Contained && oomKills(cgroup) > killed && (outcome.Signal != "" || outcome.ExitCode != 0):
		return d, fail(runspec.ReasonOOMKilled, "the command needed more memory than the limit of its container")
	case outcome.Signal != "":
		return d, fail(ReasonCommandFailed, "the command was ended by %s", outcome.Signal)
	case outcome.ExitCode != 0:
		return d, fail(ReasonCommandFailed, "the command ended with exit code %d", outcome.ExitCode)
	}
	return d, nil
}

// containerEnv is the environment of a command in the task's own container: the
// image's and the task's, which kubelet has joined, without what is the worker's.
func (w *worker) containerEnv() []string {
	own := map[string]bool{}
	for _, name := range runspec.WorkerEnv() {
		own[name] = true
	}
	env := slices.DeleteFunc(w.config.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return own[name]
	})
	return append(env, w.runEnv()...)
}

// containerDir is the image's working folder, or the run's where the image has none.
func (w *worker) containerDir() string {
	if dir, err := os.Getwd(); err == nil && dir != "/" {
		return dir
	}
	return w.config.WorkDir
}

// commandEnv is the environment of a command of the host: what every program needs, the
// task's own variables, and where the run is.
func (w *worker) commandEnv(ctx context.Context, t *v1alpha1.Task, policy sandbox.Policy) ([]string, error) {
	env := []string{"HOME=" + w.config.WorkDir, "TMPDIR=" + w.config.TempDir, "PATH=" + policy.SearchPath(w.config.Getenv("PATH"))}
	for _, name := range []string{"LANG", "LC_ALL", "TZ"} {
		if v := w.config.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	for _, v := range t.Spec.Env {
		value, known, err := w.variable(ctx, v)
		if err != nil {
			return nil, err
		}
		if known {
			env = append(env, v.Name+"="+value)
		}
	}
	// Later ones win: the platform's own names are not the task's to set.
	env = append(env, w.runEnv()...)
	return append(env, "PWD="+w.config.WorkDir), nil
}

// variable is the value of one variable of a task. What is optional and not
// there is not known; the controller has refused what is needed and not there.
func (w *worker) variable(ctx context.Context, v corev1.EnvVar) (value string, known bool, err error) {
	from := v.ValueFrom
	switch {
	case from == nil:
		return v.Value, true, nil
	case from.SecretKeyRef != nil: // only the controller may read it
		value, known = w.config.Credentials.Env[v.Name]
		return value, known, nil
	case from.ConfigMapKeyRef != nil:
		m, err := w.api.configMap(ctx, w.config.TaskNamespace, from.ConfigMapKeyRef.Name)
		if err == nil {
			value, known = m.Data[from.ConfigMapKeyRef.Key]
		}
		if !known && !ptr.Deref(from.ConfigMapKeyRef.Optional, false) {
			return "", false, fail(ReasonCommandNotRun, "spec.env: %s: key %s of ConfigMap %s cannot be read", v.Name, from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Name)
		}
		return value, known, nil
	}
	return "", false, fail(ReasonCommandNotRun, "spec.env: the value of %s comes from a pod's own fields, which commands of the host have not", v.Name)
}

// fanOut writes to the log and to the result.
type fanOut struct {
	log    *taskLog
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
	// Twice the limit, so that bytes are moved once for each that is kept.
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
