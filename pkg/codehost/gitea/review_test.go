// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gitea_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/gitea"
	"github.com/platform-ai/platform/test/forge"
	"github.com/platform-ai/platform/test/kit"
)

// server serves answers by their path below the repository; others are not found.
func server(t *testing.T, answers map[string]http.HandlerFunc) (h *gitea.Host, requests *[]string) {
	t.Helper()
	requests = new([]string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/api/v1"), "/repos/ada/shop")
		*requests = append(*requests, r.Method+" "+path)
		if answer, ok := answers[path]; ok {
			answer(w, r)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	return open(t, s.URL+"/ada/shop", "token"), requests
}

func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
}

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
	}
}

var sha = strings.Repeat("a", 40)

// TestPages: lists end where they end, whatever Gitea leaves out of their pages.
func TestPages(t *testing.T) {
	hidden := func(n int) bool { return n >= 10 && n < 30 } // two pages
	for _, c := range []struct {
		name           string
		whole, counts  bool
		hides          bool
		want, requests int
	}{
		{"pages", false, true, false, 45, 5},
		{"pages, not counted", false, false, false, 45, 6},
		{"pages with hidden items", false, true, true, 25, 5},
		{"whole", true, true, false, 45, 1},
		{"whole, not counted", true, false, false, 45, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			const many, size = 45, 10
			h, requests := server(t, map[string]http.HandlerFunc{"/issues/1/comments": func(w http.ResponseWriter, r *http.Request) {
				page, _ := strconv.Atoi(r.URL.Query().Get("page"))
				from, to := min((page-1)*size, many), min(page*size, many)
				if c.whole {
					from, to = 0, many
				}
				some := []map[string]int{}
				for n := from; n < to; n++ {
					if !c.hides || !hidden(n) {
						some = append(some, map[string]int{"id": n + 1})
					}
				}
				if c.counts {
					w.Header().Set("X-Total-Count", strconv.Itoa(many))
				}
				_ = json.NewEncoder(w).Encode(some)
			}})
			all := kit.Must[[]codehost.IssueComment](t)(h.IssueComments(t.Context(), 1))
			if len(all) != c.want || all[0].ID != 1 || all[len(all)-1].ID != many {
				t.Errorf("%d comments", len(all))
			}
			if c.hides {
				c.requests = 6 // as many as could hold those that are counted
			}
			if len(*requests) != c.requests {
				t.Errorf("%d requests, want %d", len(*requests), c.requests)
			}
		})
	}
}

// TestUnmerged: why Gitea did not merge is not in the status alone.
func TestUnmerged(t *testing.T) {
	pull := func(state, head string) http.HandlerFunc {
		return says(`{"number":1,"state":"` + state + `","head":{"ref":"work","sha":"` + head + `"},"base":{"ref":"main"}}`)
	}
	const merge = "/pulls/1/merge"
	for _, c := range []struct {
		name  string
		merge int
		pull  http.HandlerFunc
		want  error
	}{
		{"another head", 409, pull("open", strings.Repeat("b", 40)), codehost.ErrMoved},
		{"a conflict", 409, pull("open", sha), codehost.ErrNotMergeable},
		{"looked at", 405, pull("open", strings.Repeat("b", 40)), codehost.ErrMoved},
		{"not ready", 405, pull("open", sha), codehost.ErrNotMergeable},
		{"closed", 404, pull("closed", sha), codehost.ErrNotMergeable},
		{"gone", 404, http.NotFound, codehost.ErrNotFound},
		{"archived", 423, pull("open", sha), codehost.ErrRefused},
		{"may not", 403, pull("open", sha), codehost.ErrCredential},
		{"another user", 405, pull("open", sha), codehost.ErrCredential},
		{"broken", 500, pull("open", sha), codehost.ErrUnavailable},
		{"broken afterwards", 409, status(500, ""), codehost.ErrUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, _ := server(t, map[string]http.HandlerFunc{
				merge: status(c.merge, `{"message":"words"}`), "/pulls/1": c.pull, "/branches/main": says(fmt.Sprintf(`{"name":"main","user_can_merge":%t}`, !errors.Is(c.want, codehost.ErrCredential))),
			})
			if _, err := h.Merge(t.Context(), 1, codehost.Merge{SHA: sha, Method: codehost.Squash}); !errors.Is(err, c.want) || strings.Contains(err.Error(), "words") {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
	for name, answer := range map[string]http.HandlerFunc{"broken": status(500, ""), "malformed": says(`{}`)} {
		h, _ := server(t, map[string]http.HandlerFunc{merge: says(""), "/pulls/1": answer})
		if as, err := h.Merge(t.Context(), 1, codehost.Merge{SHA: sha, Method: codehost.Squash}); as != "" || err != nil {
			t.Errorf("merged, and then %s: %q %v", name, as, err)
		}
	}
	var body map[string]any
	h, _ := server(t, map[string]http.HandlerFunc{merge: func(_ http.ResponseWriter, r *http.Request) { _ = json.NewDecoder(r.Body).Decode(&body) }})
	if _, err := h.Merge(t.Context(), 1, codehost.Merge{SHA: sha, Method: codehost.Rebase, Title: "t", Message: "m"}); err != nil {
		t.Error(err)
	}
	if body["head_commit_id"] != sha || body["Do"] != "rebase" || body["MergeTitleField"] != "t" || body["MergeMessageField"] != "m" || body["force_merge"] != false || body["merge_when_checks_succeed"] != false {
		t.Errorf("%v", body)
	}
}

// TestManyFiles: a diff that has no end is cut, and so are many files; the files whose part of the diff was not read have no patch.
func TestManyFiles(t *testing.T) {
	h, _ := server(t, map[string]http.HandlerFunc{
		"/pulls/1/files": func(w http.ResponseWriter, r *http.Request) {
			page, _ := strconv.Atoi(r.URL.Query().Get("page"))
			some := []map[string]any{}
			for n := (page - 1) * 50; n < page*50; n++ {
				some = append(some, map[string]any{"filename": fmt.Sprint("f/", n), "status": []string{"added", "deleted", "changed", "unchanged", "copied"}[n%5]})
			}
			_ = json.NewEncoder(w).Encode(some)
		},
		"/pulls/1.diff": func(w http.ResponseWriter, _ *http.Request) {
			for n := 0; ; n++ {
				if _, err := fmt.Fprintf(w, "diff --git a/f/%d b/f/%d\n--- a/f/%d\n+++ b/f/%d\n@@ -1 +1,1000 @@\n%s", n, n, n, n, strings.Repeat("+\xffx\n", 1<<15)); err != nil {
					return
				}
			}
		},
	})
	files, more, err := h.Files(t.Context(), 1)
	if err != nil || !more || len(files) != codehost.MaxFiles {
		t.Fatalf("%d files, %t %v", len(files), more, err)
	}
	var states []string
	for _, f := range files[:5] {
		states = append(states, f.Status)
	}
	if want := []string{"added", "removed", "modified", "changed", "added"}; !slices.Equal(states, want) {
		t.Errorf("%q, want %q", states, want)
	}
	patched := slices.IndexFunc(files, func(f codehost.File) bool { return f.Patch == "" })
	if patched < 10 || patched > 40 || strings.Count(files[patched-1].Patch, "\n") != 1<<15 || strings.TrimLeft(files[0].Patch, "@ -+1,0\n\uFFFDx") != "" {
		t.Errorf("%d files with a patch", patched)
	}
	c, err := h.Change(t.Context(), 1)
	diff, more := c.Diff, c.MoreDiff
	if err != nil || !more || len(diff) > codehost.MaxDiff || !strings.HasSuffix(diff, "\n") {
		t.Errorf("%d bytes, %t %v", len(diff), more, err)
	}
}

// TestReal: what a Gitea does and GitHub does not. Neither reviews that somebody has not submitted nor requests for reviews are listed.
func TestReal(t *testing.T) {
	f := forge.Start(t)
	r := f.Repository(t, "ada", "shop", map[string]string{"README": "shop\n"})
	head := r.Commit(t, "work", map[string]string{"a": "1\n"})
	writes := sdk.AccessModeWrite
	var users []*sdk.Client
	for _, name := range []string{"opener", "rita"} {
		users = append(users, f.User(t, name))
		if _, err := r.API.AddCollaborator(r.Owner, r.Name, name, sdk.AddCollaboratorOption{Permission: &writes}); err != nil {
			t.Fatal(err)
		}
	}
	p := kit.Must[*sdk.PullRequest](t)(first(users[0].CreatePullRequest(r.Owner, r.Name, sdk.CreatePullRequestOption{Title: "work", Base: "main", Head: "work"})))
	if _, err := users[0].CreateReviewRequests(r.Owner, r.Name, p.Index, sdk.PullReviewRequestOptions{Reviewers: []string{"ada"}}); err != nil {
		t.Fatal(err)
	}
	pending := sdk.CreatePullReviewOptions{State: sdk.ReviewStatePending, Body: "not yet", CommitID: head, Comments: []sdk.CreatePullReviewComment{{Path: "a", NewLineNum: 1, Body: "not yet"}}}
	kit.Must[*sdk.PullReview](t)(first(users[1].CreatePullReview(r.Owner, r.Name, p.Index, pending)))
	owner := f.Token(t, "ada", "write:repository")
	g := open(t, r.URL, owner)
	done := kit.Must[codehost.Review](t)(g.Review(t.Context(), p.Index, codehost.NewReview{Event: codehost.Approve, SHA: head}))
	for user, token := range map[string]string{"ada": owner, "rita": f.Token(t, "rita", "read:repository")} {
		all := kit.Must[[]codehost.Review](t)(open(t, r.URL, token).PullRequestReviews(t.Context(), p.Index))
		if len(all) != 1 || all[0].ID != done.ID {
			t.Errorf("%s sees %+v", user, all)
		}
	}
	// A user who may not write to the repository may not merge, whatever the token allows.
	f.User(t, "reader")
	reads := sdk.AccessModeRead
	if _, err := r.API.AddCollaborator(r.Owner, r.Name, "reader", sdk.AddCollaboratorOption{Permission: &reads}); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, r.URL, f.Token(t, "reader", "write:repository")).Merge(t.Context(), p.Index, codehost.Merge{SHA: head, Method: codehost.Squash}); !errors.Is(err, codehost.ErrCredential) {
		t.Errorf("%v", err)
	}
	for _, c := range []struct {
		said sdk.StatusState
		want codehost.CheckState
	}{{"warning", codehost.CheckPassed}, {"skipped", codehost.CheckSkipped}} {
		kit.Must[*sdk.Status](t)(first(r.API.CreateStatus(r.Owner, r.Name, head, sdk.CreateStatusOption{State: c.said, Context: "ci"})))
		all := kit.Must[[]codehost.Check](t)(g.CommitChecks(t.Context(), head))
		if len(all) != 1 || all[0] != (codehost.Check{Name: "ci", State: c.want, Said: string(c.said)}) {
			t.Errorf("%s: %+v", c.said, all)
		}
	}
}

// TestHostileAnswers: whatever a server answers to a request is an error of codehost without its words.
func TestHostileAnswers(t *testing.T) {
	const words = "words of the host"
	ctx := t.Context()
	last := func(_ any, err error) error { return err }
	pull := `{"number":1,"state":"open","head":{"ref":"work","sha":"` + sha + `"},"base":{"ref":"main"}}`
	for path, c := range map[string]struct {
		ask     func(*gitea.Host) error
		hostile []string
	}{
		"/pulls": {func(h *gitea.Host) error { return last(h.OpenPullRequests(ctx, codehost.Page{Number: 1, Size: 9})) }, []string{
			`[null]`, `[{}]`, `[` + strings.Replace(pull, `"number":1`, `"number":-1`, 1) + `]`, `[` + strings.Replace(pull, `"open"`, `"open","labels":"`+words+`"`, 1) + `]`,
			`[` + strings.Replace(pull, `"open"`, `"closed","merged":true,"merge_commit_sha":"`+words+`"`, 1) + `]`,
		}},
		"/pulls/1/files": {func(h *gitea.Host) error { _, _, err := h.Files(ctx, 1); return err }, []string{
			`[null]`, `[{}]`, `[{"filename":"a","deletions":-1}]`, `[{"filename":5}]`,
		}},
		"/pulls/1/reviews": {func(h *gitea.Host) error { return last(h.PullRequestReviews(ctx, 1)) }, []string{
			`[null]`, `[{}]`, `[{"id":-1,"state":"APPROVED"}]`, `[{"id":1,"state":"` + words + `"}]`, `[{"id":1,"state":"APPROVED","commit_id":"` + words + `"}]`,
		}},
		"/user": {func(h *gitea.Host) error { return last(h.Viewer(ctx)) }, []string{`null`, `{}`, `{"login":"a\nb"}`}},
		"/commits/" + sha + "/statuses": {func(h *gitea.Host) error { return last(h.CommitChecks(ctx, sha)) }, []string{
			`[null]`, `[{}]`, `[{"id":1,"status":"success"}]`, `[{"id":1,"context":"a","status":["` + words + `"]}]`, `{"message":"` + words + `"}`,
		}},
		"/branches/main": {func(h *gitea.Host) error { return last(h.RequiredChecks(ctx, "main")) }, []string{
			`null`, `{}`, `{"name":"other"}`, `{"name":"main","enable_status_check":true,"status_check_contexts":[""]}`,
		}},
		"/issues": {func(h *gitea.Host) error {
			return last(h.OpenIssues(ctx, false, codehost.Page{Number: 1, Size: 9}))
		}, []string{
			`[null]`, `[{}]`, `[{"number":1,"state":"` + words + `"}]`, `[{"number":1,"state":"open","comments":-1}]`,
		}},
		"/issues/1": {func(h *gitea.Host) error { return last(h.Issue(ctx, 1)) }, []string{
			`null`, `{}`, `{"number":-1,"state":"open"}`, `{"number":2,"state":"open"}`, `{"number":1,"state":"open","updated_at":"` + words + `"}`,
		}},
		"/issues/1/timeline": {func(h *gitea.Host) error { return last(h.Labeling(ctx, 1, "bug")) }, []string{
			`[null]`, `[{}]`, `{}`, `[{"id":1,"label":[]}]`, `[{"id":1,"label":"` + words + `"}]`, `[{"id":"` + words + `"}]`, `[{"id":1,"created_at":"` + words + `"}]`,
		}},
		"/issues/1/labels": {func(h *gitea.Host) error { return h.RemoveLabel(ctx, 1, "bug") }, []string{`[null]`, `{}`, `[{"name":5}]`, `[{"id":"` + words + `"}]`}},
		"/pulls/1": {func(h *gitea.Host) error { return last(h.Readiness(ctx, 1)) }, []string{
			`null`, `{}`, strings.Replace(pull, `"number":1`, `"number":2`, 1), strings.Replace(pull, `"open"`, `"open","mergeable":"`+words+`"`, 1),
			strings.Replace(pull, `"open"`, `"open","merged_at":"`+words+`"`, 1), strings.Replace(pull, `{"ref":"main"}`, `null`, 1),
		}},
		"/collaborators/rita/permission": {func(h *gitea.Host) error { return last(h.Permission(ctx, "rita")) }, []string{
			`null`, `{}`, `{"permission":"` + words + `"}`, `{"permission":"Admin"}`, `{"permission":["admin"]}`, `{"permission":"admin","user":{"login":"ada"}}`, `{"role_name":"admin"}`,
		}},
		"/issues/1/comments": {func(h *gitea.Host) error { return last(h.IssueComments(ctx, 1)) }, []string{`[null]`, `[{}]`, `[{"id":1,"body":5}]`}},
	} {
		t.Run(path, func(t *testing.T) {
			for _, body := range append([]string{words, `"` + words + `"`, `7`, `[[]]`}, c.hostile...) {
				h, _ := server(t, map[string]http.HandlerFunc{path: says(body), "/issues/1": says(body)})
				if err := c.ask(h); !errors.Is(err, codehost.ErrUnavailable) || strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "127.0.0.1") {
					t.Errorf("%s: %v", body, err)
				}
			}
			for code, want := range map[int]error{401: codehost.ErrCredential, 403: codehost.ErrCredential, 404: codehost.ErrNotFound, 410: codehost.ErrNotFound, 301: codehost.ErrRedirect, 302: codehost.ErrRedirect, 422: codehost.ErrRefused, 502: codehost.ErrUnavailable} {
				h, _ := server(t, map[string]http.HandlerFunc{path: func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Location", "/")
					w.WriteHeader(code)
					_, _ = w.Write([]byte(words))
				}, "/issues/1": status(code, words)})
				if err := c.ask(h); !errors.Is(err, want) || strings.Contains(err.Error(), words) {
					t.Errorf("status %d: %v", code, err)
				}
			}
		})
	}
	// What is no harm is passed on, without what a browser may not open.
	h, _ := server(t, map[string]http.HandlerFunc{"/issues/1": says(`{"number":1,"state":"open","title":"\ud800<b>","html_url":"javascript:alert(1)","user":null,"labels":[null],"assignees":[null]}`)})
	if i, err := h.Issue(ctx, 1); err != nil || i.URL != "" || i.Title != "\uFFFD<b>" || i.Author != "" || len(i.Labels) != 0 {
		t.Errorf("%+v %v", i, err)
	}
}
