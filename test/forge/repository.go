// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package forge

import (
	"encoding/base64"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// Shared makes a private repository that belongs to an organization, as Repository does. Its API is that of the administrator, because an
// organization has no client.
func (f *Forge) Shared(t testing.TB, owner, name string, files map[string]string) *Repository {
	t.Helper()
	if _, _, err := f.admin.CreateOrg(gitea.CreateOrgOption{Name: owner, Visibility: gitea.VisibleTypePublic}); err != nil {
		t.Fatalf("make the organization %s: %v", owner, err)
	}
	r := &Repository{Owner: owner, Name: name, URL: f.URL + "/" + owner + "/" + name + ".git", API: f.admin, forge: f}
	if _, _, err := f.admin.CreateOrgRepo(owner, gitea.CreateRepoOption{Name: name, Private: true, DefaultBranch: "main"}); err != nil {
		t.Fatalf("make the repository %s: %v", name, err)
	}
	r.Commit(t, "main", files)
	return r
}

// Member makes a user, unless there is one of that name, and lets the user work on the repository.
func (r *Repository) Member(t testing.TB, user string, mode gitea.AccessMode) {
	t.Helper()
	r.forge.User(t, user)
	if _, err := r.API.AddCollaborator(r.Owner, r.Name, user, gitea.AddCollaboratorOption{Permission: &mode}); err != nil {
		t.Fatalf("let %s work on the repository %s: %v", user, r.Name, err)
	}
}

// Triager makes a user who may set labels in a repository of an organization, and only read its code.
func (r *Repository) Triager(t testing.TB, user string) {
	t.Helper()
	r.forge.User(t, user)
	team, _, err := r.API.CreateTeam(r.Owner, gitea.CreateTeamOption{
		Name: "triage", Permission: gitea.AccessModeRead,
		UnitsMap: map[string]string{string(gitea.RepoUnitCode): "read", string(gitea.RepoUnitIssues): "write", string(gitea.RepoUnitPulls): "write"},
	})
	if err == nil {
		_, err = r.API.AddTeamMember(team.ID, user)
	}
	if err == nil {
		_, err = r.API.AddTeamRepository(team.ID, r.Owner, r.Name)
	}
	if err != nil {
		t.Fatalf("let %s set labels in %s: %v", user, r.Name, err)
	}
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

// Push has a user push a commit that adds or replaces files. It is made on top of a branch, and becomes the head of the same branch or of
// another one, whatever was there.
func (r *Repository) Push(t testing.TB, user, from, branch string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	env := append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0")
	git := func(args ...string) string {
		as := []string{"-C", dir, "-c", "user.name=" + user, "-c", "user.email=" + user + "@example.com"}
		return strings.TrimSpace(kit.Run(t, env, "git", append(as, args...)...).Must(t, "git"))
	}
	git("clone", "-q", "-b", from, r.Clone(t, user, password), ".")
	for _, name := range slices.Sorted(maps.Keys(files)) {
		write(t, filepath.Join(dir, name), files[name])
	}
	git("add", "-A")
	git("commit", "-q", "-m", "work")
	git("push", "-q", "-f", "origin", "HEAD:refs/heads/"+branch)
	return git("rev-parse", "HEAD")
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
		r.Member(t, user, mode)
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
	u := kit.Must[*url.URL](t)(url.Parse(r.forge.Direct + "/" + r.Owner + "/" + r.Name + ".git"))
	u.User = url.UserPassword(user, token)
	return u.String()
}
