// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codehosttest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/test/forge"
	"github.com/platform-ai/platform/test/kit"
)

func first[T any](v T, _ *sdk.Response, err error) (T, error) { return v, err }

// tokensOf makes the users of all places and their tokens.
func tokensOf(t *testing.T, f *forge.Forge) place {
	t.Helper()
	token := func(user string, scopes ...sdk.AccessTokenScope) string {
		f.User(t, user)
		return f.Token(t, user, scopes...)
	}
	return place{
		provider: codehost.Gitea, largest: 10,
		author:     token(author, "write:repository", "write:issue", "read:user"),
		maintainer: token(maintainer, "write:repository", "write:issue", "read:user"),
		readOnly:   token("reader", "read:repository", "read:issue", "read:user"),
	}
}

// onGitea is a place on a real Gitea, in a repository of its own.
func onGitea(t *testing.T, f *forge.Forge, p place, name string) place {
	t.Helper()
	r := f.Repository(t, maintainer, name, mainFiles)
	p.url = r.URL
	reads := sdk.AccessModeRead
	for _, user := range []string{author, "reader"} {
		if _, err := r.API.AddCollaborator(r.Owner, r.Name, user, sdk.AddCollaboratorOption{Permission: &reads}); err != nil {
			t.Fatal(err)
		}
	}
	commits := 0
	p.push = func(t *testing.T, branch string) string {
		commits++
		return r.Commit(t, branch, map[string]string{fmt.Sprint("file-", commits): "one\ntwo\nthree\n"})
	}
	p.change = func(t *testing.T, branch string) { push(t, r.Clone(t, maintainer, p.maintainer), branch, workFiles) }
	p.clash = func(t *testing.T, branch string) {
		r.Commit(t, branch, map[string]string{"clash": "theirs\n"})
		r.Commit(t, "main", map[string]string{"clash": "ours\n"})
	}
	p.draft = func(t *testing.T, n int64) {
		kit.Must[*sdk.PullRequest](t)(first(r.API.EditPullRequest(r.Owner, r.Name, n, sdk.EditPullRequestOption{Title: "WIP: draft"})))
	}
	p.label = func(t *testing.T, n int64, name string) {
		l := kit.Must[*sdk.Label](t)(first(r.API.CreateLabel(r.Owner, r.Name, sdk.CreateLabelOption{Name: name, Color: "#00aabb"})))
		kit.Must[[]*sdk.Label](t)(first(r.API.AddIssueLabels(r.Owner, r.Name, n, sdk.IssueLabelsOption{Labels: []int64{l.ID}})))
	}
	p.lines = func(t *testing.T, n, review int64) (all []codehost.NewReviewComment) {
		for _, c := range kit.Must[[]*sdk.PullReviewComment](t)(first(r.API.ListPullReviewComments(r.Owner, r.Name, n, review))) {
			all = append(all, codehost.NewReviewComment{Path: c.Path, Line: int(c.LineNum), Body: c.Body})
		}
		return all
	}
	p.message = func(t *testing.T, sha string) string {
		return kit.Must[*sdk.Commit](t)(first(r.API.GetSingleCommit(r.Owner, r.Name, sha))).RepoCommit.Message
	}
	p.status = func(t *testing.T, sha, context, state string) {
		o := sdk.CreateStatusOption{Context: context, State: sdk.StatusState(state), TargetURL: "https://ci.example.com/" + state}
		kit.Must[*sdk.Status](t)(first(r.API.CreateStatus(r.Owner, r.Name, sha, o)))
	}
	p.require = func(t *testing.T, branch string, contexts ...string) {
		o := sdk.CreateBranchProtectionOption{RuleName: branch, EnableStatusCheck: true, StatusCheckContexts: contexts}
		kit.Must[*sdk.BranchProtection](t)(first(r.API.CreateBranchProtection(r.Owner, r.Name, o)))
	}
	p.issue = func(t *testing.T, title string, assignees ...string) int64 {
		author := f.User(t, author)
		made := kit.Must[*sdk.Issue](t)(first(author.CreateIssue(r.Owner, r.Name, sdk.CreateIssueOption{Title: title, Body: "what is wrong"})))
		if len(assignees) > 0 {
			kit.Must[*sdk.Issue](t)(first(r.API.EditIssue(r.Owner, r.Name, made.Index, sdk.EditIssueOption{Assignees: assignees})))
		}
		return made.Index
	}
	p.end = func(t *testing.T, n int64) {
		closed := sdk.StateClosed
		kit.Must[*sdk.Issue](t)(first(r.API.EditIssue(r.Owner, r.Name, n, sdk.EditIssueOption{State: &closed})))
	}
	p.grant = func(t *testing.T, login string, permission codehost.Permission) {
		f.User(t, login)
		if permission == codehost.None {
			return
		}
		mode := sdk.AccessMode(permission)
		if _, err := r.API.AddCollaborator(r.Owner, r.Name, login, sdk.AddCollaboratorOption{Permission: &mode}); err != nil {
			t.Fatal(err)
		}
	}
	p.protect = func(t *testing.T, approvals int, strict bool) {
		o := sdk.CreateBranchProtectionOption{RuleName: "main", EnablePush: true, RequiredApprovals: int64(approvals), BlockOnRejectedReviews: true, BlockOnOutdatedBranch: strict}
		kit.Must[*sdk.BranchProtection](t)(first(r.API.CreateBranchProtection(r.Owner, r.Name, o)))
	}
	p.fork = func(t *testing.T, branch string) int64 {
		api := f.User(t, author)
		kit.Must[*sdk.Repository](t)(first(api.CreateFork(r.Owner, r.Name, sdk.CreateForkOption{})))
		file := sdk.CreateFileOptions{FileOptions: sdk.FileOptions{BranchName: "main", NewBranchName: branch}, Content: "bmV3Cg=="}
		kit.Must[*sdk.FileResponse](t)(first(api.CreateFile(author, r.Name, "forked", file)))
		o := sdk.CreatePullRequestOption{Title: "Change " + branch, Base: "main", Head: author + ":" + branch}
		return kit.Must[*sdk.PullRequest](t)(first(api.CreatePullRequest(r.Owner, r.Name, o))).Index
	}
	p.unfork = func(t *testing.T) {
		if _, err := f.User(t, author).DeleteRepo(author, r.Name); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// push pushes a branch whose tree has exactly these files.
func push(t *testing.T, clone, branch string, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	env := append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0")
	git := func(args ...string) {
		kit.Run(t, env, "git", append([]string{"-C", dir, "-c", "user.name=ada", "-c", "user.email=ada@example.com"}, args...)...).Must(t, "git")
	}
	git("clone", "-q", clone, ".")
	git("checkout", "-q", "-b", branch)
	git("rm", "-q", "-r", ".")
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(files[name]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git("add", "-A")
	git("commit", "-q", "-m", "work")
	git("push", "-q", "origin", branch)
}
