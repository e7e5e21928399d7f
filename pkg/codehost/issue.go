// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codehost

import (
	"context"
	"time"
)

// Issues is what people write about a repository. Pull requests are no issues, but have comments, too.
type Issues interface {
	// OpenIssues returns a page of the open issues, the newest first. With unassigned, those that have an assignee are left out, and a
	// page may have fewer items than asked for although there are more.
	OpenIssues(ctx context.Context, unassigned bool, p Page) (Listed[Issue], error)
	// Issue returns the issue with a number; ErrNotFound if it is the number of a pull request.
	Issue(ctx context.Context, number int64) (Issue, error)
	// IssueComments returns the comments of an issue or of the conversation of a pull request, the oldest first.
	IssueComments(ctx context.Context, number int64) ([]IssueComment, error)
	// CommentOnIssue writes a comment on an issue, or in the conversation of a pull request.
	CommentOnIssue(ctx context.Context, number int64, body string) (IssueComment, error)
}

// Issue is an issue as the host describes it.
type Issue struct {
	Number int64
	// Title and Body are what somebody wrote, and Author is the login of who made it.
	Title, Body, Author string
	Labels, Assignees   []string
	// State is Open or Closed.
	State State
	// URL is its page for people; empty if the host gave none that a browser may open.
	URL          string
	Created      time.Time
	CommentCount int
}

// IssueComment is a comment of an issue or of a pull request.
type IssueComment struct {
	ID           int64
	Author, Body string
	// URL is its page for people; empty if the host gave none that a browser may open.
	URL     string
	Created time.Time
}
