// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
)

// TestMonitorRepairs: a coding agent mends what a review found, on the branch of the pull request, and the new head is reviewed. On Gitea the
// branch is then brought up to date; the stand-in for GitHub makes no commits.
func TestMonitorRepairs(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	onBoth(t, func(t *testing.T, h codeHost) {
		x, head := newReviewed(t, h, func(s *v1alpha1.RepositoryMonitorSpec) {
			s.Agents.Repairer, s.Repair.Enabled = &v1alpha1.LocalReference{Name: "coder"}, true
		})
		defer x.end()
		x.awaitReview(head, v1alpha1.MonitorVerdictNeedsChanges)
		if c := x.command(1, "platform:fix", "maintainer"); c.Status.State != v1alpha1.MonitorCommandCompleted || c.Spec.TargetSHA != head {
			t.Fatalf("%+v, %+v", c.Spec, c.Status)
		}
		mended := h.head(t, "work")
		if files := h.changed(t, "work"); mended == head || !slices.Contains(files, "lock.txt") {
			t.Errorf("%s changes %q", mended, files)
		}
		x.awaitReview(mended, v1alpha1.MonitorVerdictPassed)
		if h.provider() == v1alpha1.CodeHostGitea {
			h.push(t, "main", "main", "a shop\nin town\n")
			if c := x.command(1, "platform:update-branch", "maintainer"); c.Status.State != v1alpha1.MonitorCommandCompleted {
				t.Errorf("%+v", c.Status)
			}
		}
	})
}

// TestMonitorForcePush: a review whose head is replaced while it goes on is not posted, whatever it says, and the new head is reviewed. A
// command about the old head is not obeyed.
func TestMonitorForcePush(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	onBoth(t, func(t *testing.T, h codeHost) {
		x, head := newReviewed(t, h, func(s *v1alpha1.RepositoryMonitorSpec) { s.Review.Publish.PostPassed = true })
		defer x.end()
		x.awaitReview(head, v1alpha1.MonitorVerdictNeedsChanges)
		slow := h.push(t, "main", "work", "a shop\nwith a window\n")
		x.pushed(slow)
		kit.Await(t, "the reviewer looks for long", func() bool {
			r := x.item("shop.pr-1").Review
			return r != nil && r.HeadSHA == slow && len(x.EventsOf(r.TaskName, v1alpha1.EventToolCallStarted)) == 1
		})
		last := h.push(t, "main", "work", "a shop\nwith a lock\n")
		if d := x.pushed(last); d.Status.MonitorRunsQueued != 1 {
			t.Errorf("%+v", d.Status)
		}
		for _, dir := range kit.Must[[]string](t)(filepath.Glob(filepath.Join(x.DataDir, "runs", "*", "*", "work"))) {
			if err := os.WriteFile(filepath.Join(dir, "stop"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		x.awaitReview(last, v1alpha1.MonitorVerdictPassed)
		kit.Await(t, "all work is over", func() bool { return x.done() == "map[review succeeded:3]" })
		if r := x.item("shop.pr-1").Review; r.HeadSHA != last || r.Verdict != v1alpha1.MonitorVerdictPassed {
			t.Errorf("%+v", r)
		}
		posted := h.reviews(t, 1)
		if slices.ContainsFunc(posted, func(r review) bool { return r.approves || r.head == slow }) || len(posted) != 2 || posted[1].head != last {
			t.Errorf("%+v", posted)
		}
	})
}
