// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package github_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/test/githubapi"
	"github.com/platform-ai/platform/test/kit"
)

// pull makes a pull request from a branch of its own.
func pull(t *testing.T, h *githubapi.Host, branch string) codehost.PullRequest {
	t.Helper()
	h.Do(func(branches map[string]string, _ *[]*githubapi.Pull) { branches[branch] = githubapi.Commit(branch) })
	return kit.Must[codehost.PullRequest](t)(open(t, h, h.Token, 0).CreatePullRequest(t.Context(), codehost.NewPullRequest{Title: branch, Base: "main", Head: branch}))
}

// TestMergeable: GitHub may not know yet, and names the commit of a trial before the merge.
func TestMergeable(t *testing.T) {
	h := githubapi.New(t)
	n := pull(t, h, "work").Number
	for _, c := range []struct {
		says *bool
		want codehost.Mergeable
	}{{nil, ""}, {new(true), codehost.Clean}, {new(false), codehost.Conflicting}} {
		h.Do(func(_ map[string]string, all *[]*githubapi.Pull) { (*all)[0].Mergeable = c.says })
		if p, err := open(t, h, h.ReadOnly, 0).PullRequest(t.Context(), n); err != nil || p.Mergeable != c.want || p.MergeSHA != "" {
			t.Errorf("%+v %v", p, err)
		}
	}
	some := kit.Must[codehost.Listed[codehost.PullRequest]](t)(open(t, h, h.ReadOnly, 0).OpenPullRequests(t.Context(), codehost.Page{Number: 1, Size: 1}))
	if len(some.Items) != 1 || some.Items[0].Mergeable != "" {
		t.Errorf("%+v", some)
	}
}

// TestMergeRefusals: each status of GitHub's is an error of its own.
func TestMergeRefusals(t *testing.T) {
	h := githubapi.New(t)
	p := pull(t, h, "work")
	g := open(t, h, h.Token, 0)
	h.Change(func(s *githubapi.State) { s.Methods = []string{"squash"} })
	for _, c := range []struct {
		m    codehost.Merge
		want error
	}{
		{codehost.Merge{SHA: p.HeadSHA, Method: codehost.Rebase}, codehost.ErrNotMergeable},
		{codehost.Merge{SHA: p.HeadSHA, Method: "fast"}, codehost.ErrRefused},
		{codehost.Merge{SHA: githubapi.Commit("old"), Method: codehost.Squash}, codehost.ErrMoved},
		{codehost.Merge{SHA: "main", Method: codehost.Squash}, codehost.ErrMoved},
		{codehost.Merge{SHA: p.HeadSHA, Method: codehost.Squash}, nil},
	} {
		if _, err := g.Merge(t.Context(), p.Number, c.m); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.m, err, c.want)
		}
	}
}

// TestPending: a review that was not submitted is not one yet.
func TestPending(t *testing.T) {
	h := githubapi.New(t)
	p := pull(t, h, "work")
	h.Change(func(s *githubapi.State) {
		s.Reviews[p.Number] = []*githubapi.Review{{ID: 1, User: githubapi.Account(s.Viewer), State: "PENDING", CommitID: p.HeadSHA}, {ID: 2, State: "COMMENTED", HTMLURL: "javascript:alert(1)"}}
	})
	all := kit.Must[[]codehost.Review](t)(open(t, h, h.Token, 0).PullRequestReviews(t.Context(), p.Number))
	if len(all) != 1 || all[0] != (codehost.Review{ID: 2, State: codehost.Commented}) {
		t.Errorf("%+v", all)
	}
}

// TestLargeDiff: a diff is cut, and one that GitHub does not make is made of the files.
func TestLargeDiff(t *testing.T) {
	h := githubapi.New(t)
	p := pull(t, h, "work")
	g := open(t, h, h.ReadOnly, 0)
	diff := func() (string, bool) {
		t.Helper()
		c, err := g.Change(t.Context(), p.Number)
		if err != nil {
			t.Fatal(err)
		}
		return c.Diff, c.MoreDiff
	}
	line := "+" + strings.Repeat("\xff", 1022) + "\n"
	h.Change(func(s *githubapi.State) { s.Diffs["work"] = strings.Repeat(line, 10_000) })
	if got, more := diff(); !more || len(got) > codehost.MaxDiff || strings.Count(got, "\n") != codehost.MaxDiff/len(line) || !strings.HasSuffix(got, "+\uFFFD\n") {
		t.Errorf("%d bytes, %t", len(got), more)
	}
	h.Change(func(s *githubapi.State) {
		s.Diffs["work"] = strings.Repeat("+\n", 20_001)
		s.Files["work"] = []githubapi.File{
			{Filename: "a", Status: "added", Additions: 1, Patch: "@@ -0,0 +1 @@\n+x"},
			{Filename: "b\n", Status: "removed", Patch: "@@ -1 +0,0 @@\n-x"},
			{Filename: "d", PreviousFilename: "c", Status: "renamed"},
			{Filename: "e", Status: "modified"},
		}
	})
	want := strings.Join([]string{
		"diff --git a/a b/a", "--- /dev/null", "+++ b/a", "@@ -0,0 +1 @@", "+x", `diff --git a/b\012 b/b\012`, `--- a/b\012`, "+++ /dev/null", "@@ -1 +0,0 @@", "-x",
		"diff --git a/c b/d", "rename from c", "rename to d", "diff --git a/e b/e", "",
	}, "\n")
	want = strings.ReplaceAll(strings.ReplaceAll(want, `a/b\012`, `"a/b\012"`), ` b/b\012`, ` "b/b\012"`)
	if got, more := diff(); !more || got != want {
		t.Errorf("%t\n%s\nwant\n%s", more, got, want)
	}
	h.Change(func(s *githubapi.State) {
		s.Files["work"] = nil
		for i := range 10 {
			s.Files["work"] = append(s.Files["work"], githubapi.File{Filename: fmt.Sprint(i), Status: "added", Patch: "@@ -0,0 +1 @@\n" + strings.Repeat(strings.Repeat("+", 1023)+"\n", 1000)})
		}
	})
	if got, more := diff(); !more || len(got) > codehost.MaxDiff || len(got) < codehost.MaxDiff-1024 || !strings.HasSuffix(got, "+\n") {
		t.Errorf("%d bytes, %t", len(got), more)
	}
	files, more, err := g.Files(t.Context(), p.Number)
	if err != nil || more || len(files) != 10 || files[3].Patch == "" || files[4].Patch != "" {
		t.Errorf("%d files, %t %v", len(files), more, err)
	}
}

// TestManyFiles: GitHub lists 3000 files at most, and says of how many it knows.
func TestManyFiles(t *testing.T) {
	h := githubapi.New(t)
	p := pull(t, h, "work")
	for _, c := range []struct {
		files, changed int
		more           bool
	}{{250, 250, false}, {codehost.MaxFiles, codehost.MaxFiles, false}, {codehost.MaxFiles, codehost.MaxFiles + 1, true}, {codehost.MaxFiles + 1, codehost.MaxFiles + 1, true}} {
		h.Change(func(s *githubapi.State) {
			s.Files["work"] = nil
			for i := range c.files {
				s.Files["work"] = append(s.Files["work"], githubapi.File{Filename: fmt.Sprint("f/", i), Status: []string{"copied", "changed", "unchanged", "odd"}[i%4]})
			}
			s.Changed = c.changed
		})
		files, more, err := open(t, h, h.ReadOnly, 0).Files(t.Context(), p.Number)
		if err != nil || more != c.more || len(files) != min(c.files, codehost.MaxFiles) || files[0].Status != "added" || files[1].Status != "changed" || files[3].Status != "changed" {
			t.Errorf("%+v: %d files, %t %v", c, len(files), more, err)
		}
	}
}

// TestIssuePages: the pull requests among the issues are left out, and may leave nothing of a page.
func TestIssuePages(t *testing.T) {
	h := githubapi.New(t)
	h.Report("rita", "first", "")
	for i := range 4 {
		pull(t, h, fmt.Sprint("work-", i))
	}
	h.Report("rita", "last", "")
	var got []int
	for page := 1; ; page++ {
		some := kit.Must[codehost.Listed[codehost.Issue]](t)(open(t, h, h.ReadOnly, 0).OpenIssues(t.Context(), false, codehost.Page{Number: page, Size: 2}))
		if got = append(got, len(some.Items)); !some.More {
			break
		}
	}
	if !slices.Equal(got, []int{1, 0, 1}) {
		t.Errorf("%d", got)
	}
}

// TestHostileAnswers: whatever a server answers to a request is an error of codehost without its words, or is checked.
func TestHostileAnswers(t *testing.T) {
	const words = "words of the host"
	sha := githubapi.Commit("work")
	list := func(items string) string { return "[" + items + "]" }
	pulls := `{"number":1,"state":"open","head":{"ref":"work","sha":"` + sha + `"},"base":{"ref":"main"},"mergeable":%s}`
	ctx := t.Context()
	requests := map[string]func(codehost.Host) error{
		"open":    func(h codehost.Host) error { return last(h.OpenPullRequests(ctx, codehost.Page{Number: 1, Size: 9})) },
		"one":     func(h codehost.Host) error { return last(h.PullRequest(ctx, 1)) },
		"files":   func(h codehost.Host) error { _, _, err := h.Files(ctx, 1); return err },
		"reviews": func(h codehost.Host) error { return last(h.PullRequestReviews(ctx, 1)) },
		"review": func(h codehost.Host) error {
			return last(h.Review(ctx, 1, codehost.NewReview{Event: codehost.Approve, SHA: sha}))
		},
		"merge": func(h codehost.Host) error {
			return last(h.Merge(ctx, 1, codehost.Merge{SHA: sha, Method: codehost.Squash}))
		},
		"viewer":   func(h codehost.Host) error { return last(h.Viewer(ctx)) },
		"checks":   func(h codehost.Host) error { return last(h.CommitChecks(ctx, sha)) },
		"required": func(h codehost.Host) error { return last(h.RequiredChecks(ctx, "main")) },
		"issues":   func(h codehost.Host) error { return last(h.OpenIssues(ctx, true, codehost.Page{Number: 1, Size: 9})) },
		"issue":    func(h codehost.Host) error { return last(h.Issue(ctx, 1)) },
		"comments": func(h codehost.Host) error { return last(h.IssueComments(ctx, 1)) },
		"comment":  func(h codehost.Host) error { return last(h.CommentOnIssue(ctx, 1, "text")) },

		"permission": func(h codehost.Host) error { return last(h.Permission(ctx, "rita")) },
		"readiness":  func(h codehost.Host) error { return last(h.Readiness(ctx, 1)) },
		"labeling":   func(h codehost.Host) error { return last(h.Labeling(ctx, 1, "bug")) },
		"update":     func(h codehost.Host) error { return h.UpdateBranch(ctx, 1, sha) },
		"unlabel":    func(h codehost.Host) error { return h.RemoveLabel(ctx, 1, "bug") },
	}
	// Of these the status alone says that it was done.
	bodiless := []string{"update", "unlabel"}
	// These ask once more what it was that is not there.
	twice := []string{"permission", "unlabel"}
	everything := []string{words, `"` + words + `"`, `{"id":"` + words + `","number":-1,"statuses":"` + words + `","protection":"` + words + `"}`, `[[]]`, `{"number":1e99,"merged":1,"login":5,"check_runs":{},"protection":[],"statuses":5}`, `7`}
	hostile := map[string][]string{
		"open":     {list(`null`), list(`{}`), list(fmt.Sprintf(pulls, `"`+words+`"`)), list(strings.Replace(fmt.Sprintf(pulls, "null"), `"number":1`, `"number":-1`, 1))},
		"one":      {`null`, `{}`, strings.Replace(fmt.Sprintf(pulls, "true"), sha, words, 1), strings.Replace(fmt.Sprintf(pulls, "true"), `"open"`, `"closed","merged":true,"merge_commit_sha":"`+words+`"`, 1)},
		"files":    {list(`null`), list(`{"filename":""}`), list(`{"filename":"a","additions":-1}`), list(`{"filename":["` + words + `"]}`)},
		"reviews":  {list(`null`), list(`{"id":-1,"state":"APPROVED"}`), list(`{"id":1,"state":"` + words + `"}`), list(`{"id":1,"state":"APPROVED","commit_id":"` + words + `"}`)},
		"review":   {`null`, `{}`, `{"id":1}`, `{"id":1,"state":"PENDING"}`},
		"merge":    {`null`, `{}`, `{"merged":false}`, `{"merged":true}`, `{"merged":true,"sha":"` + words + `"}`},
		"viewer":   {`null`, `{}`, `{"login":""}`, `{"login":"a\nb"}`},
		"checks":   {`null`, `{"statuses":[null]}`, `{"statuses":[{"state":"success"}]}`, `{"check_runs":[null]}`, `{"check_runs":[{"id":1}]}`},
		"required": {`null`, `{}`, `{"name":"other"}`, `{"name":"main","protection":{"enabled":true,"required_status_checks":{"contexts":[""]}}}`},
		"issues":   {list(`null`), list(`{}`), list(`{"number":0,"state":"open"}`), list(`{"number":1,"state":"` + words + `"}`), list(`{"number":1,"state":"open","comments":-1}`)},
		"issue":    {`null`, `{}`, `{"number":-1,"state":"open"}`, `{"number":2,"state":"open"}`, `{"number":1,"state":"open","labels":"` + words + `"}`},
		"comments": {list(`null`), list(`{"id":-1}`), list(`{"id":1,"body":["` + words + `"]}`)},
		"comment":  {`null`, `{}`, `{"id":-1,"body":"` + words + `"}`},

		"permission": {`null`, `{}`, `{"permission":"owner"}`, `{"permission":"` + words + `","role_name":"admin"}`, `{"permission":["admin"]}`, `{"permission":"admin","user":{"login":"ada"}}`},
		"labeling":   {list(`null`), list(`{"event":"labeled","label":{"name":"bug"},"actor":{"login":"ada"}}`), list(`{"event":["labeled"]}`), list(`{"label":"` + words + `"}`)},
		"readiness":  {`null`, `{}`, fmt.Sprintf(pulls, `"true"`), strings.Replace(fmt.Sprintf(pulls, `true,"mergeable_state":"clean"`), `"number":1`, `"number":2`, 1), fmt.Sprintf(pulls, `true,"mergeable_state":["clean"]`)},
	}
	hostile["one"] = append(hostile["one"], hostile["readiness"]...)
	for name, request := range requests {
		t.Run(name, func(t *testing.T) {
			for _, body := range append(slices.Clone(everything), hostile[name]...) {
				if slices.Contains(bodiless, name) {
					break
				}
				h := githubapi.New(t)
				h.Answer = func(w http.ResponseWriter, _ *http.Request) bool { _, _ = w.Write([]byte(body)); return true }
				if err := request(open(t, h, h.Token, 0)); !errors.Is(err, codehost.ErrUnavailable) || strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "127.0.0.1") {
					t.Errorf("%s: %v", body, err)
				}
			}
			for status, want := range map[int]error{
				401: codehost.ErrCredential, 404: codehost.ErrNotFound, 410: codehost.ErrNotFound, 429: codehost.ErrRateLimited, 301: codehost.ErrRedirect, 302: codehost.ErrRedirect,
				307: codehost.ErrRedirect, 500: codehost.ErrUnavailable,
			} {
				h := githubapi.New(t)
				h.Answer = func(w http.ResponseWriter, _ *http.Request) bool {
					w.Header().Set("Location", "/api/v3/meta")
					w.WriteHeader(status)
					fmt.Fprintf(w, `{"message":%q}`, words)
					return true
				}
				err := request(open(t, h, h.Token, 0))
				if name == "required" && status == 401 {
					continue // the driver says that it does not know
				}
				asked := 1
				if errors.Is(want, codehost.ErrNotFound) && slices.Contains(twice, name) {
					asked = 2
				}
				if !errors.Is(err, want) || strings.Contains(err.Error(), words) || len(h.Requests()) != asked {
					t.Errorf("status %d: %v after %q", status, err, h.Requests())
				}
			}
		})
	}
}

// TestEndlessLists: a server that always names another page is given up, and one whose texts are endless, too.
func TestEndlessLists(t *testing.T) {
	for name, body := range map[string]string{"nothing": `[]`, "comments": `[{"id":1,"body":"` + strings.Repeat("x", 1<<20) + `"}]`} {
		t.Run(name, func(t *testing.T) {
			h := githubapi.New(t)
			h.Answer = func(w http.ResponseWriter, r *http.Request) bool {
				w.Header().Set("Link", fmt.Sprintf(`<%s%s?page=2>; rel="next"`, h.URL, r.URL.Path))
				_, _ = w.Write([]byte(body))
				return true
			}
			if _, err := open(t, h, h.Token, 0).IssueComments(t.Context(), 1); !errors.Is(err, codehost.ErrUnavailable) || len(h.Requests()) > 400 {
				t.Errorf("%v after %d requests", err, len(h.Requests()))
			}
		})
	}
}

func last[T any](_ T, err error) error { return err }
