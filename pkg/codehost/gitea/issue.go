// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gitea

import (
	"context"
	"errors"
	"fmt"
	"slices"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/wire"
)

// OpenIssues implements codehost.Issues. Gitea cannot leave out those that have an assignee.
func (h *Host) OpenIssues(ctx context.Context, unassigned bool, p codehost.Page) (codehost.Listed[codehost.Issue], error) {
	o := sdk.ListIssueOption{State: sdk.StateOpen, Type: sdk.IssueTypeIssue, ListOptions: sdk.ListOptions{Page: p.Number, PageSize: p.Size}}
	page, answer, err := askFor(ctx, h, func(c *sdk.Client) ([]*sdk.Issue, *sdk.Response, error) {
		return c.ListRepoIssues(h.at.Owner, h.at.Name, o)
	})
	if err != nil {
		return codehost.Listed[codehost.Issue]{}, err
	}
	// An old server does not know that pull requests are not asked for.
	issues := slices.DeleteFunc(page, func(i *sdk.Issue) bool {
		return i != nil && (i.PullRequest != nil || unassigned && len(i.Assignees) > 0)
	})
	return wire.Page(issues, answer.NextPage != 0, issue)
}

// Issue implements codehost.Issues.
func (h *Host) Issue(ctx context.Context, number int64) (codehost.Issue, error) {
	i, err := h.issue(ctx, number)
	switch {
	case err != nil:
		return codehost.Issue{}, err
	case i.PullRequest != nil:
		return codehost.Issue{}, codehost.ErrNotFound
	}
	return issue(i)
}

func (h *Host) issue(ctx context.Context, number int64) (*sdk.Issue, error) {
	i, err := ask(ctx, h, func(c *sdk.Client) (*sdk.Issue, *sdk.Response, error) {
		return c.GetIssue(h.at.Owner, h.at.Name, number)
	})
	if err == nil && (i == nil || i.Index != number) {
		err = wire.Malformed(kind)
	}
	return i, err
}

func issue(i *sdk.Issue) (codehost.Issue, error) {
	if i == nil {
		return codehost.Issue{}, wire.Malformed(kind)
	}
	out := codehost.Issue{
		Number: i.Index, Title: i.Title, Body: i.Body, Author: login(i.Poster), Labels: labels(i.Labels), State: codehost.State(i.State), URL: i.HTMLURL,
		Created: i.Created, Updated: i.Updated, CommentCount: i.Comments,
	}
	for _, u := range i.Assignees {
		out.Assignees = append(out.Assignees, login(u))
	}
	return out, wire.CheckIssue(&out, kind)
}

// IssueComments implements codehost.Issues.
func (h *Host) IssueComments(ctx context.Context, number int64) ([]codehost.IssueComment, error) {
	all := wire.List[codehost.IssueComment]{Text: func(c codehost.IssueComment) string { return c.Body }}
	read := pages(ctx, h, func(c *sdk.Client, page sdk.ListOptions) ([]*sdk.Comment, *sdk.Response, error) {
		return c.ListIssueComments(h.at.Owner, h.at.Name, number, sdk.ListIssueCommentOptions{ListOptions: page})
	})
	err := each(read, func(c *sdk.Comment) int64 { return c.ID }, func(c *sdk.Comment) error { return all.Add(comment(c)) })
	return all.Whole(h.missing(ctx, number, err))
}

// CommentOnIssue implements codehost.Issues.
func (h *Host) CommentOnIssue(ctx context.Context, number int64, body string) (codehost.IssueComment, error) {
	o := sdk.CreateIssueCommentOption{Body: body}
	if o.Validate() != nil { // the SDK would not send it
		return codehost.IssueComment{}, fmt.Errorf("%w: a comment needs a text", codehost.ErrRefused)
	}
	c, err := ask(ctx, h, func(c *sdk.Client) (*sdk.Comment, *sdk.Response, error) {
		return c.CreateIssueComment(h.at.Owner, h.at.Name, number, o)
	})
	if err != nil {
		return codehost.IssueComment{}, h.missing(ctx, number, err)
	}
	return comment(c)
}

// missing returns ErrNotFound in place of an error if there is no issue with a number. Gitea answers what is asked about the comments of
// an issue that does not exist as if it had broken down.
func (h *Host) missing(ctx context.Context, number int64, err error) error {
	if errors.Is(err, codehost.ErrUnavailable) {
		if _, found := h.issue(ctx, number); errors.Is(found, codehost.ErrNotFound) {
			return found
		}
	}
	return err
}

func comment(c *sdk.Comment) (codehost.IssueComment, error) {
	out := codehost.IssueComment{ID: c.ID, Author: login(c.Poster), Body: c.Body, URL: c.HTMLURL, Created: c.Created, OfPullRequest: c.PRURL != ""}
	return out, wire.CheckComment(&out, kind)
}
