// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/githubapi"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/quickclock"
)

// How many links there are, of how many tasks they are, and how many each repository but the first one has.
const (
	allLinks   = 10_000
	linkTasks  = 20
	fewLinks   = 45
	newID      = 1 // of pull requests of a repository that was made anew
	firstRepo  = "shop"
	batch      = 20
	batches    = 3
	soonAgain  = 16 * time.Second
	monitorKey = "evidence-token-of-the-test"
)

// evidence is a server whose monitors look after repositories that change for the worse.
type evidence struct {
	*standalone.Platform
	clock *quickclock.Ahead
	repos []*evidenced
	tasks []*v1alpha1.Task
	fault time.Time
}

// evidenced is a repository with pull requests of tasks.
type evidenced struct {
	name  string
	forge *githubapi.Host
	links int
	// first is added to numbers of pull requests for their ids, which no two repositories share.
	first int64
	// fault makes the repository one that is not to be seen; nil for one that stays. says is in the reason then, and state what becomes of
	// pull requests that were open.
	fault func(*githubapi.Host)
	says  string
	state string
	// most is how many pull requests are asked for in a batch.
	most   int
	before int // requests until the fault
	// looks are the times at which the monitor looked since the fault.
	looks map[time.Time]bool
}

// answers has a host answer every request about a repository with a status.
func answers(code int, header map[string]string, message string) func(*githubapi.Host) {
	return func(h *githubapi.Host) {
		answer := func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.URL.Path, "/repos/") {
				return false
			}
			for k, v := range header {
				w.Header().Set(k, v)
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_, _ = fmt.Fprintf(w, `{"message":%q}`, message)
			return true
		}
		h.Change(func(*githubapi.State) { h.Answer = answer })
	}
}

func newEvidence(t *testing.T) *evidence {
	t.Helper()
	soon := strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)
	e := &evidence{clock: &quickclock.Ahead{}, repos: []*evidenced{
		{name: firstRepo, most: batch},
		{name: "limited", fault: answers(403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": soon}, "API rate limit exceeded"), says: "answers no more requests", state: "open", most: 1},
		{name: "secondary", fault: answers(403, map[string]string{"Retry-After": "60"}, "You have exceeded a secondary rate limit"), says: "answers no more requests", state: "open", most: 1},
		{name: "broken", fault: answers(502, nil, "Server Error"), says: "code host", state: "open", most: batch},
		{name: "deleted", fault: answers(404, nil, "Not Found"), says: "not", state: "unknown", most: batch},
		{name: "private", fault: answers(403, nil, "Resource not accessible by personal access token"), says: "credential", state: "open", most: batch},
		{name: "moved", fault: answers(301, map[string]string{"Location": "/api/v3/repositories/4711"}, "Moved Permanently"), state: "open", most: batch},
		{name: "replaced", fault: replace, says: "another pull request", state: "unknown", most: batch},
	}}
	var allowed []string
	left := allLinks
	for _, r := range e.repos[1:] {
		r.links = fewLinks
		left -= fewLinks
	}
	e.repos[0].links = left
	for i, r := range e.repos {
		r.first = int64(i+1) * 10 * allLinks
		r.forge = githubapi.New(t)
		r.forge.Token = monitorKey
		r.forge.Rename(r.name)
		allowed = append(allowed, strings.TrimPrefix(r.forge.URL, "http://"))
		r.forge.Do(func(_ map[string]string, pulls *[]*githubapi.Pull) {
			for n := range int64(r.links) {
				*pulls = append(*pulls, pullOf(n+1, r.first))
			}
		})
	}
	e.Platform = standalone.NewPlatform(t, "exit 0", func(o *standalone.Options) { o.Clock, o.RepositoryAllow = e.clock, allowed })
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, StringData: map[string]string{"token": monitorKey}}
	kit.Must[*corev1.Secret](t)(e.Kubernetes(t).CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}))
	agent := &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: "reviewer"}, Spec: v1alpha1.AgentSpec{ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}}}
	kit.Must[*v1alpha1.Agent](t)(e.API().Agents("default").Create(t.Context(), agent, metav1.CreateOptions{})) // which has nothing to do: all pull requests go to another branch
	return e
}

// pullOf is an open pull request that could be merged.
func pullOf(n, id int64) *githubapi.Pull {
	now := time.Now().UTC()
	return &githubapi.Pull{
		ID: id + n, Number: n, State: "open", Title: "Change", User: githubapi.Account("ada"), Mergeable: new(true), MergeState: "clean", CreatedAt: now, UpdatedAt: now,
		Head: githubapi.End{Ref: fmt.Sprint("work-", n), SHA: githubapi.Commit(fmt.Sprint("w", n)), Repo: githubapi.Repo{ID: 4711}}, Base: githubapi.End{Ref: "main", SHA: githubapi.Commit("main"), Repo: githubapi.Repo{ID: 4711}},
	}
}

// replace puts another repository in the place of one. Its pull requests have the same numbers, and are merged.
func replace(h *githubapi.Host) {
	h.Replace()
	h.Do(func(_ map[string]string, pulls *[]*githubapi.Pull) {
		for n := range int64(fewLinks) {
			p := pullOf(n+1, newID)
			now := time.Now().UTC()
			p.State, p.MergedAt, p.ClosedAt, p.MergeCommitSHA = "closed", &now, &now, new(githubapi.Commit("merged"))
			*pulls = append(*pulls, p)
		}
	})
}

// monitors makes a monitor for each repository, and waits until it has looked at it.
func (e *evidence) monitors() {
	e.T.Helper()
	for _, r := range e.repos {
		m := &v1alpha1.RepositoryMonitor{ObjectMeta: metav1.ObjectMeta{Name: r.name}, Spec: v1alpha1.RepositoryMonitorSpec{
			RepoURL: r.forge.URL + "/" + githubapi.Owner + "/" + r.name, Provider: v1alpha1.CodeHostGitHub, Branch: "none", Schedule: "0 0 1 1 *",
			ReadCredentialRef: &v1alpha1.WorkspaceCredentialReference{Name: "reader"}, Agents: v1alpha1.MonitorAgents{Reviewer: &v1alpha1.LocalReference{Name: "reviewer"}},
		}}
		kit.Must[*v1alpha1.RepositoryMonitor](e.T)(e.API().RepositoryMonitors("default").Create(e.T.Context(), m, metav1.CreateOptions{}))
	}
	for _, r := range e.repos {
		kit.Await(e.T, "the monitor of "+r.name, func() bool {
			m := e.monitor(r.name)
			return m.Status.Phase == v1alpha1.MonitorReady && m.Status.LastEvidenceTime != nil && m.Status.LastSuccessfulRunTime != nil
		})
	}
}

func (e *evidence) monitor(name string) *v1alpha1.RepositoryMonitor {
	e.T.Helper()
	return kit.Must[*v1alpha1.RepositoryMonitor](e.T)(e.API().RepositoryMonitors("default").Get(e.T.Context(), name, metav1.GetOptions{}))
}

// record makes the tasks and their links.
func (e *evidence) record() {
	e.T.Helper()
	for i := range linkTasks {
		t := &v1alpha1.Task{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("task-", i), Annotations: map[string]string{
				v1alpha1.AnnotationGitHubRepository: "ada/issues", v1alpha1.AnnotationMonitorItemKind: "issue", v1alpha1.AnnotationMonitorItemNumber: fmt.Sprint(i + 1),
			}},
			Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}},
		}
		e.tasks = append(e.tasks, kit.Must[*v1alpha1.Task](e.T)(e.Tasks().Create(e.T.Context(), t, metav1.CreateOptions{})))
	}
	for _, t := range e.tasks {
		e.AwaitPhase(t.Name, v1alpha1.TaskSucceeded)
	}
	work := make(chan v1alpha1.UsageLinkSpec)
	var writers sync.WaitGroup
	for range 16 {
		writers.Go(func() {
			for l := range work {
				if _, err := e.API().UsageLinks("default").Create(e.T.Context(), &v1alpha1.UsageLink{Spec: l}, metav1.CreateOptions{}); err != nil {
					e.T.Error(err)
				}
			}
		})
	}
	for _, asked := range []bool{true, false} { // those that were observed the longest time ago are looked at first
		for _, r := range e.repos {
			for n := range int64(r.links) {
				if n < fewLinks == asked {
					work <- e.link(r, n)
				}
			}
		}
	}
	close(work)
	writers.Wait()
}

// link is a pull request that is ready or, the last one of a repository, merged.
func (e *evidence) link(r *evidenced, n int64) v1alpha1.UsageLinkSpec {
	l := v1alpha1.UsageLinkSpec{
		TaskUID: e.tasks[n%linkTasks].UID, Repository: githubapi.Owner + "/" + r.name, Number: n + 1, GitHubID: r.first + n + 1, URL: fmt.Sprintf("https://git.example/%s/%d", r.name, n+1),
		Origin: v1alpha1.UsageLinkCreated, EvidenceID: fmt.Sprintf("pub-%s-%d", r.name, n), State: v1alpha1.UsageLinkOpen, Ready: true,
	}
	if n == int64(r.links)-1 {
		l.State, l.Ready, l.MergedAt = v1alpha1.UsageLinkMerged, false, &metav1.Time{Time: e.clock.Now()}
	}
	return l
}

// pages returns the pages of the report as of a time, and what it says in detail of some requests.
func (e *evidence) pages(viewer *standalone.Client, asOf string) string {
	e.T.Helper()
	var b strings.Builder
	var ids []string
	for offset := 0; offset < linkTasks; offset += 10 {
		body := viewer.Get(fmt.Sprintf("/api/v1/usage?limit=10&offset=%d&asOf=%s", offset, asOf)).Want(e.T, 200).Body
		var page struct{ Works []struct{ ID string } }
		if err := json.Unmarshal([]byte(body), &page); err != nil {
			e.T.Fatal(err)
		}
		b.WriteString(body)
		ids = append(ids, page.Works[0].ID)
	}
	for _, id := range ids {
		b.WriteString(viewer.Get("/api/v1/usage/work/"+id+"?asOf="+asOf).Want(e.T, 200).Body)
	}
	return b.String()
}

// report returns the summary as of now, and all pull requests by repository.
func (e *evidence) report() (*v1alpha1.UsageSummaryOf, map[string][]v1alpha1.UsagePullRequest) {
	e.T.Helper()
	ask := func(spec v1alpha1.UsageReportSpec) *v1alpha1.UsageReportStatus {
		u := kit.Must[*v1alpha1.UsageReport](e.T)(e.API().UsageReports("default").Create(e.T.Context(), &v1alpha1.UsageReport{Spec: spec}, metav1.CreateOptions{}))
		return &u.Status
	}
	whole := ask(v1alpha1.UsageReportSpec{Limit: new(int32(linkTasks))})
	pulls := map[string][]v1alpha1.UsagePullRequest{}
	for _, w := range whole.Works {
		for _, p := range ask(v1alpha1.UsageReportSpec{Mode: v1alpha1.UsageOfWork, WorkID: w.ID, AsOf: whole.Selection.AsOf}).Work.PullRequests {
			name := strings.TrimPrefix(p.Repository, githubapi.Owner+"/")
			pulls[name] = append(pulls[name], p)
		}
	}
	return whole.Summary, pulls
}

// look has each monitor look at its next batch.
func (e *evidence) look(n int) {
	e.T.Helper()
	e.clock.By.Add(int64(soonAgain))
	for _, r := range e.repos {
		last := e.monitor(r.name).Status.LastEvidenceTime
		poke := fmt.Appendf(nil, `{"metadata":{"annotations":{"look":"%d"}}}`, n)
		kit.Must[*v1alpha1.RepositoryMonitor](e.T)(e.API().RepositoryMonitors("default").Patch(e.T.Context(), r.name, types.MergePatchType, poke, metav1.PatchOptions{}))
		kit.Await(e.T, "a batch of "+r.name, func() bool { return last.Before(e.monitor(r.name).Status.LastEvidenceTime) })
	}
}

// count notes when monitors look from now on, until all are suspended. The function that it returns waits for that.
func (e *evidence) count() (wait func()) {
	e.T.Helper()
	now := kit.Must[*v1alpha1.RepositoryMonitorList](e.T)(e.API().RepositoryMonitors("default").List(e.T.Context(), metav1.ListOptions{}))
	w := kit.Must[watch.Interface](e.T)(e.API().RepositoryMonitors("default").Watch(e.T.Context(), metav1.ListOptions{ResourceVersion: now.ResourceVersion}))
	looks, suspended := map[string]map[time.Time]bool{}, map[string]bool{}
	var reader sync.WaitGroup
	reader.Go(func() {
		defer w.Stop()
		for change := range w.ResultChan() {
			m, ok := change.Object.(*v1alpha1.RepositoryMonitor)
			if !ok {
				e.T.Errorf("watch: %+v", change)
				return
			}
			if looks[m.Name] == nil {
				looks[m.Name] = map[time.Time]bool{}
			}
			if last := m.Status.LastEvidenceTime; last != nil {
				looks[m.Name][last.Time] = true
			}
			if m.Status.Phase == v1alpha1.MonitorSuspended {
				if suspended[m.Name] = true; len(suspended) == len(e.repos) {
					return
				}
			}
		}
		e.T.Error("the watch of the monitors ended")
	})
	return func() {
		reader.Wait()
		for _, r := range e.repos {
			r.looks = looks[r.name]
		}
	}
}

// suspend has the monitors look at nothing any more.
func (e *evidence) suspend() {
	e.T.Helper()
	for _, r := range e.repos {
		kit.Must[*v1alpha1.RepositoryMonitor](e.T)(e.API().RepositoryMonitors("default").Patch(e.T.Context(), r.name, types.MergePatchType, []byte(`{"spec":{"suspend":true}}`), metav1.PatchOptions{}))
		kit.Await(e.T, r.name+" is suspended", func() bool { return e.monitor(r.name).Status.Phase == v1alpha1.MonitorSuspended })
	}
}

// TestUsageEvidence: of many pull requests, those that a code host does not show any more, for whatever reason, are not ready any more, and
// none becomes merged by that. What was merged stays merged, and who pages through a report as of one time sees nothing of all this.
func TestUsageEvidence(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	e := newEvidence(t)
	defer e.Stop(t) // while the code hosts still answer
	e.monitors()
	e.record()
	viewer := e.REST(t, "default", "viewer", "platform-viewer")
	asOf := e.clock.Now().UTC().Format(time.RFC3339Nano)
	before := e.pages(viewer, asOf)
	merged := int64(len(e.repos))
	summary, _ := e.report()
	if *summary.PRsOpened != allLinks || *summary.PRsReady != allLinks-merged || *summary.PRsMerged != merged {
		t.Fatalf("%d opened, %d ready, %d merged", *summary.PRsOpened, *summary.PRsReady, *summary.PRsMerged)
	}

	for _, r := range e.repos {
		if r.fault != nil {
			r.fault(r.forge)
		}
		r.before = len(r.forge.Requests())
	}
	counted := e.count()
	e.clock.By.Add(int64(5 * time.Minute)) // all are to be looked at again
	e.fault = e.clock.Now()
	for n := range batches {
		var reader sync.WaitGroup
		reader.Go(func() {
			if e.pages(viewer, asOf) != before {
				t.Error("the pages changed while pull requests were looked at")
			}
		})
		e.look(n)
		reader.Wait()
	}
	e.suspend()
	counted()
	if e.pages(viewer, asOf) != before {
		t.Error("afterwards the pages are others")
	}
	e.check(merged)
}

// check compares the report with what the code hosts have shown.
func (e *evidence) check(merged int64) {
	t := e.T
	t.Helper()
	summary, pulls := e.report()
	if *summary.PRsOpened != allLinks || *summary.PRsMerged != merged || *summary.PRsClosed != 0 || *summary.PRsAssisted != 0 {
		t.Errorf("%d opened, %d merged, %d closed, %d assisted", *summary.PRsOpened, *summary.PRsMerged, *summary.PRsClosed, *summary.PRsAssisted)
	}
	looked := 0
	for _, r := range e.repos {
		ready, final, cleared := 0, 0, 0
		for _, p := range pulls[r.name] {
			switch at := kit.Must[time.Time](t)(time.Parse(time.RFC3339Nano, *p.ObservedAt)); {
			case p.State == "merged":
				final++
				if p.Ready || p.MergedAt == nil || p.Number != int64(r.links) {
					t.Errorf("%s: %+v", r.name, p)
				}
			case at.Before(e.fault):
			case p.Ready:
				ready++
			default:
				cleared++
				if p.State != r.state || !strings.Contains(p.ReadinessReason, r.says) || p.ReadinessReason == "" || p.MergedAt != nil {
					t.Errorf("%s: %+v", r.name, p)
				}
			}
		}
		requests, pullRequests := 0, map[string]bool{} // a monitor may ask for one again
		for _, request := range r.forge.Requests()[r.before:] {
			if strings.Contains(request, "/pulls/") {
				requests++
				pullRequests[request] = true
			}
		}
		asked := len(pullRequests)
		seen, unseen := asked, 0
		if r.fault != nil {
			seen, unseen = 0, min(asked, r.links-1)
		}
		looked += seen
		if final != 1 || cleared != unseen || ready != seen {
			t.Errorf("%s: %d merged, %d seen to be ready, want %d, %d not any more, want %d", r.name, final, ready, seen, cleared, unseen)
		}
		if least := min(r.most*batches, r.links-1); asked < least {
			t.Errorf("%s was asked for %d pull requests, want %d", r.name, asked, least)
		}
		// A monitor may look by itself, too, as often as time allows, and again where the test has changed it meanwhile. It does not ask on
		// where it is told to ask less.
		if r.most == 1 && requests > len(r.looks)+batches {
			t.Errorf("%s was asked %d times when it was looked at %d times", r.name, requests, len(r.looks))
		}
	}
	// Ten minutes after the first observations, what was not looked at since is not ready either.
	e.clock.By.Add(int64(5*time.Minute + time.Second))
	summary, _ = e.report()
	if want := int64(looked); *summary.PRsReady != want || *summary.PRsMerged != merged {
		t.Errorf("later %d are ready, want %d; %d merged", *summary.PRsReady, want, *summary.PRsMerged)
	}
}
