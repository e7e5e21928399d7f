// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/githubapi"
	"github.com/platform-ai/platform/test/kit"
)

const monitorSecret = "the-monitors-hook"

// reviewerScript: a reviewer asks for changes of the first head, and is content with all others.
const reviewerScript = `
models: [scripted-1]
turns:
- name: later
  match: {turn: 1, lastRole: user, contains: "and with a lock"}
  reply: {text: '{"verdict":"passed","summary":"Good.","findings":[]}'}
- name: first
  match: {turn: 1, lastRole: user}
  reply: {text: 'I looked. {"verdict":"needs_changes","summary":"A door without a lock.","findings":[{"path":"README.md","line":2,"priority":"P1","title":"No lock","body":"Add one."},{"path":"README.md","line":90,"priority":"P3","title":"Taste","body":"Paint it."}]}'}
`

// monitored is a server with a monitor of the repository on a GitHub that tells it what happens.
type monitored struct {
	*reviewed
}

func newMonitored(t *testing.T, change func(*v1alpha1.RepositoryMonitorSpec)) *monitored {
	t.Helper()
	m := &monitored{newReviewed(t, func(string) string { return reviewerScript })}
	m.head = m.commit("a shop\nwith a door\n")
	m.forge.Do(func(_ map[string]string, pulls *[]*githubapi.Pull) { (*pulls)[0].Head.SHA = m.head })
	m.forge.Change(func(s *githubapi.State) {
		s.Hook = githubapi.Hook{ID: 17, URL: m.URL + "/webhooks/github", Secret: monitorSecret, Client: m.Stranger(t).HTTP}
		s.Roles = map[string]string{"maintainer": "write", "stranger": "read"}
	})
	ref := func(name string) *v1alpha1.WorkspaceCredentialReference {
		return &v1alpha1.WorkspaceCredentialReference{Name: name}
	}
	spec := v1alpha1.RepositoryMonitorSpec{
		RepoURL: m.forge.Location(), Provider: v1alpha1.CodeHostGitHub, ReadCredentialRef: ref("reader"), ForgeCredentialRef: ref("writer"),
		Schedule: "0 0 1 1 *", Agents: v1alpha1.MonitorAgents{Reviewer: &v1alpha1.LocalReference{Name: "reviewer"}},
		Triggers: v1alpha1.MonitorTriggers{GitHub: v1alpha1.MonitorHostTriggers{Labels: v1alpha1.MonitorLabelTriggers{Enabled: true}}},
		Review:   v1alpha1.MonitorReview{ExactEventEnabled: true, Publish: v1alpha1.MonitorReviewPublish{Enabled: true, Mode: v1alpha1.MonitorPublishFindings}},
		Policy:   v1alpha1.MonitorPolicy{PauseLabels: []string{"paused"}, ProtectedLabels: []string{"release"}},
	}
	if change != nil {
		change(&spec)
	}
	kit.Must[*v1alpha1.RepositoryMonitor](t)(m.API().RepositoryMonitors("default").Create(t.Context(), &v1alpha1.RepositoryMonitor{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: spec}, metav1.CreateOptions{}))
	return m
}

// commit makes a commit on the branch of the pull request, and has the code host show what it changes.
func (m *monitored) commit(text string) string {
	m.T.Helper()
	sha := m.git.Commit(m.T, githubapi.Owner+"/"+githubapi.Name, "work", map[string]string{"README.md": text})
	added := strings.TrimPrefix(text, "a shop\n")
	patch := fmt.Sprintf("@@ -1 +1,%d @@\n a shop\n+%s", 1+strings.Count(added, "\n"), strings.ReplaceAll(strings.TrimSpace(added), "\n", "\n+"))
	m.forge.Change(func(s *githubapi.State) {
		s.Files["work"] = []githubapi.File{{Filename: "README.md", Status: "modified", Additions: strings.Count(added, "\n"), Changes: 1, Patch: patch}}
		s.Diffs["work"] = "diff --git a/README.md b/README.md\n--- a/README.md\n+++ b/README.md\n" + patch + "\n"
	})
	return sha
}

func (m *monitored) item(name string) *v1alpha1.MonitorItem {
	m.T.Helper()
	i, err := m.API().MonitorItems("default").Get(m.T.Context(), name, metav1.GetOptions{})
	if err != nil {
		return &v1alpha1.MonitorItem{}
	}
	return i
}

// awaitReview waits until a head has a verdict.
func (m *monitored) awaitReview(head string, want v1alpha1.MonitorVerdict) *v1alpha1.MonitorItemReview {
	m.T.Helper()
	var r *v1alpha1.MonitorItemReview
	kit.Await(m.T, "the review of "+head, func() bool {
		r = m.item("shop.pr-1").Status.Review
		return r != nil && r.HeadSHA == head && r.Verdict != ""
	})
	if r.Verdict != want {
		m.T.Fatalf("%+v", r)
	}
	return r
}

func (m *monitored) works() []v1alpha1.MonitorWorkAction {
	m.T.Helper()
	return kit.Must[*v1alpha1.MonitorWorkActionList](m.T)(m.API().MonitorWorkActions("default").List(m.T.Context(), metav1.ListOptions{})).Items
}

// TestMonitorReviews: a monitor reviews the open pull requests and posts the findings. Each new head is reviewed once, however often the
// webhook names it.
func TestMonitorReviews(t *testing.T) {
	t.Parallel()
	m := newMonitored(t, nil)
	defer m.Stop(t) // before the git server, which it asks, ends with the context of the test
	r := m.awaitReview(m.head, v1alpha1.MonitorVerdictNeedsChanges)
	if r.PublishPhase != v1alpha1.MonitorPublishSucceeded || len(r.Findings) != 2 {
		t.Errorf("%+v", r)
	}
	posted := m.reviews()
	if len(posted) != 1 || posted[0].State != "COMMENTED" || posted[0].CommitID != m.head || len(posted[0].Comments) != 1 || !strings.Contains(posted[0].Body, "A door without a lock.") || !strings.Contains(posted[0].Body, "<!-- platform:pr-review") {
		t.Fatalf("%+v", posted)
	}
	kit.Await(t, "the work is over", func() bool {
		works := m.works()
		return len(works) == 1 && works[0].Status.State == v1alpha1.MonitorWorkSucceeded
	})
	next := m.commit("a shop\nwith a door\nand with a lock\n")
	d := kit.Must[githubapi.Delivery](t)(m.forge.Push(t.Context(), 1, next, "maintainer"))
	if d.Status != http.StatusCreated || !strings.Contains(string(d.Answer), `"monitorRunsQueued":1`) {
		t.Fatalf("%d %s", d.Status, d.Answer)
	}
	if r := m.awaitReview(next, v1alpha1.MonitorVerdictPassed); r.PublishPhase != v1alpha1.MonitorPublishSkipped {
		t.Errorf("%+v", r)
	}
	if d = kit.Must[githubapi.Delivery](t)(m.forge.Redeliver(t.Context(), d)); d.Status != http.StatusAccepted {
		t.Errorf("%d %s", d.Status, d.Answer)
	}
	if d = kit.Must[githubapi.Delivery](t)(m.forge.Label(t.Context(), 1, "bug", "stranger")); d.Status != http.StatusAccepted || !strings.Contains(string(d.Answer), `"monitorRunsCached":1`) {
		t.Errorf("%d %s", d.Status, d.Answer)
	}
	rest := m.REST(t, "default", "ed", "platform-editor")
	const runs = "/apis/core.platform.ai/v1alpha1/namespaces/default/repositorymonitors/shop/runs"
	if a := rest.At(m.URL).Post(runs, `{"apiVersion":"core.platform.ai/v1alpha1","kind":"MonitorRunRequest"}`); a.Code != http.StatusCreated {
		t.Errorf("%+v", a)
	}
	kit.Await(t, "all runs are over", func() bool {
		l := kit.Must[*v1alpha1.MonitorRunList](t)(m.API().MonitorRuns("default").List(t.Context(), metav1.ListOptions{}))
		for i := range l.Items {
			if s := l.Items[i].Status.State; s != v1alpha1.MonitorRunSucceeded {
				return false
			}
		}
		return len(l.Items) == 3
	})
	if works := m.works(); len(works) != 2 || len(m.reviews()) != 1 {
		t.Errorf("%d works, %d reviews", len(works), len(m.reviews()))
	}
	m.commands(t, next)
}

// commands gives commands by labels, and in the API.
func (m *monitored) commands(t *testing.T, head string) {
	t.Helper()
	await := func(sender, label string) *v1alpha1.MonitorCommand {
		t.Helper()
		d := kit.Must[githubapi.Delivery](t)(m.forge.Label(t.Context(), 1, label, sender))
		if d.Status != http.StatusCreated {
			t.Fatalf("%d %s", d.Status, d.Answer)
		}
		var c *v1alpha1.MonitorCommand
		kit.Await(t, "the command of "+sender+", "+label, func() bool {
			l := kit.Must[*v1alpha1.MonitorCommandList](t)(m.API().MonitorCommands("default").List(t.Context(), metav1.ListOptions{}))
			for i := range l.Items {
				if l.Items[i].Spec.Sender == sender && l.Items[i].Spec.Label == label {
					c = &l.Items[i]
				}
			}
			return c != nil && c.Status.State != v1alpha1.MonitorCommandAccepted && c.Status.State != v1alpha1.MonitorCommandProcessed
		})
		return c
	}
	if c := await("stranger", "platform:review"); c.Status.State != v1alpha1.MonitorCommandRejected || c.Status.Reason != "PermissionMissing" {
		t.Errorf("%+v", c.Status)
	}
	kit.Must[githubapi.Delivery](t)(m.forge.Unlabel(t.Context(), 1, "platform:review", "maintainer"))
	if c := await("maintainer", "platform:review"); c.Status.State != v1alpha1.MonitorCommandCompleted || !c.Status.LabelRemoved || c.Status.WorkAction == "" {
		t.Errorf("%+v", c.Status)
	}
	if n := len(m.works()); n != 3 {
		t.Errorf("%d works", n)
	}
	if c := await("maintainer", "platform:stop"); c.Status.State != v1alpha1.MonitorCommandCompleted || !m.item("shop.pr-1").Status.Stopped {
		t.Errorf("%+v", c.Status)
	}
	if c := await("maintainer", "platform:update-branch"); c.Status.State != v1alpha1.MonitorCommandBlocked || c.Status.Reason != "Stopped" {
		t.Errorf("%+v", c.Status)
	}
}
