// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package forge_test

import (
	"os"
	"testing"

	"code.gitea.io/sdk/gitea"

	"github.com/platform-ai/platform/test/forge"
	"github.com/platform-ai/platform/test/kit"
)

// TestTokens: each token may do what it is for, and no more.
func TestTokens(t *testing.T) {
	f := forge.Start(t)
	r := f.Repository(t, "ada", "shop", map[string]string{"README": "shop\n"})
	r.Commit(t, "work", map[string]string{"a": "1\n"})
	tokens := r.Tokens(t)
	git := func(args ...string) int {
		return kit.Run(t, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0"), "git", append([]string{"-C", t.TempDir()}, args...)...).Code
	}
	dir := t.TempDir()
	for user, token := range map[string]string{"reader": tokens.Read, "pusher": tokens.Push, "opener": tokens.PullRequests} {
		if git("ls-remote", r.Clone(t, user, token)) != 0 {
			t.Errorf("%s cannot fetch", user)
		}
		if git("clone", "-q", r.Clone(t, user, token), dir+"/"+user) != 0 {
			t.Fatalf("%s cannot clone", user)
		}
		pushed := git("-C", dir+"/"+user, "push", "-q", "origin", "HEAD:refs/heads/by-"+user) == 0
		if want := user == "pusher"; pushed != want {
			t.Errorf("%s pushed: %t, want %t", user, pushed, want)
		}
	}
	for user, token := range map[string]string{"reader": tokens.Read, "opener": tokens.PullRequests} {
		c := kit.Must[*gitea.Client](t)(gitea.NewClient(f.URL, gitea.SetToken(token)))
		_, _, err := c.CreatePullRequest(r.Owner, r.Name, gitea.CreatePullRequestOption{Title: "work", Base: "main", Head: "work"})
		if want := user == "opener"; (err == nil) != want {
			t.Errorf("%s opened a pull request: %v", user, err)
		}
	}
	if all := r.PullRequests(t); len(all) != 1 || all[0].Head.Sha != r.Head("work") {
		t.Errorf("pull requests: %+v", all)
	}
}
