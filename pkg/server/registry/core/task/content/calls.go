// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package content

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/refusal"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/quota"
)

// Calls returns the calls of tools that are kept of a task.
func (r *Contents) Calls(ctx context.Context, p stored.Parent) (runtime.Object, error) {
	kept, err := r.o.Blobs.Calls(ctx, p.Object.UID)
	if err != nil {
		return nil, err
	}
	out := &v1alpha1.TaskCallList{ObjectMeta: metav1.ObjectMeta{Name: p.Object.Name, Namespace: p.Object.Namespace}, Calls: make([]v1alpha1.TaskCall, len(kept))}
	for i, raw := range kept {
		if err := json.Unmarshal(raw, &out.Calls[i]); err != nil {
			return nil, fmt.Errorf("call of task %s: %w", p.Object.Name, err)
		}
	}
	return out, nil
}

// KeepCall keeps a call that a worker of the task asks about, once for each id. A call for which there is no room is not
// kept: that is no reason to refuse it. A call of a task that was cancelled is refused.
func (r *Contents) KeepCall(ctx context.Context, t *v1alpha1.Task, id string, c *v1alpha1.TaskCall) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	now, done, err := r.ends.present(ctx, r.o.Tasks, t)
	if err != nil {
		return err
	}
	defer done()
	if meta.IsStatusConditionTrue(now.Status.Conditions, v1alpha1.ConditionCancelRequested) {
		return refusal.Cancelled(now)
	}
	err = r.o.Blobs.KeepCall(ctx, t.Namespace, t.UID, fmt.Sprintf("%08x/%s", c.Attempt, id), raw)
	if errors.Is(err, quota.ErrLimit) || errors.Is(err, engine.ErrFull) {
		return nil
	}
	return err
}
