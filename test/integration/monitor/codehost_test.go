// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"net/http"
	"net/http/httptest"
	"path"
	"sync"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// codeHost is a code host with the repository ada/shop, whose branch main has the file README.md, "a shop". Of the people there maintainer may
// write in the repository, and stranger may set labels and open issues.
type codeHost interface {
	// provider is what the platform calls the host, location the address of the repository, and address the host and port.
	provider() v1alpha1.CodeHostProvider
	location() string
	address() string
	// token returns the credential for a role.
	token(role string) string
	// hook has the host deliver to a server what happens. It is called again after each start of the server.
	hook(t *testing.T, s *standalone.Server)
	// redeliver delivers once more what was delivered under an id.
	redeliver(t *testing.T, id string)

	// openIssue and openPull return the number of what they make. The pull request is to main.
	openIssue(t *testing.T, title, body, author string, labels ...string) int64
	openPull(t *testing.T, title, branch, author string) int64
	label(t *testing.T, number int64, label, by string)
	unlabel(t *testing.T, number int64, label, by string)
	// push has the maintainer put a text into README.md on a branch, on top of what another branch is, and returns the commit. A branch that
	// was something else is replaced.
	push(t *testing.T, from, branch, text string) string
	// settle does what the host does by itself after a merge, if it is one that does not.
	settle(t *testing.T)

	// head returns the commit of a branch, and changed the files that differ between main and the branch.
	head(t *testing.T, branch string) string
	changed(t *testing.T, branch string) []string
	pulls(t *testing.T) []pull
	labels(t *testing.T, number int64) []string
	comments(t *testing.T, number int64) []string
	reviews(t *testing.T, number int64) []review

	// front is what stands before the host, and request the method and the pattern of the path by which something is asked for.
	front() *front
	request(what string) string
}

// Roles of credentials: what reads, what looks at a publication, what pushes, and what writes on the host.
const (
	readRole, lookRole, pushRole, forgeRole = "read", "publication-read", "publication", "forge"
)

func roles() []string { return []string{readRole, lookRole, pushRole, forgeRole} }

// Things that are asked for, as request knows them. The issue has the number 1, and the pull request 2.
const (
	commenting, unlabelling, pushing, opening, reviewing, merging = "comment", "unlabel", "push", "open", "review", "merge"
)

// pull is a pull request.
type pull struct {
	number            int64
	title, body, head string
	merged            bool
}

// review is a review of a pull request.
type review struct {
	body, head string
	approves   bool
	lines      []string // where its comments are: path:line
}

// onBoth runs a test on both hosts.
func onBoth(t *testing.T, run func(t *testing.T, h codeHost)) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) codeHost{"github": newGitHub, "gitea": newGitea} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, start(t))
		})
	}
}

// front notes the requests to a code host, and loses answers.
type front struct {
	mu       sync.Mutex
	requests []string
	// left are the requests that are not answered although the host has done what they ask for: methods and patterns of paths. lost is how
	// many of them were sent since the last call of forget.
	left []string
	lost int
}

// serve has the host answer a request.
func (f *front) serve(w http.ResponseWriter, r *http.Request, host http.HandlerFunc) {
	if !f.loses(r.Method + " " + r.URL.Path) {
		host(w, r)
		return
	}
	host(httptest.NewRecorder(), r)
	f.mu.Lock()
	f.lost++
	f.mu.Unlock()
	panic(http.ErrAbortHandler)
}

func (f *front) loses(request string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, request)
	for i, pattern := range f.left {
		if matches(pattern, request) {
			f.left = append(f.left[:i], f.left[i+1:]...)
			return true
		}
	}
	return false
}

// matches reports whether a request has the method and the path of a pattern.
func matches(pattern, request string) bool {
	ok, err := path.Match(pattern, request)
	return ok && err == nil
}

// lose loses the answers to some requests.
func (f *front) lose(patterns ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = append(f.left, patterns...)
}

// remaining returns the requests that are still to be lost.
func (f *front) remaining() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string{}, f.left...)
}

// lostSome reports whether an answer was lost, and forget forgets that.
func (f *front) lostSome() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lost > 0
}

func (f *front) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = 0
}

// count returns how many requests of a kind there were.
func (f *front) count(pattern string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.requests {
		if matches(pattern, r) {
			n++
		}
	}
	return n
}
