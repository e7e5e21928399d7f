// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"

	sdk "github.com/google/go-github/v93/github"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/wire"
)

// OpenIssues implements codehost.Issues. To GitHub, pull requests are issues; they are left out here.
func (h *Host) OpenIssues(ctx context.Context, unassigned bool, p codehost.Page) (codehost.Listed[codehost.Issue], error) {
	var out codehost.Listed[codehost.Issue]
	o := &sdk.IssueListByRepoOptions{State: "open", Sort: "created", Direction: "desc", ListOptions: sdk.ListOptions{Page: p.Number, PerPage: p.Size}}
	if unassigned {
		o.Assignee = "none"
	}
	page, answer, err := h.client.Issues.ListByRepo(ctx, h.at.Owner, h.at.Name, o)
	if err != nil {
		return out, wire.Error(ctx, err, kind)
	}
	for _, i := range page {
		if i.GetPullRequestLinks() != nil {
			continue
		}
		found, err := issue(i)
		if err != nil {
			return codehost.Listed[codehost.Issue]{}, err
		}
		out.Items = append(out.Items, found)
	}
	out.More = answer.NextPage != 0
	return out, nil
}

// Issue implements codehost.Issues.
func (h *Host) Issue(ctx context.Context, number int64) (codehost.Issue, error) {
	i, _, err := h.client.Issues.Get(ctx, h.at.Owner, h.at.Name, int(number))
	switch {
	case err != nil:
		return codehost.Issue{}, wire.Error(ctx, err, kind)
	case i.GetPullRequestLinks() != nil:
		return codehost.Issue{}, codehost.ErrNotFound
	}
	return issue(i)
}

func issue(i *sdk.Issue) (codehost.Issue, error) {
	if i == nil {
		return codehost.Issue{}, wire.Malformed(kind)
	}
	out := codehost.Issue{
		Number: int64(i.GetNumber()), Title: i.GetTitle(), Body: i.GetBody(), Author: i.GetUser().GetLogin(), Labels: names(i.Labels, (*sdk.Label).GetName),
		Assignees: names(i.Assignees, (*sdk.User).GetLogin), State: codehost.State(i.GetState()), URL: i.GetHTMLURL(), Created: i.GetCreatedAt().Time,
		CommentCount: i.GetComments(),
	}
	return out, wire.CheckIssue(&out, kind)
}

// IssueComments implements codehost.Issues. The client takes the number 0 for all issues.
func (h *Host) IssueComments(ctx context.Context, number int64) ([]codehost.IssueComment, error) {
	if number <= 0 {
		return nil, codehost.ErrNotFound
	}
	var all wire.List[codehost.IssueComment]
	err := each(ctx, wire.PageSize, func(page sdk.ListOptions) ([]*sdk.IssueComment, *sdk.Response, error) {
		return h.client.Issues.ListComments(ctx, h.at.Owner, h.at.Name, int(number), &sdk.IssueListCommentsOptions{ListOptions: page})
	}, func(c *sdk.IssueComment) error {
		found, err := comment(c)
		if err != nil {
			return err
		}
		return all.Add(found, found.Body)
	})
	if err != nil {
		return nil, err
	}
	return all.Items, nil
}

// CommentOnIssue implements codehost.Issues.
func (h *Host) CommentOnIssue(ctx context.Context, number int64, body string) (codehost.IssueComment, error) {
	c, _, err := h.client.Issues.CreateComment(ctx, h.at.Owner, h.at.Name, int(number), sdk.IssueCommentRequest{Body: body})
	if err != nil {
		return codehost.IssueComment{}, wire.Error(ctx, err, kind)
	}
	return comment(c)
}

func comment(c *sdk.IssueComment) (codehost.IssueComment, error) {
	out := codehost.IssueComment{ID: c.GetID(), Author: c.GetUser().GetLogin(), Body: c.GetBody(), URL: c.GetHTMLURL(), Created: c.GetCreatedAt().Time}
	return out, wire.CheckComment(&out, kind)
}
