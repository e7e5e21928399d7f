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
	// Labeling returns who gave an issue or a pull request a label the last time. ErrNotFound means that the label was removed since then,
	// or that the host does not say who it was. Names of labels are compared without regard to case, here and in RemoveLabel.
	Labeling(ctx context.Context, number int64, label string) (Labeling, error)
	// RemoveLabel takes a label from an issue or a pull request; nil if it does not have it.
	RemoveLabel(ctx context.Context, number int64, label string) error
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
	URL string
	// Created is when it was made, and Updated when it was last changed or commented on.
	Created, Updated time.Time
	CommentCount     int
}

// Labeling is how a label was set.
type Labeling struct {
	// Login is who did it, and At when.
	Login string
	At    time.Time
}

// IssueComment is a comment of an issue or of a pull request.
type IssueComment struct {
	ID           int64
	Author, Body string
	// URL is its page for people; empty if the host gave none that a browser may open.
	URL     string
	Created time.Time
	// OfPullRequest is set if it is known to be a comment of a pull request.
	OfPullRequest bool
}
