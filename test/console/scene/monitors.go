// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// MonitorHead is the head of the pull requests of monitors.
var MonitorHead = strings.Repeat("0a1b2c3d", 5)

// Monitor makes a monitor, and records of what it did, which no controller has made: the pull request 7, of which the review found something,
// with its work, task, command and what was posted; the pull request 8, which is blocked; and the issue 9, whose plan waits for an
// approval. All of them say said. A page of something at the code host is at url.
func (s *Scene) Monitor(name, said, url string) {
	s.t.Helper()
	ctx, c, ns := s.t.Context(), s.API.CoreV1alpha1(), s.namespace
	m, err := c.RepositoryMonitors(ns).Create(ctx, &v1alpha1.RepositoryMonitor{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.RepositoryMonitorSpec{
		RepoURL: "https://git.example/ada/" + name, Schedule: "0 0 1 1 *", Targets: v1alpha1.MonitorTargets{Issues: v1alpha1.MonitorIssues{Enabled: true}},
		Agents: v1alpha1.MonitorAgents{Reviewer: &v1alpha1.LocalReference{Name: "helper"}},
	}}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	now := new(metav1.Now())
	m.Status = v1alpha1.RepositoryMonitorStatus{
		Phase: v1alpha1.MonitorReady, LastRunTime: now, LastSuccessfulRunTime: now, OpenPullRequests: 2, PendingReviews: 1, BlockedItems: 1, OpenIssues: 1, ObservedGeneration: m.Generation,
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Ready", Message: said, LastTransitionTime: *now}},
	}
	s.must(c.RepositoryMonitors(ns).UpdateStatus(ctx, m, metav1.UpdateOptions{}))

	const pull, issue = v1alpha1.MonitorPullRequest, v1alpha1.MonitorIssue
	open := v1alpha1.MonitorItemStatus{State: v1alpha1.MonitorItemOpen, URL: url, Author: "mallory", Labels: []string{"bug"}, ObservedAt: now}
	seven, eight, nine := open, open, open
	seven.Title, seven.HeadSHA, seven.HeadBranch, seven.HeadRepository, seven.BaseBranch, seven.Checks = "Mend the door: "+said, MonitorHead, "work", "ada/"+name, "main", "passed"
	seven.Review = &v1alpha1.MonitorItemReview{
		HeadSHA: MonitorHead, TaskName: "plain", Verdict: v1alpha1.MonitorVerdictNeedsChanges, Summary: "A door without a lock. " + said, ReviewedAt: now, PublishPhase: v1alpha1.MonitorPublishSucceeded, URL: url,
		Findings: []v1alpha1.MonitorFinding{{Path: "README.md", Line: 2, Priority: v1alpha1.MonitorP1, Title: "No lock", Body: "Add **one**. " + said}},
	}
	seven.Repair = &v1alpha1.MonitorItemRepair{Phase: v1alpha1.MonitorRepairFailed, HeadSHA: MonitorHead, TaskName: "long", Attempts: 1, Message: "the agent gave up: " + said}
	seven.Automerge = &v1alpha1.MonitorItemAutomerge{State: v1alpha1.MonitorMergeBlocked, HeadSHA: MonitorHead, Reason: "the review has findings"}
	eight.Title, eight.HeadSHA, eight.BlockedReason, eight.Message = "A window", MonitorHead, v1alpha1.ReasonMonitorPaused, "it has the label paused. "+said
	nine.Title = "No bell: " + said
	nine.Issue = &v1alpha1.MonitorItemIssue{Phase: v1alpha1.MonitorIssueApprovalRequired, Risk: v1alpha1.MonitorRiskHigh, Triage: "It is **a bug**. " + said, Plan: "Make a bell.\n" + said, TaskName: "asks"}
	s.item(m, pull, 7, seven)
	s.item(m, pull, 8, eight)
	s.item(m, issue, 9, nine)
	s.Run(m, "first", v1alpha1.MonitorRunFailed, "the code host did not answer: "+said)
	s.records(m, said, url)
}

// item makes an item of a monitor.
func (s *Scene) item(m *v1alpha1.RepositoryMonitor, kind v1alpha1.MonitorTargetKind, number int64, status v1alpha1.MonitorItemStatus) {
	s.t.Helper()
	of := map[v1alpha1.MonitorTargetKind]string{v1alpha1.MonitorPullRequest: "pr", v1alpha1.MonitorIssue: "issue"}[kind]
	i, err := s.API.CoreV1alpha1().MonitorItems(s.namespace).Create(s.t.Context(), &v1alpha1.MonitorItem{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s.%s-%d", m.Name, of, number)},
		Spec:       v1alpha1.MonitorItemSpec{MonitorName: m.Name, MonitorUID: m.UID, TargetKind: kind, Number: number},
	}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	i.Status = status
	s.must(s.API.CoreV1alpha1().MonitorItems(s.namespace).UpdateStatus(s.t.Context(), i, metav1.UpdateOptions{}))
}

// Run makes a run of a monitor that has ended.
func (s *Scene) Run(m *v1alpha1.RepositoryMonitor, name string, state v1alpha1.MonitorRunState, message string) {
	s.t.Helper()
	runs := s.API.CoreV1alpha1().MonitorRuns(s.namespace)
	r, err := runs.Create(s.t.Context(), &v1alpha1.MonitorRun{
		ObjectMeta: metav1.ObjectMeta{Name: m.Name + "." + name},
		Spec:       v1alpha1.MonitorRunSpec{MonitorName: m.Name, MonitorUID: m.UID, Trigger: v1alpha1.MonitorRunScheduled},
	}, metav1.CreateOptions{})
	for _, to := range []v1alpha1.MonitorRunState{v1alpha1.MonitorRunRunning, state} {
		if err != nil {
			break
		}
		r.Status.State, r.Status.Message, r.Status.NextAttemptAt = to, message, nil
		r, err = runs.UpdateStatus(s.t.Context(), r, metav1.UpdateOptions{})
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// records makes a piece of work on the pull request 7, a command about it, and what was written about it.
func (s *Scene) records(m *v1alpha1.RepositoryMonitor, said, url string) {
	s.t.Helper()
	ctx, c := s.t.Context(), s.API.CoreV1alpha1()
	named := metav1.ObjectMeta{Name: m.Name + ".one"}
	w, err := c.MonitorWorkActions(s.namespace).Create(ctx, &v1alpha1.MonitorWorkAction{ObjectMeta: named, Spec: v1alpha1.MonitorWorkActionSpec{
		MonitorName: m.Name, MonitorUID: m.UID, TargetKind: v1alpha1.MonitorPullRequest, Number: 7, DesiredAction: v1alpha1.MonitorReviewIntent, HeadSHA: MonitorHead, Attempt: 1, Run: m.Name + ".first",
	}}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, to := range []v1alpha1.MonitorWorkActionState{v1alpha1.MonitorWorkRunning, v1alpha1.MonitorWorkSucceeded} {
		w.Status.State, w.Status.TaskName, w.Status.Verdict, w.Status.Message, w.Status.NextAttemptAt = to, "plain", "needs_changes", said, nil
		if w, err = c.MonitorWorkActions(s.namespace).UpdateStatus(ctx, w, metav1.UpdateOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
	command, err := c.MonitorCommands(s.namespace).Create(ctx, &v1alpha1.MonitorCommand{ObjectMeta: named, Spec: v1alpha1.MonitorCommandSpec{
		MonitorName: m.Name, MonitorUID: m.UID, TargetKind: v1alpha1.MonitorPullRequest, Number: 7, Intent: v1alpha1.MonitorFix, Source: v1alpha1.MonitorCommandLabel, Label: "platform:fix", Sender: "mallory",
	}}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	command.Status = v1alpha1.MonitorCommandStatus{State: v1alpha1.MonitorCommandRejected, Reason: v1alpha1.ReasonMonitorPermission, Message: "mallory may only read. " + said}
	s.must(c.MonitorCommands(s.namespace).UpdateStatus(ctx, command, metav1.UpdateOptions{}))
	wrote, err := c.MonitorMutations(s.namespace).Create(ctx, &v1alpha1.MonitorMutation{ObjectMeta: named, Spec: v1alpha1.MonitorMutationSpec{
		MonitorName: m.Name, MonitorUID: m.UID, TargetKind: v1alpha1.MonitorPullRequest, Number: 7, Operation: v1alpha1.MonitorPostReview, HeadSHA: MonitorHead, WorkAction: named.Name,
	}}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	wrote.Status = v1alpha1.MonitorMutationStatus{State: v1alpha1.MonitorPublishSucceeded, URL: url, Message: said}
	s.must(c.MonitorMutations(s.namespace).UpdateStatus(ctx, wrote, metav1.UpdateOptions{}))
}

func (s *Scene) must(_ any, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}
