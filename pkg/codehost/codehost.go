// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package codehost is what the platform asks of the servers that people review code on: which repository has an address, where a branch
// is, and pull requests. Each code host has a driver in a folder below; package providers finds the driver of an address, and package
// pullrequest makes exactly one pull request of a publication.
//
// # What a driver keeps to
//
//   - It reaches the host through the transport of its Remote alone, and never follows a redirect: the credential goes where the caller
//     allowed, and a repository that was renamed is not mistaken for the one that was asked for (ErrRedirect).
//   - Each request ends within Remote.Patience, and an answer has a largest size.
//   - Lists are read to their end.
//   - A name becomes part of a path only if it can name one thing there: a commit, a login, a label.
//   - Its errors are those below. Their text contains neither what the host sent nor the credential.
//   - What it returns of a pull request has been checked as far as its form goes. Texts in it were written by anybody.
package codehost

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Errors of a code host. The text of an error never contains what a host sent.
var (
	// ErrAddress means that an address does not name a repository of a code host.
	ErrAddress = errors.New("the address names no repository of a code host")
	// ErrNotFound means that the host has no such repository, branch or pull request, or hides it from this credential.
	ErrNotFound = errors.New("the code host has no such thing, or does not show it without another credential")
	// ErrCredential means that the host refuses the credential, wants one, or does not allow this one to do what was asked.
	ErrCredential = errors.New("the code host refuses the credential, or wants one that may do more")
	// ErrRedirect means that the host names another address, as it does for a repository that was renamed or moved.
	ErrRedirect = errors.New("the code host redirects to another address, which is not followed")
	// ErrRateLimited means that the host answers no more requests for some time. The error is a *RateLimitError.
	ErrRateLimited = errors.New("the code host answers no more requests for some time")
	// ErrConflict means that what was to be made exists already.
	ErrConflict = errors.New("the code host says that it exists already")
	// ErrRefused means that the host refuses the request for what is in it, for example a branch that does not exist.
	ErrRefused = errors.New("the code host refuses the request")
	// ErrUnavailable means that the host cannot be reached or does not answer properly. Whether it did what was asked is not known.
	// Another attempt may succeed.
	ErrUnavailable = errors.New("the code host cannot be reached, or does not answer properly")
)

// RateLimitError is ErrRateLimited with the time.
type RateLimitError struct {
	// Until is when requests are answered again; zero if the host does not say.
	Until time.Time
}

// Error names the time.
func (e *RateLimitError) Error() string {
	if e.Until.IsZero() {
		return ErrRateLimited.Error()
	}
	return fmt.Sprintf("%v, until %s", ErrRateLimited, e.Until.UTC().Format(time.RFC3339))
}

// Unwrap returns ErrRateLimited.
func (*RateLimitError) Unwrap() error { return ErrRateLimited }

// Providers, as v1alpha1.RepositoryIdentity names them.
const (
	GitHub = "github"
	Gitea  = "gitea"
)

// Remote is a repository on a code host, and how the host is reached.
type Remote struct {
	// URL is the address of the repository, as people and git use it: https://HOST/OWNER/NAME, with .git or without, and without
	// credentials, query and fragment.
	URL string
	// Token is the credential; empty for none. It is sent to the host of the API, which for github.com is api.github.com. Drivers take
	// it from Credential.
	Token string
	// Transport sends the requests. Where they may go is its decision.
	Transport http.RoundTripper
	// Patience is how long one request may take, with its answer; 0 for DefaultPatience.
	Patience time.Duration
}

// DefaultPatience is how long one request may take if the caller does not say.
const DefaultPatience = 30 * time.Second

// Host is a code host, as far as one repository is concerned.
type Host interface {
	// Repository returns what the host knows about the repository now.
	Repository(ctx context.Context) (Repository, error)
	// Head returns the commit of a branch; ErrNotFound if there is no such branch.
	Head(ctx context.Context, branch string) (string, error)
	// PullRequests returns the pull requests from a branch of this repository, open, closed and merged ones, the newest first. Closed
	// and merged ones that were made before since may be left out; the zero time leaves none out.
	PullRequests(ctx context.Context, head string, since time.Time) ([]PullRequest, error)
	// PullRequest returns the pull request with a number.
	PullRequest(ctx context.Context, number int64) (PullRequest, error)
	// CreatePullRequest makes a pull request. The host may refuse to make a second one of the same two branches (ErrConflict).
	CreatePullRequest(ctx context.Context, p NewPullRequest) (PullRequest, error)
	// ClosePullRequest closes a pull request without merging it.
	ClosePullRequest(ctx context.Context, number int64) error
	// Permission returns what a user may do in the repository now; None for a login that the host does not know or that cannot be one.
	// ErrCredential means that the host does not show it to the user of the credential, who has to be an administrator of the
	// repository on Gitea, and may push to it on GitHub.
	Permission(ctx context.Context, login string) (Permission, error)

	Reviews
	Checks
	Issues
}

// Repository is a repository, independently of its address.
type Repository struct {
	v1alpha1.RepositoryIdentity
	// DefaultBranch is the branch that pull requests go to if nothing else is said; empty for an empty repository.
	DefaultBranch string
}

// State is the state of a pull request.
type State string

// States of a pull request.
const (
	Open   State = "open"
	Closed State = "closed"
	Merged State = "merged"
)

// PullRequest is a pull request as the host describes it.
type PullRequest struct {
	// ID is the host's own identifier, and Number the number that people use in this repository.
	ID     string
	Number int64
	// URL is its page for people; empty if the host gave none that a browser may open.
	URL   string
	State State
	// Base is the branch that it is to be merged into. Head is the branch that it comes from, and HeadSHA the commit it is at.
	Base, Head, HeadSHA string
	// HeadRepository is the OWNER/NAME of the repository that Head is in, as the host spells it: this one, or a fork. It is empty if
	// the host has that repository no longer, or does not show it.
	HeadRepository string
	// Title and Body are what somebody wrote, and Author is the login of who made it.
	Title, Body, Author string
	// Labels are the names of its labels.
	Labels []string
	// Draft is set while it is not to be reviewed yet.
	Draft bool
	// Mergeable says whether the host can merge it without a conflict.
	Mergeable Mergeable
	// MergeSHA is the commit that it was merged as; empty if it was not, or the host does not say.
	MergeSHA string
	// Created is when it was made, Merged when it was merged, and Closed when it was closed or merged. The last two are zero if it was
	// not, and for one that is open again.
	Created, Merged, Closed time.Time
}

// Mergeable says whether a pull request can be merged without a conflict.
type Mergeable string

// Values of Mergeable. The zero value means that the host has not found out yet, as it is in all lists of GitHub.
const (
	Clean       Mergeable = "clean"
	Conflicting Mergeable = "conflicting"
)

// NewPullRequest is a pull request to be made between two branches of the repository.
type NewPullRequest struct {
	Title, Body string
	Base, Head  string
}
