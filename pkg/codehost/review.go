// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codehost

import (
	"context"
	"errors"
	"time"
)

// ErrMoved means that the head of a pull request is another commit than the one that was named.
var ErrMoved = errors.New("the head of the pull request is another commit now")

// ErrNotMergeable means that the host does not merge a pull request as it is, for example because a review or a check is missing, it
// conflicts, or the way of merging is not allowed.
var ErrNotMergeable = errors.New("the code host does not merge the pull request as it is")

// Reviews is what people and programs do with pull requests.
type Reviews interface {
	// OpenPullRequests returns a page of the open pull requests, the newest first.
	OpenPullRequests(ctx context.Context, p Page) (Listed[PullRequest], error)
	// Files returns the files that a pull request changes, in the host's order, at most MaxFiles. It also reports whether there are more.
	Files(ctx context.Context, number int64) (files []File, more bool, err error)
	// Change returns what a pull request changes: the files, as Files does, and the diff.
	Change(ctx context.Context, number int64) (Change, error)
	// PullRequestReviews returns the submitted reviews of a pull request, the oldest first.
	PullRequestReviews(ctx context.Context, number int64) ([]Review, error)
	// Review submits a review. The host may accept one of a commit that is the head no longer.
	Review(ctx context.Context, number int64, r NewReview) (Review, error)
	// DismissReview takes the approval, or the request for changes, of a review back.
	DismissReview(ctx context.Context, number int64, review int64, why string) error
	// Merge merges a pull request whose head is m.SHA, and returns the commit that it was merged as; empty if the host does not say.
	// Its errors include ErrMoved and ErrNotMergeable. One that has been merged already is ErrNotMergeable.
	Merge(ctx context.Context, number int64, m Merge) (string, error)
	// Readiness returns what a pull request lacks to be merged now.
	Readiness(ctx context.Context, number int64) (Readiness, error)
	// UpdateBranch merges the base branch of a pull request into its head branch, if the head is still the commit head. If nothing is
	// to be merged, it does nothing. The host may do it some time later. Its errors include ErrMoved, and ErrNotMergeable if the two
	// branches conflict or the pull request is not open. What a driver cannot rule out is a push between its look at the head and the
	// merge; it says so.
	UpdateBranch(ctx context.Context, number int64, head string) error
	// Viewer returns the login of the user whose credential is used.
	Viewer(ctx context.Context) (string, error)
}

// Limits of what is read of a pull request.
const (
	MaxFiles = 3000
	MaxDiff  = 4 << 20
)

// Change is what a pull request changes.
type Change struct {
	Files []File
	// Diff has git's format, and at most MaxDiff bytes.
	Diff string
	// MoreFiles and MoreDiff are set if there is more.
	MoreFiles, MoreDiff bool
}

// Page is a part of a list.
type Page struct {
	// Number is the number of the page, from 1, and Size how many items a page has, from 1 to 100.
	Number, Size int
}

// Listed is a page of a list.
type Listed[T any] struct {
	Items []T
	// More is set if there is a page after it.
	More bool
}

// File is a file that a pull request changes.
type File struct {
	Name string
	// Status is added, removed, modified, renamed or changed.
	Status               string
	Additions, Deletions int
	// Patch is the file's part of the diff from its first hunk ("@@"); empty for files that are not text, and if the host leaves it out.
	Patch string
}

// ReviewState is what a review says.
type ReviewState string

// States of reviews.
const (
	Approved         ReviewState = "approved"
	ChangesRequested ReviewState = "changes requested"
	Commented        ReviewState = "commented"
	Dismissed        ReviewState = "dismissed"
)

// Review is a submitted review.
type Review struct {
	ID    int64
	State ReviewState
	// Author is the login of the reviewer.
	Author, Body string
	// URL is its page for people; empty if the host gave none that a browser may open.
	URL string
	// SHA is the commit that the host says was reviewed. A host may change it after a push, so it is not a proof.
	SHA       string
	Submitted time.Time
}

// ReviewEvent is what a new review is to say.
type ReviewEvent string

// Events of reviews, as GitHub names them.
const (
	Approve        ReviewEvent = "APPROVE"
	RequestChanges ReviewEvent = "REQUEST_CHANGES"
	Comment        ReviewEvent = "COMMENT"
)

// NewReview is a review to be submitted.
type NewReview struct {
	Event ReviewEvent
	Body  string
	// SHA is the commit that was reviewed.
	SHA      string
	Comments []NewReviewComment
}

// NewReviewComment is a comment on a line of a file as it is after the change.
type NewReviewComment struct {
	Path string
	Line int
	Body string
}

// MergeMethod is how a pull request is merged.
type MergeMethod string

// Methods of merging.
const (
	MergeCommit MergeMethod = "merge"
	Squash      MergeMethod = "squash"
	Rebase      MergeMethod = "rebase"
)

// Merge is how a pull request is to be merged.
type Merge struct {
	// SHA is the commit that the head must be at.
	SHA    string
	Method MergeMethod
	// Title and Message are those of the commit; empty for the host's own.
	Title, Message string
}

// Checks is what a host knows about the checks of commits.
type Checks interface {
	// CommitChecks returns the newest run of each check of a commit: statuses, and check runs where the host has them.
	CommitChecks(ctx context.Context, sha string) ([]Check, error)
	// RequiredChecks returns which checks a branch requires of what is merged into it.
	RequiredChecks(ctx context.Context, branch string) (Required, error)
}

// CheckState is the outcome of a check.
type CheckState string

// Outcomes of checks. The zero value is an outcome that the platform does not know.
const (
	CheckPassed  CheckState = "passed"
	CheckFailed  CheckState = "failed"
	CheckPending CheckState = "pending"
	// CheckSkipped is a check that did not run, or whose outcome does not matter. A host counts it as passed.
	CheckSkipped CheckState = "skipped"
)

// Check is the newest run of one check of a commit.
type Check struct {
	// Name is the context of a status, or the name of a check run. A status and a check run of one name are two checks.
	Name string
	// State is the outcome, and Said the word that the host has for it.
	State CheckState
	Said  string
	// URL is its page for people; empty if the host gave none that a browser may open.
	URL string
}

// Required is which checks a branch requires.
type Required struct {
	// Unknown is set if the host does not say, for example because the credential may not see it. The rest is empty then.
	Unknown bool
	// Names are the names of the checks.
	Names []string
	// Patterns is set if Names may be patterns of github.com/gobwas/glob, as they may on Gitea.
	Patterns bool
	// Any is set if the branch requires that there is at least one check and that all have passed, whatever their names are.
	Any bool
}
