// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/clip"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker/runner"
	"github.com/platform-ai/platform/pkg/workspace"
)

// maxAnswer bounds what the program that prepares a workspace says, in bytes.
const maxAnswer = 64 << 10

// prepare puts the task's repository into the run's folder, before anything of the run begins. The exact commit is stored in an event
// first; an attempt that follows begins with the same one, which the controller takes from that event.
func (w *worker) prepare(ctx context.Context, task *v1alpha1.Task) error {
	ws := task.Spec.Workspace
	if ws == nil {
		return nil
	}
	if err := os.MkdirAll(w.home(), 0o700); err != nil {
		return runner.Fail(v1alpha1.ReasonInternalError, "the home folder of programs: %w", err)
	}
	order := w.order(task)
	w.events.Record(event.New(v1alpha1.EventWorkspacePreparationStarted, v1alpha1.SeverityInfo, "", "fetch "+described(order), map[string]any{"repository": order.URL}))
	report, err := w.fetch(ctx, order)
	if err != nil {
		failed := classify(err)
		w.events.Record(event.New(v1alpha1.EventWorkspacePreparationFailed, v1alpha1.SeverityError, "", failed.Error(), map[string]any{"repository": order.URL, "reason": failed.Reason}))
		return err
	}
	content := map[string]any{"repository": order.URL, "commit": report.Commit, "tree": report.Tree, "files": report.Files, "bytes": report.Bytes}
	for name, n := range map[string]int64{"plainLinks": report.PlainLinks, "submodules": report.Submodules} {
		if n > 0 {
			content[name] = n
		}
	}
	if report.Ref != "" {
		content["ref"] = report.Ref
	}
	if ws.SubPath != "" {
		content["subPath"] = ws.SubPath
	}
	done := event.New(v1alpha1.EventWorkspacePreparationCompleted, v1alpha1.SeverityInfo, "", fmt.Sprintf("%d files of commit %s", report.Files, report.Commit), content)
	if err := w.events.Commit(ctx, done); err != nil {
		return err
	}
	w.log.Line("workspace: %d files, %d bytes, commit %s of %s", report.Files, report.Bytes, report.Commit, order.URL)
	return nil
}

// home returns the home folder of programs that work on a repository.
func (w *worker) home() string { return filepath.Join(w.config.TempDir, "home") }

// described names what an order fetches, for people.
func described(o workspace.Order) string {
	if what := cmp.Or(o.Commit, o.Ref, o.Branch); what != "" {
		return what + " of " + o.URL
	}
	return "the default branch of " + o.URL
}

func (w *worker) order(task *v1alpha1.Task) workspace.Order {
	o, c := workspace.For(task), w.config
	o.Token, o.Hosts, o.Allow = c.Credentials.RepositoryToken, c.Credentials.Hosts.Repository, c.repositoryAllow
	o.Dir, o.Temp, o.MaxBytes = c.WorkDir, c.TempDir, int64(cmp.Or(c.Sandbox.DiskBytes, runspec.DefaultDiskBytes))
	return o
}

// fetch has an order carried out by a process of its own, which gets the credential and ends before anything of the run begins. In a Pod
// that process was an init container, which has ended already.
func (w *worker) fetch(ctx context.Context, order workspace.Order) (*workspace.Report, error) {
	if file := w.config.workspaceAnswer; file != "" {
		return prepared(file)
	}
	if w.config.workspaceProgram == "" {
		return nil, runner.Fail(v1alpha1.ReasonWorkerMisconfigured, "there is no program that fetches repositories (%s)", workspace.ProgramName)
	}
	input, err := json.Marshal(order)
	if err != nil {
		return nil, runner.Fail(v1alpha1.ReasonInternalError, "the order for the workspace: %w", err)
	}
	cmd := exec.CommandContext(ctx, w.config.workspaceProgram)
	cmd.Dir, cmd.Env = w.config.TempDir, []string{"TMPDIR=" + w.config.TempDir}
	out, said := &clip.Writer{Limit: maxAnswer}, &clip.Writer{Limit: maxAnswer}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), out, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // it may not outlive the worker with its credential
	runtime.LockOSThread()                                             // whose end would be taken for that of the worker
	err = cmd.Run()
	runtime.UnlockOSThread()
	var answer workspace.Answer
	switch {
	case ctx.Err() != nil:
		return nil, runner.Fail(v1alpha1.ReasonWorkerStopped, "the worker was stopped while it fetched the repository")
	case err != nil || json.Unmarshal(out.Bytes(), &answer) != nil || answer.Report == nil && answer.Failure == nil:
		return nil, runner.Fail(v1alpha1.ReasonInternalError, "%s gave no answer: %w: %s", workspace.ProgramName, cmp.Or(err, errors.New("it ended normally")), clip.Text(said.Text(), 1000))
	case answer.Failure == nil:
		return answer.Report, nil
	case answer.Failure.Temporary:
		return nil, runner.Unavailable(answer.Failure.Reason, "%w", answer.Failure)
	default:
		return nil, runner.Fail(answer.Failure.Reason, "%w", answer.Failure)
	}
}
