// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/worker/runner"
)

// maxUncertain is of how many calls a run is told, the newest ones.
const maxUncertain = 32

// uncertain finds the calls of earlier attempts that may have been carried out: those whose outcome is unknown, and those that began
// and have no end.
type uncertain struct {
	attempt int32 // of this run
	open    []call
}

// call is a call of an earlier attempt.
type call struct {
	attempt int32
	id      string
	text    string
}

// add folds an event of the task, in order.
func (u *uncertain) add(e *v1alpha1.ExecutionEvent) {
	if e.Attempt >= u.attempt {
		return
	}
	same := func(c call) bool { return c.attempt == e.Attempt && c.id == e.ToolCallID }
	switch e.Type {
	case v1alpha1.EventToolCallStarted:
		u.open = append(u.open, call{e.Attempt, e.ToolCallID, fmt.Sprintf("- %s (call %s of attempt %d%s)", e.ToolName, e.ToolCallID, e.Attempt, approvedBy(e))})
	case v1alpha1.EventToolCallFailed:
		var c struct{ ErrorType tool.ErrorType }
		if e.Content != nil && json.Unmarshal(e.Content.Raw, &c) == nil && c.ErrorType == tool.TypeOutcomeUnknown {
			return
		}
		u.open = slices.DeleteFunc(u.open, same)
	case v1alpha1.EventToolCallCompleted:
		u.open = slices.DeleteFunc(u.open, same)
	}
}

// approvedBy names the approval of a call.
func approvedBy(e *v1alpha1.ExecutionEvent) string {
	var c struct{ ApprovalID string }
	if e.Content == nil || json.Unmarshal(e.Content.Raw, &c) != nil || c.ApprovalID == "" {
		return ""
	}
	return ", approved as " + c.ApprovalID
}

// preface returns the sections that come before the prompt: its own, if there are such calls, and then others.
func (u *uncertain) preface(others string) string {
	if len(u.open) == 0 {
		return others
	}
	lines := []string{"## Calls whose outcome is unknown", "Earlier attempts at this task made these calls and did not learn how they ended. Each of them may have been carried out: " +
		"look at the present state before you make it again."}
	for _, c := range u.open[max(0, len(u.open)-maxUncertain):] {
		lines = append(lines, c.text)
	}
	return strings.Join(lines, "\n") + "\n\n" + cmp.Or(others, "## Your task\n")
}

// readUncertain reads the calls of earlier attempts that may have been carried out.
func readUncertain(ctx context.Context, r *runner.Run) (*uncertain, error) {
	u := &uncertain{attempt: int32(r.Attempt)}
	if u.attempt <= 1 {
		return u, nil
	}
	for after := int64(0); ; {
		page, err := r.API.CoreV1alpha1().Tasks(r.Task.Namespace).EventPage(ctx, r.Task.Name, after, v1alpha1.EventToolCallStarted, v1alpha1.EventToolCallCompleted, v1alpha1.EventToolCallFailed)
		if err != nil {
			return nil, fmt.Errorf("events of earlier attempts: %w", err)
		}
		next := max(after, page.NextSeq)
		for i := range page.Events {
			u.add(&page.Events[i])
			next = max(next, page.Events[i].Seq)
		}
		if next == after || next >= page.LatestSeq {
			return u, nil
		}
		after = next
	}
}
