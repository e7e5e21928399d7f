// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package pullrequest_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/gitea"
	"github.com/platform-ai/platform/pkg/codehost/github"
	"github.com/platform-ai/platform/pkg/codehost/pullrequest"
	"github.com/platform-ai/platform/test/forge"
	"github.com/platform-ai/platform/test/githubapi"
	"github.com/platform-ai/platform/test/kit"
)

// place is a repository on a code host, with what people do there. It has a branch main.
type place struct {
	provider, url string
	// token may open pull requests, and readOnly may not.
	token, readOnly string
	// commit moves a branch, which it makes if necessary, and returns its commit.
	commit func(t *testing.T, branch string) string
	// pull makes a pull request as a person does, and returns its number.
	pull func(t *testing.T, body, base, head string) int64
	// list returns all pull requests, the oldest first.
	list              func(t *testing.T) []seen
	close, merge      func(t *testing.T, number int64)
	drop              func(t *testing.T, branch string)
	renameBranch      func(t *testing.T, from, to string)
	renameRepository  func(t *testing.T, to string)
	replaceRepository func(t *testing.T)
}

// seen is a pull request as people see it.
type seen struct {
	number                          int64
	open                            bool
	title, body, base, head, commit string
}

// open returns the driver of the place. Each request has a connection of its own, because a client repeats some requests by itself on a
// connection that was used before.
func (p place) open(t *testing.T, url, token string) codehost.Host {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true}
	r := codehost.Remote{URL: url, Token: token, Transport: transport}
	if p.provider == codehost.GitHub {
		return kit.Must[*github.Host](t)(github.New(r))
	}
	return kit.Must[*gitea.Host](t)(gitea.New(r))
}

func (p place) host(t *testing.T) codehost.Host { t.Helper(); return p.open(t, p.url, p.token) }

// order makes a branch and returns the order of its pull request.
func (p place) order(t *testing.T, branch string) pullrequest.Order {
	t.Helper()
	return pullrequest.Order{
		Key: "pub-" + branch, Generation: 3, Head: branch, HeadSHA: p.commit(t, branch), Title: "Do the work", Body: "What was done.",
	}
}

// onGitHub is a place on the stand-in for GitHub.
func onGitHub(t *testing.T) place {
	h := githubapi.New(t)
	commits := 0
	find := func(all []*githubapi.Pull, n int64) *githubapi.Pull {
		return all[slices.IndexFunc(all, func(p *githubapi.Pull) bool { return p.Number == n })]
	}
	p := place{provider: codehost.GitHub, url: h.Location(), token: h.Token, readOnly: h.ReadOnly}
	p.commit = func(_ *testing.T, branch string) string {
		commits++
		sha := githubapi.Commit(fmt.Sprintf("%c%.10s", 'a'+commits%26, branch))
		h.Do(func(branches map[string]string, _ *[]*githubapi.Pull) { branches[branch] = sha })
		return sha
	}
	p.pull = func(t *testing.T, body, base, head string) int64 {
		made := kit.Must[codehost.PullRequest](t)(p.host(t).CreatePullRequest(t.Context(), codehost.NewPullRequest{Title: "by hand", Body: body, Base: base, Head: head}))
		return made.Number
	}
	p.list = func(*testing.T) []seen {
		var all []seen
		for _, p := range h.Pulls() {
			all = append(all, seen{p.Number, p.State == "open", p.Title, p.Body, p.Base.Ref, p.Head.Ref, p.Head.SHA})
		}
		return all
	}
	p.close = func(_ *testing.T, n int64) {
		h.Do(func(_ map[string]string, all *[]*githubapi.Pull) { find(*all, n).State = "closed" })
	}
	p.merge = func(_ *testing.T, n int64) {
		h.Do(func(_ map[string]string, all *[]*githubapi.Pull) {
			merged := find(*all, n)
			merged.State, merged.MergedAt = "closed", &merged.CreatedAt
		})
	}
	p.drop = func(_ *testing.T, branch string) {
		h.Do(func(branches map[string]string, _ *[]*githubapi.Pull) { delete(branches, branch) })
	}
	p.renameBranch = func(_ *testing.T, from, to string) {
		h.Do(func(branches map[string]string, all *[]*githubapi.Pull) {
			branches[to] = branches[from]
			delete(branches, from)
			for _, p := range *all {
				if p.Base.Ref == from {
					p.Base.Ref = to
				}
			}
		})
	}
	p.renameRepository = func(_ *testing.T, to string) { h.Rename(to) }
	p.replaceRepository = func(*testing.T) { h.Replace() }
	return p
}

// onGitea is a place on a real Gitea, in a repository of its own.
func onGitea(t *testing.T, f *forge.Forge, name string) place {
	t.Helper()
	r := f.Repository(t, "ada", name, map[string]string{"README": name + "\n"})
	tokens := r.Tokens(t)
	commits := 0
	p := place{provider: codehost.Gitea, url: r.URL, token: tokens.PullRequests, readOnly: tokens.Read}
	p.commit = func(t *testing.T, branch string) string {
		commits++
		return r.Commit(t, branch, map[string]string{fmt.Sprint("file-", commits): branch + "\n"})
	}
	p.pull = func(t *testing.T, body, base, head string) int64 {
		return kit.Must[*sdk.PullRequest](t)(first(r.API.CreatePullRequest(r.Owner, r.Name, sdk.CreatePullRequestOption{Title: "by hand", Body: body, Base: base, Head: head}))).Index
	}
	p.list = func(t *testing.T) []seen {
		var all []seen
		for _, p := range r.PullRequests(t) {
			all = append(all, seen{p.Index, p.State == sdk.StateOpen, p.Title, p.Body, p.Base.Ref, p.Head.Ref, p.Head.Sha})
		}
		slices.Reverse(all)
		return all
	}
	p.close = func(t *testing.T, n int64) {
		closed := sdk.StateClosed
		kit.Must[*sdk.PullRequest](t)(first(r.API.EditPullRequest(r.Owner, r.Name, n, sdk.EditPullRequestOption{State: &closed})))
	}
	p.merge = func(t *testing.T, n int64) {
		kit.Await(t, "Gitea merges", func() bool { // as soon as it has found out that it can
			done, _, err := r.API.MergePullRequest(r.Owner, r.Name, n, sdk.MergePullRequestOption{Style: sdk.MergeStyleMerge})
			return err == nil && done
		})
	}
	p.drop = func(t *testing.T, branch string) {
		kit.Must[bool](t)(first(r.API.DeleteRepoBranch(r.Owner, r.Name, branch)))
	}
	p.renameBranch = func(t *testing.T, from, to string) {
		kit.Must[bool](t)(first(r.API.RenameRepoBranch(r.Owner, r.Name, from, sdk.RenameRepoBranchOption{Name: to})))
	}
	p.renameRepository = func(t *testing.T, to string) {
		kit.Must[*sdk.Repository](t)(first(r.API.EditRepo(r.Owner, r.Name, sdk.EditRepoOption{Name: &to})))
	}
	p.replaceRepository = func(t *testing.T) {
		if _, err := r.API.DeleteRepo(r.Owner, r.Name); err != nil {
			t.Fatal(err)
		}
		f.Repository(t, r.Owner, r.Name, map[string]string{"README": "another\n"}).Tokens(t)
	}
	return p
}

func first[T any](v T, _ *sdk.Response, err error) (T, error) { return v, err }

// everywhere runs scenarios on both hosts, each in a repository of its own.
func everywhere(t *testing.T, scenarios map[string]func(t *testing.T, p place)) {
	t.Run("github", func(t *testing.T) {
		for name, run := range scenarios {
			t.Run(name, func(t *testing.T) { run(t, onGitHub(t)) })
		}
	})
	t.Run("gitea", func(t *testing.T) {
		f := forge.Start(t)
		for name, run := range scenarios {
			t.Run(name, func(t *testing.T) { run(t, onGitea(t, f, strings.ReplaceAll(name, " ", "-"))) })
		}
	})
}
