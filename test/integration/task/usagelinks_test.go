// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/githubapi"
	"github.com/platform-ai/platform/test/kit"
)

// waitingScript: an agent waits until it may end.
const waitingScript = `
models: [scripted-1]
turns:
- match: {turn: 1, lastRole: user}
  reply: {toolCalls: [{name: code_exec, arguments: {language: bash, code: "while [ ! -e stop ]; do sleep 0.05; done"}}]}
- match: {turn: 2, lastRole: tool}
  reply: {text: done}
`

// pullsOf returns how the pull requests of the issue of a task came to be linked with it, and their states.
func (r *reviewed) pullsOf(issue int) string {
	r.T.Helper()
	u := kit.Must[*v1alpha1.UsageReport](r.T)(r.API().UsageReports("default").Create(r.T.Context(), &v1alpha1.UsageReport{}, metav1.CreateOptions{}))
	for _, w := range u.Status.Works {
		if w.Number != int64(issue) {
			continue
		}
		of := kit.Must[*v1alpha1.UsageReport](r.T)(r.API().UsageReports("default").Create(r.T.Context(), &v1alpha1.UsageReport{Spec: v1alpha1.UsageReportSpec{Mode: v1alpha1.UsageOfWork, WorkID: w.ID}}, metav1.CreateOptions{}))
		said := fmt.Sprintf("%s opened, %s merged, %s assisted", count(w.Summary.PRsOpened), count(w.Summary.PRsMerged), count(w.Summary.PRsAssisted))
		for _, p := range of.Status.Work.PullRequests {
			evidence, _, _ := strings.Cut(p.EvidenceID, "-")
			said += fmt.Sprintf("; %d %s %s by a %s", p.Number, p.Origin, p.State, evidence)
		}
		return said
	}
	return "no such request"
}

func count(n *int64) string {
	if n == nil {
		return "unknown"
	}
	return fmt.Sprint(*n)
}

// TestUsageOfTools: a task that reviews a pull request is linked with it as a reviewer, and one that comments on it or merges it as who assisted,
// once each, also if the answer of the code host was lost. A comment on an issue is about no pull request.
func TestUsageOfTools(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	r := newReviewed(t, func(string) string { return waitingScript })
	defer r.Stop(t)
	r.forge.Do(func(_ map[string]string, pulls *[]*githubapi.Pull) {
		(*pulls)[0].HTMLURL = r.forge.Location() + "/pull/1"
	})
	for i, name := range []string{"reviewer", "helper"} {
		r.review(name, nil)
		about := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"ada/issues",%q:"issue",%q:"%d"}}}`, v1alpha1.AnnotationGitHubRepository, v1alpha1.AnnotationMonitorItemKind, v1alpha1.AnnotationMonitorItemNumber, i+1)
		kit.Must[*v1alpha1.Task](t)(r.Tasks().Patch(t.Context(), name, types.MergePatchType, about, metav1.PatchOptions{}))
	}
	for _, name := range []string{"reviewer", "helper"} {
		kit.Await(t, name+" waits", func() bool { return len(r.EventsOf(name, v1alpha1.EventToolCallStarted)) == 1 })
	}
	made := func(task, id, tool, arguments string) {
		t.Helper()
		if got, err := r.call(task, id, tool, arguments); err != nil || got.Failure != nil || got.Result == nil {
			t.Fatalf("%s of %s: %+v %v", tool, task, got.Failure, err)
		}
	}
	expect := func(issue int, want string) {
		t.Helper()
		if got := r.pullsOf(issue); got != want {
			t.Errorf("issue %d: %s, want %s", issue, got, want)
		}
	}
	expect(1, "unknown opened, unknown merged, unknown assisted")
	if got, err := r.call("reviewer", "refused", "post_review_comment", `{"pr_number":9,"event":"COMMENT","body":"Where?"}`); err != nil || got.Failure == nil {
		t.Fatalf("a review of what is not there: %+v %v", got, err)
	}
	made("reviewer", "issue", "comment_on_issue", `{"issue_number":2,"body":"I look."}`)
	expect(1, "unknown opened, unknown merged, unknown assisted")
	for _, id := range []string{"once", "once", "again"} {
		made("reviewer", id, "post_review_comment", `{"pr_number":1,"event":"COMMENT","body":"Good."}`)
		expect(1, "0 opened, 0 merged, 0 assisted; 1 review_only open by a review")
	}
	lost := func(req *http.Request) {
		if req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/comments") {
			r.after.Store(nil)
			panic(http.ErrAbortHandler)
		}
	}
	r.after.Store(&lost)
	made("reviewer", "comment", "comment_on_issue", `{"issue_number":1,"body":"And a door."}`)
	made("reviewer", "comment", "comment_on_issue", `{"issue_number":1,"body":"And a door."}`)
	expect(1, "0 opened, 0 merged, 1 assisted; 1 assisted open by a comment")
	made("reviewer", "third", "post_review_comment", `{"pr_number":1,"event":"COMMENT","body":"Better."}`)
	expect(1, "0 opened, 0 merged, 1 assisted; 1 assisted open by a comment")
	expect(2, "unknown opened, unknown merged, unknown assisted")

	r.forge.Do(func(branches map[string]string, pulls *[]*githubapi.Pull) {
		(*pulls)[0].Mergeable, (*pulls)[0].Base.SHA = new(true), branches["main"]
	})
	made("helper", "merge", "merge_pull_request", `{"task_name":"helper","pr_number":1}`)
	made("helper", "merge", "merge_pull_request", `{"task_name":"helper","pr_number":1}`) // the worker did not get the answer
	expect(2, "0 opened, 0 merged, 1 assisted; 1 assisted merged by a merge")
	made("reviewer", "late", "merge_pull_request", `{"task_name":"reviewer","pr_number":1}`) // somebody else has merged it
	expect(1, "0 opened, 0 merged, 1 assisted; 1 assisted open by a comment")

	for _, dir := range kit.Must[[]string](t)(filepath.Glob(filepath.Join(r.DataDir, "runs", "*", "*", "work"))) {
		if err := os.WriteFile(filepath.Join(dir, "stop"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.AwaitPhase("reviewer", v1alpha1.TaskSucceeded)
	r.AwaitPhase("helper", v1alpha1.TaskSucceeded)
}
