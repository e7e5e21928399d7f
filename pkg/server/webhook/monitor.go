// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"slices"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
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

// tell tells the monitors of the repository.
func (h *Hook) tell(ctx context.Context, d *v1alpha1.CodeHostDelivery, labels []string, out *v1alpha1.CodeHostDeliveryStatus) error {
	name := d.Namespace + "/" + d.Name
	return h.o.Monitors.OfRepository(ctx, d.Spec.RepositoryURL, func(m *v1alpha1.RepositoryMonitor) error {
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
			out.Runs = append(out.Runs, run.Namespace+"/"+run.Name)
		default:
			out.MonitorRunsCached++
			out.Runs = append(out.Runs, run.Namespace+"/"+run.Name)
		}
		if d.Spec.PullRequestIssue || !m.Spec.Triggers.GitHub.Labels.Enabled || !looksAfter(m, d) {
			return nil
		}
		for _, c := range repomonitor.CommandLabels(&m.Spec, d.Spec.TargetKind) {
			if !repomonitor.HasLabel(labels, c.Label) {
				continue
			}
			command, _, err := h.o.Monitors.CommandByLabel(ctx, m, d, c)
			if err != nil {
				return err
			}
			out.Commands = append(out.Commands, command.Namespace+"/"+command.Name)
		}
		return nil
	})
}

// queue makes the run of a monitor that a delivery asks for; nil if it asks for none.
func (h *Hook) queue(ctx context.Context, m *v1alpha1.RepositoryMonitor, d *v1alpha1.CodeHostDelivery, labels []string, name string) (*v1alpha1.MonitorRun, bool, error) {
	s := &d.Spec
	if d.Spec.PullRequestIssue || !looksAfter(m, d) {
		return nil, false, nil
	}
	if labelsChange(s.Action) && (repomonitor.HasOneOf(labels, m.Spec.Policy.PauseLabels) || repomonitor.HasOneOf(s.Labels, m.Spec.Policy.PauseLabels)) {
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

// added returns the labels that a delivery says were set. GitHub names them. Gitea says only which labels there are afterwards, so those
// count that were not there in the delivery before. Without an earlier one, as after an issue was opened with labels, all count.
func (h *Hook) added(ctx context.Context, d *v1alpha1.CodeHostDelivery) ([]string, error) {
	switch s := &d.Spec; {
	case s.Action == webhook.Labeled:
		return s.Labels, nil
	case s.Action == "opened" && s.Hook == hookOfGitea:
		return s.AllLabels, nil
	case s.Action != webhook.LabelUpdated || len(s.AllLabels) == 0:
		return nil, nil
	}
	before, err := h.before(ctx, d)
	if err != nil {
		return nil, err
	}
	var added []string
	for _, l := range d.Spec.AllLabels {
		if before == nil || !repomonitor.HasLabel(before.Spec.AllLabels, l) {
			added = append(added, l)
		}
	}
	return added, nil
}

// before returns the delivery about the same pull request or issue that arrived before another one; nil if there is none.
func (h *Hook) before(ctx context.Context, d *v1alpha1.CodeHostDelivery) (found *v1alpha1.CodeHostDelivery, err error) {
	err = h.each(ctx, fields.OneTermEqualSelector(codehostdelivery.FieldItem, codehostdelivery.ItemKey(d)), func(other *v1alpha1.CodeHostDelivery) {
		if other.Spec.ReceivedAt.Before(&d.Spec.ReceivedAt) && (found == nil || found.Spec.ReceivedAt.Before(&other.Spec.ReceivedAt)) {
			found = other
		}
	})
	return found, err
}

// each calls f with the deliveries that a selector selects.
func (h *Hook) each(ctx context.Context, selector fields.Selector, f func(*v1alpha1.CodeHostDelivery)) error {
	ctx = asServer(ctx, h.o.Triggers.Namespace)
	for o := (&metainternalversion.ListOptions{FieldSelector: selector, Limit: atOnce}); ; {
		obj, err := h.o.Deliveries.List(ctx, o)
		if err != nil {
			return err
		}
		list, ok := obj.(*v1alpha1.CodeHostDeliveryList)
		if !ok {
			return fmt.Errorf("list of deliveries: %T", obj)
		}
		for i := range list.Items {
			f(&list.Items[i])
		}
		if o.Continue = list.Continue; o.Continue == "" {
			return nil
		}
	}
}
