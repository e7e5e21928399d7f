// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	law "github.com/platform-ai/platform/pkg/event"
)

// TestLostCalls: when an attempt ends, each call that it began and did not end gets an end whose outcome is unknown, with what
// the start says about the call, and only once.
func TestLostCalls(t *testing.T) {
	const began, done, failed = v1alpha1.EventToolCallStarted, v1alpha1.EventToolCallCompleted, v1alpha1.EventToolCallFailed
	gone := apierrors.NewForbidden(v1alpha1.Resource("tasks"), "t", errors.New("the stream is full"))
	type step struct {
		typ      v1alpha1.EventType
		attempt  int32
		id, tool string
	}
	for name, tc := range map[string]struct {
		typ    v1alpha1.TaskType
		events []step
		refuse error
		want   string
		err    bool
	}{
		"nothing was called":      {},
		"all have ended":          {events: []step{{began, 2, "a", "pay"}, {began, 2, "b", "pay"}, {done, 2, "a", "pay"}, {failed, 2, "b", "pay"}}},
		"one has not":             {events: []step{{began, 2, "a", "pay"}, {done, 2, "a", "pay"}, {began, 2, "b", "pay"}}, want: "pay/b/3"},
		"ids that are used again": {events: []step{{began, 2, "a", "pay"}, {done, 2, "a", "pay"}, {began, 2, "a", "pay"}}, want: "pay/a/3"},
		"of an earlier attempt":   {events: []step{{began, 1, "a", "pay"}, {began, 2, "a", "look"}}, want: "look/a/2"},
		"the end of an earlier":   {events: []step{{began, 2, "a", "pay"}, {done, 1, "a", "pay"}}, want: "pay/a/1"},
		"a command":               {typ: v1alpha1.TaskTypeContainer, events: []step{{began, 2, "a", "pay"}}},
		"refused for good":        {events: []step{{began, 2, "a", "pay"}}, refuse: gone, want: "pay/a/1"},
		"refused for now":         {events: []step{{began, 2, "a", "pay"}}, refuse: errBoom, want: "pay/a/1", err: true},
	} {
		var got []string
		s := lostCalls{
			each: func(_ context.Context, _ *v1alpha1.Task, typ v1alpha1.EventType, f func(*v1alpha1.ExecutionEvent)) error {
				for i, x := range tc.events {
					if x.typ == typ {
						e := law.New(typ, v1alpha1.SeverityInfo, "", "", map[string]any{"iteration": 4, "approvalID": "approved"})
						e.Seq, e.Attempt, e.ToolCallID, e.ToolName = int64(i+1), x.attempt, x.id, x.tool
						f(e)
					}
				}
				return nil
			},
			append: func(_ context.Context, _ *v1alpha1.Task, events ...v1alpha1.ExecutionEvent) error {
				for i := range events {
					e := &events[i]
					var c struct {
						ErrorType, ApprovalID string
						Iteration             int
					}
					if err := json.Unmarshal(e.Content.Raw, &c); err != nil || c.ErrorType != "outcome_unknown" || c.ApprovalID != "approved" || c.Iteration != 4 ||
						e.Type != failed || e.Attempt != 2 || e.Severity != v1alpha1.SeverityWarning || law.Validate(e) != nil {
						t.Errorf("%s: %+v, %s", name, e, e.Content.Raw)
					}
					got = append(got, fmt.Sprintf("%s/%s/%s", e.ToolName, e.ToolCallID, strings.TrimPrefix(e.DedupKey, "controller/lostcall/2/")))
				}
				return tc.refuse
			},
		}
		tk := task(func(t *v1alpha1.Task) { t.Spec.Type, t.Status.Attempts = tc.typ, 2 })
		if tc.typ == "" {
			tk.Spec.Type = v1alpha1.TaskTypeAI
		}
		err := s.settle(t.Context(), tk)
		slices.Sort(got)
		if strings.Join(got, " ") != tc.want || (err != nil) != tc.err {
			t.Errorf("%s: %v, %v, want %s", name, got, err, tc.want)
		}
	}
}
