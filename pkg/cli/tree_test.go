// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestTreeIsReadable draws a tree of three levels: with a task that failed, one that waits for a decision, one that was
// detached, and one whose parent is gone.
func TestTreeIsReadable(t *testing.T) {
	start := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	task := func(name, agent string, phase v1alpha1.TaskPhase, revision int64, above ...types.UID) *v1alpha1.Task {
		x := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
		x.Status = v1alpha1.TaskStatus{Phase: phase, AgentName: agent, Attempts: 1, StartTime: &start, CreationRevision: revision}
		if len(above) > 0 {
			x.Status.Delegation = &v1alpha1.TaskDelegation{Root: string(above[0]), RootUID: above[0], Ancestors: above}
		}
		if phase.Terminal() {
			x.Status.CompletionTime = &metav1.Time{Time: start.Add(time.Duration(revision) * time.Second)}
		}
		return x
	}
	condition := func(x *v1alpha1.Task, kind, reason string) {
		x.Status.Conditions = append(x.Status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason})
	}
	root := task("report", "chief", v1alpha1.TaskRunning, 1)
	condition(root, v1alpha1.ConditionWaitingForChildren, "Children")
	root.Status.Iteration, root.Status.Attempts = 2, 3
	failed := task("report-child-a", "clerk", v1alpha1.TaskFailed, 2, "report")
	condition(failed, v1alpha1.ConditionFailed, v1alpha1.ReasonTimedOut)
	failed.Status.Message, failed.Status.Attempts = "the task timed out\nafter \x1b[31m1 minute", 2
	lead := task("report-child-b", "lead", v1alpha1.TaskRunning, 3, "report")
	gated := task("report-child-c", "clerk", v1alpha1.TaskRunning, 4, "report", "report-child-b")
	condition(gated, v1alpha1.ConditionWaitingForApproval, "Approval")
	waiting := task("report-child-d", "clerk", "", 5, "report", "report-child-b")
	waiting.Status.StartTime, waiting.Status.Attempts = nil, 0
	condition(waiting, v1alpha1.ConditionWaitingToStart, v1alpha1.ReasonChildLimitReached)
	detached := task("report-child-e", "", v1alpha1.TaskSucceeded, 6, "report")
	detached.Status.Delegation.Detached = true
	orphan := task("report-child-f", "clerk", v1alpha1.TaskCancelled, 90, "report", "gone")
	orphan.Status.Message = "the task above was deleted"
	asked := v1alpha1.Approval{ObjectMeta: metav1.ObjectMeta{Name: strings.Repeat("0123456789abcdef", 4)}, Spec: v1alpha1.ApprovalSpec{TaskUID: gated.UID, Action: "rotate\nthe logs"}}

	tree := growTree(root, []v1alpha1.Task{*waiting, *root, *failed, *lead, *gated, *detached, *orphan}, []v1alpha1.Approval{asked})
	for golden, of := range map[string]*treeNode{"tree": tree, "subtree": growTree(lead, []v1alpha1.Task{*root, *failed, *lead, *gated, *orphan}, nil)} {
		var out strings.Builder
		if err := printTree(&terminal{Streams: Streams{Width: 120}, clock: clocktesting.NewFakeClock(start.Add(time.Minute))}, &out, of); err != nil {
			t.Fatal(err)
		}
		name := "testdata/" + golden + ".txt"
		if *rewrite {
			if err := os.WriteFile(name, []byte(out.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), out.String()); diff != "" {
			t.Error(diff)
		}
	}
}
