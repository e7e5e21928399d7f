// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gitea

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/wire"
)

// OpenPullRequests implements codehost.Reviews. Gitea may have a largest page below 100; its pages follow each other all the same.
func (h *Host) OpenPullRequests(ctx context.Context, p codehost.Page) (codehost.Listed[codehost.PullRequest], error) {
	o := sdk.ListPullRequestsOptions{State: sdk.StateOpen, ListOptions: sdk.ListOptions{Page: p.Number, PageSize: p.Size}}
	page, answer, err := askFor(ctx, h, func(c *sdk.Client) ([]*sdk.PullRequest, *sdk.Response, error) {
		return c.ListRepoPullRequests(h.at.Owner, h.at.Name, o)
	})
	if err != nil {
		return codehost.Listed[codehost.PullRequest]{}, err
	}
	return wire.Page(page, answer.NextPage != 0, pullRequest)
}

// PullRequestReviews implements codehost.Reviews. Gitea lists requests for reviews, too, and to their authors the pending reviews.
func (h *Host) PullRequestReviews(ctx context.Context, number int64) ([]codehost.Review, error) {
	all := wire.List[codehost.Review]{Text: func(r codehost.Review) string { return r.Body }}
	return all.Whole(h.eachReview(ctx, number, func(r *sdk.PullReview) error {
		if r.State == sdk.ReviewStatePending || r.State == sdk.ReviewStateRequestReview {
			return nil
		}
		return all.Add(review(r))
	}))
}

// eachReview calls do for the reviews of a pull request, with those that are only asked for or not submitted.
func (h *Host) eachReview(ctx context.Context, number int64, do func(*sdk.PullReview) error) error {
	read := pages(ctx, h, func(c *sdk.Client, page sdk.ListOptions) ([]*sdk.PullReview, *sdk.Response, error) {
		return c.ListPullReviews(h.at.Owner, h.at.Name, number, sdk.ListPullReviewsOptions{ListOptions: page})
	})
	return each(read, func(r *sdk.PullReview) int64 { return r.ID }, do)
}

// states are Gitea's words for the states of submitted reviews, and events those for new ones.
var (
	states = map[sdk.ReviewStateType]codehost.ReviewState{
		sdk.ReviewStateApproved: codehost.Approved, sdk.ReviewStateRequestChanges: codehost.ChangesRequested, sdk.ReviewStateComment: codehost.Commented,
	}
	events = map[codehost.ReviewEvent]sdk.ReviewStateType{
		codehost.Approve: sdk.ReviewStateApproved, codehost.RequestChanges: sdk.ReviewStateRequestChanges, codehost.Comment: sdk.ReviewStateComment,
	}
)

func review(r *sdk.PullReview) (codehost.Review, error) {
	out := codehost.Review{
		ID: r.ID, State: states[r.State], Author: login(r.Reviewer), Body: r.Body, URL: r.HTMLURL, SHA: r.CommitID, Submitted: r.Submitted,
	}
	if r.Dismissed {
		out.State = codehost.Dismissed
	}
	return out, wire.CheckReview(&out, kind)
}

// Review implements codehost.Reviews. Without a commit Gitea would take the head, which nobody may have seen, and of an event that it does
// not know it would make a pending review.
func (h *Host) Review(ctx context.Context, number int64, n codehost.NewReview) (codehost.Review, error) {
	o := sdk.CreatePullReviewOptions{State: events[n.Event], Body: n.Body, CommitID: n.SHA}
	for _, c := range n.Comments {
		if c.Line <= 0 { // a negative number would be a line before the change
			return codehost.Review{}, fmt.Errorf("%w: a comment needs a line from 1", codehost.ErrRefused)
		}
		o.Comments = append(o.Comments, sdk.CreatePullReviewComment{Path: c.Path, Body: c.Body, NewLineNum: int64(c.Line)})
	}
	if o.State == "" || !wire.IsCommit(n.SHA) || o.Validate() != nil { // the SDK would not send one without words
		return codehost.Review{}, fmt.Errorf("%w: a review needs an event, a commit, and unless it approves a text, and so does each of its comments", codehost.ErrRefused)
	}
	r, err := ask(ctx, h, func(c *sdk.Client) (*sdk.PullReview, *sdk.Response, error) {
		return c.CreatePullReview(h.at.Owner, h.at.Name, number, o)
	})
	if err != nil {
		return codehost.Review{}, err
	}
	return review(r)
}

// DismissReview implements codehost.Reviews.
func (h *Host) DismissReview(ctx context.Context, number, id int64, why string) error {
	_, err := ask(ctx, h, func(c *sdk.Client) (struct{}, *sdk.Response, error) {
		answer, err := c.DismissPullReview(h.at.Owner, h.at.Name, number, id, sdk.DismissPullReviewOptions{Message: why})
		return struct{}{}, answer, err
	})
	return err
}

// Merge implements codehost.Reviews. Without a commit Gitea would merge whatever the head is. Its answer does not name the commit. Once it
// has merged, no failure to find the commit makes the merge one.
func (h *Host) Merge(ctx context.Context, number int64, m codehost.Merge) (string, error) {
	if !wire.IsCommit(m.SHA) {
		return "", codehost.ErrMoved
	}
	o := sdk.MergePullRequestOption{Style: sdk.MergeStyle(m.Method), Title: m.Title, Message: m.Message, HeadCommitId: m.SHA}
	_, err := ask(ctx, h, func(c *sdk.Client) (bool, *sdk.Response, error) {
		return c.MergePullRequest(h.at.Owner, h.at.Name, number, o)
	})
	switch {
	case errors.Is(err, codehost.ErrConflict), errors.Is(err, codehost.ErrNotFound), wire.Status(err) == http.StatusMethodNotAllowed:
		return "", h.unmerged(ctx, number, m.SHA)
	case err != nil:
		return "", err
	}
	if p, err := h.PullRequest(ctx, number); err == nil {
		return p.MergeSHA, nil
	}
	return "", nil
}

// unmerged returns why a pull request was not merged. Gitea has the status 409 for a head that is another commit and for a conflict, 405
// for a user who may not merge and, among others, as long as it looks for conflicts after a push, and 404 for a pull request that is
// closed.
func (h *Host) unmerged(ctx context.Context, number int64, sha string) error {
	p, err := h.openAt(ctx, number, sha)
	if err != nil {
		return err
	}
	if b, err := h.branch(ctx, p.Base); err == nil && !b.UserCanMerge {
		return codehost.ErrCredential
	}
	return codehost.ErrNotMergeable
}

// Viewer implements codehost.Reviews.
func (h *Host) Viewer(ctx context.Context) (string, error) {
	u, err := ask(ctx, h, func(c *sdk.Client) (*sdk.User, *sdk.Response, error) { return c.GetMyUserInfo() })
	if err != nil {
		return "", err
	}
	return wire.Login(login(u), kind)
}
