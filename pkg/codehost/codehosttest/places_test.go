// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package codehosttest has the tests that all drivers of code hosts pass: the same scenarios on the stand-in for GitHub and on a real
// Gitea.
package codehosttest

import (
	"net/http"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/gitea"
	"github.com/platform-ai/platform/pkg/codehost/github"
	"github.com/platform-ai/platform/test/forge"
	"github.com/platform-ai/platform/test/kit"
)

// Logins of the users of a place.
const (
	author     = "opener"
	maintainer = "ada"
)

// place is a repository on a code host, with what people and programs do there. It has a branch main.
type place struct {
	provider, url string
	// author may open pull requests and issues, maintainer may do everything, and readOnly may change nothing. These are tokens.
	author, maintainer, readOnly string
	// largest is how many items a page of the host has at most.
	largest int
	// push adds a file to a branch, which it makes if necessary, and returns the commit.
	push func(t *testing.T, branch string) string
	// change makes a branch in which files were added, changed, removed and renamed.
	change func(t *testing.T, branch string)
	// clash makes a branch that conflicts with main.
	clash func(t *testing.T, branch string)
	// draft makes a pull request a draft, and label gives it, or an issue, a label as the maintainer.
	draft func(t *testing.T, number int64)
	label func(t *testing.T, number int64, name string)
	// lines returns the comments on lines of a review.
	lines func(t *testing.T, number, review int64) []codehost.NewReviewComment
	// message returns the message of a commit of a merge.
	message func(t *testing.T, sha string) string
	// status sets a status of a commit.
	status func(t *testing.T, sha, context, state string)
	// require makes a branch require statuses.
	require func(t *testing.T, branch string, contexts ...string)
	// issue makes an issue and returns its number, and end closes it.
	issue func(t *testing.T, title string, assignees ...string) int64
	end   func(t *testing.T, number int64)
	// grant gives a user a permission, and makes the user if necessary.
	grant func(t *testing.T, login string, permission codehost.Permission)
	// protect makes main require approvals, and with strict that a head has all of main in it.
	protect func(t *testing.T, approvals int, strict bool)
	// fork makes a pull request of the author's from a branch of the author's fork, and unfork deletes the fork.
	fork   func(t *testing.T, branch string) int64
	unfork func(t *testing.T)
}

// open returns the driver of the place with a token.
func (p place) open(t *testing.T, token string) codehost.Host {
	t.Helper()
	r := codehost.Remote{URL: p.url, Token: token, Transport: http.DefaultTransport}
	if p.provider == codehost.GitHub {
		return kit.Must[*github.Host](t)(github.New(r))
	}
	return kit.Must[*gitea.Host](t)(gitea.New(r))
}

// pull makes a pull request to main as the author, and returns it as soon as the host has found out whether it can be merged.
func (p place) pull(t *testing.T, branch string, want codehost.Mergeable) codehost.PullRequest {
	t.Helper()
	h := p.open(t, p.author)
	made := kit.Must[codehost.PullRequest](t)(h.CreatePullRequest(t.Context(), codehost.NewPullRequest{Title: "Change " + branch, Body: "why", Base: "main", Head: branch}))
	return p.await(t, made.Number, want)
}

// await returns a pull request as soon as the host has found out whether it can be merged, as it does after each change of a branch.
func (p place) await(t *testing.T, number int64, want codehost.Mergeable) (now codehost.PullRequest) {
	t.Helper()
	kit.Await(t, "the host finds out that the pull request is "+string(want), func() bool {
		now = kit.Must[codehost.PullRequest](t)(p.open(t, p.author).PullRequest(t.Context(), number))
		return now.Mergeable == want
	})
	return now
}

// everywhere runs scenarios on all hosts, each in a repository of its own, and on the stand-in once more while each request is checked
// against GitHub's own description of its API.
func everywhere(t *testing.T, scenarios map[string]func(t *testing.T, p place)) {
	t.Run("github", func(t *testing.T) {
		for name, run := range scenarios {
			t.Run(name, func(t *testing.T) { run(t, onGitHub(t)) })
		}
	})
	t.Run("contract", func(t *testing.T) {
		kit.Needs(t, kit.Clients)
		c := newContract(t)
		for name, run := range scenarios {
			t.Run(name, func(t *testing.T) {
				run(t, c.of(t, onGitHub(t)))
				c.check(t)
			})
		}
	})
	t.Run("gitea", func(t *testing.T) {
		f := forge.Start(t)
		tokens := tokensOf(t, f)
		for name, run := range scenarios {
			t.Run(name, func(t *testing.T) { run(t, onGitea(t, f, tokens, strings.ReplaceAll(name, " ", "-"))) })
		}
	})
}
