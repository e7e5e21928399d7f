// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/repomonitor"
)

// block is what keeps something from going on.
type block struct{ reason, message string }

func (b *block) Error() string { return b.message }

func blocked(reason, format string, a ...any) *block {
	return &block{reason, fmt.Sprintf(format, a...)}
}

// held returns what keeps everything about an item from being begun; nil if nothing does.
func held(m *v1alpha1.RepositoryMonitor, i *v1alpha1.MonitorItem) *block {
	s := &i.Status
	switch {
	case s.State != v1alpha1.MonitorItemOpen:
		return blocked(v1alpha1.ReasonMonitorNotOpen, "it is %s", s.State)
	case s.Stopped:
		return blocked(v1alpha1.ReasonMonitorStopped, "the command stop was given; resume permits work again")
	case repomonitor.HasOneOf(s.Labels, m.Spec.Policy.PauseLabels):
		return blocked(v1alpha1.ReasonMonitorPaused, "it has a label of spec.policy.pauseLabels")
	case s.Draft && !m.Spec.Targets.PullRequests.IncludeDrafts:
		return blocked(v1alpha1.ReasonMonitorDraft, "it is a draft")
	}
	return nil
}

// protected returns what keeps an item from being changed or merged; nil if nothing does.
func protected(m *v1alpha1.RepositoryMonitor, i *v1alpha1.MonitorItem) *block {
	if repomonitor.HasOneOf(i.Status.Labels, m.Spec.Policy.ProtectedLabels) {
		return blocked(v1alpha1.ReasonMonitorProtected, "it has a label of spec.policy.protectedLabels")
	}
	return nil
}

// next begins the work that an item needs by itself, and returns how much that is.
func (w *world) next(ctx context.Context, m *v1alpha1.RepositoryMonitor, i *v1alpha1.MonitorItem, run string) (int32, error) {
	if i.Status.State != v1alpha1.MonitorItemOpen {
		return 0, nil
	}
	why := held(m, i)
	var wanted *v1alpha1.MonitorWorkAction
	if why == nil {
		var err error
		if i.Spec.TargetKind == v1alpha1.MonitorIssue {
			wanted = nextOfIssue(m, i)
		} else if wanted, why, err = w.nextOfPullRequest(ctx, m, i); err != nil {
			return 0, err
		}
	}
	if err := w.say(ctx, i, why); err != nil || wanted == nil {
		return 0, err
	}
	for range maxAgain {
		wanted.Spec.Run = run
		made, err := w.ensure(ctx, wanted)
		if err != nil {
			return 0, err
		}
		if made {
			return 1, w.queued(ctx, wanted, i)
		}
		if !w.again(wanted) {
			return 0, nil
		}
		wanted = newWork(m, i, wanted.Spec.DesiredAction, wanted.Spec.HeadSHA, wanted.Spec.Attempt+1)
	}
	return 0, nil
}

// queued says in an issue that work on it waits to begin.
func (w *world) queued(ctx context.Context, a *v1alpha1.MonitorWorkAction, i *v1alpha1.MonitorItem) error {
	if i.Spec.TargetKind != v1alpha1.MonitorIssue {
		return nil
	}
	_, err := w.updateItem(ctx, i.Namespace, i.Name, func(now *v1alpha1.MonitorItem) {
		if of := now.Status.Issue; of != nil && of.Phase == i.Status.Issue.Phase { // otherwise it has begun meanwhile
			of.Phase = stageOf(a.Spec.DesiredAction).queued
		}
	})
	return err
}

const (
	// maxAgain is how often the same work is begun again by itself, and pauseAgain how long after it ended.
	maxAgain, pauseAgain = 5, 5 * time.Minute
)

// again reports whether work that ended before it had a task, such as work that was paused meanwhile, is to be begun once more.
func (w *world) again(a *v1alpha1.MonitorWorkAction) bool {
	s := &a.Status
	if active(a) || s.State == v1alpha1.MonitorWorkSucceeded || s.TaskName != "" || s.CompletedAt == nil {
		return false
	}
	return s.State == v1alpha1.MonitorWorkCancelled || w.now().Sub(s.CompletedAt.Time) >= pauseAgain
}

// say says in an item what keeps it from going on.
func (w *world) say(ctx context.Context, i *v1alpha1.MonitorItem, why *block) error {
	if why == nil {
		why = &block{}
	}
	if i.Status.BlockedReason == why.reason && i.Status.Message == why.message {
		return nil
	}
	if why.reason != "" && i.Status.BlockedReason != why.reason {
		w.counts.blocks.WithLabelValues(why.reason).Inc()
	}
	_, err := w.updateItem(ctx, i.Namespace, i.Name, func(i *v1alpha1.MonitorItem) { i.Status.BlockedReason, i.Status.Message = why.reason, why.message })
	return err
}

// nextOfPullRequest returns the work that a pull request needs by itself, or what keeps it from that.
func (w *world) nextOfPullRequest(ctx context.Context, m *v1alpha1.RepositoryMonitor, i *v1alpha1.MonitorItem) (*v1alpha1.MonitorWorkAction, *block, error) {
	s := &i.Status
	switch {
	case m.Spec.Agents.Reviewer != nil && !w.reviewed(m, s):
		return w.nextReview(ctx, m, i)
	case s.Review == nil || s.Review.HeadSHA != s.HeadSHA:
		return nil, nil, nil
	case s.Review.Verdict == v1alpha1.MonitorVerdictNeedsChanges:
		return w.nextRepair(ctx, m, i)
	case s.Review.Verdict == v1alpha1.MonitorVerdictPassed:
		return w.nextMerge(ctx, m, i)
	}
	return nil, nil, nil
}

func (w *world) nextReview(ctx context.Context, m *v1alpha1.RepositoryMonitor, i *v1alpha1.MonitorItem) (*v1alpha1.MonitorWorkAction, *block, error) {
	if m.Spec.Review.RequireGreenCI {
		why, err := w.checks(ctx, m, i)
		if why != nil || err != nil {
			return nil, why, err
		}
	}
	return newWork(m, i, v1alpha1.MonitorReviewIntent, i.Status.HeadSHA, w.attempt(&i.Status)), nil, nil
}

func (w *world) nextRepair(ctx context.Context, m *v1alpha1.RepositoryMonitor, i *v1alpha1.MonitorItem) (*v1alpha1.MonitorWorkAction, *block, error) {
	s, label := &i.Status, m.Spec.Policy.OptInLabels.Autofix
	optIn := repomonitor.On(m.Spec.Repair.RequireMaintainerOptIn)
	if !m.Spec.Repair.Enabled || optIn && !repomonitor.HasLabel(s.Labels, label) {
		return nil, nil, nil
	}
	if why := mayRepair(m, i); why != nil {
		return nil, why, nil
	}
	if optIn {
		if _, why, err := w.permitted(ctx, m, i, label); why != nil || err != nil {
			return nil, why, err
		}
	}
	return newWork(m, i, v1alpha1.MonitorFix, s.HeadSHA, repairs(s)+1), nil, nil
}

func (w *world) nextMerge(ctx context.Context, m *v1alpha1.RepositoryMonitor, i *v1alpha1.MonitorItem) (*v1alpha1.MonitorWorkAction, *block, error) {
	s := &i.Status
	if !m.Spec.Automerge.Enabled || !optedIn(m, s) || s.Automerge != nil && s.Automerge.HeadSHA == s.HeadSHA && s.Automerge.State == v1alpha1.MonitorMergeFailed {
		return nil, nil, nil
	}
	if why := w.mayMerge(m, i); why != nil {
		return nil, why, nil
	}
	if repomonitor.On(m.Spec.Automerge.RequireMaintainerOptIn) && !requested(s) {
		if _, why, err := w.permitted(ctx, m, i, m.Spec.Policy.OptInLabels.Automerge); why != nil || err != nil {
			return nil, why, err
		}
	}
	works, err := w.works(ctx, m)
	if err != nil {
		return nil, nil, err
	}
	if slices.ContainsFunc(works, func(a v1alpha1.MonitorWorkAction) bool {
		return active(&a) && a.Spec.DesiredAction == v1alpha1.MonitorAutomergeIntent && a.Spec.Number == i.Spec.Number && a.Spec.HeadSHA == s.HeadSHA
	}) {
		return nil, nil, nil // the merge goes on
	}
	ready, err := w.mergeable(ctx, m, i)
	if ready != nil || err != nil {
		return nil, ready, err
	}
	return newWork(m, i, v1alpha1.MonitorAutomergeIntent, s.HeadSHA, w.slot()), nil, nil
}

// slot numbers the times at which something that waits for others is tried again, such as a merge that waits for checks.
func (w *world) slot() int32 { return int32(w.now().Unix()/60%(1<<30)) + 1 }

// reviewed reports whether the head has a review that counts, or one that goes on.
func (w *world) reviewed(m *v1alpha1.RepositoryMonitor, s *v1alpha1.MonitorItemStatus) bool {
	r := s.Review
	if r == nil || r.HeadSHA != s.HeadSHA || r.Verdict == v1alpha1.MonitorVerdictStale {
		return false
	}
	ttl := m.Spec.Review.StaleReviewTTL
	if ttl == nil || r.ReviewedAt == nil {
		return true
	}
	d, err := ttl.Parse()
	return err != nil || w.now().Before(r.ReviewedAt.Add(d))
}

// attempt numbers the reviews of a head, by the time of the one before, so that one that counts no longer gets a successor.
func (w *world) attempt(s *v1alpha1.MonitorItemStatus) int32 {
	if r := s.Review; r != nil && r.HeadSHA == s.HeadSHA && r.ReviewedAt != nil {
		return int32(r.ReviewedAt.Unix()%(1<<30)) + 2
	}
	return 1
}

// checks returns what the checks of the head lack; nil if they have passed, or there are none.
func (w *world) checks(ctx context.Context, m *v1alpha1.RepositoryMonitor, i *v1alpha1.MonitorItem) (*block, error) {
	var ci struct {
		Status  string `json:"status"`
		HeadSHA string `json:"head_sha"`
	}
	if err := w.read(ctx, m, "check_pull_request_ci", map[string]any{"pr_number": i.Spec.Number}, &ci); err != nil {
		return nil, err
	}
	if _, err := w.updateItem(ctx, i.Namespace, i.Name, func(i *v1alpha1.MonitorItem) { i.Status.Checks = ci.Status }); err != nil {
		return nil, err
	}
	switch {
	case ci.HeadSHA != i.Status.HeadSHA:
		return blocked(v1alpha1.ReasonMonitorHeadMoved, "the head has moved"), nil
	case ci.Status != "passed" && ci.Status != "no_checks":
		return blocked(v1alpha1.ReasonMonitorChecks, "the checks of the head: %s", ci.Status), nil
	}
	return nil, nil //nolint:nilnil // nothing is lacking
}

// repairs returns how often a pull request was repaired.
func repairs(s *v1alpha1.MonitorItemStatus) int32 {
	if s.Repair == nil {
		return 0
	}
	return s.Repair.Attempts
}

// mayRepair returns what keeps a pull request from being repaired.
func mayRepair(m *v1alpha1.RepositoryMonitor, i *v1alpha1.MonitorItem) *block {
	s := &i.Status
	if why := protected(m, i); why != nil {
		return why
	}
	switch r := s.Repair; {
	case !m.Spec.Repair.Enabled || m.Spec.Agents.Repairer == nil:
		return blocked(v1alpha1.ReasonMonitorNotEnabled, "repairs are not enabled (spec.repair.enabled)")
	case !ownBranch(m, s):
		return blocked(v1alpha1.ReasonMonitorFork, "the pull request comes from another repository, whose branches are not changed")
	case r != nil && r.Attempts >= limit(m.Spec.Repair.MaxRepairsPerPR, defaultRepairs):
		return blocked(v1alpha1.ReasonMonitorLimit, "the pull request was repaired %d times (spec.repair.maxRepairsPerPR)", r.Attempts)
	case r != nil && r.HeadSHA == s.HeadSHA && r.AttemptsOnHead >= limit(m.Spec.Repair.MaxRepairsPerHead, 1):
		return blocked(v1alpha1.ReasonMonitorLimit, "the head was repaired %d times (spec.repair.maxRepairsPerHead)", r.AttemptsOnHead)
	}
	return nil
}

// defaultRepairs is how often a pull request is repaired.
const defaultRepairs = 3

// ownBranch reports whether the branch of a pull request is in the repository itself.
func ownBranch(m *v1alpha1.RepositoryMonitor, s *v1alpha1.MonitorItemStatus) bool {
	return strings.EqualFold(s.HeadRepository, repositoryOf(m))
}

// optedIn reports whether the merge of a pull request is permitted, by a command or a label. Who set the label is another question.
func optedIn(m *v1alpha1.RepositoryMonitor, s *v1alpha1.MonitorItemStatus) bool {
	return !repomonitor.On(m.Spec.Automerge.RequireMaintainerOptIn) || repomonitor.HasLabel(s.Labels, m.Spec.Policy.OptInLabels.Automerge) || requested(s)
}

// requested reports whether a command asks for the merge of the head.
func requested(s *v1alpha1.MonitorItemStatus) bool {
	return s.Automerge != nil && s.Automerge.Requested && s.Automerge.HeadSHA == s.HeadSHA
}

// mayMerge returns what keeps a pull request from being merged, as far as the code host need not be asked.
func (w *world) mayMerge(m *v1alpha1.RepositoryMonitor, i *v1alpha1.MonitorItem) *block {
	s := &i.Status
	if why := protected(m, i); why != nil {
		return why
	}
	switch {
	case !m.Spec.Automerge.Enabled:
		return blocked(v1alpha1.ReasonMonitorNotEnabled, "merging is not enabled (spec.automerge.enabled)")
	case repomonitor.On(m.Spec.Automerge.RequireGlobalMergeGate) && !w.gate:
		return blocked(v1alpha1.ReasonMonitorGateClosed, "the operator has not opened the gate (PLATFORM_REPOSITORY_MONITOR_AUTOMERGE_GATE)")
	case !optedIn(m, s):
		return blocked(v1alpha1.ReasonMonitorNotEnabled, "no maintainer has permitted it, by the label policy.optInLabels.automerge or a command")
	case m.Spec.Agents.Reviewer != nil && (s.Review == nil || s.Review.HeadSHA != s.HeadSHA || s.Review.Verdict != v1alpha1.MonitorVerdictPassed):
		return blocked(v1alpha1.ReasonNotReady, "the review of the head has not passed")
	}
	return nil
}

// mergeable asks the code host whether a pull request could be merged, writes that down, and returns what it lacks.
func (w *world) mergeable(ctx context.Context, m *v1alpha1.RepositoryMonitor, i *v1alpha1.MonitorItem) (*block, error) {
	is, err := w.state(ctx, m, v1alpha1.MonitorPullRequest, i.Spec.Number)
	if err != nil {
		return nil, err
	}
	var why *block
	switch {
	case is.HeadSHA != i.Status.HeadSHA:
		why = blocked(v1alpha1.ReasonMonitorHeadMoved, "the head has moved")
	case !is.Ready:
		why = blocked(v1alpha1.ReasonNotReady, "%s", is.Reason)
	}
	_, err = w.updateItem(ctx, i.Namespace, i.Name, func(i *v1alpha1.MonitorItem) {
		a := automergeOf(i)
		a.State, a.Reason = v1alpha1.MonitorMergeReady, ""
		if why != nil {
			a.State, a.Reason = v1alpha1.MonitorMergeBlocked, why.message
		}
	})
	return why, err
}

// automergeOf returns what is known of the merge of an item's head.
func automergeOf(i *v1alpha1.MonitorItem) *v1alpha1.MonitorItemAutomerge {
	if a := i.Status.Automerge; a == nil || a.HeadSHA != i.Status.HeadSHA {
		i.Status.Automerge = &v1alpha1.MonitorItemAutomerge{HeadSHA: i.Status.HeadSHA}
	}
	return i.Status.Automerge
}

// newWork returns a piece of work. Its name is derived from what is to be done about what, and from how often that was tried.
func newWork(m *v1alpha1.RepositoryMonitor, i *v1alpha1.MonitorItem, action v1alpha1.MonitorIntent, head string, attempt int32) *v1alpha1.MonitorWorkAction {
	return &v1alpha1.MonitorWorkAction{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: m.Namespace, OwnerReferences: repomonitor.OwnedBy(m),
			Name: m.Name + "-" + dashed(string(action)) + "-" + repomonitor.Digest(string(m.UID), i.Spec.TargetKind, i.Spec.Number, action, head, attempt),
		},
		Spec: v1alpha1.MonitorWorkActionSpec{
			MonitorName: m.Name, MonitorUID: m.UID, TargetKind: i.Spec.TargetKind, Number: i.Spec.Number, DesiredAction: action, HeadSHA: head, Attempt: attempt,
		},
	}
}
