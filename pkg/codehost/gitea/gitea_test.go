// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gitea_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/gitea"
	"github.com/platform-ai/platform/test/forge"
	"github.com/platform-ai/platform/test/kit"
)

func open(t *testing.T, url, token string) *gitea.Host {
	t.Helper()
	return kit.Must[*gitea.Host](t)(gitea.New(codehost.Remote{URL: url, Token: token, Transport: http.DefaultTransport}))
}

// TestGitea: what the driver says of a real Gitea, with all pages of its lists.
func TestGitea(t *testing.T) {
	f := forge.Start(t)
	r := f.Repository(t, "ada", "shop", map[string]string{"README": "shop\n"})
	tokens := r.Tokens(t)
	g := open(t, r.URL, tokens.PullRequests)
	ctx := t.Context()

	is := kit.Must[codehost.Repository](t)(g.Repository(ctx))
	if is.Provider != codehost.Gitea || is.ID == "" || is.DefaultBranch != "main" {
		t.Errorf("%+v", is)
	}
	const branch = "platform/work#1"
	sha := r.Commit(t, branch, map[string]string{"a": "1\n"})
	if got, err := g.Head(ctx, branch); err != nil || got != sha {
		t.Errorf("head %s %v, want %s", got, err, sha)
	}
	if _, err := g.Head(ctx, "gone"); !errors.Is(err, codehost.ErrNotFound) {
		t.Errorf("a branch that does not exist: %v", err)
	}

	// More pull requests than a page has, most of them closed ones of the same branch.
	const many = 12
	for range many {
		p := kit.Must[codehost.PullRequest](t)(g.CreatePullRequest(ctx, codehost.NewPullRequest{Title: "work", Body: "text", Base: "main", Head: branch}))
		if p.State != codehost.Open || p.HeadSHA != sha || p.Head != branch || p.Base != "main" || p.Body != "text" || p.URL == "" {
			t.Fatalf("%+v", p)
		}
		if err := g.ClosePullRequest(ctx, p.Number); err != nil {
			t.Fatal(err)
		}
	}
	n := codehost.NewPullRequest{Title: "work", Base: "main", Head: branch}
	last := kit.Must[codehost.PullRequest](t)(g.CreatePullRequest(ctx, n))
	if _, err := g.CreatePullRequest(ctx, n); !errors.Is(err, codehost.ErrConflict) {
		t.Errorf("a second one: %v", err)
	}
	r.Commit(t, "other", map[string]string{"b": "1\n"})
	kit.Must[codehost.PullRequest](t)(g.CreatePullRequest(ctx, codehost.NewPullRequest{Title: "other", Base: "main", Head: "other"}))
	all := kit.Must[[]codehost.PullRequest](t)(g.PullRequests(ctx, branch, time.Time{}))
	open1, closed := 0, 0
	for _, p := range all {
		switch p.State {
		case codehost.Open:
			open1++
		case codehost.Closed:
			closed++
		}
	}
	if open1 != 1 || closed != many || all[0].Number != last.Number {
		t.Errorf("%d open and %d closed", open1, closed)
	}
	// A time in the future leaves the closed ones out, and never the open ones.
	if some := kit.Must[[]codehost.PullRequest](t)(g.PullRequests(ctx, branch, last.Created.Add(time.Hour))); len(some) != 1 || some[0].Number != last.Number {
		t.Errorf("%d since then", len(some))
	}

	merge(t, r, last.Number)
	if p, err := g.PullRequest(ctx, last.Number); err != nil || p.State != codehost.Merged {
		t.Errorf("%+v %v", p, err)
	}
	if _, err := g.PullRequest(ctx, 4711); !errors.Is(err, codehost.ErrNotFound) {
		t.Errorf("a pull request that does not exist: %v", err)
	}
	n.Base = "gone"
	if _, err := g.CreatePullRequest(ctx, n); !errors.Is(err, codehost.ErrNotFound) {
		t.Errorf("without a base: %v", err)
	}
	n.Base = "main"
	refused(t, r, tokens, n)
}

// refused are the credentials that do not suffice, and the address that is no longer right.
func refused(t *testing.T, r *forge.Repository, tokens forge.Tokens, n codehost.NewPullRequest) {
	t.Helper()
	ctx := t.Context()
	for name, token := range map[string]string{"a wrong token": "0123456789abcdef0123456789abcdef01234567", "a token that reads": tokens.Read} {
		if _, err := open(t, r.URL, token).CreatePullRequest(ctx, n); !errors.Is(err, codehost.ErrCredential) || strings.Contains(err.Error(), token) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := open(t, r.URL, "").Repository(ctx); !errors.Is(err, codehost.ErrNotFound) {
		t.Errorf("no token: %v", err)
	}
	name := "store"
	kit.Must[*sdk.Repository](t)(first(r.API.EditRepo(r.Owner, r.Name, sdk.EditRepoOption{Name: &name})))
	var asked []string
	g := kit.Must[*gitea.Host](t)(gitea.New(codehost.Remote{URL: r.URL, Token: tokens.PullRequests, Transport: counted(&asked)}))
	if _, err := g.Repository(ctx); !errors.Is(err, codehost.ErrRedirect) || len(asked) != 1 {
		t.Errorf("a renamed repository: %v after %q", err, asked)
	}
	if _, err := g.CreatePullRequest(ctx, n); !errors.Is(err, codehost.ErrRedirect) || len(asked) != 2 {
		t.Errorf("a renamed repository: %v after %q", err, asked)
	}
}

// counted is a transport that notes the requests.
func counted(to *[]string) http.RoundTripper {
	return sends(func(r *http.Request) (*http.Response, error) {
		*to = append(*to, r.Method+" "+r.URL.Path)
		return http.DefaultTransport.RoundTrip(r)
	})
}

type sends func(*http.Request) (*http.Response, error)

func (s sends) RoundTrip(r *http.Request) (*http.Response, error) { return s(r) }

func first[T any](v T, _ *sdk.Response, err error) (T, error) { return v, err }

// merge merges a pull request as soon as Gitea has found out that it can be.
func merge(t *testing.T, r *forge.Repository, number int64) {
	t.Helper()
	kit.Await(t, "Gitea merges", func() bool {
		done, _, err := r.API.MergePullRequest(r.Owner, r.Name, number, sdk.MergePullRequestOption{Style: sdk.MergeStyleMerge})
		return err == nil && done
	})
}

// TestHostile: a server that answers what Gitea would not is an error, whose text has none of it.
func TestHostile(t *testing.T) {
	const words = "words of the host"
	for name, answers := range map[string]map[string]string{
		"nothing":           {"": `null`},
		"no id":             {"": `{}`},
		"a null branch":     {"": `{"id":1,"default_branch":"main"}`, "/branches/work": `null`},
		"no commit":         {"": `{"id":1}`, "/branches/work": `{"name":"work"}`},
		"a wrong name":      {"": `{"id":1}`, "/branches/work": `{"name":"work","commit":{"id":"` + words + `"}}`},
		"null requests":     {"": `{"id":1}`, "/pulls": `[null]`},
		"no branches":       {"": `{"id":1}`, "/pulls": `[{"number":1,"head":{"repo_id":1,"ref":"work"}}]`},
		"a wrong number":    {"": `{"id":1}`, "/pulls": `[{"number":-1,"state":"open","head":{"repo_id":1,"ref":"work","sha":"` + strings.Repeat("a", 40) + `"},"base":{"ref":"main"}}]`},
		"a wrong state":     {"": `{"id":1}`, "/pulls": `[{"number":1,"state":"` + words + `","head":{"repo_id":1,"ref":"work","sha":"` + strings.Repeat("a", 40) + `"},"base":{"ref":"main"}}]`},
		"a page for ever":   {"": `{"id":1}`, "/pulls": `[{"number":1,"state":"open"}]`},
		"text in its stead": {"": words},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = w.Write([]byte(answers[strings.TrimPrefix(r.URL.Path, "/api/v1/repos/ada/shop")]))
			}))
			defer server.Close()
			g := open(t, server.URL+"/ada/shop", "token")
			_, err := g.Repository(t.Context())
			if err == nil {
				_, err = g.PullRequests(t.Context(), "work", time.Time{})
			}
			if _, found := answers["/branches/work"]; found {
				_, err = g.Head(t.Context(), "work")
			}
			if !errors.Is(err, codehost.ErrUnavailable) || strings.Contains(err.Error(), words) || strings.Contains(err.Error(), server.URL) {
				t.Errorf("%v", err)
			}
		})
	}
}
