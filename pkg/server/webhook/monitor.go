// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/codehost/webhook"
	"github.com/platform-ai/platform/pkg/repomonitor"
	"github.com/platform-ai/platform/pkg/server/registry/core/codehostdelivery"
)

// hookOfGitea is the hook of deliveries of Gitea, which does not say which one it was. It says that a draft is ready by an edit.
const hookOfGitea = "gitea"

// headActions are the actions on a pull request after which its head may have to be reviewed.
func headActions() []string {
	return []string{"opened", "reopened", webhook.Synchronize, "ready_for_review", webhook.Labeled, webhook.Unlabeled}
}

// tell tells the monitors of the repository. Who may read the row need not be permitted to read the namespaces of all of them, so it names
// what was made in its own, and counts the rest. told reports whether anything was made or was there.
func (h *Hook) tell(ctx context.Context, d *v1alpha1.CodeHostDelivery, labels relabeled, out *v1alpha1.CodeHostDeliveryStatus) (told bool, err error) {
	name := d.Namespace + "/" + d.Name
	err = h.o.Monitors.OfRepository(ctx, d.Spec.RepositoryURL, func(m *v1alpha1.RepositoryMonitor) error {
		if m.Spec.Suspend || m.DeletionTimestamp != nil {
			return nil
		}
		out.MatchedMonitors++
		run, made, err := h.queue(ctx, m, d, labels, name)
		switch {
		case err != nil:
			return err
		case run == nil:
			out.MonitorRunsSkipped++
		case made || run.Spec.Delivery == name: // the latter if this was interrupted before it could say so
			out.MonitorRunsQueued++
		default:
			out.MonitorRunsCached++
		}
		told = told || run != nil
		if run != nil && run.Namespace == d.Namespace {
			out.Runs = append(out.Runs, run.Namespace+"/"+run.Name)
		}
		if d.Spec.PullRequestIssue || !m.Spec.Triggers.GitHub.Labels.Enabled || !looksAfter(m, d) {
			return nil
		}
		for _, c := range repomonitor.CommandLabels(&m.Spec, d.Spec.TargetKind) {
			if !repomonitor.HasLabel(labels.added, c.Label) {
				continue
			}
			command, _, err := h.o.Monitors.CommandByLabel(ctx, m, d, c)
			if err != nil {
				return err
			}
			told = true
			if command.Namespace == d.Namespace {
				out.Commands = append(out.Commands, command.Namespace+"/"+command.Name)
			}
		}
		return nil
	})
	return told, err
}

// queue makes the run of a monitor that a delivery asks for; nil if it asks for none.
func (h *Hook) queue(ctx context.Context, m *v1alpha1.RepositoryMonitor, d *v1alpha1.CodeHostDelivery, labels relabeled, name string) (*v1alpha1.MonitorRun, bool, error) {
	s := &d.Spec
	if d.Spec.PullRequestIssue || !looksAfter(m, d) {
		return nil, false, nil
	}
	if labelsChange(s.Action) && repomonitor.HasOneOf(slices.Concat(labels.added, labels.removed), m.Spec.Policy.PauseLabels) {
		return h.o.Monitors.QueueItem(ctx, m, s.TargetKind, s.Number, fmt.Sprintf("%s.%d", name, d.Status.Replays))
	}
	if s.TargetKind != v1alpha1.MonitorPullRequest || !m.Spec.Review.ExactEventEnabled || s.HeadSHA == "" || !slices.Contains(headActions(), s.Action) && s.Action != webhook.LabelUpdated && (s.Hook != hookOfGitea || s.Action != "edited") {
		return nil, false, nil
	}
	if s.Draft && !m.Spec.Targets.PullRequests.IncludeDrafts {
		return nil, false, nil
	}
	return h.o.Monitors.QueueHead(ctx, m, s.Number, s.HeadSHA, name)
}

// looksAfter reports whether a monitor looks after what a delivery is about.
func looksAfter(m *v1alpha1.RepositoryMonitor, d *v1alpha1.CodeHostDelivery) bool {
	if d.Spec.TargetKind == v1alpha1.MonitorIssue {
		return m.Spec.Targets.Issues.Enabled
	}
	return repomonitor.On(m.Spec.Targets.PullRequests.Enabled) && (m.Spec.Branch == "" || m.Spec.Branch == d.Spec.BaseBranch)
}

func labelsChange(action string) bool {
	return action == webhook.Labeled || action == webhook.Unlabeled || action == webhook.LabelUpdated
}

// relabeled are the labels that were set, and those that were removed.
type relabeled struct{ added, removed []string }

// relabeling returns which labels a delivery says were set and removed. GitHub names them. Gitea says only which labels there are afterwards,
// so they are compared with those in the delivery before. Without an earlier one, as after an issue was opened with labels, all were set.
func (h *Hook) relabeling(ctx context.Context, d *v1alpha1.CodeHostDelivery) (r relabeled, err error) {
	switch s := &d.Spec; {
	case s.Action == webhook.Labeled:
		return relabeled{added: s.Labels}, nil
	case s.Action == webhook.Unlabeled && (len(s.Labels) > 0 || s.Hook != hookOfGitea):
		return relabeled{removed: s.Labels}, nil
	case s.Action == "opened" && s.Hook == hookOfGitea:
		return relabeled{added: s.AllLabels}, nil
	case !labelsChange(s.Action):
		return relabeled{}, nil
	}
	before, err := h.before(ctx, d)
	if err != nil {
		return relabeled{}, err
	}
	if before == nil {
		return relabeled{added: d.Spec.AllLabels}, nil
	}
	return relabeled{added: without(d.Spec.AllLabels, before.Spec.AllLabels), removed: without(before.Spec.AllLabels, d.Spec.AllLabels)}, nil
}

// without returns the labels that are not among others.
func without(labels, others []string) (out []string) {
	for _, l := range labels {
		if !repomonitor.HasLabel(others, l) {
			out = append(out, l)
		}
	}
	return out
}

// before returns the delivery about the same pull request or issue that arrived before another one; nil if there is none.
func (h *Hook) before(ctx context.Context, d *v1alpha1.CodeHostDelivery) (found *v1alpha1.CodeHostDelivery, err error) {
	same := fields.OneTermEqualSelector(codehostdelivery.FieldItem, codehostdelivery.ItemKey(d))
	err = h.o.Deliveries.Select(ctx, d.Namespace, same, func(other *v1alpha1.CodeHostDelivery) error {
		if other.Spec.ReceivedAt.Before(&d.Spec.ReceivedAt) && (found == nil || found.Spec.ReceivedAt.Before(&other.Spec.ReceivedAt)) {
			found = other
		}
		return nil
	})
	return found, err
}
