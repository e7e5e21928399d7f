// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	sdk "github.com/google/go-github/v93/github"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/wire"
)

// OpenPullRequests implements codehost.Reviews.
func (h *Host) OpenPullRequests(ctx context.Context, p codehost.Page) (codehost.Listed[codehost.PullRequest], error) {
	o := &sdk.PullRequestListOptions{State: "open", Sort: "created", Direction: "desc", ListOptions: sdk.ListOptions{Page: p.Number, PerPage: p.Size}}
	page, answer, err := h.client.PullRequests.List(ctx, h.at.Owner, h.at.Name, o)
	if err != nil {
		return codehost.Listed[codehost.PullRequest]{}, wire.Error(ctx, err, kind)
	}
	return wire.Page(page, answer.NextPage != 0, pullRequest)
}

// PullRequestReviews implements codehost.Reviews. GitHub shows a user the pending reviews of their own.
func (h *Host) PullRequestReviews(ctx context.Context, number int64) ([]codehost.Review, error) {
	all := wire.List[codehost.Review]{Text: func(r codehost.Review) string { return r.Body }}
	return all.Whole(each(ctx, wire.PageSize, func(page sdk.ListOptions) ([]*sdk.PullRequestReview, *sdk.Response, error) {
		return h.client.PullRequests.ListReviews(ctx, h.at.Owner, h.at.Name, int(number), &page)
	}, func(r *sdk.PullRequestReview) error {
		if r.GetState() == "PENDING" {
			return nil
		}
		return all.Add(review(r))
	}))
}

// states are GitHub's words for the states of submitted reviews.
var states = map[string]codehost.ReviewState{
	"APPROVED": codehost.Approved, "CHANGES_REQUESTED": codehost.ChangesRequested, "COMMENTED": codehost.Commented, "DISMISSED": codehost.Dismissed,
}

func review(r *sdk.PullRequestReview) (codehost.Review, error) {
	out := codehost.Review{
		ID: r.GetID(), State: states[r.GetState()], Author: r.GetUser().GetLogin(), Body: r.GetBody(), URL: r.GetHTMLURL(), SHA: r.GetCommitID(),
		Submitted: r.GetSubmittedAt().Time,
	}
	return out, wire.CheckReview(&out, kind)
}

// Review implements codehost.Reviews. Without a commit GitHub would take the head, which nobody may have seen.
func (h *Host) Review(ctx context.Context, number int64, n codehost.NewReview) (codehost.Review, error) {
	known := n.Event == codehost.Approve || n.Event == codehost.RequestChanges || n.Event == codehost.Comment
	if !known || !wire.IsCommit(n.SHA) {
		return codehost.Review{}, fmt.Errorf("%w: a review needs an event and a commit", codehost.ErrRefused)
	}
	event, side := string(n.Event), "RIGHT"
	o := &sdk.PullRequestReviewRequest{CommitID: &n.SHA, Event: &event}
	if n.Body != "" {
		o.Body = &n.Body
	}
	for _, c := range n.Comments {
		o.Comments = append(o.Comments, &sdk.DraftReviewComment{Path: &c.Path, Line: &c.Line, Side: &side, Body: &c.Body})
	}
	r, _, err := h.client.PullRequests.CreateReview(ctx, h.at.Owner, h.at.Name, int(number), o)
	if err != nil {
		return codehost.Review{}, wire.Error(ctx, err, kind)
	}
	return review(r)
}

// DismissReview implements codehost.Reviews.
func (h *Host) DismissReview(ctx context.Context, number, id int64, why string) error {
	o := sdk.PullRequestDismissReviewRequest{Message: why}
	_, _, err := h.client.PullRequests.DismissReview(ctx, h.at.Owner, h.at.Name, int(number), id, o)
	return wire.Error(ctx, err, kind)
}

// Merge implements codehost.Reviews. Without a commit GitHub would merge whatever the head is.
func (h *Host) Merge(ctx context.Context, number int64, m codehost.Merge) (string, error) {
	if !wire.IsCommit(m.SHA) {
		return "", codehost.ErrMoved
	}
	o := &sdk.PullRequestOptions{CommitTitle: m.Title, SHA: m.SHA, MergeMethod: string(m.Method)}
	merged, _, err := h.client.PullRequests.Merge(ctx, h.at.Owner, h.at.Name, int(number), m.Message, o)
	switch err = wire.Error(ctx, err, kind); {
	case errors.Is(err, codehost.ErrConflict):
		return "", codehost.ErrMoved
	case wire.Status(err) == http.StatusMethodNotAllowed:
		return "", codehost.ErrNotMergeable
	case err != nil:
		return "", err
	case !merged.GetMerged():
		return "", wire.Malformed(kind)
	}
	return wire.Commit(merged.GetSHA(), kind)
}

// Viewer implements codehost.Reviews.
func (h *Host) Viewer(ctx context.Context) (string, error) {
	u, _, err := h.client.Users.Get(ctx, "")
	if err != nil {
		return "", wire.Error(ctx, err, kind)
	}
	return wire.Login(u.GetLogin(), kind)
}
