// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/githubapi"
	"github.com/platform-ai/platform/test/kit"
)

// lostScript: reviewers are content, and who triages an issue says so.
const lostScript = `
models: [scripted-1]
turns:
- name: review
  match: {turn: 1, lastRole: user, contains: "Review pull request"}
  reply: {text: '{"verdict":"passed","summary":"Good.","findings":[]}'}
- name: triage
  match: {turn: 1, lastRole: user}
  reply: {text: "It is clear."}
`

// lossy delivers to the platform, and loses a part of what it is given. The host believes that all was accepted.
type lossy struct {
	to *http.Client

	mu    sync.Mutex
	share float64
	dice  *rand.Rand
	lost  []string
	all   int
}

// RoundTrip implements http.RoundTripper.
func (l *lossy) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	l.all++
	lose := l.dice.Float64() < l.share
	if lose {
		l.lost = append(l.lost, r.Header.Get("X-GitHub-Delivery"))
	}
	l.mu.Unlock()
	if lose {
		return &http.Response{StatusCode: http.StatusAccepted, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}
	return l.to.Transport.RoundTrip(r)
}

// taken returns what was lost until now, and loses nothing from now on.
func (l *lossy) taken() (lost []string, all int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.share = 0
	return l.lost, l.all
}

// TestMonitorLostDeliveries: three of ten deliveries are lost. The next run makes up for them, so that each last head has one review and each
// command was obeyed once. When the lost ones arrive after all, nothing is done again.
func TestMonitorLostDeliveries(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	const pulls, issues = 8, 8
	h, ok := newGitHub(t).(*gitHub)
	if !ok {
		t.Fatal("not the stand-in")
	}
	x := newWatched(t, h, lostScript)
	defer x.end()
	x.watch(func(s *v1alpha1.RepositoryMonitorSpec) {
		s.Review.ExactEventEnabled, s.Targets.Issues.Enabled, s.Agents.Triager = true, true, &v1alpha1.LocalReference{Name: "planner"}
	})
	l := &lossy{to: x.Stranger(t).HTTP, share: 0.3, dice: rand.New(rand.NewPCG(7, 3))}
	h.api.Change(func(s *githubapi.State) { s.Hook.Client = &http.Client{Transport: l} })

	heads := map[int64]string{}
	var reported []int64
	for i := range pulls {
		branch := fmt.Sprintf("work-%d", i)
		h.push(t, "main", branch, "a shop\nfirst\n")
		n := h.openPull(t, "Mend it", branch, "maintainer")
		heads[n] = h.push(t, branch, branch, "a shop\nfirst\nand second\n")
	}
	for range issues {
		n := h.openIssue(t, "It is broken", "Please mend it.", "stranger")
		h.label(t, n, "platform:triage", "maintainer")
		reported = append(reported, n)
	}
	lost, all := l.taken()
	if share := float64(len(lost)) / float64(all); share < 0.2 || share > 0.4 {
		t.Fatalf("%d of %d deliveries were lost: the test tests something else", len(lost), all)
	}
	settled := func() bool {
		return x.overOnes() > 0 && !slices.ContainsFunc(x.works(), func(a v1alpha1.MonitorWorkAction) bool { return a.Status.CompletedAt == nil })
	}
	kit.Await(t, "a look at all", x.look)
	kit.Await(t, "the work is over", settled)
	for n, head := range heads {
		if r := x.item(fmt.Sprintf("shop.pr-%d", n)).Review; r == nil || r.HeadSHA != head || r.Verdict != v1alpha1.MonitorVerdictPassed {
			t.Errorf("pull request %d at %s: %+v", n, head, r)
		}
	}
	for _, n := range reported {
		i := x.item(fmt.Sprintf("shop.issue-%d", n)).Issue
		if i == nil || i.Phase != v1alpha1.MonitorIssueTriaged || slices.Contains(h.labels(t, n), "platform:triage") {
			t.Errorf("issue %d: %+v", n, i)
		}
	}
	works := onlyOnce(t, x)

	for _, id := range lost {
		h.redeliver(t, id)
	}
	kit.Await(t, "another look at all", x.look)
	kit.Await(t, "all is over again", settled)
	if again := onlyOnce(t, x); !maps.Equal(works, again) {
		t.Errorf("before the late deliveries: %v, afterwards: %v", works, again)
	}
}

// onlyOnce returns the work by what it is about, each of which there is once, with one task.
func onlyOnce(t *testing.T, x *watched) map[string]string {
	t.Helper()
	by := map[string]string{}
	for _, a := range x.works() {
		about := fmt.Sprintf("%s %d %s", a.Spec.DesiredAction, a.Spec.Number, a.Spec.HeadSHA)
		if other, ok := by[about]; ok {
			t.Errorf("%s: %s and %s", about, other, a.Name)
		}
		by[about] = a.Name
	}
	var tasks int
	for _, task := range kit.Must[*v1alpha1.TaskList](t)(x.Tasks().List(t.Context(), metav1.ListOptions{})).Items {
		if _, ok := task.Labels[v1alpha1.LabelRepositoryMonitor]; ok {
			tasks++
		}
	}
	begun := 0
	for _, a := range x.works() {
		if a.Status.TaskName != "" {
			begun++
		}
	}
	if tasks != begun {
		t.Errorf("%d tasks for %d pieces of work", tasks, begun)
	}
	return by
}

// TestMonitorOfAnotherTenant: who writes a monitor for a repository that they may not read is told of nothing that happens there.
func TestMonitorOfAnotherTenant(t *testing.T) {
	t.Parallel()
	h := newGitHub(t)
	x := newWatched(t, h, reviewerScript)
	defer x.end()
	head := h.push(t, "main", "work", "a shop\nwith a lock\n")
	x.watch(func(s *v1alpha1.RepositoryMonitorSpec) { s.Review.ExactEventEnabled = true })

	kit.Must[*corev1.Namespace](t)(x.Kubernetes(t).CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, metav1.CreateOptions{}))
	kit.Must[*corev1.Secret](t)(x.Kubernetes(t).CoreV1().Secrets("other").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, StringData: map[string]string{"token": "of-somebody-else"}}, metav1.CreateOptions{}))
	kit.Must[*v1alpha1.Agent](t)(x.API().Agents("other").Create(t.Context(), &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: "reviewer"}, Spec: v1alpha1.AgentSpec{ProviderRef: &v1alpha1.NamespacedReference{Name: "model", Namespace: "default"}}}, metav1.CreateOptions{}))
	spy := &v1alpha1.RepositoryMonitor{ObjectMeta: metav1.ObjectMeta{Name: "spy"}, Spec: v1alpha1.RepositoryMonitorSpec{
		RepoURL: h.location(), Provider: h.provider(), Schedule: "0 0 1 1 *", ReadCredentialRef: &v1alpha1.WorkspaceCredentialReference{Name: "mine"},
		Agents: v1alpha1.MonitorAgents{Reviewer: &v1alpha1.LocalReference{Name: "reviewer"}}, Review: v1alpha1.MonitorReview{ExactEventEnabled: true},
	}}
	kit.Must[*v1alpha1.RepositoryMonitor](t)(x.API().RepositoryMonitors("other").Create(t.Context(), spy, metav1.CreateOptions{}))
	kit.Await(t, "the monitor says that it may not read the repository", func() bool {
		spy = kit.Must[*v1alpha1.RepositoryMonitor](t)(x.API().RepositoryMonitors("other").Get(t.Context(), "spy", metav1.GetOptions{}))
		return spy.Status.Phase == v1alpha1.MonitorError && meta.IsStatusConditionFalse(spy.Status.Conditions, v1alpha1.ConditionRepositoryAccessible)
	})
	if c := meta.FindStatusCondition(spy.Status.Conditions, v1alpha1.ConditionReady); c == nil || !strings.HasPrefix(c.Message, "spec.repoURL: ") || strings.Contains(c.Message, "of-somebody-else") {
		t.Errorf("%+v", c)
	}

	h.openPull(t, "Secret plans", "work", "maintainer")
	d := x.delivered("says that the pull request was opened", func(d *v1alpha1.CodeHostDelivery) bool { return d.Spec.HeadSHA == head })
	if d.Status.MatchedMonitors != 1 || d.Status.MonitorRunsQueued != 1 || len(d.Status.Runs) != 1 || !strings.HasPrefix(d.Status.Runs[0], "default/shop-") {
		t.Errorf("%+v", d.Status)
	}
	x.awaitReview(head, v1alpha1.MonitorVerdictPassed)
	runs := kit.Must[*v1alpha1.MonitorRunList](t)(x.API().MonitorRuns("other").List(t.Context(), metav1.ListOptions{}))
	items := kit.Must[*v1alpha1.MonitorItemList](t)(x.API().MonitorItems("other").List(t.Context(), metav1.ListOptions{}))
	if len(runs.Items)+len(items.Items) != 0 {
		t.Errorf("runs %+v, items %+v", runs.Items, items.Items)
	}
}
