// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"context"
	"fmt"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/codehost/operation"
)

// updating brings the base branch into the branch of a pull request.
func updating() action {
	return action{
		may: func(_ *world, j *job) *block { return protected(j.m, j.item) },
		finish: func(ctx context.Context, w *world, j *job, _ *v1alpha1.Task, _ string) (ending, error) {
			row, err := w.mutate(ctx, j.m, mutation{
				operation: v1alpha1.MonitorUpdateBranchOperation, kind: v1alpha1.MonitorPullRequest, number: j.a.Spec.Number, head: j.a.Spec.HeadSHA, work: j.a.Name,
				do: func(ctx context.Context, id string) (wrote, error) {
					return wrote{}, w.do(ctx, j.m, call{operation: operation.UpdateBranch, id: id, head: j.a.Spec.HeadSHA, arguments: operation.ItemArguments{Number: j.a.Spec.Number}}, &operation.Done{})
				},
			})
			return endingOf(row), err
		},
	}
}

// endingOf returns how work ends whose one mutation is over.
func endingOf(row *v1alpha1.MonitorMutation) ending {
	if row == nil {
		return ending{}
	}
	if row.Status.State == v1alpha1.MonitorPublishFailed {
		return ending{state: v1alpha1.MonitorWorkFailed, reason: row.Status.Reason, message: row.Status.Message}
	}
	return ending{state: v1alpha1.MonitorWorkSucceeded, message: row.Status.Message}
}

// merging merges a pull request at the head that was reviewed, if the code host says that nothing is lacking.
func merging() action {
	return action{
		may: func(w *world, j *job) *block { return w.mayMerge(j.m, j.item) },
		begun: func(i *v1alpha1.MonitorItem, _ *v1alpha1.MonitorWorkAction) {
			automergeOf(i).State = v1alpha1.MonitorMergeStarted
		},
		finish: finishMerge,
		ended: func(i *v1alpha1.MonitorItem, a *v1alpha1.MonitorWorkAction, e ending) {
			if m := i.Status.Automerge; m != nil && m.HeadSHA == a.Spec.HeadSHA {
				m.State, m.Reason = v1alpha1.MonitorMergeFailed, e.message
			}
		},
	}
}

func finishMerge(ctx context.Context, w *world, j *job, _ *v1alpha1.Task, _ string) (ending, error) {
	// It may have been merged by an earlier try, so what is lacking does not matter then.
	is, err := w.state(ctx, j.m, v1alpha1.MonitorPullRequest, j.a.Spec.Number)
	if err != nil {
		return ending{}, err
	}
	if is.HeadSHA != j.a.Spec.HeadSHA { // whoever merged it, it was not this
		return ending{state: v1alpha1.MonitorWorkBlocked, reason: v1alpha1.ReasonMonitorHeadMoved, message: "the head has moved"}, nil
	}
	if is.State == "open" && !is.Ready {
		_, err := w.updateItem(ctx, j.item.Namespace, j.item.Name, func(i *v1alpha1.MonitorItem) {
			a := automergeOf(i)
			a.State, a.Reason = v1alpha1.MonitorMergeBlocked, is.Reason
		})
		return ending{state: v1alpha1.MonitorWorkBlocked, reason: v1alpha1.ReasonNotReady, message: is.Reason}, err
	}
	method := v1alpha1.MonitorMergeSquash
	if allowed := j.m.Spec.Automerge.AllowedMergeMethods; len(allowed) > 0 {
		method = allowed[0]
	}
	row, err := w.mutate(ctx, j.m, mutation{
		operation: v1alpha1.MonitorMergePullRequest, kind: v1alpha1.MonitorPullRequest, number: j.a.Spec.Number, head: j.a.Spec.HeadSHA, work: j.a.Name,
		do: func(ctx context.Context, id string) (wrote, error) {
			var done struct {
				SHA     string `json:"sha"`
				Merged  bool   `json:"merged"`
				Message string `json:"message"`
			}
			err := w.do(ctx, j.m, call{operation: "merge_pull_request", id: id, head: j.a.Spec.HeadSHA, arguments: map[string]any{"pr_number": j.a.Spec.Number, "merge_method": method}}, &done)
			if err == nil && !done.Merged {
				return wrote{skipped: done.Message}, nil
			}
			return wrote{sha: done.SHA}, err
		},
	})
	if err != nil {
		return ending{}, err
	}
	e := endingOf(row)
	_, err = w.updateItem(ctx, j.item.Namespace, j.item.Name, func(i *v1alpha1.MonitorItem) {
		a := automergeOf(i)
		switch row.Status.State {
		case v1alpha1.MonitorPublishSucceeded:
			i.Status.State, a.State, a.MergeSHA, a.Reason = v1alpha1.MonitorItemMerged, v1alpha1.MonitorMergeDone, row.Status.SHA, ""
		case v1alpha1.MonitorPublishSkipped:
			a.State, a.Reason = v1alpha1.MonitorMergeBlocked, row.Status.Message
		default:
			a.State, a.Reason = v1alpha1.MonitorMergeFailed, row.Status.Message
		}
	})
	if row.Status.State == v1alpha1.MonitorPublishSkipped {
		e = ending{state: v1alpha1.MonitorWorkBlocked, reason: v1alpha1.ReasonNotReady, message: row.Status.Message}
	}
	return e, err
}

// repairing has an agent mend what a review or the checks found, and publishes that to the branch of the pull request.
func repairing() action {
	return action{
		may:  func(_ *world, j *job) *block { return mayRepair(j.m, j.item) },
		task: repairTask,
		begun: func(i *v1alpha1.MonitorItem, a *v1alpha1.MonitorWorkAction) {
			r := i.Status.Repair
			if r == nil {
				r = &v1alpha1.MonitorItemRepair{}
			}
			if r.TaskName == a.Status.TaskName {
				return
			}
			if r.HeadSHA != a.Spec.HeadSHA {
				r.AttemptsOnHead = 0
			}
			r.Phase, r.HeadSHA, r.TaskName, r.Message = v1alpha1.MonitorRepairQueued, a.Spec.HeadSHA, a.Status.TaskName, ""
			r.Attempts++
			r.AttemptsOnHead++
			i.Status.Repair = r
		},
		finish: finishRepair,
		ended: func(i *v1alpha1.MonitorItem, a *v1alpha1.MonitorWorkAction, e ending) {
			if r := i.Status.Repair; r != nil && r.TaskName == a.Status.TaskName {
				r.Phase, r.Message = v1alpha1.MonitorRepairFailed, e.message
			}
		},
	}
}

func repairTask(ctx context.Context, w *world, j *job) (*v1alpha1.Task, error) {
	s := &j.item.Status
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "Mend pull request %d of %s. Its branch %s is in your working directory, at the commit %s. What you change is published to the branch when you are done.\n",
		j.a.Spec.Number, repositoryOf(j.m), s.HeadBranch, s.HeadSHA)
	if j.a.Spec.DesiredAction == v1alpha1.MonitorFixCI {
		var ci struct {
			Details []struct {
				Name  string `json:"name"`
				State string `json:"state"`
				URL   string `json:"url"`
			} `json:"checks_details"`
		}
		if err := w.read(ctx, j.m, "check_pull_request_ci", map[string]any{"pr_number": j.a.Spec.Number}, &ci); err != nil {
			return nil, err
		}
		_, _ = b.WriteString("Its checks have failed. Find out why by running what they run, and mend it.\n")
		var checks strings.Builder
		for _, c := range ci.Details {
			_, _ = fmt.Fprintf(&checks, "%s: %s\n", c.Name, c.State)
		}
		_, _ = b.WriteString(dataNote + quoted("checks", checks.String(), maxBody))
	} else {
		_, _ = b.WriteString("A review asked for changes. Make them, and nothing else.\n")
		if r := s.Review; r != nil && r.HeadSHA == s.HeadSHA {
			var findings strings.Builder
			_, _ = fmt.Fprintln(&findings, r.Summary)
			for _, f := range r.Findings {
				_, _ = fmt.Fprintf(&findings, "- %s %s:%d %s\n  %s\n", f.Priority, f.Path, f.Line, f.Title, strings.ReplaceAll(f.Body, "\n", "\n  "))
			}
			_, _ = b.WriteString(quoted("review", findings.String(), maxDiff))
		}
	}
	if commands := j.m.Spec.Validation.Commands; len(commands) > 0 && j.m.Spec.Validation.Mode != v1alpha1.MonitorValidationOff {
		_, _ = fmt.Fprintf(&b, "Check what you did with: %s\n", strings.Join(commands, "; "))
	}
	t, err := w.newTask(ctx, j, j.m.Spec.Agents.Repairer, b.String())
	if err != nil {
		return nil, err
	}
	writes(t, j, s.HeadBranch, s.HeadBranch)
	t.Spec.Workspace.ExpectedRemoteSHA = s.HeadSHA
	return t, nil
}

// finishRepair looks at what was published.
func finishRepair(ctx context.Context, w *world, j *job, t *v1alpha1.Task, _ string) (ending, error) {
	d := t.Status.Delivery
	published := d != nil && d.VerifiedRemoteSHA != "" && d.VerifiedRemoteSHA != j.a.Spec.HeadSHA
	e := ending{state: v1alpha1.MonitorWorkSucceeded, message: "the branch was mended"}
	if !published {
		e = ending{state: v1alpha1.MonitorWorkFailed, reason: v1alpha1.ReasonMonitorNothingPublished, message: "the agent published no change"}
	}
	is, err := w.state(ctx, j.m, v1alpha1.MonitorPullRequest, j.a.Spec.Number)
	if err != nil {
		return ending{}, err
	}
	if _, err := w.observe(ctx, j.m, v1alpha1.MonitorPullRequest, &is.Item); err != nil {
		return ending{}, err
	}
	if published {
		if err := w.worked(ctx, j, t, v1alpha1.UsageLinkAssisted, d.PublicationID, is); err != nil {
			return ending{}, err
		}
	}
	_, err = w.updateItem(ctx, j.item.Namespace, j.item.Name, func(i *v1alpha1.MonitorItem) {
		if r := i.Status.Repair; r != nil && r.TaskName == j.a.Status.TaskName {
			r.Phase, r.Message = v1alpha1.MonitorRepairSucceeded, e.message
			if !published {
				r.Phase = v1alpha1.MonitorRepairFailed
			}
		}
	})
	return e, err
}
