// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connectorcall

import (
	"context"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
	"github.com/platform-ai/platform/pkg/server/registry/core/task/stored"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// approved returns the approval of a call: one of this task, for this tool and these arguments.
func (s *Calls) approved(ctx context.Context, c *call) (*v1alpha1.Approval, error) {
	id := c.posted.ApprovalID
	a, err := s.approval(ctx, c.task, id)
	if err != nil {
		return nil, err
	}
	digest, err := approval.Digest(c.arguments)
	switch {
	case a == nil || a.Spec.TaskUID != c.task.UID:
		return nil, fails(v1alpha1.ConnectorDenied, "approvalId: the task has no approval %s", id)
	case a.Status.State != v1alpha1.ApprovalApproved:
		return nil, fails(v1alpha1.ConnectorDenied, "approvalId: the approval is %s, not %s", a.Status.State, v1alpha1.ApprovalApproved)
	case a.Spec.TargetTool != c.tool.Name:
		return nil, fails(v1alpha1.ConnectorDenied, "approvalId: the approval is for %.64q", a.Spec.TargetTool)
	case err != nil || a.Spec.TargetArgsDigest != digest:
		return nil, fails(v1alpha1.ConnectorDenied, "approvalId: the approval is for other arguments")
	}
	return a, nil
}

// chunk is how many events are read at a time.
const chunk = 200

// approval returns an approval of a task; nil if there is none.
func (s *Calls) approval(ctx context.Context, t *v1alpha1.Task, id string) (*v1alpha1.Approval, error) {
	of := stored.Stream(t)
	state, prefix := &approval.State{}, approval.KeyPrefix(id)
	q := eventlog.Query{
		Namespace: of.Namespace, Task: of.Task, Types: approval.EventTypes(), Limit: chunk,
		Match: func(e *v1alpha1.ExecutionEvent) bool { return strings.HasPrefix(e.DedupKey, prefix) },
	}
	for {
		page, err := s.o.Log.List(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, e := range page.Items {
			state.Apply(e)
		}
		if page.Continue == "" {
			return state.Get(t.Namespace, id), nil
		}
		q.Continue = page.Continue
	}
}
