// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
)

// reviewerScript: a reviewer is content with what has a lock, takes long for what has a window, and asks for changes of everything else. The
// summary is what the coding agent is told to do.
const reviewerScript = `
models: [scripted-1]
turns:
- name: content
  match: {turn: 1, lastRole: user, contains: "lock"}
  reply: {text: '{"verdict":"passed","summary":"Good.","findings":[]}'}
- name: slow
  match: {turn: 1, lastRole: user, contains: "with a window"}
  reply: {toolCalls: [{name: code_exec, arguments: {language: bash, code: "while [ ! -e stop ]; do sleep 0.05; done"}}]}
- name: wants changes
  match: {lastRole: user}
  reply: {text: 'I looked. {"verdict":"needs_changes","summary":"A door that nobody can close.\ndo: touch lock.txt a lock\ndo: say made","findings":[{"path":"README.md","line":2,"priority":"P1","title":"Open","body":"Make it close."},{"path":"README.md","line":90,"priority":"P3","title":"Taste","body":"Paint it."}]}'}
- name: has looked for long
  match: {lastRole: tool}
  reply: {text: '{"verdict":"needs_changes","summary":"A window.","findings":[]}'}
`

// newReviewed starts a server with a monitor that reviews pull request 1, which adds a door.
func newReviewed(t *testing.T, h codeHost, change func(*v1alpha1.RepositoryMonitorSpec)) (x *watched, head string) {
	t.Helper()
	x = newWatched(t, h, reviewerScript)
	head = h.push(t, "main", "work", "a shop\nwith a door\n")
	if n := h.openPull(t, "Mend the shop", "work", "maintainer"); n != 1 {
		t.Fatalf("the pull request is number %d", n)
	}
	// Before there is a monitor: Gitea delivers some time after it has answered.
	x.delivered("says that the pull request was opened", func(d *v1alpha1.CodeHostDelivery) bool { return d.Spec.Number == 1 && d.Spec.Action == "opened" })
	x.watch(func(s *v1alpha1.RepositoryMonitorSpec) {
		s.Review = v1alpha1.MonitorReview{ExactEventEnabled: true, Publish: v1alpha1.MonitorReviewPublish{Enabled: true, Mode: v1alpha1.MonitorPublishFindings}}
		s.Policy = v1alpha1.MonitorPolicy{PauseLabels: []string{"paused"}, ProtectedLabels: []string{"release"}}
		if change != nil {
			change(s)
		}
	})
	return x, head
}

// pushed returns the delivery that says that pull request 1 has a new head.
func (x *watched) pushed(head string) *v1alpha1.CodeHostDelivery {
	x.t.Helper()
	return x.delivered("names the head "+head, func(d *v1alpha1.CodeHostDelivery) bool {
		return d.Spec.Number == 1 && d.Spec.Action == "synchronize" && d.Spec.HeadSHA == head
	})
}

// TestMonitorReviews: a monitor reviews the open pull requests and posts the findings. Each new head is reviewed once, however often the
// webhook names it.
func TestMonitorReviews(t *testing.T) {
	onBoth(t, func(t *testing.T, h codeHost) {
		x, head := newReviewed(t, h, nil)
		defer x.end()
		r := x.awaitReview(head, v1alpha1.MonitorVerdictNeedsChanges)
		if r.PublishPhase != v1alpha1.MonitorPublishSucceeded || len(r.Findings) != 2 {
			t.Errorf("%+v", r)
		}
		posted := h.reviews(t, 1)
		if len(posted) != 1 || posted[0].approves || posted[0].head != head || !slices.Equal(posted[0].lines, []string{"README.md:2"}) ||
			!strings.Contains(posted[0].body, "A door that nobody can close.") || !strings.Contains(posted[0].body, "<!-- platform:pr-review") {
			t.Fatalf("%+v", posted)
		}
		kit.Await(t, "the work is over", func() bool { return x.done() == "map[review succeeded:1]" })
		next := h.push(t, "work", "work", "a shop\nwith a door\nand with a lock\n")
		d := x.pushed(next)
		if d.Status.MonitorRunsQueued != 1 {
			t.Fatalf("%+v, %+v", d.Spec, d.Status)
		}
		if r := x.awaitReview(next, v1alpha1.MonitorVerdictPassed); r.PublishPhase != v1alpha1.MonitorPublishSkipped {
			t.Errorf("%+v", r)
		}
		x.again(d)
		if d := x.label(1, "bug", "stranger"); d.Status.MonitorRunsQueued != 0 || d.Status.MonitorRunsCached != 1 || len(d.Status.Commands) != 0 {
			t.Errorf("%+v, %+v", d.Spec, d.Status)
		}
		kit.Await(t, "a run is queued", x.look)
		kit.Await(t, "all runs are over", func() bool { return x.overOnes() == 3 })
		if x.done() != "map[review succeeded:2]" || len(h.reviews(t, 1)) != 1 {
			t.Errorf("%s, %d reviews", x.done(), len(h.reviews(t, 1)))
		}
		x.commanded(next)
	})
}

// again delivers once more what was delivered, of which nothing new comes. GitHub's delivery has the same id, and Gitea's another one.
func (x *watched) again(d *v1alpha1.CodeHostDelivery) {
	x.t.Helper()
	works, commands := len(x.works()), x.commands()
	x.host.redeliver(x.t, d.Spec.DeliveryID)
	if x.host.provider() == v1alpha1.CodeHostGitea {
		second := x.delivered("is the same", func(o *v1alpha1.CodeHostDelivery) bool { return o.Spec.BodySHA256 == d.Spec.BodySHA256 })
		if second.Status.MonitorRunsQueued != 0 || second.Status.State == v1alpha1.DeliveryFailed {
			x.t.Errorf("%+v", second.Status)
		}
	} else {
		kit.Await(x.t, "the delivery is recognised", func() bool {
			return kit.Must[*v1alpha1.CodeHostDelivery](x.t)(x.API().CodeHostDeliveries("default").Get(x.t.Context(), d.Name, metav1.GetOptions{})).Status.Redeliveries == 1
		})
	}
	if len(x.works()) != works || x.commands() != commands {
		x.t.Errorf("after a redelivery: %s, %s; before: %d, %s", x.done(), x.commands(), works, commands)
	}
}

// commanded gives commands by labels. The head was reviewed.
func (x *watched) commanded(head string) {
	t := x.t
	if c := x.command(1, "platform:review", "stranger"); c.Status.State != v1alpha1.MonitorCommandRejected || c.Status.Reason != "PermissionMissing" {
		t.Errorf("%+v", c.Status)
	}
	x.unlabel(1, "platform:review", "maintainer")
	c := x.command(1, "platform:review", "maintainer")
	if c.Status.State != v1alpha1.MonitorCommandCompleted || !c.Status.LabelRemoved || c.Status.WorkAction == "" || c.Spec.TargetSHA != head {
		t.Errorf("%+v, %+v", c.Spec, c.Status)
	}
	if x.done() != "map[review succeeded:3]" {
		t.Errorf("%s", x.done())
	}
	if c := x.command(1, "platform:stop", "maintainer"); c.Status.State != v1alpha1.MonitorCommandCompleted || !x.item("shop.pr-1").Stopped {
		t.Errorf("%+v", c.Status)
	}
	if c := x.command(1, "platform:update-branch", "maintainer"); c.Status.State != v1alpha1.MonitorCommandBlocked || c.Status.Reason != "Stopped" {
		t.Errorf("%+v", c.Status)
	}
	// A label that pauses begins nothing, and ends nothing that was begun.
	if d := x.label(1, "paused", "maintainer"); d.Status.MonitorRunsQueued != 1 {
		t.Errorf("%+v", d.Status)
	}
	x.command(1, "platform:resume", "maintainer")
	kit.Await(t, "it is paused", func() bool {
		is := x.item("shop.pr-1")
		return !is.Stopped && is.BlockedReason == "Paused"
	})
	x.unlabel(1, "paused", "maintainer")
	kit.Await(t, "it is not paused any more", func() bool { return x.item("shop.pr-1").BlockedReason == "" })
}
