// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/operation"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/repomonitor"
)

// command decides about a command, begins its work, and takes its label away.
func (w *world) command(ctx context.Context, c *v1alpha1.MonitorCommand) error {
	s := &c.Status
	if s.State != v1alpha1.MonitorCommandAccepted && s.State != v1alpha1.MonitorCommandProcessed {
		return step.ErrDone
	}
	m, err := w.monitor(ctx, c.Namespace, c.Spec.MonitorName, c.Spec.MonitorUID)
	if err != nil {
		return err
	}
	if m == nil {
		if s.State == v1alpha1.MonitorCommandAccepted {
			return w.answer(c, v1alpha1.MonitorCommandRejected, v1alpha1.ReasonMonitorGone, "the monitor is gone")
		}
		return w.answer(c, v1alpha1.MonitorCommandCompleted, "", "")
	}
	if m.Spec.Suspend {
		return step.Wait{After: recheck, Reason: "the monitor is suspended"}
	}
	if wait := w.until(s.NextAttemptAt, s.Message); wait != nil {
		return wait
	}
	if s.State == v1alpha1.MonitorCommandProcessed {
		err = w.followUp(ctx, m, c)
	} else {
		err = w.decide(ctx, m, c)
	}
	failed, ok := errors.AsType[failure](err)
	switch {
	case !ok:
		return err
	case failed.Reason == v1alpha1.CodeHostNotFound:
		return w.answer(c, v1alpha1.MonitorCommandRejected, v1alpha1.ReasonMonitorItemGone, failed.Message)
	case w.retry(failed, &s.Attempts, &s.NextAttemptAt, &s.Message):
		return w.until(s.NextAttemptAt, s.Message)
	}
	return w.answer(c, v1alpha1.MonitorCommandRejected, v1alpha1.ReasonMonitorHostRefused, failed.Message)
}

// answer ends a command, or says that its work was begun.
func (w *world) answer(c *v1alpha1.MonitorCommand, state v1alpha1.MonitorCommandState, reason, message string) error {
	s := &c.Status
	if s.State == v1alpha1.MonitorCommandProcessed && state == v1alpha1.MonitorCommandRejected {
		state = v1alpha1.MonitorCommandCompleted // its work was begun; only the label is left
	}
	w.counts.commands.WithLabelValues(string(c.Spec.Intent), string(state)).Inc()
	s.State, s.Reason, s.Message, s.NextAttemptAt, s.Attempts = state, reason, message, nil, 0
	if s.DecidedAt == nil {
		s.DecidedAt = w.time()
	}
	return step.ErrDone
}

// decide finds out whether a command is obeyed.
func (w *world) decide(ctx context.Context, m *v1alpha1.RepositoryMonitor, c *v1alpha1.MonitorCommand) error {
	is, err := w.state(ctx, m, c.Spec.TargetKind, c.Spec.Number)
	if err != nil {
		return err
	}
	item, err := w.observe(ctx, m, c.Spec.TargetKind, &is.Item)
	if err != nil {
		return err
	}
	by := operation.Labeling{Login: c.Spec.Sender, At: c.CreationTimestamp.Time}
	if c.Spec.Source == v1alpha1.MonitorCommandLabel {
		var why *block
		if by, why, err = w.permitted(ctx, m, item, c.Spec.Label); err != nil {
			return err
		}
		if why != nil {
			return w.answer(c, v1alpha1.MonitorCommandRejected, why.reason, why.message)
		}
	}
	if c.Spec.TargetSHA != "" && c.Spec.TargetSHA != is.HeadSHA {
		return w.answer(c, v1alpha1.MonitorCommandBlocked, v1alpha1.ReasonMonitorHeadMoved, "the head has moved since the command was given")
	}
	switch c.Spec.Intent {
	case v1alpha1.MonitorStop:
		return w.stop(ctx, m, c, item)
	case v1alpha1.MonitorResume:
		if item, err = w.updateItem(ctx, item.Namespace, item.Name, func(i *v1alpha1.MonitorItem) { i.Status.Stopped = false }); err != nil {
			return err
		}
		if _, err := w.next(ctx, m, item, ""); err != nil {
			return err
		}
		return w.answer(c, v1alpha1.MonitorCommandProcessed, "", "")
	}
	// A decision that was interrupted has begun the work, which may have counted itself, so a limit is not reached by it.
	a := newWork(m, item, c.Spec.Intent, item.Status.HeadSHA, attemptAt(by))
	err = w.live.Get(ctx, client.ObjectKeyFromObject(a), a)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("work: %w", err)
	}
	if err == nil {
		c.Status.WorkAction = a.Name
		return w.answer(c, v1alpha1.MonitorCommandProcessed, "", "")
	}
	if why := w.refusal(m, c, item); why != nil {
		return w.answer(c, v1alpha1.MonitorCommandBlocked, why.reason, why.message)
	}
	if c.Spec.Intent == v1alpha1.MonitorApprovePlan {
		return w.approvePlan(ctx, m, c, item, is, by.Login)
	}
	return w.begin(ctx, m, c, item, by)
}

// permitted finds out who set a label, when that was, and whether who did may give commands.
func (w *world) permitted(ctx context.Context, m *v1alpha1.RepositoryMonitor, i *v1alpha1.MonitorItem, label string) (by operation.Labeling, why *block, err error) {
	if !repomonitor.HasLabel(i.Status.Labels, label) {
		return by, blocked(v1alpha1.ReasonMonitorLabelGone, "the label is not set any more"), nil
	}
	if err := w.read(ctx, m, operation.LabelActor, operation.LabelArguments{Number: i.Spec.Number, Label: label}, &by); err != nil {
		return by, nil, err
	}
	var may operation.Actor
	if err := w.read(ctx, m, operation.ActorPermission, operation.ActorArguments{Login: by.Login}, &may); err != nil {
		return by, nil, err
	}
	least := codehost.Permission(m.Spec.Triggers.GitHub.Labels.RequireActorPermission)
	if least == "" {
		least = codehost.Write
	}
	allowed := m.Spec.Policy.AllowedRepositoryPermissions
	if !may.Permission.AtLeast(least) || len(allowed) > 0 && !slices.Contains(allowed, v1alpha1.MonitorActorPermission(may.Permission)) {
		return by, blocked(v1alpha1.ReasonMonitorPermission, "%s, who set the label, has the permission %s in the repository; %s is needed", by.Login, may.Permission, least), nil
	}
	return by, nil, nil
}

// refusal returns what keeps a command from being obeyed.
func (w *world) refusal(m *v1alpha1.RepositoryMonitor, c *v1alpha1.MonitorCommand, i *v1alpha1.MonitorItem) *block {
	if why := held(m, i); why != nil {
		return why
	}
	switch c.Spec.Intent {
	case v1alpha1.MonitorFix, v1alpha1.MonitorFixCI:
		return mayRepair(m, i)
	case v1alpha1.MonitorUpdateBranch:
		if !ownBranch(m, &i.Status) {
			return blocked(v1alpha1.ReasonMonitorFork, "the pull request comes from another repository, whose branches are not changed")
		}
		return protected(m, i)
	case v1alpha1.MonitorAutomergeIntent:
		if !m.Spec.Automerge.Enabled {
			return blocked(v1alpha1.ReasonMonitorNotEnabled, "merging is not enabled (spec.automerge.enabled)")
		}
		return protected(m, i)
	case v1alpha1.MonitorReviewIntent:
		if m.Spec.Agents.Reviewer == nil {
			return blocked(v1alpha1.ReasonMonitorNotEnabled, "the monitor has no reviewer (spec.agents.reviewer)")
		}
		return nil
	}
	return mayWorkOnIssue(m, i, c.Spec.Intent)
}

// begin begins the work that a command asks for. Work of the same kind that goes on already is taken for it.
func (w *world) begin(ctx context.Context, m *v1alpha1.RepositoryMonitor, c *v1alpha1.MonitorCommand, i *v1alpha1.MonitorItem, by operation.Labeling) error {
	if c.Spec.Intent == v1alpha1.MonitorAutomergeIntent {
		// The merge itself follows when everything permits it.
		i, err := w.updateItem(ctx, i.Namespace, i.Name, func(i *v1alpha1.MonitorItem) { automergeOf(i).Requested = true })
		if err != nil {
			return err
		}
		if _, err := w.next(ctx, m, i, ""); err != nil {
			return err
		}
		return w.answer(c, v1alpha1.MonitorCommandProcessed, "", "")
	}
	works, err := w.works(ctx, m)
	if err != nil {
		return err
	}
	for k := range works {
		a := &works[k]
		if active(a) && a.Spec.TargetKind == i.Spec.TargetKind && a.Spec.Number == i.Spec.Number && a.Spec.DesiredAction == c.Spec.Intent && a.Spec.HeadSHA == i.Status.HeadSHA {
			c.Status.WorkAction = a.Name
			return w.answer(c, v1alpha1.MonitorCommandProcessed, "", "")
		}
	}
	a := newWork(m, i, c.Spec.Intent, i.Status.HeadSHA, attemptAt(by))
	a.Spec.Command = c.Name
	if _, err := w.ensure(ctx, a); err != nil {
		return fmt.Errorf("work: %w", err)
	}
	c.Status.WorkAction = a.Name
	return w.answer(c, v1alpha1.MonitorCommandProcessed, "", "")
}

// attemptAt numbers the work of commands by when they were given.
func attemptAt(by operation.Labeling) int32 { return int32(by.At.Unix()%(1<<30)) + 1 }

// stop ends all work on an item.
func (w *world) stop(ctx context.Context, m *v1alpha1.RepositoryMonitor, c *v1alpha1.MonitorCommand, i *v1alpha1.MonitorItem) error {
	if _, err := w.updateItem(ctx, i.Namespace, i.Name, func(i *v1alpha1.MonitorItem) {
		i.Status.Stopped, i.Status.BlockedReason, i.Status.Message = true, v1alpha1.ReasonMonitorStopped, "the command stop was given; resume permits work again"
	}); err != nil {
		return err
	}
	works, err := w.works(ctx, m)
	if err != nil {
		return err
	}
	for k := range works {
		a := &works[k]
		if !active(a) || a.Spec.TargetKind != i.Spec.TargetKind || a.Spec.Number != i.Spec.Number {
			continue
		}
		if err := w.cancelTask(ctx, a); err != nil {
			return err
		}
	}
	return w.answer(c, v1alpha1.MonitorCommandProcessed, "", "")
}

// cancelTask cancels the task of a piece of work; the work ends with it.
func (w *world) cancelTask(ctx context.Context, a *v1alpha1.MonitorWorkAction) error {
	if a.Status.TaskName == "" {
		return nil
	}
	t := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Status.TaskName}}
	err := w.SubResource("cancel").Create(ctx, t, &v1alpha1.TaskCancellation{Reason: "the monitor " + a.Spec.MonitorName + " stops it"})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("cancellation of task %s: %w", t.Name, err)
	}
	return nil
}

// followUp takes the label of a command away, and completes the command when its work is done.
func (w *world) followUp(ctx context.Context, m *v1alpha1.RepositoryMonitor, c *v1alpha1.MonitorCommand) error {
	s := &c.Status
	if c.Spec.Source == v1alpha1.MonitorCommandLabel && repomonitor.On(m.Spec.Triggers.GitHub.Labels.ConsumeCommandLabels) && !s.LabelRemoved {
		_, err := w.mutate(ctx, m, mutation{
			operation: v1alpha1.MonitorRemoveLabel, kind: c.Spec.TargetKind, number: c.Spec.Number, label: c.Spec.Label, command: c.Name,
			do: func(ctx context.Context, id string) (wrote, error) {
				return wrote{}, w.do(ctx, m, call{operation: operation.RemoveLabel, id: id, arguments: operation.LabelArguments{Number: c.Spec.Number, Label: c.Spec.Label}}, &operation.Done{})
			},
		})
		if err != nil {
			return err
		}
		s.LabelRemoved = true
	}
	if s.WorkAction == "" {
		return w.answer(c, v1alpha1.MonitorCommandCompleted, s.Reason, s.Message)
	}
	a := &v1alpha1.MonitorWorkAction{}
	err := w.live.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: s.WorkAction}, a)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("work: %w", err)
	}
	if err == nil && active(a) {
		return step.ErrDone // its end wakes the command
	}
	return w.answer(c, v1alpha1.MonitorCommandCompleted, a.Status.Reason, a.Status.Message)
}

// commandsOf returns the commands that labels of an item are.
func commandsOf(m *v1alpha1.RepositoryMonitor, kind v1alpha1.MonitorTargetKind, labels []string) []repomonitor.CommandLabel {
	if !m.Spec.Triggers.GitHub.Labels.Enabled {
		return nil
	}
	return slices.DeleteFunc(repomonitor.CommandLabels(&m.Spec, kind), func(c repomonitor.CommandLabel) bool { return !repomonitor.HasLabel(labels, c.Label) })
}

// readLabels makes the commands of labels that no webhook told of. A labelling gives one command, however often it is seen.
func (w *world) readLabels(ctx context.Context, m *v1alpha1.RepositoryMonitor, i *v1alpha1.MonitorItem) error {
	set := commandsOf(m, i.Spec.TargetKind, i.Status.Labels)
	if len(set) == 0 {
		return nil
	}
	var known v1alpha1.MonitorCommandList
	if err := w.List(ctx, &known, client.InNamespace(m.Namespace)); err != nil {
		return fmt.Errorf("commands: %w", err)
	}
	for _, of := range set {
		if slices.ContainsFunc(known.Items, func(c v1alpha1.MonitorCommand) bool {
			s := &c.Spec
			return s.MonitorUID == m.UID && s.TargetKind == i.Spec.TargetKind && s.Number == i.Spec.Number && strings.EqualFold(s.Label, of.Label) &&
				(c.Status.State == v1alpha1.MonitorCommandAccepted || c.Status.State == v1alpha1.MonitorCommandProcessed)
		}) {
			continue // a webhook told of it, and the command goes on
		}
		if err := w.readLabel(ctx, m, i, of); err != nil {
			return err
		}
	}
	return nil
}

// readLabel makes the command of a label.
func (w *world) readLabel(ctx context.Context, m *v1alpha1.RepositoryMonitor, i *v1alpha1.MonitorItem, of repomonitor.CommandLabel) error {
	var by operation.Labeling
	if err := w.read(ctx, m, operation.LabelActor, operation.LabelArguments{Number: i.Spec.Number, Label: of.Label}, &by); err != nil {
		if failed, ok := errors.AsType[failure](err); ok && !failed.passing() {
			return nil // nobody is known to have set it
		}
		return err
	}
	c := repomonitor.NewCommand(m, "seen-"+repomonitor.Digest(m.UID, i.Spec.TargetKind, i.Spec.Number, of.Label, by.At.Unix()), i.Spec.TargetKind, i.Spec.Number, of.Intent)
	c.Spec.Source, c.Spec.Label, c.Spec.Sender = v1alpha1.MonitorCommandLabel, of.Label, by.Login
	if _, err := w.ensure(ctx, c); err != nil {
		return fmt.Errorf("command: %w", err)
	}
	return nil
}
