// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"path"
	"slices"
	"strings"

	sdk "github.com/google/go-github/v93/github"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/wire"
)

// OpenIssues implements codehost.Issues. To GitHub, pull requests are issues; they are left out here.
func (h *Host) OpenIssues(ctx context.Context, unassigned bool, p codehost.Page) (codehost.Listed[codehost.Issue], error) {
	o := &sdk.IssueListByRepoOptions{State: "open", Sort: "created", Direction: "desc", ListOptions: sdk.ListOptions{Page: p.Number, PerPage: p.Size}}
	if unassigned {
		o.Assignee = "none"
	}
	page, answer, err := h.client.Issues.ListByRepo(ctx, h.at.Owner, h.at.Name, o)
	if err != nil {
		return codehost.Listed[codehost.Issue]{}, wire.Error(ctx, err, kind)
	}
	issues := slices.DeleteFunc(page, func(i *sdk.Issue) bool { return i.GetPullRequestLinks() != nil })
	return wire.Page(issues, answer.NextPage != 0, issue)
}

// Issue implements codehost.Issues.
func (h *Host) Issue(ctx context.Context, number int64) (codehost.Issue, error) {
	i, err := h.issue(ctx, number)
	switch {
	case err != nil:
		return codehost.Issue{}, err
	case i.GetPullRequestLinks() != nil:
		return codehost.Issue{}, codehost.ErrNotFound
	}
	return issue(i)
}

// issue returns an issue, or a pull request as an issue.
func (h *Host) issue(ctx context.Context, number int64) (*sdk.Issue, error) {
	i, _, err := h.client.Issues.Get(ctx, h.at.Owner, h.at.Name, int(number))
	if err == nil && int64(i.GetNumber()) != number {
		err = wire.Malformed(kind)
	}
	return i, wire.Error(ctx, err, kind)
}

func issue(i *sdk.Issue) (codehost.Issue, error) {
	if i == nil {
		return codehost.Issue{}, wire.Malformed(kind)
	}
	out := codehost.Issue{
		Number: int64(i.GetNumber()), Title: i.GetTitle(), Body: i.GetBody(), Author: i.GetUser().GetLogin(), Labels: names(i.Labels, (*sdk.Label).GetName),
		Assignees: names(i.Assignees, (*sdk.User).GetLogin), State: codehost.State(i.GetState()), URL: i.GetHTMLURL(), Created: i.GetCreatedAt().Time,
		Updated: i.GetUpdatedAt().Time, CommentCount: i.GetComments(),
	}
	return out, wire.CheckIssue(&out, kind)
}

// IssueComments implements codehost.Issues. The client takes the number 0 for all issues.
func (h *Host) IssueComments(ctx context.Context, number int64) ([]codehost.IssueComment, error) {
	if number <= 0 {
		return nil, codehost.ErrNotFound
	}
	all := wire.List[codehost.IssueComment]{Text: func(c codehost.IssueComment) string { return c.Body }}
	return all.Whole(each(ctx, wire.PageSize, func(page sdk.ListOptions) ([]*sdk.IssueComment, *sdk.Response, error) {
		return h.client.Issues.ListComments(ctx, h.at.Owner, h.at.Name, int(number), &sdk.IssueListCommentsOptions{ListOptions: page})
	}, func(c *sdk.IssueComment) error { return all.Add(comment(c)) }))
}

// CommentOnIssue implements codehost.Issues.
func (h *Host) CommentOnIssue(ctx context.Context, number int64, body string) (codehost.IssueComment, error) {
	c, _, err := h.client.Issues.CreateComment(ctx, h.at.Owner, h.at.Name, int(number), sdk.IssueCommentRequest{Body: body})
	if err != nil {
		return codehost.IssueComment{}, wire.Error(ctx, err, kind)
	}
	return comment(c)
}

// comment returns a comment. Only the address of its page says whether it is of a pull request.
func comment(c *sdk.IssueComment) (codehost.IssueComment, error) {
	page, _, _ := strings.Cut(c.GetHTMLURL(), "#")
	out := codehost.IssueComment{
		ID: c.GetID(), Author: c.GetUser().GetLogin(), Body: c.GetBody(), URL: c.GetHTMLURL(), Created: c.GetCreatedAt().Time,
		OfPullRequest: path.Base(path.Dir(page)) == "pull",
	}
	return out, wire.CheckComment(&out, kind)
}
