// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package monitor

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/forge"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// giteaHost is a real Gitea. The platform reaches it through its front, and the people of the test do not.
type giteaHost struct {
	*forge.Repository
	forge  *forge.Forge
	first  front
	hooked *forge.Hook
	tokens map[string]string
}

var _ codeHost = (*giteaHost)(nil)

func newGitea(t *testing.T) codeHost {
	t.Helper()
	kit.Needs(t, kit.Forge)
	h := &giteaHost{}
	var behind atomic.Pointer[url.URL]
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(behind.Load())
		r.Out.Host = r.In.Host
	}}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.first.serve(w, r, proxy.ServeHTTP) }))
	t.Cleanup(s.Close)
	h.forge = forge.StartBehind(t, s.URL)
	behind.Store(kit.Must[*url.URL](t)(url.Parse(h.forge.Direct)))
	owner, name, _ := strings.Cut(repository, "/")
	h.Repository = h.forge.Shared(t, owner, name, map[string]string{"README.md": "a shop\n"})
	h.Triager(t, "stranger")
	for user, mode := range map[string]sdk.AccessMode{"maintainer": sdk.AccessModeWrite, "platform": sdk.AccessModeAdmin, "pusher": sdk.AccessModeWrite, "reader": sdk.AccessModeRead} {
		h.Member(t, user, mode)
	}
	reads := []sdk.AccessTokenScope{"read:repository", "read:issue", "read:user"}
	h.tokens = map[string]string{
		readRole: h.forge.Token(t, "reader", reads...), lookRole: h.forge.Token(t, "reader", reads...), pushRole: h.forge.Token(t, "pusher", "write:repository"),
		forgeRole: h.forge.Token(t, "platform", "write:repository", "write:issue", "read:user"),
	}
	return h
}

func (h *giteaHost) provider() v1alpha1.CodeHostProvider { return v1alpha1.CodeHostGitea }
func (h *giteaHost) location() string                    { return strings.TrimSuffix(h.URL, ".git") }
func (h *giteaHost) address() string                     { return h.forge.Address() }
func (h *giteaHost) token(role string) string            { return h.tokens[role] }
func (h *giteaHost) front() *front                       { return &h.first }

// hook makes the hook once. The server has the same address after each start.
func (h *giteaHost) hook(t *testing.T, s *standalone.Server) {
	t.Helper()
	if h.hooked == nil {
		h.hooked = new(h.Hook(t, s.URL+"/webhooks/github-style", hookSecret))
	}
}

func (h *giteaHost) redeliver(t *testing.T, id string) {
	t.Helper()
	h.hooked.Replay(t, id)
}

// got returns what a call of Gitea's client returns, or fails the test.
func got[T any](t *testing.T) func(v T, _ *sdk.Response, err error) T {
	t.Helper()
	return func(v T, _ *sdk.Response, err error) T {
		t.Helper()
		return kit.Must[T](t)(v, err)
	}
}

func (h *giteaHost) openIssue(t *testing.T, title, body, author string, labels ...string) int64 {
	t.Helper()
	o := sdk.CreateIssueOption{Title: title, Body: body}
	for _, l := range labels {
		o.Labels = append(o.Labels, h.labelID(t, l))
	}
	return got[*sdk.Issue](t)(h.forge.User(t, author).CreateIssue(h.Owner, h.Name, o)).Index
}

func (h *giteaHost) openPull(t *testing.T, title, branch, author string) int64 {
	t.Helper()
	o := sdk.CreatePullRequestOption{Title: title, Base: "main", Head: branch}
	return got[*sdk.PullRequest](t)(h.forge.User(t, author).CreatePullRequest(h.Owner, h.Name, o)).Index
}

// labelID returns the id of a label, which it makes if necessary.
func (h *giteaHost) labelID(t *testing.T, label string) int64 {
	t.Helper()
	for _, l := range got[[]*sdk.Label](t)(h.API.ListRepoLabels(h.Owner, h.Name, sdk.ListLabelsOptions{ListOptions: sdk.ListOptions{Page: -1}})) {
		if l.Name == label {
			return l.ID
		}
	}
	return got[*sdk.Label](t)(h.API.CreateLabel(h.Owner, h.Name, sdk.CreateLabelOption{Name: label, Color: "#00aabb"})).ID
}

func (h *giteaHost) label(t *testing.T, number int64, label, by string) {
	t.Helper()
	got[[]*sdk.Label](t)(h.forge.User(t, by).AddIssueLabels(h.Owner, h.Name, number, sdk.IssueLabelsOption{Labels: []int64{h.labelID(t, label)}}))
}

func (h *giteaHost) unlabel(t *testing.T, number int64, label, by string) {
	t.Helper()
	kit.Must[*sdk.Response](t)(h.forge.User(t, by).DeleteIssueLabel(h.Owner, h.Name, number, h.labelID(t, label)))
}

func (h *giteaHost) push(t *testing.T, from, branch, text string) string {
	t.Helper()
	return h.Push(t, "maintainer", from, branch, map[string]string{"README.md": text})
}

// settle does nothing: Gitea closes the issue because of "Closes #1.".
func (h *giteaHost) settle(*testing.T) {}

func (h *giteaHost) head(_ *testing.T, branch string) string { return h.Head(branch) }

func (h *giteaHost) changed(t *testing.T, branch string) (all []string) {
	t.Helper()
	c := got[*sdk.Compare](t)(h.API.CompareCommits(h.Owner, h.Name, "main", branch))
	for _, one := range c.Commits {
		for _, f := range one.Files {
			all = append(all, f.Filename)
		}
	}
	return all
}

func (h *giteaHost) pulls(t *testing.T) (all []pull) {
	t.Helper()
	for _, p := range h.PullRequests(t) {
		all = append(all, pull{number: p.Index, title: p.Title, body: p.Body, head: p.Head.Sha, merged: p.HasMerged})
	}
	return all
}

func (h *giteaHost) labels(t *testing.T, number int64) (all []string) {
	t.Helper()
	for _, l := range got[[]*sdk.Label](t)(h.API.GetIssueLabels(h.Owner, h.Name, number, sdk.ListLabelsOptions{})) {
		all = append(all, l.Name)
	}
	return all
}

func (h *giteaHost) comments(t *testing.T, number int64) (all []string) {
	t.Helper()
	for _, c := range got[[]*sdk.Comment](t)(h.API.ListIssueComments(h.Owner, h.Name, number, sdk.ListIssueCommentOptions{})) {
		all = append(all, c.Body)
	}
	return all
}

func (h *giteaHost) reviews(t *testing.T, number int64) (all []review) {
	t.Helper()
	for _, r := range got[[]*sdk.PullReview](t)(h.API.ListPullReviews(h.Owner, h.Name, number, sdk.ListPullReviewsOptions{})) {
		one := review{body: r.Body, head: r.CommitID, approves: r.State == sdk.ReviewStateApproved && !r.Dismissed}
		for _, c := range got[[]*sdk.PullReviewComment](t)(h.API.ListPullReviewComments(h.Owner, h.Name, number, r.ID)) {
			one.lines = append(one.lines, fmt.Sprintf("%s:%d", c.Path, c.LineNum))
		}
		all = append(all, one)
	}
	return all
}

func (h *giteaHost) request(what string) string {
	const api = " /api/v1/repos/" + repository
	return map[string]string{
		commenting: "POST" + api + "/issues/1/comments", unlabelling: "DELETE" + api + "/issues/1/labels/*", pushing: "POST /" + repository + "/git-receive-pack",
		opening: "POST" + api + "/pulls", reviewing: "POST" + api + "/pulls/2/reviews", merging: "POST" + api + "/pulls/2/merge",
	}[what]
}
