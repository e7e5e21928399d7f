// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
)

// TestUncertain: a retry is told of the calls of earlier attempts that may have been carried out, and of no others.
func TestUncertain(t *testing.T) {
	t.Parallel()
	u := &uncertain{attempt: 3}
	tell := func(attempt int32, typ v1alpha1.EventType, id string, content map[string]any) {
		e := event.New(typ, v1alpha1.SeverityInfo, "", "x", content)
		e.Attempt, e.ToolCallID, e.ToolName = attempt, id, "deploy"
		u.add(e)
	}
	if got := u.preface("others"); got != "others" {
		t.Errorf("without calls: %q", got)
	}
	begin, done, failed := v1alpha1.EventToolCallStarted, v1alpha1.EventToolCallCompleted, v1alpha1.EventToolCallFailed
	tell(1, begin, "done", nil)
	tell(1, done, "done", nil)
	tell(1, begin, "failed", nil)
	tell(1, failed, "failed", map[string]any{"errorType": "not_found"})
	tell(1, begin, "unknown", map[string]any{"approvalID": "a1"})
	tell(1, failed, "unknown", map[string]any{"errorType": "outcome_unknown"})
	tell(2, begin, "unknown", nil) // the same id in another attempt
	tell(2, done, "unknown", nil)
	tell(2, begin, "killed", nil)
	tell(3, begin, "mine", nil)
	const want = `## Calls whose outcome is unknown
Earlier attempts at this task made these calls and did not learn how they ended. Each of them may have been carried out: look at the present state before you make it again.
- deploy (call unknown of attempt 1, approved as a1)
- deploy (call killed of attempt 2)

## Your task
`
	if diff := cmp.Diff(want, u.preface("")); diff != "" {
		t.Error(diff)
	}
}
