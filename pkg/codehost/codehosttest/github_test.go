// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codehosttest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/test/githubapi"
	"github.com/platform-ai/platform/test/kit"
)

// onGitHub is a place on the stand-in for GitHub.
func onGitHub(t *testing.T) place {
	h := githubapi.New(t)
	const owner = "github-token-of-the-maintainer"
	h.Change(func(s *githubapi.State) { s.Viewer, s.Users[owner] = author, maintainer })
	p := place{provider: codehost.GitHub, url: h.Location(), author: h.Token, maintainer: owner, readOnly: h.ReadOnly, largest: 100}
	change := func(n int64, do func(*githubapi.Pull)) {
		h.Do(func(_ map[string]string, all *[]*githubapi.Pull) {
			if i := slices.IndexFunc(*all, func(p *githubapi.Pull) bool { return p.Number == n }); i >= 0 {
				do((*all)[i])
			}
		})
	}
	commits := 0
	p.push = func(_ *testing.T, branch string) string {
		commits++
		sha := githubapi.Commit(fmt.Sprintf("%c%.10s", 'a'+commits%26, branch))
		h.Do(func(branches map[string]string, _ *[]*githubapi.Pull) { branches[branch] = sha })
		h.Change(func(s *githubapi.State) {
			s.Files[branch] = append(s.Files[branch], githubapi.File{Filename: fmt.Sprint("file-", commits), Status: "added", Additions: 3, Changes: 3})
		})
		return sha
	}
	p.change = func(t *testing.T, branch string) {
		p.push(t, branch)
		h.Change(func(s *githubapi.State) {
			s.Diffs[branch], s.Files[branch] = workDiff, nil
			for _, f := range workChanges {
				s.Files[branch] = append(s.Files[branch], githubapi.File{
					Filename: f.Name, Status: f.Status, Additions: f.Additions, Deletions: f.Deletions, Changes: f.Additions + f.Deletions, Patch: f.Patch,
				})
			}
		})
	}
	p.clash = func(t *testing.T, branch string) {
		p.push(t, branch)
		h.Change(func(s *githubapi.State) { s.Clashing = append(s.Clashing, branch) })
	}
	p.draft = func(_ *testing.T, n int64) { change(n, func(p *githubapi.Pull) { p.Draft = true }) }
	p.label = func(t *testing.T, n int64, name string) {
		kit.Must[githubapi.Delivery](t)(h.Label(t.Context(), n, name, maintainer))
	}
	p.lines = func(_ *testing.T, n, review int64) (all []codehost.NewReviewComment) {
		h.Change(func(s *githubapi.State) {
			for _, r := range s.Reviews[n] {
				for _, c := range r.Comments {
					if r.ID == review && c.Side == "RIGHT" {
						all = append(all, codehost.NewReviewComment{Path: c.Path, Line: c.Line, Body: c.Body})
					}
				}
			}
		})
		return all
	}
	p.message = func(_ *testing.T, sha string) (text string) {
		h.Change(func(s *githubapi.State) { text = s.Messages[sha] })
		return text
	}
	p.status = func(_ *testing.T, sha, context, state string) {
		h.Statuses(sha, githubapi.Status{Context: context, State: state, TargetURL: "https://ci.example.com/" + state})
	}
	p.require = func(_ *testing.T, branch string, contexts ...string) {
		h.Change(func(s *githubapi.State) { s.Protections[branch] = githubapi.Protection{Contexts: contexts} })
	}
	p.issue = func(_ *testing.T, title string, assignees ...string) int64 {
		return h.Report(author, title, "what is wrong", assignees...)
	}
	p.end = func(_ *testing.T, n int64) {
		h.Change(func(s *githubapi.State) { find(s.Issues, n).State = "closed" })
	}
	p.grant = func(_ *testing.T, login string, permission codehost.Permission) {
		h.Change(func(s *githubapi.State) { s.Roles[login] = string(permission) })
	}
	p.protect = func(_ *testing.T, approvals int, strict bool) {
		h.Change(func(s *githubapi.State) {
			s.Protections["main"] = githubapi.Protection{Approvals: approvals, Strict: strict}
		})
	}
	p.fork = func(t *testing.T, branch string) int64 {
		head := githubapi.End{Ref: branch, SHA: githubapi.Commit("f" + branch), Repo: h.Fork(author)}
		return kit.Must[githubapi.Delivery](t)(h.OpenPull(t.Context(), githubapi.Pull{Title: "Change " + branch, Head: head}, author)).Number
	}
	p.unfork = func(*testing.T) {
		h.Do(func(_ map[string]string, all *[]*githubapi.Pull) {
			for _, p := range *all {
				if p.Head.Repo.Fork {
					p.Head.Repo = githubapi.Repo{}
				}
			}
		})
	}
	return p
}

// find returns the issue with a number; nil if there is none.
func find(all []*githubapi.Issue, n int64) *githubapi.Issue {
	if i := slices.IndexFunc(all, func(i *githubapi.Issue) bool { return i.Number == n }); i >= 0 {
		return all[i]
	}
	return nil
}
