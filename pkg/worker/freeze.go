// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/worker/spool"
	"github.com/platform-ai/platform/pkg/workspace"
)

// freeze keeps what the run changed in its workspace, if the task is to change its repository. The programs of the run are over. It
// reports whether there is something to deliver, which may be that nothing changed.
func (w *worker) freeze(ctx context.Context, task *v1alpha1.Task) (bool, error) {
	if !task.Spec.Workspace.Writes() {
		return false, nil
	}
	dir := w.config.SpoolDir
	answer, err := w.step(ctx, workspace.Freeze, workspace.FreezeOrder{
		Baseline: w.baseline(), Commit: w.commit, SubPath: task.Spec.Workspace.SubPath, Dir: w.config.WorkDir,
		Delta: filepath.Join(dir, spool.DeltaName), Diff: filepath.Join(dir, spool.DiffName), MaxBytes: maxArtifact, MaxEntries: workspace.MaxEntries,
	})
	if err != nil {
		return false, err
	}
	f := answer.Frozen
	w.events.Record(event.New(v1alpha1.EventWorkspaceFrozen, v1alpha1.SeverityInfo, w.key("frozen"), fmt.Sprintf("%d files changed", f.Files),
		map[string]any{"commit": w.commit, "changedFiles": f.Files, "bytes": f.Bytes, "digest": f.Digest}))
	w.log.Line("workspace: %d files changed", f.Files)
	if f.NotShown > 0 {
		w.log.Line("workspace: %d of them are not in %s, because it would be too large", f.NotShown, spool.DiffName)
	}
	if w.config.workspaceBaseline != "" { // it ends with the Pod
		return true, nil
	}
	if err := os.RemoveAll(w.baseline()); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot remove the commit that the workspace was made from")
	}
	return true, nil
}

// submitDelta uploads what the run changed, and the same as text, which is an artifact.
func (w *worker) submitDelta(ctx context.Context) error {
	for _, f := range []struct {
		name string
		path []string
	}{{spool.DiffName, []string{"artifacts", spool.DiffName}}, {spool.DeltaName, []string{"delta"}}} {
		data, err := os.ReadFile(filepath.Join(w.config.SpoolDir, f.name))
		if err != nil {
			return fmt.Errorf("what changed in the workspace: %w", err)
		}
		if err := w.upload(ctx, octets, data, f.path...); err != nil {
			return fmt.Errorf("upload what changed in the workspace: %w", err)
		}
	}
	return nil
}
