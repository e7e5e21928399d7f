// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"encoding/base64"
	"maps"
	"net/url"
	"slices"
	"testing"

	"code.gitea.io/sdk/gitea"

	"github.com/platform-ai/platform/test/kit"
)

// Scopes of tokens.
const (
	ReadRepository  gitea.AccessTokenScope = "read:repository"
	WriteRepository gitea.AccessTokenScope = "write:repository"
)

// User makes a user, who owns nothing yet, unless there is one of that name. It returns a client that may do everything that the user may.
func (f *Forge) User(t testing.TB, name string) *gitea.Client {
	t.Helper()
	if _, _, err := f.admin.GetUserInfo(name); err != nil {
		kept := false
		if _, _, err := f.admin.AdminCreateUser(gitea.CreateUserOption{
			Username: name, Email: name + "@example.com", Password: password, MustChangePassword: &kept,
		}); err != nil {
			t.Fatalf("make the user %s: %v", name, err)
		}
	}
	return f.as(t, gitea.SetBasicAuth(name, password))
}

// Token makes a token of a user, whom User made, with these scopes.
func (f *Forge) Token(t testing.TB, user string, scopes ...gitea.AccessTokenScope) string {
	t.Helper()
	client := f.as(t, gitea.SetBasicAuth(user, password))
	have, _, err := client.ListAccessTokens(gitea.ListAccessTokensOptions{})
	if err != nil {
		t.Fatal(err)
	}
	made, _, err := client.CreateAccessToken(gitea.CreateAccessTokenOption{Name: "token-" + string(rune('a'+len(have))), Scopes: scopes})
	if err != nil {
		t.Fatalf("make a token of %s: %v", user, err)
	}
	return made.Token
}

// Repository is a private repository of a user of its own.
type Repository struct {
	// Owner and Name are in its address.
	Owner, Name string
	// URL is its address, as git clones it.
	URL string
	// API is a client of its owner.
	API *gitea.Client

	forge *Forge
}

// Repository makes a private repository whose default branch main has one commit with these files.
func (f *Forge) Repository(t testing.TB, owner, name string, files map[string]string) *Repository {
	t.Helper()
	r := &Repository{Owner: owner, Name: name, URL: f.URL + "/" + owner + "/" + name + ".git", API: f.User(t, owner), forge: f}
	if _, _, err := r.API.CreateRepo(gitea.CreateRepoOption{Name: name, Private: true, DefaultBranch: "main"}); err != nil {
		t.Fatalf("make the repository %s: %v", name, err)
	}
	r.Commit(t, "main", files)
	return r
}

// Commit adds new files to a branch, each in a commit of its own, and returns the last one. A branch that does not exist is made from the
// default branch.
func (r *Repository) Commit(t testing.TB, branch string, files map[string]string) string {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		o := gitea.CreateFileOptions{Content: base64.StdEncoding.EncodeToString([]byte(files[name]))}
		if r.Head(branch) == "" && branch != "main" {
			o.BranchName, o.NewBranchName = "main", branch
		} else {
			o.BranchName = branch
		}
		if _, _, err := r.API.CreateFile(r.Owner, r.Name, name, o); err != nil {
			t.Fatalf("add %s to the branch %s: %v", name, branch, err)
		}
	}
	return r.Head(branch)
}

// Head returns the commit of a branch; empty if there is no such branch.
func (r *Repository) Head(branch string) string {
	b, _, err := r.API.GetRepoBranch(r.Owner, r.Name, branch)
	if err != nil {
		return ""
	}
	return b.Commit.ID
}

// Tokens are credentials with one use each. None of their users owns the repository.
type Tokens struct {
	// Read may fetch. Push may also push. PullRequests may fetch and open pull requests, and may not push.
	Read, Push, PullRequests string
}

// Tokens makes the users reader, pusher and opener, unless they exist, lets them work on the repository, and gives each a token.
func (r *Repository) Tokens(t testing.TB) Tokens {
	t.Helper()
	token := func(user string, mode gitea.AccessMode, scope gitea.AccessTokenScope) string {
		r.forge.User(t, user)
		if _, err := r.API.AddCollaborator(r.Owner, r.Name, user, gitea.AddCollaboratorOption{Permission: &mode}); err != nil {
			t.Fatalf("let %s work on the repository %s: %v", user, r.Name, err)
		}
		return r.forge.Token(t, user, scope)
	}
	return Tokens{
		Read:         token("reader", gitea.AccessModeRead, ReadRepository),
		Push:         token("pusher", gitea.AccessModeWrite, WriteRepository),
		PullRequests: token("opener", gitea.AccessModeRead, WriteRepository),
	}
}

// PullRequests returns all pull requests, of any state, the newest first.
func (r *Repository) PullRequests(t testing.TB) []*gitea.PullRequest {
	t.Helper()
	var all []*gitea.PullRequest
	for page := 1; ; page++ {
		some, _, err := r.API.ListRepoPullRequests(r.Owner, r.Name, gitea.ListPullRequestsOptions{ListOptions: gitea.ListOptions{Page: page, PageSize: 50}, State: gitea.StateAll})
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, some...); len(some) == 0 {
			return all
		}
	}
}

// Clone returns the address for git with a user and a token in it.
func (r *Repository) Clone(t testing.TB, user, token string) string {
	t.Helper()
	u := kit.Must[*url.URL](t)(url.Parse(r.URL))
	u.User = url.UserPassword(user, token)
	return u.String()
}
