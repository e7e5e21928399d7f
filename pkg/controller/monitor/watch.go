// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/codehost/operation"
	"github.com/platform-ai/platform/pkg/controller/cron"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/repomonitor"
)

// recheck is how often a monitor that cannot work is looked at again.
const recheck = 30 * time.Second

// startingDeadline is how late a scheduled run may begin. A monitor looks at what there is now, so a late run is as good.
const startingDeadline = 24 * time.Hour

// check finds out whether the monitor can work.
func (w *world) check(ctx context.Context, m *v1alpha1.RepositoryMonitor) error {
	if m.DeletionTimestamp != nil {
		return step.ErrDone
	}
	s := &m.Status
	s.ObservedGeneration = m.Generation
	why, err := w.lacks(ctx, m)
	if err == nil && why == "" && !m.Spec.Suspend {
		why, err = w.reach(ctx, m)
	}
	if err != nil {
		return err
	}
	c := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonValidationSucceeded, Message: "the monitor looks after its repository", ObservedGeneration: m.Generation}
	s.Phase = v1alpha1.MonitorReady
	switch {
	case why != "":
		s.Phase, c.Status, c.Reason, c.Message = v1alpha1.MonitorError, metav1.ConditionFalse, v1alpha1.ReasonValidationFailed, why
	case m.Spec.Suspend:
		s.Phase, c.Message = v1alpha1.MonitorSuspended, "the monitor is suspended (spec.suspend)"
	}
	meta.SetStatusCondition(&s.Conditions, c)
	return nil
}

// reach has the own credential of the monitor read the repository, and returns why it cannot; empty if it can, or if the code host does not
// answer now. Only then deliveries of webhooks are told to the monitor, so who writes one for a repository that is not theirs learns
// nothing. After a run that failed it is read again, because the credential may have been taken back.
func (w *world) reach(ctx context.Context, m *v1alpha1.RepositoryMonitor) (string, error) {
	runs, err := w.runs(ctx, m)
	if err != nil {
		return "", err
	}
	if repomonitor.Accessible(m) && !lastFailed(runs) {
		return "", nil
	}
	c := metav1.Condition{
		Type: v1alpha1.ConditionRepositoryAccessible, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonMonitorRepositoryRead,
		Message: "the credential of the monitor can read the repository", ObservedGeneration: m.Generation,
	}
	var why string
	err = w.read(ctx, m, operation.Repository, operation.NoArguments{}, &operation.RepositoryState{})
	failed, ok := errors.AsType[failure](err)
	switch {
	case err != nil && !ok:
		return "", err
	case ok && failed.passing():
		return "", nil // what was known of the spec as it is stays
	case ok:
		why = "spec.repoURL: " + failed.Message
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, string(failed.Reason), failed.Message
	}
	meta.SetStatusCondition(&m.Status.Conditions, c)
	return why, nil
}

// lastFailed reports whether the run that ended last has failed.
func lastFailed(runs []v1alpha1.MonitorRun) bool {
	var last *v1alpha1.MonitorRunStatus
	for i := range runs {
		if s := &runs[i].Status; s.CompletedAt != nil && (last == nil || last.CompletedAt.Before(s.CompletedAt)) {
			last = s
		}
	}
	return last != nil && last.State == v1alpha1.MonitorRunFailed
}

// lacks returns why the monitor cannot work; empty if it can.
func (w *world) lacks(ctx context.Context, m *v1alpha1.RepositoryMonitor) (string, error) {
	a := &m.Spec.Agents
	for _, of := range []struct {
		field string
		ref   *v1alpha1.LocalReference
	}{
		{"reviewer", a.Reviewer}, {"triager", a.Triager}, {"researcher", a.Researcher}, {"planner", a.Planner}, {"repairer", a.Repairer}, {"implementer", a.Implementer},
	} {
		if of.ref == nil {
			continue
		}
		agent := &v1alpha1.Agent{}
		err := w.Get(ctx, types.NamespacedName{Namespace: m.Namespace, Name: of.ref.Name}, agent)
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Sprintf("spec.agents.%s: the Agent %s does not exist", of.field, of.ref.Name), nil
		case err != nil:
			return "", fmt.Errorf("agent %s: %w", of.ref.Name, err)
		case of.field == "implementer" && (agent.Spec.Runtime == nil || agent.Spec.Runtime.Type == "" || agent.Spec.SecretRef != nil):
			return fmt.Sprintf("spec.agents.implementer: the Agent %s must have a runtime that is built in, without a Secret of its own (spec.runtime)", of.ref.Name), nil
		case of.field == "implementer" && writesOnHost(agent):
			return fmt.Sprintf("spec.agents.implementer: the Agent %s must not have tools that write on the code host (spec.tools), because its task has the credential for pull requests", of.ref.Name), nil
		}
	}
	return "", nil
}

// writesOnHost reports whether an Agent names a tool that writes on code hosts.
func writesOnHost(a *v1alpha1.Agent) bool {
	return slices.ContainsFunc(a.Spec.Tools, func(t v1alpha1.AgentTool) bool {
		known, ok := operation.Find(t.Name)
		return ok && known.Writes && (t.Enabled == nil || *t.Enabled)
	})
}

// count counts what there is.
func (w *world) count(ctx context.Context, m *v1alpha1.RepositoryMonitor) error {
	items, err := w.items(ctx, m)
	if err != nil {
		return err
	}
	s := &m.Status
	s.OpenPullRequests, s.PendingReviews, s.ActiveRepairs, s.BlockedItems, s.MergeReadyItems = 0, 0, 0, 0, 0
	s.OpenIssues, s.PendingIssueActions, s.BlockedIssues = 0, 0, 0
	for i := range items {
		is := &items[i].Status
		if is.State != v1alpha1.MonitorItemOpen {
			continue
		}
		blocked := is.BlockedReason != ""
		if items[i].Spec.TargetKind == v1alpha1.MonitorIssue {
			s.OpenIssues++
			add(&s.BlockedIssues, blocked || is.Issue != nil && is.Issue.Phase == v1alpha1.MonitorIssueBlocked)
			continue
		}
		s.OpenPullRequests++
		add(&s.BlockedItems, blocked)
		add(&s.PendingReviews, is.Review == nil && !blocked || is.Review != nil && is.Review.Verdict == "")
		add(&s.ActiveRepairs, is.Repair != nil && is.Repair.Phase == v1alpha1.MonitorRepairQueued)
		add(&s.MergeReadyItems, is.Automerge != nil && is.Automerge.State == v1alpha1.MonitorMergeReady)
	}
	works, err := w.works(ctx, m)
	if err != nil {
		return err
	}
	for i := range works {
		add(&s.PendingIssueActions, works[i].Spec.TargetKind == v1alpha1.MonitorIssue && active(&works[i]))
	}
	return nil
}

func add(n *int32, one bool) {
	if one {
		*n++
	}
}

// active reports whether work is not over.
func active(a *v1alpha1.MonitorWorkAction) bool {
	switch a.Status.State {
	case v1alpha1.MonitorWorkQueued, v1alpha1.MonitorWorkRunning, v1alpha1.MonitorWorkRetryPending, "":
		return true
	}
	return false
}

func (w *world) items(ctx context.Context, m *v1alpha1.RepositoryMonitor) ([]v1alpha1.MonitorItem, error) {
	var l v1alpha1.MonitorItemList
	if err := w.List(ctx, &l, client.InNamespace(m.Namespace), client.MatchingFields{ofMonitor: m.Name}); err != nil {
		return nil, fmt.Errorf("items: %w", err)
	}
	return slices.DeleteFunc(l.Items, func(i v1alpha1.MonitorItem) bool { return i.Spec.MonitorUID != m.UID }), nil
}

func (w *world) works(ctx context.Context, m *v1alpha1.RepositoryMonitor) ([]v1alpha1.MonitorWorkAction, error) {
	var l v1alpha1.MonitorWorkActionList
	if err := w.List(ctx, &l, client.InNamespace(m.Namespace), client.MatchingFields{ofMonitor: m.Name}); err != nil {
		return nil, fmt.Errorf("work: %w", err)
	}
	return slices.DeleteFunc(l.Items, func(a v1alpha1.MonitorWorkAction) bool { return a.Spec.MonitorUID != m.UID }), nil
}

func (w *world) runs(ctx context.Context, m *v1alpha1.RepositoryMonitor) ([]v1alpha1.MonitorRun, error) {
	var l v1alpha1.MonitorRunList
	if err := w.List(ctx, &l, client.InNamespace(m.Namespace), client.MatchingFields{ofMonitor: m.Name}); err != nil {
		return nil, fmt.Errorf("runs: %w", err)
	}
	return slices.DeleteFunc(l.Items, func(r v1alpha1.MonitorRun) bool { return r.Spec.MonitorUID != m.UID }), nil
}

// watch makes the run that is due, refreshes evidence, and waits for the next time.
func (w *world) watch(ctx context.Context, m *v1alpha1.RepositoryMonitor) error {
	if m.Status.Phase != v1alpha1.MonitorReady {
		return step.Wait{After: recheck, Reason: "the monitor does not work now"}
	}
	sched, err := cron.Parse(m.Spec.Schedule, m.Spec.TimeZone)
	if err != nil {
		m.Status.Phase = v1alpha1.MonitorError
		meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonInvalidSchedule, Message: err.Error(), ObservedGeneration: m.Generation})
		return step.ErrDone
	}
	busy, err := w.lastRuns(ctx, m)
	if err != nil {
		return err
	}
	last := m.CreationTimestamp.Time
	if t := m.Status.LastScheduledTime; t != nil {
		last = t.Time
	}
	d := sched.At(last, w.now(), startingDeadline)
	tick := d.Tick
	if m.Status.LastRunID == "" && tick.IsZero() { // a new monitor looks at once
		tick = m.CreationTimestamp.Time
	}
	if !tick.IsZero() && !busy {
		run := repomonitor.NewRun(m, v1alpha1.MonitorRunScheduled, "at-"+strconv.FormatInt(tick.Unix(), 10))
		if _, err := w.ensure(ctx, run); err != nil {
			return fmt.Errorf("run: %w", err)
		}
		m.Status.LastScheduledTime, m.Status.LastRunID, m.Status.LastRunTime = &metav1.Time{Time: tick}, run.Name, &run.CreationTimestamp
	}
	next := 24 * time.Hour
	if !d.Next.IsZero() {
		next = min(next, max(d.Next.Sub(w.now()), time.Second))
	}
	evidence, err := w.refresh(ctx, m)
	if err != nil {
		return err
	}
	return step.Wait{After: min(next, evidence), Reason: "the next run is not due yet"}
}

// lastRuns says in the status which runs were the last ones, and reports whether one is not over.
func (w *world) lastRuns(ctx context.Context, m *v1alpha1.RepositoryMonitor) (busy bool, err error) {
	runs, err := w.runs(ctx, m)
	if err != nil {
		return false, err
	}
	for i := range runs {
		r := &runs[i]
		switch r.Status.State {
		case v1alpha1.MonitorRunQueued, v1alpha1.MonitorRunRunning, "":
			busy = busy || r.Spec.TargetNumber == 0
		}
		if at := r.CreationTimestamp; m.Status.LastRunTime == nil || m.Status.LastRunTime.Before(&at) {
			m.Status.LastRunTime, m.Status.LastRunID = &at, r.Name
		}
		if at := r.Status.StartedAt; r.Status.State == v1alpha1.MonitorRunSucceeded && at != nil && (m.Status.LastSuccessfulRunTime == nil || m.Status.LastSuccessfulRunTime.Before(at)) {
			m.Status.LastSuccessfulRunTime = at
		}
	}
	return busy, nil
}
