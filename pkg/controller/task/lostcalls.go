// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/approval"
)

// lostCalls records the ends of tool calls that a run began and did not end, because its worker was killed: the stream says
// that their outcome is unknown. The worker's own events are stored before that, as far as it left any.
type lostCalls struct {
	each   func(ctx context.Context, t *v1alpha1.Task, typ v1alpha1.EventType, f func(*v1alpha1.ExecutionEvent)) error
	append appendFunc
}

// settle appends the events, once for each call. If the server refuses them for good, for example because the stream is full,
// the attempt ends without them.
func (s lostCalls) settle(ctx context.Context, t *v1alpha1.Task) error {
	if t.Spec.Type == v1alpha1.TaskTypeContainer || t.Status.Attempts == 0 { // no model, no calls
		return nil
	}
	var open []*v1alpha1.ExecutionEvent
	of := func(typ v1alpha1.EventType, f func(*v1alpha1.ExecutionEvent)) error {
		return s.each(ctx, t, typ, func(e *v1alpha1.ExecutionEvent) {
			if e.Attempt == t.Status.Attempts {
				f(e)
			}
		})
	}
	if err := of(v1alpha1.EventToolCallStarted, func(e *v1alpha1.ExecutionEvent) { open = append(open, e.DeepCopy()) }); err != nil || len(open) == 0 {
		return err
	}
	for _, typ := range []v1alpha1.EventType{v1alpha1.EventToolCallCompleted, v1alpha1.EventToolCallFailed} {
		err := of(typ, func(end *v1alpha1.ExecutionEvent) {
			i := slices.IndexFunc(open, func(e *v1alpha1.ExecutionEvent) bool {
				return e.Seq < end.Seq && e.ToolCallID == end.ToolCallID && e.ToolName == end.ToolName
			})
			if i >= 0 {
				open = slices.Delete(open, i, i+1)
			}
		})
		if err != nil {
			return err
		}
	}
	if len(open) == 0 {
		return nil
	}
	events := make([]v1alpha1.ExecutionEvent, len(open))
	for i, e := range open {
		events[i] = lostCall(t, e)
	}
	err := s.append(ctx, t, events...)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err), apierrors.IsGone(err): // there is nothing to write to any more
		return nil
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsTooManyRequests(err), apierrors.IsRequestEntityTooLargeError(err):
		klog.FromContext(ctx).Info("The ends of calls that a killed worker made are not recorded", "task", klog.KObj(t), "calls", len(events), "err", err)
		return nil
	}
	return err
}

// lostCall returns the event for the end of a call whose start is given.
func lostCall(t *v1alpha1.Task, start *v1alpha1.ExecutionEvent) v1alpha1.ExecutionEvent {
	content := map[string]any{"toolName": start.ToolName, "toolCallID": start.ToolCallID, "errorType": approval.OutcomeUnknown}
	var began struct {
		Iteration  int64  `json:"iteration"`
		ApprovalID string `json:"approvalID"`
	}
	if start.Content != nil && json.Unmarshal(start.Content.Raw, &began) == nil {
		content["iteration"] = began.Iteration
		if began.ApprovalID != "" {
			content["approvalID"] = began.ApprovalID
		}
	}
	e := event(t, v1alpha1.EventToolCallFailed, fmt.Sprintf("controller/lostcall/%d/%d", start.Attempt, start.Seq),
		start.ToolName+" may have been carried out: its worker ended during the call, and its outcome is unknown", content)
	e.Severity, e.Attempt, e.ToolName, e.ToolCallID = v1alpha1.SeverityWarning, start.Attempt, start.ToolName, start.ToolCallID
	return e
}
