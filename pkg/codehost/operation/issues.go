// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"context"
	"fmt"

	"github.com/platform-ai/platform/pkg/codehost"
)

const (
	defaultPerPage = 30
	// maxIssueBody is how much of the body of an issue is listed, in characters.
	maxIssueBody = 500
	// maxText is how much of one text is read, in bytes, and maxComments how many comments of an issue are: the newest.
	maxText     = 64 << 10
	maxComments = 100
)

type listIssuesArguments struct {
	UnassignedOnly *bool `json:"unassigned_only"`
	PerPage        int   `json:"per_page"`
	Page           int   `json:"page"`
}

// issue is an issue of a list. Only one that is read alone has comments.
type issue struct {
	Number       int64    `json:"number"`
	Title        string   `json:"title"`
	Body         string   `json:"body"`
	Author       string   `json:"author"`
	Labels       []string `json:"labels"`
	Assignees    []string `json:"assignees"`
	State        string   `json:"state"`
	CreatedAt    string   `json:"created_at"`
	HTMLURL      string   `json:"html_url"`
	CommentCount int      `json:"comment_count"`
}

type issueList struct {
	Issues      []issue `json:"issues"`
	Count       int     `json:"count"`
	HasNextPage bool    `json:"has_next_page"`
}

func listIssues(ctx context.Context, p *Place, _ Call, a listIssuesArguments) (any, error) {
	found, err := p.Host.OpenIssues(ctx, a.UnassignedOnly == nil || *a.UnassignedOnly, page(a.Page, a.PerPage))
	if err != nil {
		return nil, err
	}
	list := issueList{Issues: []issue{}, Count: len(found.Items), HasNextPage: found.More}
	for _, is := range found.Items {
		list.Issues = append(list.Issues, issueOf(&is, characters(is.Body, maxIssueBody)))
	}
	return list, nil
}

func page(number, size int) codehost.Page {
	if number == 0 {
		number = 1
	}
	if size == 0 {
		size = defaultPerPage
	}
	return codehost.Page{Number: number, Size: size}
}

func issueOf(is *codehost.Issue, body string) issue {
	return issue{
		Number: is.Number, Title: characters(is.Title, maxTitle), Body: body, Author: is.Author, Labels: list(is.Labels), Assignees: list(is.Assignees), State: string(is.State),
		CreatedAt: date(is.Created), HTMLURL: is.URL, CommentCount: is.CommentCount,
	}
}

type issueArguments struct {
	Number int64 `json:"issue_number"`
}

type comment struct {
	Author    string `json:"author"`
	Body      string `json:"body"`
	CreatedAt string `json:"created_at"`
}

type issueRead struct {
	issue
	Comments []comment `json:"comments"`
	// CommentsLeftOut is how many older comments are missing, and Shortened is set if texts are.
	CommentsLeftOut int  `json:"comments_left_out,omitempty"`
	Shortened       bool `json:"shortened,omitempty"`
}

func getIssue(ctx context.Context, p *Place, _ Call, a issueArguments) (any, error) {
	is, err := p.Host.Issue(ctx, a.Number)
	if err != nil {
		return nil, err
	}
	all, err := p.Host.IssueComments(ctx, a.Number)
	if err != nil {
		return nil, err
	}
	out := issueRead{Comments: []comment{}}
	out.CommentsLeftOut = max(0, len(all)-maxComments)
	left := budget(maxRead)
	body, cut := left.take(is.Body, maxText)
	out.issue, out.Shortened = issueOf(&is, body), cut
	for _, c := range all[out.CommentsLeftOut:] {
		body, cut := left.take(c.Body, maxText)
		out.Shortened = out.Shortened || cut
		out.Comments = append(out.Comments, comment{Author: c.Author, Body: body, CreatedAt: date(c.Created)})
	}
	return out, nil
}

type commentArguments struct {
	Number int64  `json:"issue_number"`
	Body   string `json:"body"`
}

type commented struct {
	CommentID int64  `json:"comment_id"`
	HTMLURL   string `json:"html_url"`
	Status    string `json:"status"`
}

func commentOnIssue(ctx context.Context, p *Place, c Call, a commentArguments) (any, error) {
	if err := checkText("body", a.Body); err != nil {
		return nil, err
	}
	made, err := written(ctx, p, func(ctx context.Context) (*codehost.IssueComment, error) {
		all, err := p.Host.IssueComments(ctx, a.Number)
		return ours(all, func(c *codehost.IssueComment) string { return c.Body }, c.Key), err
	}, func(ctx context.Context) (codehost.IssueComment, error) {
		return p.Host.CommentOnIssue(ctx, a.Number, a.Body+"\n\n"+mark(c.Key, ""))
	})
	if err != nil {
		return nil, err
	}
	if made.OfPullRequest {
		p.Worked = &Worked{Number: a.Number, Evidence: fmt.Sprintf("comment-%d", made.ID)}
	}
	return commented{CommentID: made.ID, HTMLURL: made.URL, Status: "commented"}, nil
}
