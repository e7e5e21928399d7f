// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/githost"
	"github.com/platform-ai/platform/test/githubapi"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/quickclock"
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
	ownName      = githubapi.Owner + "/" + githubapi.Name
	issueBranch  = "platform/issue-1"
	planLabel    = "platform:plan"
	approveLabel = "platform:approve-plan"
	theIssue     = "shop.issue-1"
	thePull      = "shop.pr-2"
)

// issued is a server with a monitor that leads issues of a repository on a GitHub to merged pull requests.
type issued struct {
	*standalone.Platform
	t     *testing.T
	git   *githost.Host
	forge *githubapi.Host
	clock *quickclock.Ahead
	// restarts is how often the server was restarted. killed is set if it is to be.
	killed   bool
	restarts int

	mu sync.Mutex
	// left are the requests to the code host that are not answered, because the server ends when the host has done what they ask for. lost
	// is how many were sent since the server was started.
	left []string
	lost int
}

func newIssued(t *testing.T, killed bool) *issued {
	t.Helper()
	x := &issued{t: t, git: githost.New(t, roles()[readRole]), forge: githubapi.New(t), clock: &quickclock.Ahead{}, killed: killed}
	x.codeHost()
	program, agent := kit.Bin(t, "platform-workspace"), kit.Bin(t, "scriptedagent")
	x.Platform, _ = standalone.WithModel(t, workflowScript, standalone.OnAPort(t), func(o *standalone.Options) {
		o.WorkspaceBinary, o.RepositoryAllow, o.AgentPrograms, o.Webhook.Secret = program, []string{x.git.Address()}, []string{"codex=" + agent}, monitorSecret
		o.MergeGate, o.Clock = true, x.clock
	})
	x.hook()
	for _, role := range []string{readRole, lookRole, pushRole, forgeRole} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: role}, StringData: map[string]string{"token": roles()[role]}}
		kit.Must[*corev1.Secret](t)(x.Kubernetes(t).CoreV1().Secrets("default").Create(t.Context(), secret, metav1.CreateOptions{}))
	}
	model := v1alpha1.AgentSpec{ProviderRef: &v1alpha1.NamespacedReference{Name: "model"}}
	for name, spec := range map[string]v1alpha1.AgentSpec{"planner": model, "reviewer": model, "coder": {Runtime: &v1alpha1.AgentCodingRuntime{Type: v1alpha1.RuntimeCodex}}} {
		kit.Must[*v1alpha1.Agent](t)(x.API().Agents("default").Create(t.Context(), &v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{}))
	}
	x.monitor()
	return x
}

// end stops the server while the code host can still answer it.
func (x *issued) end() {
	if x.t.Failed() {
		x.t.Logf("commands %s, work %s, written %s, items %+v and %+v", x.commands(), x.done(), x.written(), x.item(theIssue), x.item(thePull))
	}
	x.Stop(x.t)
}

// codeHost makes one address of the git server and of the API.
func (x *issued) codeHost() {
	x.git.LookToken, x.git.PushToken = roles()[lookRole], roles()[pushRole]
	x.forge.ReadOnly, x.forge.Token, x.forge.Server.URL = roles()[readRole], roles()[forgeRole], x.git.URL
	x.git.Create(x.t, ownName)
	x.git.Commit(x.t, ownName, "main", map[string]string{"README.md": "a shop\n"})
	x.forge.Change(func(s *githubapi.State) {
		s.Roles = map[string]string{"maintainer": "write", "stranger": "read"}
		s.Files[issueBranch] = []githubapi.File{{Filename: "door.txt", Status: "added", Additions: 1, Changes: 1, Patch: "@@ -0,0 +1 @@\n+a door"}}
		s.Diffs[issueBranch] = "diff --git a/door.txt b/door.txt\nnew file mode 100644\n--- /dev/null\n+++ b/door.txt\n@@ -0,0 +1 @@\n+a door\n"
	})
	if x.killed {
		x.left = []string{
			"POST /issues/1/comments", "DELETE /issues/1/labels/" + planLabel, "DELETE /issues/1/labels/" + approveLabel, "POST /git-receive-pack", "POST /pulls", "POST /pulls/2/reviews", "PUT /pulls/2/merge",
		}
	}
	x.git.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/api/") {
			heads := map[string]string{}
			for line := range strings.Lines(x.git.Git(x.t, ownName, "", "for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", "refs/heads")) {
				branch, sha, _ := strings.Cut(strings.TrimSpace(line), " ")
				heads[branch] = sha
			}
			x.forge.Do(func(branches map[string]string, _ *[]*githubapi.Pull) { maps.Copy(branches, heads) })
			x.forge.ServeHTTP(w, r)
		} else {
			x.git.Serve(w, r)
		}
		if x.loses(r) {
			panic(http.ErrAbortHandler)
		}
		return true
	}
}

// loses reports whether the answer to a request is lost.
func (x *issued) loses(r *http.Request) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	i := slices.IndexFunc(x.left, func(l string) bool {
		method, end, _ := strings.Cut(l, " ")
		return r.Method == method && strings.HasSuffix(r.URL.Path, end)
	})
	if i >= 0 {
		x.left = slices.Delete(x.left, i, i+1)
		x.lost++
	}
	return i >= 0
}

// hook has the code host tell the server what happens.
func (x *issued) hook() {
	x.forge.Change(func(s *githubapi.State) {
		s.Hook = githubapi.Hook{ID: 17, URL: x.URL + "/webhooks/github", Secret: monitorSecret, Client: x.Stranger(x.t).HTTP}
	})
}

func (x *issued) monitor() {
	ref := func(name string) *v1alpha1.WorkspaceCredentialReference {
		return &v1alpha1.WorkspaceCredentialReference{Name: name}
	}
	spec := v1alpha1.RepositoryMonitorSpec{
		RepoURL: x.forge.Location(), Provider: v1alpha1.CodeHostGitHub, Schedule: "0 0 1 1 *",
		ReadCredentialRef: ref(readRole), PublicationReadCredentialRef: ref(lookRole), PublicationCredentialRef: ref(pushRole), ForgeCredentialRef: ref(forgeRole),
		Targets:  v1alpha1.MonitorTargets{Issues: v1alpha1.MonitorIssues{Enabled: true}},
		Triggers: v1alpha1.MonitorTriggers{GitHub: v1alpha1.MonitorHostTriggers{Labels: v1alpha1.MonitorLabelTriggers{Enabled: true}}},
		Agents: v1alpha1.MonitorAgents{
			Planner: &v1alpha1.LocalReference{Name: "planner"}, Implementer: &v1alpha1.LocalReference{Name: "coder"}, Reviewer: &v1alpha1.LocalReference{Name: "reviewer"},
		},
		IssueWorkflow: v1alpha1.MonitorIssueWorkflow{Implementation: v1alpha1.MonitorImplementation{Enabled: true, RequireApprovedPlan: true}},
		Review:        v1alpha1.MonitorReview{Publish: v1alpha1.MonitorReviewPublish{Enabled: true, PostPassed: true}},
		Automerge:     v1alpha1.MonitorAutomerge{Enabled: true, RequireMaintainerOptIn: new(false)},
	}
	kit.Must[*v1alpha1.RepositoryMonitor](x.t)(x.API().RepositoryMonitors("default").Create(x.t.Context(), &v1alpha1.RepositoryMonitor{ObjectMeta: metav1.ObjectMeta{Name: "shop"}, Spec: spec}, metav1.CreateOptions{}))
}

// restart restarts the server. A minute passes, which is longer than what waits for a code host that gave no answer.
func (x *issued) restart() {
	x.t.Helper()
	x.mu.Lock()
	x.lost = 0
	x.mu.Unlock()
	x.Stop(x.t)
	x.clock.By.Add(int64(time.Minute))
	x.StartAgain(x.t)
	x.hook()
	x.restarts++
}

// await waits for what must happen. The server is restarted when the code host did not answer it, and when it has happened.
func (x *issued) await(what string, ok func() bool) {
	x.t.Helper()
	kit.Await(x.t, what, func() bool {
		x.mu.Lock()
		lost := x.lost > 0
		x.mu.Unlock()
		if lost {
			x.restart()
		}
		return ok()
	})
	if x.killed {
		x.restart()
	}
}

func (x *issued) item(name string) v1alpha1.MonitorItemStatus {
	i, err := x.API().MonitorItems("default").Get(x.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return v1alpha1.MonitorItemStatus{}
	}
	return i.Status
}

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
}

func (x *issued) works() []v1alpha1.MonitorWorkAction {
	return kit.Must[*v1alpha1.MonitorWorkActionList](x.t)(x.API().MonitorWorkActions("default").List(x.t.Context(), metav1.ListOptions{})).Items
}

// begun reports whether work of a kind has its task.
func (x *issued) begun(what v1alpha1.MonitorIntent) bool {
	return slices.ContainsFunc(x.works(), func(a v1alpha1.MonitorWorkAction) bool {
		return a.Spec.DesiredAction == what && a.Status.TaskName != ""
	})
}

// label has somebody set a label of the issue.
func (x *issued) label(label, sender string) {
	x.t.Helper()
	d := kit.Must[githubapi.Delivery](x.t)(x.forge.Label(x.t.Context(), 1, label, sender))
	if d.Status != http.StatusCreated {
		x.t.Fatalf("%s, by %s: %d %s", label, sender, d.Status, d.Answer)
	}
}

// look has the monitor look at the repository.
func (x *issued) look() {
	x.t.Helper()
	x.await("a run is queued", func() bool {
		return x.API().RESTClient().Post().AbsPath("/apis/core.platform.ai/v1alpha1/namespaces/default/repositorymonitors/shop/runs").SetHeader("Content-Type", "application/json").
			Body([]byte(`{"apiVersion":"core.platform.ai/v1alpha1","kind":"MonitorRunRequest"}`)).Do(x.t.Context()).Error() == nil
	})
}

// commands counts the commands by what they are and how they ended.
func (x *issued) commands() string {
	counts := map[string]int{}
	for _, c := range kit.Must[*v1alpha1.MonitorCommandList](x.t)(x.API().MonitorCommands("default").List(x.t.Context(), metav1.ListOptions{})).Items {
		counts[strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Spec.Intent, c.Status.State, c.Status.Reason))]++
	}
	return fmt.Sprint(counts)
}

// written counts what was to be written on the code host by what it is and how it ended.
func (x *issued) written() string {
	counts := map[string]int{}
	for _, m := range kit.Must[*v1alpha1.MonitorMutationList](x.t)(x.API().MonitorMutations("default").List(x.t.Context(), metav1.ListOptions{})).Items {
		counts[fmt.Sprintf("%s %s", m.Spec.Operation, m.Status.State)]++
	}
	return fmt.Sprint(counts)
}

// done counts the work by what it is and how it ended.
func (x *issued) done() string {
	counts := map[string]int{}
	for _, a := range x.works() {
		counts[strings.TrimSpace(fmt.Sprintf("%s %s %s", a.Spec.DesiredAction, a.Status.State, a.Status.Reason))]++
	}
	return fmt.Sprint(counts)
}

// merge leads the issue to a merged pull request.
func (x *issued) merge() {
	t := x.t
	x.await("the first look is over", func() bool {
		runs := kit.Must[*v1alpha1.MonitorRunList](t)(x.API().MonitorRuns("default").List(t.Context(), metav1.ListOptions{})).Items
		return len(runs) == 1 && runs[0].Status.State == v1alpha1.MonitorRunSucceeded
	})
	kit.Must[githubapi.Delivery](t)(x.forge.OpenIssue(t.Context(), "No door", "The shop has no door.", "stranger"))
	x.label(planLabel, "stranger")
	x.await("the stranger is refused", func() bool { return x.commands() == "map[plan rejected PermissionMissing:1]" })
	kit.Must[githubapi.Delivery](t)(x.forge.Unlabel(t.Context(), 1, planLabel, "maintainer"))
	x.label(planLabel, "maintainer")
	x.await("the plan is begun", func() bool { return x.begun(v1alpha1.MonitorPlan) })
	x.awaitPhase(v1alpha1.MonitorIssueApprovalRequired)
	x.await("the command is over", func() bool { return x.commands() == "map[plan completed:1 plan rejected PermissionMissing:1]" })
	if is := x.item(theIssue).Issue; is.Risk != v1alpha1.MonitorRiskHigh || !strings.HasPrefix(is.Plan, "Make a door.") || x.begun(v1alpha1.MonitorImplement) {
		t.Fatalf("%+v", is)
	}
	x.label(approveLabel, "maintainer")
	x.await("the implementation is begun", func() bool { return x.begun(v1alpha1.MonitorImplement) })
	x.awaitPhase(v1alpha1.MonitorIssuePROpened)
	if is := x.item(theIssue).Issue; is.Branch != issueBranch || is.PullRequest != 2 || is.PlanApprovedBy != "maintainer" || is.Attempts != 1 {
		t.Errorf("%+v", is)
	}
	x.await("all commands are over", func() bool { return x.commands() == allCommands })
	x.look()
	x.await("the review is begun", func() bool { return x.begun(v1alpha1.MonitorReviewIntent) })
	x.await("the pull request is merged", func() bool { return x.item(thePull).State == v1alpha1.MonitorItemMerged })
	x.forge.Change(func(s *githubapi.State) { s.Issues[0].State = "closed" }) // as GitHub does, because of "Closes #1."
	x.look()
	x.awaitPhase(v1alpha1.MonitorIssueComplete)
}

// What there is at the end.
const (
	allCommands = "map[approve_plan completed:1 plan completed:1 plan rejected PermissionMissing:1]"
	allWorks    = "map[automerge succeeded:1 implement succeeded:1 plan succeeded:1 review succeeded:1]"
	allWritten  = "map[merge succeeded:1 post_comment succeeded:1 post_review succeeded:1 remove_label succeeded:2]"
)

// check looks at what was done in all.
func (x *issued) check() {
	t := x.t
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
	head := x.git.Git(t, ownName, "", "rev-parse", issueBranch)
	if got := x.git.Git(t, ownName, "", "diff", "--name-only", "main", issueBranch); got != "door.txt" || x.git.Git(t, ownName, "", "rev-list", "--count", "main.."+issueBranch) != "1" {
		t.Errorf("changed %q", got)
	}
	pulls := x.forge.Pulls()
	if len(pulls) != 1 || pulls[0].Head.SHA != head || pulls[0].MergedAt == nil || pulls[0].Title != "No door" || !strings.HasPrefix(pulls[0].Body, "Closes #1.") {
		t.Errorf("%+v", pulls)
	}
	x.forge.Change(func(s *githubapi.State) {
		if c := s.Comments[1]; len(c) != 1 || !strings.Contains(c[0].Body, "**Plan** (risk: high)") || !strings.Contains(c[0].Body, "Make a door.") || !strings.Contains(c[0].Body, "`"+approveLabel+"`") {
			t.Errorf("%d comments: %+v", len(c), c)
		}
		if r := s.Reviews[2]; len(r) != 1 || r[0].CommitID != head {
			t.Errorf("%d reviews: %+v", len(r), r)
		}
		if len(s.Issues[0].Labels) != 0 {
			t.Errorf("labels %+v", s.Issues[0].Labels)
		}
	})
	for request, want := range map[string]int{"PUT /api/v3/repos/ada/shop/pulls/2/merge": 1, "POST /api/v3/repos/ada/shop/issues/1/comments": 1, "POST /api/v3/repos/ada/shop/pulls/2/reviews": 1} {
		n := 0
		for _, r := range x.forge.Requests() {
			if r == request {
				n++
			}
		}
		if n != want {
			t.Errorf("%s: %d times", request, n)
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
	t.Parallel()
	x := newIssued(t, false)
	defer x.end()
	x.merge()
	x.check()
}

// TestMonitorIssueKilled: so it is if the server ends after each step, and each time that the code host has done something and its answer is
// lost.
func TestMonitorIssueKilled(t *testing.T) {
	t.Parallel()
	x := newIssued(t, true)
	defer x.end()
	x.merge()
	x.check()
	if len(x.left) > 0 || x.restarts < 17 {
		t.Errorf("restarted %d times; %q were not sent", x.restarts, x.left)
	}
}
