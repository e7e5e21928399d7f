// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/controller/cron"
	"github.com/platform-ai/platform/pkg/controller/step"
)

const (
	// suspendedCheck is how often a suspended schedule is checked.
	suspendedCheck   = time.Minute
	suspendedMessage = "the schedule is suspended"
	// defaultStartingDeadline is used if the server set no default.
	defaultStartingDeadline = 100 * time.Second
	defaultSucceededHistory = 3
	defaultFailedHistory    = 1
)

// scheduler treats a task with a schedule as a template, and runs a copy of it at each tick.
type scheduler struct {
	now      func() time.Time
	fresh    func(context.Context, *v1alpha1.Task) error
	append   appendFunc
	end      endFunc
	children func(context.Context, *v1alpha1.Task) ([]v1alpha1.Task, error)
	create   func(ctx context.Context, t, child *v1alpha1.Task) error
	remove   func(context.Context, *v1alpha1.Task) error
	// warn writes a warning about the task for people, and note writes news.
	warn, note func(ctx context.Context, t *v1alpha1.Task, reason, message string)
}

func (s scheduler) do(ctx context.Context, t *v1alpha1.Task) error {
	begun := t.Status.Phase == v1alpha1.TaskScheduled
	if t.Spec.Schedule == "" || !begun && t.Status.Phase != v1alpha1.TaskPending && t.Status.Phase != "" {
		return nil
	}
	sched, err := cron.Parse(t.Spec.Schedule, t.Spec.TimeZone)
	if err != nil {
		if err := s.end(ctx, t, outcome{phase: v1alpha1.TaskFailed, reason: v1alpha1.ReasonInvalidSchedule, message: err.Error()}); err != nil {
			return err
		}
		return step.ErrDone
	}
	if !begun {
		if err := s.append(ctx, t, createdEvent(t), phaseChanged(t, v1alpha1.TaskPending, v1alpha1.TaskScheduled, "")); err != nil {
			return err
		}
		t.Status.Phase = v1alpha1.TaskScheduled
	}
	runs, err := s.children(ctx, t)
	if err != nil {
		return err
	}
	if err := s.prune(ctx, t, runs); err != nil {
		return err
	}
	if t.Spec.Suspend {
		t.Status.NextScheduleTime = nil
		t.Status.Message = suspendedMessage
		return step.Wait{After: suspendedCheck, Reason: t.Status.Message}
	}
	return s.tick(ctx, t, sched, runs)
}

// tick runs what is due. lastScheduleTime advances past each tick that was handled, whether it
// was run or not, so none is handled twice.
func (s scheduler) tick(ctx context.Context, t *v1alpha1.Task, sched cron.Schedule, runs []v1alpha1.Task) error {
	last := t.CreationTimestamp.Time
	for _, other := range []*metav1.Time{t.Status.LastScheduleTime, t.Status.ScheduleSince} {
		if other != nil && other.After(last) {
			last = other.Time
		}
	}
	deadline := defaultStartingDeadline
	if d := t.Spec.StartingDeadlineSeconds; d != nil {
		deadline = v1alpha1.Length(*d, time.Second)
	}
	if t.Status.Message == suspendedMessage {
		t.Status.Message = ""
	}
	d := sched.At(last, s.now(), deadline)
	if !d.Tick.IsZero() {
		if err := s.runTick(ctx, t, d.Tick, runs); err != nil {
			return err
		}
	}
	s.missed(ctx, t, d)
	if d.Next.IsZero() {
		t.Status.NextScheduleTime = nil
		t.Status.Message = "the schedule has no further runs"
		return step.ErrDone
	}
	t.Status.NextScheduleTime = &metav1.Time{Time: d.Next}
	return step.Wait{After: max(time.Millisecond, d.Next.Sub(s.now())), Reason: "the next run is not due yet"}
}

// missed says in the status, and once to people, which runs were not created. lastScheduleTime then names the last tick, whatever
// became of it, so the next reconcile has nothing to say.
func (s scheduler) missed(ctx context.Context, t *v1alpha1.Task, d cron.Due) {
	if d.Missed == 0 {
		if !d.Tick.IsZero() && meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionMissedSchedule) != nil {
			setCondition(&t.Status, t.Generation, v1alpha1.ConditionMissedSchedule, metav1.ConditionFalse, v1alpha1.EventReasonScheduledRun,
				fmt.Sprintf("the run of %s was in time", d.Tick.UTC().Format(time.RFC3339)))
		}
		return
	}
	at := d.LastMissed.UTC().Format(time.RFC3339)
	said := fmt.Sprintf("the run of %s was missed: it is later than its starting deadline", at)
	if !d.Tick.IsZero() {
		said = fmt.Sprintf("the run of %s was missed: the one of %s is due already", at, d.Tick.UTC().Format(time.RFC3339))
	}
	switch {
	case d.Missed >= cron.CountMost:
		said = fmt.Sprintf("%d runs or more were missed, the last one of %s", cron.CountMost, at)
	case d.Missed > 1:
		said = fmt.Sprintf("%d runs were missed, the last one of %s", d.Missed, at)
	}
	if d.Tick.IsZero() {
		t.Status.LastScheduleTime = &metav1.Time{Time: d.LastMissed}
		t.Status.Message = said
	}
	setCondition(&t.Status, t.Generation, v1alpha1.ConditionMissedSchedule, metav1.ConditionTrue, v1alpha1.EventReasonMissedSchedule, said)
	s.warn(ctx, t, v1alpha1.EventReasonMissedSchedule, said)
}

func (s scheduler) runTick(ctx context.Context, t *v1alpha1.Task, at time.Time, runs []v1alpha1.Task) error {
	name := runName(t.Name, at)
	busy := slices.ContainsFunc(runs, func(r v1alpha1.Task) bool { return r.Name != name && !r.Status.Phase.Terminal() })
	if busy && t.Spec.ConcurrencyPolicy != v1alpha1.ConcurrencyAllow {
		t.Status.LastScheduleTime = &metav1.Time{Time: at}
		t.Status.Message = fmt.Sprintf("the run of %s was skipped: an earlier one is active", at.UTC().Format(time.RFC3339))
		return nil
	}
	// With an outdated cache, a run that was made and is gone could be made again.
	if err := s.fresh(ctx, t); err != nil {
		return err
	}
	err := s.create(ctx, t, scheduledRun(t, at))
	if err != nil && !apierrors.IsInvalid(err) {
		return err
	}
	t.Status.LastScheduleTime = &metav1.Time{Time: at}
	if err != nil { // a template of an earlier version may ask for what is refused now; trying again would not help
		t.Status.Message = fmt.Sprintf("the run of %s was refused: %v", at.UTC().Format(time.RFC3339), err)
		return nil
	}
	t.Status.Message = fmt.Sprintf("run %s was created", name)
	s.note(ctx, t, v1alpha1.EventReasonScheduledRun, t.Status.Message)
	return nil
}

func runName(parent string, at time.Time) string {
	return v1alpha1.ShortName(parent, "-"+strconv.FormatInt(at.Unix(), 10), validation.DNS1123SubdomainMaxLength)
}

// scheduledRun is the run of a tick.
func scheduledRun(t *v1alpha1.Task, at time.Time) *v1alpha1.Task {
	run := t.RunOfSchedule()
	run.Name = runName(t.Name, at)
	for _, key := range []string{
		v1alpha1.AnnotationRequestedBy, v1alpha1.AnnotationRequestedByGroups, // a run is work for whoever created the schedule
		v1alpha1.AnnotationDisableCoordination, v1alpha1.AnnotationForkGates, // and has no more tools, nor freer ones
		v1alpha1.AnnotationPRMonitorName,
	} {
		if value, ok := t.Annotations[key]; ok {
			run.Annotations[key] = value
		}
	}
	return run
}

// prune deletes finished runs beyond the history limits, oldest first.
func (s scheduler) prune(ctx context.Context, t *v1alpha1.Task, runs []v1alpha1.Task) error {
	keep := func(p *int32, def int) int {
		if p == nil {
			return def
		}
		return int(*p)
	}
	succeeded := keep(t.Spec.SuccessfulRunsHistoryLimit, defaultSucceededHistory)
	failed := keep(t.Spec.FailedRunsHistoryLimit, defaultFailedHistory)
	sorted := slices.Clone(runs)
	slices.SortFunc(sorted, func(a, b v1alpha1.Task) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	for i := range sorted {
		r := &sorted[i]
		left := &failed
		if r.Status.Phase == v1alpha1.TaskSucceeded {
			left = &succeeded
		}
		if !r.Status.Phase.Terminal() || !r.DeletionTimestamp.IsZero() {
			continue
		}
		if *left--; *left >= 0 {
			continue
		}
		if r.Spec.WebhookURL != "" && !r.Status.WebhookDelivered {
			continue // its callback must be delivered first
		}
		if err := s.remove(ctx, r); err != nil {
			return err
		}
	}
	return nil
}
