// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gitea is the driver of Gitea, and of Forgejo as long as it has the same API. It uses Gitea's own client, which is imported
// nowhere else.
package gitea

import (
	"context"
	"net/http"
	"strconv"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/wire"
)

// kind is how errors name the host.
const kind = "Gitea"

// Host is a repository on a Gitea.
//
//large:lines the interface has many requests, and what GitHub decides itself is compared here
type Host struct {
	http  *http.Client
	token string
	at    codehost.Address
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
	return &Host{http: wire.Client(r, nil), token: token, at: at}, nil
}

// client returns a client for requests that end with ctx. The SDK has one context a client. Its check of the server's version would be a
// request more for each, and everything used here is in every version since 1.14.
func (h *Host) client(ctx context.Context) (*sdk.Client, error) {
	o := []sdk.ClientOption{sdk.SetContext(ctx), sdk.SetHTTPClient(h.http), sdk.SetGiteaVersion("")}
	if h.token != "" {
		o = append(o, sdk.SetToken(h.token))
	}
	c, err := sdk.NewClient(h.at.Root.String(), o...)
	return c, wire.Error(ctx, err, kind)
}

// ask returns what one request of the SDK does.
func ask[T any](ctx context.Context, h *Host, request func(c *sdk.Client) (T, *sdk.Response, error)) (T, error) {
	v, _, err := askFor(ctx, h, request)
	return v, err
}

// askFor returns what one request of the SDK does, with the answer's header.
func askFor[T any](ctx context.Context, h *Host, request func(c *sdk.Client) (T, *sdk.Response, error)) (T, *sdk.Response, error) {
	c, err := h.client(ctx)
	if err != nil {
		var none T
		return none, nil, err
	}
	v, answer, err := request(c)
	return v, answer, wire.Error(ctx, err, kind)
}

// Repository implements codehost.Host.
func (h *Host) Repository(ctx context.Context) (codehost.Repository, error) {
	r, err := h.repository(ctx)
	if err != nil {
		return codehost.Repository{}, err
	}
	out := codehost.Repository{RepositoryIdentity: v1alpha1.RepositoryIdentity{Provider: codehost.Gitea, ID: strconv.FormatInt(r.ID, 10)}}
	if !r.Empty {
		out.DefaultBranch = r.DefaultBranch
	}
	return out, nil
}

func (h *Host) repository(ctx context.Context) (*sdk.Repository, error) {
	r, err := ask(ctx, h, func(c *sdk.Client) (*sdk.Repository, *sdk.Response, error) { return c.GetRepo(h.at.Owner, h.at.Name) })
	if err == nil && r.ID <= 0 {
		err = wire.Malformed(kind)
	}
	return r, err
}

// Head implements codehost.Host.
func (h *Host) Head(ctx context.Context, branch string) (string, error) {
	b, err := h.branch(ctx, branch)
	switch {
	case err != nil:
		return "", err
	case b.Commit == nil:
		return "", wire.Malformed(kind)
	}
	return wire.Commit(b.Commit.ID, kind)
}

func (h *Host) branch(ctx context.Context, name string) (*sdk.Branch, error) {
	b, err := ask(ctx, h, func(c *sdk.Client) (*sdk.Branch, *sdk.Response, error) {
		return c.GetRepoBranch(h.at.Owner, h.at.Name, name)
	})
	if err == nil && (b == nil || b.Name != name) {
		err = wire.Malformed(kind)
	}
	return b, err
}

// PullRequests implements codehost.Host. Gitea does not find pull requests by their branch, so all open ones are listed, and the closed
// ones as far back as they matter. The open ones come first: one that is closed meanwhile is then in the second list.
func (h *Host) PullRequests(ctx context.Context, head string, since time.Time) ([]codehost.PullRequest, error) {
	r, err := h.repository(ctx)
	if err != nil {
		return nil, err
	}
	var all []codehost.PullRequest
	for _, state := range []sdk.StateType{sdk.StateOpen, sdk.StateClosed} {
		oldest := time.Time{}
		if state == sdk.StateClosed {
			oldest = since
		}
		some, err := h.list(ctx, state, oldest)
		if err != nil {
			return nil, err
		}
		for _, p := range some {
			if p.Head == nil || p.Head.RepoID != r.ID || p.Head.Ref != head {
				continue
			}
			found, err := pullRequest(p)
			if err != nil {
				return nil, err
			}
			all = append(all, found)
		}
	}
	return all, nil
}

// list returns the pull requests of a state, the newest first, until one that was made before oldest.
func (h *Host) list(ctx context.Context, state sdk.StateType, oldest time.Time) ([]*sdk.PullRequest, error) {
	var all []*sdk.PullRequest
	for page := 1; page <= wire.MaxPages; page++ {
		o := sdk.ListPullRequestsOptions{State: state, ListOptions: sdk.ListOptions{Page: page, PageSize: wire.PageSize}}
		some, err := ask(ctx, h, func(c *sdk.Client) ([]*sdk.PullRequest, *sdk.Response, error) {
			return c.ListRepoPullRequests(h.at.Owner, h.at.Name, o)
		})
		if err != nil {
			return nil, err
		}
		if len(some) == 0 { // a host may have smaller pages than were asked for
			return all, nil
		}
		for _, p := range some {
			if p == nil {
				return nil, wire.Malformed(kind)
			}
			if p.Created != nil && p.Created.Before(oldest) {
				return all, nil
			}
			all = append(all, p)
		}
	}
	return nil, wire.TooMany()
}

// PullRequest implements codehost.Host.
func (h *Host) PullRequest(ctx context.Context, number int64) (codehost.PullRequest, error) {
	p, err := ask(ctx, h, func(c *sdk.Client) (*sdk.PullRequest, *sdk.Response, error) {
		return c.GetPullRequest(h.at.Owner, h.at.Name, number)
	})
	if err != nil {
		return codehost.PullRequest{}, err
	}
	found, err := pullRequest(p)
	if err == nil && found.Number != number {
		err = wire.Malformed(kind)
	}
	return found, err
}

// openAt returns a pull request that is open and whose head is a commit. Otherwise the error says what it is: ErrNotMergeable or ErrMoved.
func (h *Host) openAt(ctx context.Context, number int64, head string) (codehost.PullRequest, error) {
	p, err := h.PullRequest(ctx, number)
	switch {
	case err != nil:
		return codehost.PullRequest{}, err
	case p.State != codehost.Open:
		return codehost.PullRequest{}, codehost.ErrNotMergeable
	case p.HeadSHA != head:
		return codehost.PullRequest{}, codehost.ErrMoved
	}
	return p, nil
}

// CreatePullRequest implements codehost.Host.
func (h *Host) CreatePullRequest(ctx context.Context, n codehost.NewPullRequest) (codehost.PullRequest, error) {
	p, err := ask(ctx, h, func(c *sdk.Client) (*sdk.PullRequest, *sdk.Response, error) {
		return c.CreatePullRequest(h.at.Owner, h.at.Name, sdk.CreatePullRequestOption{Title: n.Title, Body: n.Body, Base: n.Base, Head: n.Head})
	})
	if err != nil {
		return codehost.PullRequest{}, err
	}
	return pullRequest(p)
}

// ClosePullRequest implements codehost.Host.
func (h *Host) ClosePullRequest(ctx context.Context, number int64) error {
	closed := sdk.StateClosed
	_, err := ask(ctx, h, func(c *sdk.Client) (*sdk.PullRequest, *sdk.Response, error) {
		return c.EditPullRequest(h.at.Owner, h.at.Name, number, sdk.EditPullRequestOption{State: &closed})
	})
	return err
}

// pullRequest returns what Gitea says about a pull request. For some moments after each change of a branch, Gitea has not found out
// whether it can be merged, and then says the same as of one that conflicts. A draft is never called mergeable.
func pullRequest(p *sdk.PullRequest) (codehost.PullRequest, error) {
	if p == nil {
		return codehost.PullRequest{}, wire.Malformed(kind)
	}
	out := codehost.PullRequest{
		ID: strconv.FormatInt(p.ID, 10), Number: p.Index, URL: p.HTMLURL, State: codehost.State(p.State), Title: p.Title, Body: p.Body, Author: login(p.Poster),
		Labels: labels(p.Labels), Draft: p.Draft, Created: at(p.Created), Merged: at(p.Merged), Closed: at(p.Closed),
	}
	switch {
	case p.Mergeable:
		out.Mergeable = codehost.Clean
	case !p.Draft:
		out.Mergeable = codehost.Conflicting
	}
	if p.HasMerged {
		out.State = codehost.Merged
	}
	if p.MergedCommitID != nil {
		out.MergeSHA = *p.MergedCommitID
	}
	if p.Base == nil || p.Head == nil {
		return out, wire.Malformed(kind)
	}
	out.Base, out.Head, out.HeadSHA = p.Base.Ref, p.Head.Ref, p.Head.Sha
	if p.Head.Repository != nil {
		out.HeadRepository = p.Head.Repository.FullName
	}
	return out, wire.Check(&out, kind)
}

func login(u *sdk.User) string {
	if u == nil {
		return ""
	}
	return u.UserName
}

// at returns a time that an answer may lack; zero if it does.
func at(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

func labels(all []*sdk.Label) []string {
	var names []string
	for _, l := range all {
		if l != nil {
			names = append(names, l.Name)
		}
	}
	return names
}
