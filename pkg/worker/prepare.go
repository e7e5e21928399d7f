// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker/client"
	"github.com/platform-ai/platform/pkg/worker/runner"
	"github.com/platform-ai/platform/pkg/workspace"
	"github.com/platform-ai/platform/pkg/workspace/program"
)

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
	if runspec.KeepsCommit(ws, w.config.Remote) {
		if ws.Writes() && w.spool == nil {
			return runner.Fail(v1alpha1.ReasonWorkerMisconfigured, "%s is not set, and what the run changes must be kept", runspec.EnvSpoolDir)
		}
		order.Keep = w.baseline()
		if err := os.MkdirAll(order.Keep, 0o700); err != nil {
			return runner.Fail(v1alpha1.ReasonInternalError, "the folder of the commit: %w", err)
		}
	}
	w.events.Record(event.New(v1alpha1.EventWorkspacePreparationStarted, v1alpha1.SeverityInfo, "", "fetch "+described(order), map[string]any{"repository": order.URL}))
	report, err := w.fetch(ctx, order)
	prior := 0
	if err == nil {
		w.commit = report.Commit
		prior, err = w.repeatPrior(ctx, task)
	}
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
	if digest := task.Status.PriorChangesDigest; digest != "" {
		content["priorTask"], content["priorChanges"], content["priorDigest"] = task.Spec.PriorTaskRef.Name, prior, digest
	}
	done := event.New(v1alpha1.EventWorkspacePreparationCompleted, v1alpha1.SeverityInfo, "", fmt.Sprintf("%d files of commit %s", report.Files, report.Commit), content)
	if err := w.events.Commit(ctx, done); err != nil {
		return err
	}
	w.log.Line("workspace: %d files, %d bytes, commit %s of %s", report.Files, report.Bytes, report.Commit, order.URL)
	return nil
}

// repeatPrior makes in the workspace what the task changed that this one continues, and returns how many files that changed.
func (w *worker) repeatPrior(ctx context.Context, task *v1alpha1.Task) (files int, err error) {
	want, ref := task.Status.PriorChangesDigest, task.Spec.PriorTaskRef
	if want == "" || ref == nil {
		return 0, nil
	}
	var changes []byte
	err = client.Repeat(ctx, w.clock, func(ctx context.Context) (err error) {
		changes, err = w.api.CoreV1alpha1().RESTClient().Get().Namespace(w.config.TaskNamespace).Resource("tasks").Name(ref.Name).SubResource("delta").Do(ctx).Raw()
		return err
	})
	switch {
	case ctx.Err() != nil:
		return 0, runner.Fail(v1alpha1.ReasonWorkerStopped, "the worker was stopped while it worked on the repository")
	case err != nil:
		return 0, runner.Fail(v1alpha1.ReasonPriorTaskUnusable, "what task %s changed cannot be read: %w", ref.Name, err)
	case workspace.Digest(changes) != want:
		return 0, runner.Fail(v1alpha1.ReasonPriorTaskUnusable, "what task %s changed is not what this task was to begin with", ref.Name)
	}
	file := filepath.Join(w.config.TempDir, "prior.tar.gz")
	defer func() { _ = os.Remove(file) }()
	if err := os.WriteFile(file, changes, 0o600); err != nil {
		return 0, runner.Fail(v1alpha1.ReasonInternalError, "what task %s changed: %w", ref.Name, err)
	}
	files, err = checkout{w, task}.Apply(ctx, file)
	if failed, ok := errors.AsType[*runner.Error](err); ok && failed.Reason == v1alpha1.ReasonProtocolViolated {
		return 0, runner.Fail(v1alpha1.ReasonPriorTaskUnusable, "task %s: %w", ref.Name, failed)
	}
	if err == nil {
		w.log.Line("workspace: %d files changed as by task %s", files, ref.Name)
	}
	return files, err
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

// fetch has an order carried out before anything of the run begins. In a Pod an init container has done that already.
func (w *worker) fetch(ctx context.Context, order workspace.Order) (*workspace.Report, error) {
	if file := w.config.workspaceAnswer; file != "" {
		return prepared(file)
	}
	answer, err := w.step(ctx, workspace.Prepare, order)
	if err != nil {
		return nil, err
	}
	return answer.Report, nil
}

// step has a step of the workspace carried out by a process of its own.
func (w *worker) step(ctx context.Context, name string, order any) (*workspace.Answer, error) {
	if w.config.workspaceProgram == "" {
		return nil, runner.Fail(v1alpha1.ReasonWorkerMisconfigured, "there is no program that works on repositories (%s)", workspace.ProgramName)
	}
	answer, err := program.Run(ctx, w.config.workspaceProgram, w.config.TempDir, name, order)
	switch failed := (*workspace.FailedError)(nil); {
	case ctx.Err() != nil:
		return nil, runner.Fail(v1alpha1.ReasonWorkerStopped, "the worker was stopped while it worked on the repository")
	case errors.As(err, &failed) && failed.Temporary:
		return nil, runner.Unavailable(failed.Reason, "%w", failed)
	case failed != nil:
		return nil, runner.Fail(failed.Reason, "%w", failed)
	case err != nil:
		return nil, runner.Fail(v1alpha1.ReasonInternalError, "%w", err)
	}
	return answer, nil
}
