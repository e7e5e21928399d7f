// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/codehost/operation"
	"github.com/platform-ai/platform/pkg/controller/step"
	"github.com/platform-ai/platform/pkg/repomonitor"
)

// run looks at what a run is about.
func (w *world) run(ctx context.Context, r *v1alpha1.MonitorRun) error {
	s := &r.Status
	if s.State == v1alpha1.MonitorRunSucceeded || s.State == v1alpha1.MonitorRunFailed {
		return step.ErrDone
	}
	m, err := w.monitor(ctx, r.Namespace, r.Spec.MonitorName, r.Spec.MonitorUID)
	if err != nil {
		return err
	}
	if m == nil || m.Spec.Suspend {
		return w.endRun(r, v1alpha1.MonitorRunFailed, "the monitor is gone, or suspended")
	}
	if s.State != v1alpha1.MonitorRunRunning {
		s.State, s.StartedAt = v1alpha1.MonitorRunRunning, w.time()
		return step.ErrDone // what was written wakes the run
	}
	if wait := w.until(s.NextAttemptAt, s.Message); wait != nil {
		return wait
	}
	err = w.look(ctx, m, r)
	failed, ok := errors.AsType[failure](err)
	switch {
	case err == nil:
		return w.endRun(r, v1alpha1.MonitorRunSucceeded, "")
	case !ok:
		return err
	case w.retry(failed, &s.Attempts, &s.NextAttemptAt, &s.Message):
		return w.until(s.NextAttemptAt, s.Message)
	}
	return w.endRun(r, v1alpha1.MonitorRunFailed, failed.Message)
}

func (w *world) endRun(r *v1alpha1.MonitorRun, state v1alpha1.MonitorRunState, message string) error {
	if r.Status.State != v1alpha1.MonitorRunRunning && state == v1alpha1.MonitorRunSucceeded {
		return fmt.Errorf("run %s: %s cannot succeed", r.Name, r.Status.State)
	}
	r.Status.State, r.Status.Message, r.Status.CompletedAt, r.Status.NextAttemptAt = state, message, w.time(), nil
	return step.ErrDone
}

// look looks at the code host, and begins the work that is to be done.
func (w *world) look(ctx context.Context, m *v1alpha1.RepositoryMonitor, r *v1alpha1.MonitorRun) error {
	r.Status.PullRequests, r.Status.Issues, r.Status.WorkActions = 0, 0, 0
	if r.Spec.TargetNumber != 0 {
		return w.lookAtOne(ctx, m, r)
	}
	known, err := w.items(ctx, m)
	if err != nil {
		return err
	}
	if repomonitor.On(m.Spec.Targets.PullRequests.Enabled) && r.Spec.TargetKind != v1alpha1.MonitorIssue {
		if r.Status.PullRequests, err = w.lookAtAll(ctx, m, r, v1alpha1.MonitorPullRequest, known); err != nil {
			return err
		}
	}
	if m.Spec.Targets.Issues.Enabled && r.Spec.TargetKind != v1alpha1.MonitorPullRequest {
		if r.Status.Issues, err = w.lookAtAll(ctx, m, r, v1alpha1.MonitorIssue, known); err != nil {
			return err
		}
	}
	return nil
}

// lookAtAll looks at all that is open, and at what was open before.
func (w *world) lookAtAll(ctx context.Context, m *v1alpha1.RepositoryMonitor, r *v1alpha1.MonitorRun, kind v1alpha1.MonitorTargetKind, known []v1alpha1.MonitorItem) (int32, error) {
	list, most := operation.OpenPullRequests, limit(m.Spec.Targets.PullRequests.MaxPerRun, defaultPerRun)
	if kind == v1alpha1.MonitorIssue {
		list, most = operation.OpenIssues, limit(m.Spec.Targets.Issues.MaxPerRun, defaultPerRun)
	}
	var open operation.Items
	if err := w.read(ctx, m, list, operation.NoArguments{}, &open); err != nil {
		return 0, err
	}
	var seen, begun int32
	numbers := map[int64]bool{}
	for i := range open.Items {
		is := &open.Items[i]
		numbers[is.Number] = true
		if !looksAfter(m, kind, is) {
			continue
		}
		seen++
		item, err := w.observe(ctx, m, kind, is)
		if err != nil {
			return seen, err
		}
		if err := w.readLabels(ctx, m, item); err != nil {
			return seen, err
		}
		if begun >= most {
			continue
		}
		n, err := w.next(ctx, m, item, r.Name)
		if err != nil {
			return seen, err
		}
		begun += n
	}
	r.Status.WorkActions += begun
	if open.More { // what is not in the list may be open
		return seen, nil
	}
	for i := range known {
		item := &known[i]
		if item.Spec.TargetKind != kind || item.Status.State != v1alpha1.MonitorItemOpen || numbers[item.Spec.Number] {
			continue
		}
		if err := w.lookAgain(ctx, m, item); err != nil {
			return seen, err
		}
	}
	return seen, nil
}

// defaultPerRun is how many pull requests or issues a run begins work on.
const defaultPerRun = 20

// lookAtOne looks at the pull request or issue that a run is about. Another head than the run's ends it.
func (w *world) lookAtOne(ctx context.Context, m *v1alpha1.RepositoryMonitor, r *v1alpha1.MonitorRun) error {
	is, err := w.state(ctx, m, r.Spec.TargetKind, r.Spec.TargetNumber)
	if err != nil {
		return err
	}
	if r.Spec.TargetKind == v1alpha1.MonitorIssue {
		r.Status.Issues = 1
	} else {
		r.Status.PullRequests = 1
	}
	if !looksAfter(m, r.Spec.TargetKind, &is.Item) && is.State == "open" {
		return nil
	}
	item, err := w.observe(ctx, m, r.Spec.TargetKind, &is.Item)
	if err != nil || r.Spec.TargetSHA != "" && r.Spec.TargetSHA != is.HeadSHA {
		return err
	}
	r.Status.WorkActions, err = w.next(ctx, m, item, r.Name)
	return err
}

// lookAgain looks at what is not open any more.
func (w *world) lookAgain(ctx context.Context, m *v1alpha1.RepositoryMonitor, item *v1alpha1.MonitorItem) error {
	is, err := w.state(ctx, m, item.Spec.TargetKind, item.Spec.Number)
	if failed, ok := errors.AsType[failure](err); ok && failed.Reason == v1alpha1.CodeHostNotFound {
		is, err = &operation.ItemState{Item: operation.Item{Number: item.Spec.Number, State: "closed", Title: item.Status.Title, URL: item.Status.URL}}, nil
	}
	if err != nil {
		return err
	}
	_, err = w.observe(ctx, m, item.Spec.TargetKind, &is.Item)
	return err
}

// state asks the code host for one pull request or issue.
func (w *world) state(ctx context.Context, m *v1alpha1.RepositoryMonitor, kind v1alpha1.MonitorTargetKind, number int64) (*operation.ItemState, error) {
	of := operation.PullRequestState
	if kind == v1alpha1.MonitorIssue {
		of = operation.IssueState
	}
	is := &operation.ItemState{}
	return is, w.read(ctx, m, of, operation.ItemArguments{Number: number}, is)
}

// looksAfter reports whether a monitor looks after something.
func looksAfter(m *v1alpha1.RepositoryMonitor, kind v1alpha1.MonitorTargetKind, is *operation.Item) bool {
	if kind == v1alpha1.MonitorPullRequest {
		return m.Spec.Branch == "" || m.Spec.Branch == is.BaseBranch
	}
	t := &m.Spec.Targets.Issues
	if repomonitor.HasOneOf(is.Labels, t.ExcludeLabels) {
		return false
	}
	return len(t.IncludeLabels) == 0 || repomonitor.HasOneOf(is.Labels, t.IncludeLabels) || len(commandsOf(m, kind, is.Labels)) > 0
}

// observe writes down what the code host says about a pull request or issue.
func (w *world) observe(ctx context.Context, m *v1alpha1.RepositoryMonitor, kind v1alpha1.MonitorTargetKind, is *operation.Item) (*v1alpha1.MonitorItem, error) {
	item := &v1alpha1.MonitorItem{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: repomonitor.ItemName(m, kind, is.Number), OwnerReferences: repomonitor.OwnedBy(m)},
		Spec:       v1alpha1.MonitorItemSpec{MonitorName: m.Name, MonitorUID: m.UID, TargetKind: kind, Number: is.Number},
	}
	change := func(i *v1alpha1.MonitorItem) {
		s := &i.Status
		s.State, s.Title, s.URL, s.Author, s.Labels = v1alpha1.MonitorItemState(is.State), is.Title, is.URL, is.Author, is.Labels[:min(len(is.Labels), maxLabels)]
		s.Draft, s.HeadSHA, s.HeadBranch, s.HeadRepository, s.BaseBranch = is.Draft, is.HeadSHA, is.HeadBranch, is.HeadRepository, is.BaseBranch
		if kind == v1alpha1.MonitorIssue && s.Issue == nil {
			s.Issue = &v1alpha1.MonitorItemIssue{Phase: v1alpha1.MonitorIssueDiscovered}
		}
		if s.State != v1alpha1.MonitorItemOpen {
			s.BlockedReason, s.Message = "", ""
			if s.Issue != nil {
				s.Issue.Phase = v1alpha1.MonitorIssueComplete
			}
			if s.State == v1alpha1.MonitorItemMerged && s.Automerge != nil && s.Automerge.State != v1alpha1.MonitorMergeDone {
				s.Automerge.State, s.Automerge.MergeSHA = v1alpha1.MonitorMergeDone, is.MergeSHA
			}
		}
	}
	err := w.Get(ctx, client.ObjectKeyFromObject(item), item)
	if apierrors.IsNotFound(err) {
		_, err = w.ensure(ctx, item)
	}
	if err != nil {
		return nil, fmt.Errorf("item: %w", err)
	}
	if now := item.DeepCopy(); item.Status.ObservedAt != nil && w.now().Sub(item.Status.ObservedAt.Time) < observeAgain {
		if change(now); equality.Semantic.DeepEqual(now.Status, item.Status) {
			return item, nil
		}
	}
	return w.updateItem(ctx, item.Namespace, item.Name, func(i *v1alpha1.MonitorItem) {
		change(i)
		i.Status.ObservedAt = w.time()
	})
}

// observeAgain is how often it is written down that nothing has changed.
const observeAgain = time.Hour

// maxLabels is how many labels of an item are kept.
const maxLabels = 100

func limit(n *int32, otherwise int32) int32 {
	if n == nil {
		return otherwise
	}
	return *n
}
