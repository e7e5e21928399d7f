// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/githost"
	"github.com/platform-ai/platform/test/githubapi"
	"github.com/platform-ai/platform/test/kit/standalone"
)

const (
	repository = githubapi.Owner + "/" + githubapi.Name
	hookSecret = "the-monitors-hook"
)

// gitHub is the stand-in for GitHub, and git, under one address.
type gitHub struct {
	t     *testing.T
	git   *githost.Host
	api   *githubapi.Host
	first front

	mu sync.Mutex
	// sent are the deliveries by their ids, and said is what git said about its branches.
	sent map[string]githubapi.Delivery
	said string
}

var _ codeHost = (*gitHub)(nil)

func newGitHub(t *testing.T) codeHost {
	t.Helper()
	h := &gitHub{t: t, api: githubapi.New(t), sent: map[string]githubapi.Delivery{}}
	h.git = githost.New(t, h.token(readRole))
	h.git.LookToken, h.git.PushToken = h.token(lookRole), h.token(pushRole)
	h.api.ReadOnly, h.api.Token, h.api.Server.URL = h.token(readRole), h.token(forgeRole), h.git.URL
	h.git.Create(t, repository)
	h.git.Commit(t, repository, "main", map[string]string{"README.md": "a shop\n"})
	h.api.Change(func(s *githubapi.State) {
		s.Roles = map[string]string{"maintainer": "write", "stranger": "read"}
	})
	h.git.Answer = func(w http.ResponseWriter, r *http.Request) bool {
		h.first.serve(w, r, func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, "/api/") {
				h.git.Serve(w, r)
				return
			}
			h.sync()
			h.api.ServeHTTP(w, r)
		})
		return true
	}
	return h
}

// sync has the API know the branches that git has, and what they change.
func (h *gitHub) sync() {
	h.mu.Lock()
	defer h.mu.Unlock()
	said := h.git.Git(h.t, repository, "", "for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", "refs/heads")
	if said == h.said {
		return
	}
	h.said = said
	heads := map[string]string{}
	for line := range strings.Lines(said) {
		branch, sha, _ := strings.Cut(strings.TrimSpace(line), " ")
		heads[branch] = sha
	}
	h.api.Do(func(branches map[string]string, _ *[]*githubapi.Pull) { maps.Copy(branches, heads) })
	for branch := range heads {
		diff := h.git.Git(h.t, repository, "", "diff", "main..."+branch) + "\n"
		var files []githubapi.File
		for _, name := range h.changed(h.t, branch) {
			_, patch, _ := strings.Cut(h.git.Git(h.t, repository, "", "diff", "main..."+branch, "--", name), "\n@@")
			n := strings.Count(patch, "\n+") // the tests only add
			files = append(files, githubapi.File{Filename: name, Status: "modified", Additions: n, Changes: n, Patch: "@@" + patch})
		}
		h.api.Change(func(s *githubapi.State) { s.Diffs[branch], s.Files[branch] = diff, files })
	}
}

func (h *gitHub) provider() v1alpha1.CodeHostProvider { return v1alpha1.CodeHostGitHub }
func (h *gitHub) location() string                    { return h.api.Location() }
func (h *gitHub) address() string                     { return h.git.Address() }
func (h *gitHub) front() *front                       { return &h.first }

// token returns a token whose form no rule of package redact knows.
func (h *gitHub) token(role string) string {
	return map[string]string{readRole: "rr-41d0c9b8a7f6e5d4c3b2", lookRole: "lr-52e1d0c9b8a7f6e5d4c3", pushRole: "pr-63f2e1d0c9b8a7f6e5d4", forgeRole: "fr-7403f2e1d0c9b8a7f6e5"}[role]
}

func (h *gitHub) hook(t *testing.T, s *standalone.Server) {
	t.Helper()
	h.api.Change(func(state *githubapi.State) {
		state.Hook = githubapi.Hook{ID: 17, URL: s.URL + "/webhooks/github", Secret: hookSecret, Client: s.Stranger(t).HTTP}
	})
}

// did notes a delivery, which the server has answered.
func (h *gitHub) did(t *testing.T, d githubapi.Delivery, err error) int64 {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if d.Status >= http.StatusBadRequest {
		t.Fatalf("%s: %d %s", d.Event, d.Status, d.Answer)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sent[d.GUID] = d
	return d.Number
}

func (h *gitHub) redeliver(t *testing.T, id string) {
	t.Helper()
	h.mu.Lock()
	d, ok := h.sent[id]
	h.mu.Unlock()
	if !ok {
		t.Fatalf("%s was not delivered", id)
	}
	again, err := h.api.Redeliver(t.Context(), d)
	h.did(t, again, err)
}

// openIssue sets the labels right after the issue was made, as GitHub does.
func (h *gitHub) openIssue(t *testing.T, title, body, author string, labels ...string) int64 {
	t.Helper()
	d, err := h.api.OpenIssue(t.Context(), title, body, author)
	n := h.did(t, d, err)
	for _, l := range labels {
		h.label(t, n, l, author)
	}
	return n
}

func (h *gitHub) openPull(t *testing.T, title, branch, author string) int64 {
	t.Helper()
	h.sync()
	d, err := h.api.OpenPull(t.Context(), githubapi.Pull{Title: title, Head: githubapi.End{Ref: branch}}, author)
	return h.did(t, d, err)
}

func (h *gitHub) label(t *testing.T, number int64, label, by string) {
	t.Helper()
	d, err := h.api.Label(t.Context(), number, label, by)
	h.did(t, d, err)
}

func (h *gitHub) unlabel(t *testing.T, number int64, label, by string) {
	t.Helper()
	d, err := h.api.Unlabel(t.Context(), number, label, by)
	h.did(t, d, err)
}

func (h *gitHub) push(t *testing.T, from, branch, text string) string {
	t.Helper()
	if from != branch {
		h.git.Git(t, repository, "", "update-ref", "refs/heads/"+branch, "refs/heads/"+from)
	}
	sha := h.git.Commit(t, repository, branch, map[string]string{"README.md": text})
	h.sync()
	for _, p := range h.api.Pulls() {
		if p.Head.Ref == branch && p.State == "open" {
			d, err := h.api.Push(t.Context(), p.Number, sha, "maintainer")
			h.did(t, d, err)
		}
	}
	return sha
}

// settle closes the issue, because of "Closes #1.".
func (h *gitHub) settle(*testing.T) {
	h.api.Change(func(s *githubapi.State) { s.Issues[0].State = "closed" })
}

func (h *gitHub) head(t *testing.T, branch string) string {
	t.Helper()
	return h.git.Git(t, repository, "", "rev-parse", branch)
}

func (h *gitHub) changed(t *testing.T, branch string) []string {
	t.Helper()
	return strings.Fields(h.git.Git(t, repository, "", "diff", "--name-only", "main..."+branch))
}

func (h *gitHub) pulls(*testing.T) (all []pull) {
	for _, p := range h.api.Pulls() {
		all = append(all, pull{number: p.Number, title: p.Title, body: p.Body, head: p.Head.SHA, merged: p.MergedAt != nil})
	}
	return all
}

func (h *gitHub) labels(_ *testing.T, number int64) (all []string) {
	h.api.Change(func(s *githubapi.State) {
		for _, i := range s.Issues {
			for _, l := range i.Labels {
				if i.Number == number {
					all = append(all, l.Name)
				}
			}
		}
	})
	for _, p := range h.api.Pulls() {
		for _, l := range p.Labels {
			if p.Number == number {
				all = append(all, l.Name)
			}
		}
	}
	return all
}

func (h *gitHub) comments(_ *testing.T, number int64) (all []string) {
	h.api.Change(func(s *githubapi.State) {
		for _, c := range s.Comments[number] {
			all = append(all, c.Body)
		}
	})
	return all
}

func (h *gitHub) reviews(_ *testing.T, number int64) (all []review) {
	h.api.Change(func(s *githubapi.State) {
		for _, r := range s.Reviews[number] {
			one := review{body: r.Body, head: r.CommitID, approves: r.State == "APPROVED"}
			for _, c := range r.Comments {
				one.lines = append(one.lines, fmt.Sprintf("%s:%d", c.Path, c.Line))
			}
			all = append(all, one)
		}
	})
	return all
}

func (h *gitHub) request(what string) string {
	const api = " /api/v3/repos/" + repository
	return map[string]string{
		commenting: "POST" + api + "/issues/1/comments", unlabelling: "DELETE" + api + "/issues/1/labels/*", pushing: "POST /" + repository + "/git-receive-pack",
		opening: "POST" + api + "/pulls", reviewing: "POST" + api + "/pulls/2/reviews", merging: "PUT" + api + "/pulls/2/merge",
	}[what]
}
