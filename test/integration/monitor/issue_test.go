// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
)

// workflowScript: a planner makes a plan, which is what the coding agent is told to do, and a reviewer is content.
const workflowScript = `
models: [scripted-1]
turns:
- name: plan
  match: {turn: 1, lastRole: user, contains: "Plan how the issue is implemented"}
  reply: {text: 'I looked. {"risk":"high","plan":"Make a door.\ndo: touch door.txt a door\ndo: say made"}'}
- name: review
  match: {turn: 1, lastRole: user, contains: "Review pull request"}
  reply: {text: '{"verdict":"passed","summary":"Good.","findings":[]}'}
`

const (
	issueBranch    = "platform/issue-1"
	planLabel      = "platform:plan"
	approveLabel   = "platform:approve-plan"
	implementLabel = "platform:implement"
	theIssue       = "shop.issue-1"
	thePull        = "shop.pr-2"
)

// issued is a server with a monitor that leads issues to merged pull requests.
type issued struct {
	*watched
	// killed is set if the server is to be restarted after each step, and restarts is how often it was.
	killed   bool
	restarts int
}

func newIssued(t *testing.T, h codeHost, killed bool) *issued {
	t.Helper()
	x := &issued{watched: newWatched(t, h, workflowScript), killed: killed}
	x.watch(func(s *v1alpha1.RepositoryMonitorSpec) {
		s.Targets.Issues.Enabled = true
		s.Agents.Planner, s.Agents.Implementer = &v1alpha1.LocalReference{Name: "planner"}, &v1alpha1.LocalReference{Name: "coder"}
		s.IssueWorkflow = v1alpha1.MonitorIssueWorkflow{Implementation: v1alpha1.MonitorImplementation{Enabled: true, RequireApprovedPlan: true}}
		s.Review = v1alpha1.MonitorReview{Publish: v1alpha1.MonitorReviewPublish{Enabled: true, PostPassed: true}}
		s.Automerge = v1alpha1.MonitorAutomerge{Enabled: true, RequireMaintainerOptIn: new(false)}
	})
	if killed {
		h.front().lose(h.request(commenting), h.request(unlabelling), h.request(unlabelling), h.request(pushing), h.request(opening), h.request(reviewing), h.request(merging))
	}
	return x
}

// restart restarts the server. A minute passes, which is longer than what waits for a code host that gave no answer.
func (x *issued) restart() {
	x.t.Helper()
	x.host.front().forget()
	x.Stop(x.t)
	x.clock.By.Add(int64(time.Minute))
	x.StartAgain(x.t)
	x.host.hook(x.t, x.Server)
	x.restarts++
}

// await waits for what must happen. The server is restarted when the code host did not answer it, and when it has happened.
func (x *issued) await(what string, ok func() bool) {
	x.t.Helper()
	kit.Await(x.t, what, func() bool {
		if x.host.front().lostSome() {
			x.restart()
		}
		return ok()
	})
	if x.killed {
		x.restart()
	}
}

// awaitPhase waits until the issue has a phase, which people see.
func (x *issued) awaitPhase(want v1alpha1.MonitorIssuePhase) {
	x.t.Helper()
	x.await("the issue is "+string(want), func() bool {
		is := x.item(theIssue)
		if is.Issue == nil {
			return false
		}
		if is.Issue.Phase == v1alpha1.MonitorIssueBlocked {
			x.t.Fatalf("the issue is blocked: %+v, %+v", is, x.works())
		}
		return is.Issue.Phase == want
	})
	x.shows(theIssue, string(want))
}

// shows checks that kubectl get shows a word in the row of an item.
func (x *issued) shows(item, word string) {
	x.t.Helper()
	for line := range strings.Lines(x.shown("monitoritems")) {
		if fields := strings.Fields(line); fields[0] == item && slices.Contains(fields, word) {
			return
		}
	}
	x.t.Errorf("%s is not shown as %s: %s", item, word, x.shown("monitoritems"))
}

// look has the monitor look at the repository.
func (x *issued) look() {
	x.t.Helper()
	x.await("a run is queued", x.watched.look)
}

// labelled has somebody set a label of the issue, which is a command.
func (x *issued) labelled(label, by string) {
	x.t.Helper()
	if d := x.label(1, label, by); len(d.Status.Commands) != 1 {
		x.t.Fatalf("%s, by %s: %+v, %+v", label, by, d.Spec, d.Status)
	}
}

// merge leads the issue to a merged pull request.
func (x *issued) merge() {
	t := x.t
	if n := x.host.openIssue(t, "No door", "The shop has no door.", "stranger"); n != 1 {
		t.Fatalf("the issue is number %d", n)
	}
	x.labelled(implementLabel, "maintainer")
	x.await("nothing is implemented without a plan", func() bool { return x.commands() == "map[implement blocked PlanNotApproved:1]" })
	x.unlabel(1, implementLabel, "maintainer")
	x.labelled(planLabel, "stranger")
	x.await("the stranger is refused", func() bool {
		return x.commands() == "map[implement blocked PlanNotApproved:1 plan rejected PermissionMissing:1]"
	})
	x.unlabel(1, planLabel, "maintainer")
	x.labelled(planLabel, "maintainer")
	x.await("the plan is begun", func() bool { return x.begun(v1alpha1.MonitorPlan) })
	x.awaitPhase(v1alpha1.MonitorIssueApprovalRequired)
	x.await("the command is over", func() bool { return strings.Contains(x.commands(), "plan completed:1") })
	if is := x.item(theIssue).Issue; is.Risk != v1alpha1.MonitorRiskHigh || !strings.HasPrefix(is.Plan, "Make a door.") || x.begun(v1alpha1.MonitorImplement) {
		t.Fatalf("%+v", is)
	}
	x.labelled(approveLabel, "maintainer")
	x.await("the implementation is begun", func() bool { return x.begun(v1alpha1.MonitorImplement) })
	x.awaitPhase(v1alpha1.MonitorIssuePROpened)
	if is := x.item(theIssue).Issue; is.Branch != issueBranch || is.PullRequest != 2 || is.PlanApprovedBy != "maintainer" || is.Attempts != 1 {
		t.Errorf("%+v", is)
	}
	x.await("all commands are over", func() bool { return x.commands() == allCommands })
	x.look()
	x.await("the review is begun", func() bool { return x.begun(v1alpha1.MonitorReviewIntent) })
	x.await("the pull request is merged", func() bool { return x.item(thePull).State == v1alpha1.MonitorItemMerged })
	x.shows(thePull, "merged")
	x.shows(thePull, "passed")
	x.host.settle(t)
	x.look()
	x.awaitPhase(v1alpha1.MonitorIssueComplete)
}

// What there is at the end.
const (
	allCommands = "map[approve_plan completed:1 implement blocked PlanNotApproved:1 plan completed:1 plan rejected PermissionMissing:1]"
	allWorks    = "map[automerge succeeded:1 implement succeeded:1 plan succeeded:1 review succeeded:1]"
	allWritten  = "map[merge succeeded:1 post_comment succeeded:1 post_review succeeded:1 remove_label succeeded:2]"
)

// check looks at what was done in all.
func (x *issued) check() {
	t, h := x.t, x.host
	x.await("all is over", func() bool { return x.done() == allWorks && x.written() == allWritten && x.commands() == allCommands })
	tasks := kit.Must[*v1alpha1.TaskList](t)(x.Tasks().List(t.Context(), metav1.ListOptions{})).Items
	works := x.works()
	for _, task := range tasks {
		if task.Status.Phase != v1alpha1.TaskSucceeded || !slices.ContainsFunc(works, func(a v1alpha1.MonitorWorkAction) bool { return a.Status.TaskUID == task.UID }) {
			t.Errorf("task %s is %s: %s", task.Name, task.Status.Phase, task.Status.Message)
		}
	}
	if len(tasks) != 3 {
		t.Errorf("%d tasks", len(tasks))
	}
	head := h.head(t, issueBranch)
	if got := h.changed(t, issueBranch); !slices.Equal(got, []string{"door.txt"}) {
		t.Errorf("changed %q", got)
	}
	pulls := h.pulls(t)
	if len(pulls) != 1 || pulls[0].head != head || !pulls[0].merged || pulls[0].title != "No door" || !strings.HasPrefix(pulls[0].body, "Closes #1.") {
		t.Errorf("%+v", pulls)
	}
	if c := h.comments(t, 1); len(c) != 1 || !strings.Contains(c[0], "**Plan** (risk: high)") || !strings.Contains(c[0], "Make a door.") || !strings.Contains(c[0], "`"+approveLabel+"`") {
		t.Errorf("%d comments: %+v", len(c), c)
	}
	if r := h.reviews(t, 2); len(r) != 1 || r[0].head != head || r[0].approves {
		t.Errorf("%d reviews: %+v", len(r), r)
	}
	if l := h.labels(t, 1); len(l) != 0 {
		t.Errorf("labels %q", l)
	}
	for _, what := range []string{merging, commenting, reviewing, opening} {
		if n := h.front().count(h.request(what)); n != 1 {
			t.Errorf("%s: %d times", what, n)
		}
	}
	is := x.item(thePull)
	if is.Review == nil || is.Review.HeadSHA != head || is.Review.Verdict != v1alpha1.MonitorVerdictPassed || is.Automerge == nil || is.Automerge.State != v1alpha1.MonitorMergeDone || is.Automerge.HeadSHA != head || is.Automerge.MergeSHA == "" {
		t.Errorf("%+v, %+v, %+v", is, is.Review, is.Automerge)
	}
	// The report of usage knows of the merge when the monitor has looked at the pull request again.
	x.clock.By.Add(int64(6 * time.Minute))
	x.look()
	x.await("the merge is evident", func() bool {
		s := kit.Must[*v1alpha1.UsageReport](t)(x.API().UsageReports("default").Create(t.Context(), &v1alpha1.UsageReport{}, metav1.CreateOptions{})).Status.Summary
		return s.PRsOpened != nil && *s.PRsOpened == 1 && s.PRsMerged != nil && *s.PRsMerged == 1
	})
	if x.done() != allWorks || x.written() != allWritten || x.commands() != allCommands {
		t.Errorf("%s, %s, %s", x.done(), x.written(), x.commands())
	}
}

// TestMonitorIssue: an issue that a stranger opened is planned, approved of, implemented, reviewed and merged, and each of that once.
func TestMonitorIssue(t *testing.T) {
	onBoth(t, func(t *testing.T, h codeHost) {
		x := newIssued(t, h, false)
		defer x.end()
		x.merge()
		x.check()
	})
}

// TestMonitorIssueKilled: so it is if the server ends after each step, and each time that the code host has done something and its answer is
// lost.
func TestMonitorIssueKilled(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	onBoth(t, func(t *testing.T, h codeHost) {
		x := newIssued(t, h, true)
		defer x.end()
		x.merge()
		x.check()
		if left := h.front().remaining(); len(left) > 0 || x.restarts < 17 {
			t.Errorf("restarted %d times; %q were not sent", x.restarts, left)
		}
	})
}
