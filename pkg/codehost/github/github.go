// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package github is the driver of GitHub: github.com, its tenants below ghe.com, and GitHub Enterprise Server. It uses GitHub's REST API
// by means of google/go-github, which is imported nowhere else.
package github

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	sdk "github.com/google/go-github/v93/github"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/wire"
)

// kind is how errors name the host.
const kind = "GitHub"

// Host is a repository on GitHub.
type Host struct {
	client *sdk.Client
	at     codehost.Address
}

var _ codehost.Host = (*Host)(nil)

// New returns the host of a repository. Nothing is sent yet.
func New(r codehost.Remote) (*Host, error) {
	at, err := codehost.ParseAddress(r.URL)
	if err != nil {
		return nil, err
	}
	token, err := r.Credential()
	if err != nil {
		return nil, err
	}
	api := API(at.Root)
	o := []sdk.ClientOptionsFunc{sdk.WithHTTPClient(wire.Client(r, exists)), sdk.WithURLs(&api, nil), sdk.WithDisableRateLimitCheck()}
	if token != "" {
		o = append(o, sdk.WithAuthToken(token))
	}
	client, err := sdk.NewClient(o...)
	if err != nil {
		return nil, codehost.ErrAddress
	}
	return &Host{client: client, at: at}, nil
}

// Serves reports whether an address belongs to GitHub by its name alone: github.com, and the tenants below ghe.com.
func Serves(root url.URL) bool {
	name := strings.ToLower(root.Hostname())
	return name == "github.com" || name == "www.github.com" || strings.HasSuffix(name, ".ghe.com")
}

// API returns the address of the API of an installation, with a slash at the end.
func API(root url.URL) string {
	name := strings.ToLower(root.Hostname())
	switch {
	case name == "github.com", name == "www.github.com":
		return "https://api.github.com/"
	case Serves(root):
		return "https://api." + name + "/"
	}
	return root.JoinPath("api/v3/").String()
}

// exists recognises the answer to a second pull request of the same branches. GitHub has no code for it.
func exists(r wire.Refusal) bool {
	for _, e := range r.Errors {
		if strings.HasPrefix(e.Message, "A pull request already exists") {
			return true
		}
	}
	return false
}

// Repository implements codehost.Host.
func (h *Host) Repository(ctx context.Context) (codehost.Repository, error) {
	r, err := h.repository(ctx)
	if err != nil {
		return codehost.Repository{}, err
	}
	return codehost.Repository{
		RepositoryIdentity: v1alpha1.RepositoryIdentity{Provider: codehost.GitHub, ID: strconv.FormatInt(r.GetID(), 10)},
		DefaultBranch:      r.GetDefaultBranch(),
	}, nil
}

func (h *Host) repository(ctx context.Context) (*sdk.Repository, error) {
	r, _, err := h.client.Repositories.Get(ctx, h.at.Owner, h.at.Name)
	if err != nil {
		return nil, wire.Error(ctx, err, kind)
	}
	if r.GetID() <= 0 {
		return nil, wire.Malformed(kind)
	}
	return r, nil
}

// Head implements codehost.Host.
func (h *Host) Head(ctx context.Context, branch string) (string, error) {
	ref, _, err := h.client.Git.GetRef(ctx, h.at.Owner, h.at.Name, "refs/heads/"+branch)
	if err != nil {
		return "", wire.Error(ctx, err, kind)
	}
	if ref.GetRef() != "refs/heads/"+branch {
		return "", codehost.ErrNotFound // one whose name only begins so
	}
	return wire.Commit(ref.GetObject().GetSHA(), kind)
}

// PullRequests implements codehost.Host. GitHub finds them by their branch, so the time does not matter.
func (h *Host) PullRequests(ctx context.Context, head string, _ time.Time) ([]codehost.PullRequest, error) {
	r, err := h.repository(ctx)
	if err != nil {
		return nil, err
	}
	o := &sdk.PullRequestListOptions{State: "all", Head: r.GetOwner().GetLogin() + ":" + head}
	var all []codehost.PullRequest
	err = each(ctx, wire.PageSize, func(page sdk.ListOptions) ([]*sdk.PullRequest, *sdk.Response, error) {
		o.ListOptions = page
		return h.client.PullRequests.List(ctx, h.at.Owner, h.at.Name, o)
	}, func(p *sdk.PullRequest) error {
		if p.GetHead().GetRepo().GetID() != r.GetID() || p.GetHead().GetRef() != head {
			return nil // from a branch of the same name in a fork that the owner has, too
		}
		found, err := pullRequest(p)
		all = append(all, found)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// each calls do for the items of a list, on all of its pages. read returns a page of it.
func each[T any](ctx context.Context, size int, read func(page sdk.ListOptions) ([]T, *sdk.Response, error), do func(T) error) error {
	page := sdk.ListOptions{PerPage: size}
	for range wire.MaxPages {
		items, answer, err := read(page)
		if err != nil {
			return wire.Error(ctx, err, kind)
		}
		for _, item := range items {
			if err := do(item); err != nil {
				return err
			}
		}
		if page.Page = answer.NextPage; page.Page == 0 {
			return nil
		}
	}
	return wire.TooMany()
}

// PullRequest implements codehost.Host.
func (h *Host) PullRequest(ctx context.Context, number int64) (codehost.PullRequest, error) {
	p, _, err := h.one(ctx, number)
	return p, err
}

// one returns a pull request, and all that GitHub says about it.
func (h *Host) one(ctx context.Context, number int64) (codehost.PullRequest, *sdk.PullRequest, error) {
	p, _, err := h.client.PullRequests.Get(ctx, h.at.Owner, h.at.Name, int(number))
	if err != nil {
		return codehost.PullRequest{}, nil, wire.Error(ctx, err, kind)
	}
	found, err := pullRequest(p)
	if err == nil && found.Number != number {
		err = wire.Malformed(kind)
	}
	return found, p, err
}

// CreatePullRequest implements codehost.Host.
func (h *Host) CreatePullRequest(ctx context.Context, n codehost.NewPullRequest) (codehost.PullRequest, error) {
	p, _, err := h.client.PullRequests.Create(ctx, h.at.Owner, h.at.Name, sdk.CreatePullRequest{Title: &n.Title, Body: &n.Body, Base: n.Base, Head: n.Head})
	if err != nil {
		return codehost.PullRequest{}, wire.Error(ctx, err, kind)
	}
	return pullRequest(p)
}

// ClosePullRequest implements codehost.Host.
func (h *Host) ClosePullRequest(ctx context.Context, number int64) error {
	closed := string(codehost.Closed)
	_, _, err := h.client.PullRequests.Edit(ctx, h.at.Owner, h.at.Name, int(number), &sdk.PullRequest{State: &closed})
	return wire.Error(ctx, err, kind)
}

// pullRequest returns what GitHub says about a pull request. In lists only the time of the merge says that it was merged.
func pullRequest(p *sdk.PullRequest) (codehost.PullRequest, error) {
	if p == nil {
		return codehost.PullRequest{}, wire.Malformed(kind)
	}
	out := codehost.PullRequest{
		ID: strconv.FormatInt(p.GetID(), 10), Number: int64(p.GetNumber()), URL: p.GetHTMLURL(), State: codehost.State(p.GetState()),
		Base: p.GetBase().GetRef(), Head: p.GetHead().GetRef(), HeadSHA: p.GetHead().GetSHA(), Title: p.GetTitle(), Body: p.GetBody(),
		Author: p.GetUser().GetLogin(), Labels: names(p.Labels, (*sdk.Label).GetName), Draft: p.GetDraft(), MergeSHA: p.GetMergeCommitSHA(),
		HeadRepository: p.GetHead().GetRepo().GetFullName(),
		Created:        p.GetCreatedAt().Time, Merged: p.GetMergedAt().Time, Closed: p.GetClosedAt().Time,
	}
	if p.Mergeable != nil { // it is null until GitHub has tried
		out.Mergeable = codehost.Conflicting
		if *p.Mergeable {
			out.Mergeable = codehost.Clean
		}
	}
	if p.GetMerged() || !p.GetMergedAt().IsZero() {
		out.State = codehost.Merged
	}
	return out, wire.Check(&out, kind)
}

// names returns a name of each item.
func names[T any](items []T, name func(T) string) []string {
	var all []string
	for _, item := range items {
		all = append(all, name(item))
	}
	return all
}
