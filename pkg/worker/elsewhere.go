// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"cmp"
	"context"
	"path/filepath"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/worker/runner"
	"github.com/platform-ai/platform/pkg/workspace"
)

// checkout is the repository of a task whose work is done elsewhere.
type checkout struct {
	*worker
	task *v1alpha1.Task
}

var _ runner.Repository = checkout{}

// Commit implements runner.Repository.
func (c checkout) Commit() string { return c.commit }

// Pack implements runner.Repository.
func (c checkout) Pack(ctx context.Context, file string) error {
	_, err := c.step(ctx, workspace.Pack, workspace.PackOrder{Baseline: c.baseline(), Commit: c.commit, SubPath: c.task.Spec.Workspace.SubPath, File: file})
	return err
}

// Apply implements runner.Repository.
func (c checkout) Apply(ctx context.Context, file string) (int, error) {
	answer, err := c.step(ctx, workspace.Apply, workspace.ApplyOrder{Commit: c.commit, SubPath: c.task.Spec.Workspace.SubPath, Dir: c.config.WorkDir, Delta: file})
	if err != nil {
		return 0, err
	}
	return answer.Applied.Files, nil
}

// baseline is the folder with the commit that the workspace was made from: one of the Pod's, one of the spool, or, if nothing is
// compared, a temporary one. Programs of the run reach none of them.
func (w *worker) baseline() string {
	return cmp.Or(w.config.workspaceBaseline, filepath.Join(cmp.Or(w.config.SpoolDir, w.config.TempDir), "baseline"))
}
