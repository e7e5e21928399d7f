// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operation carries out the tools for pull requests and issues on a code host, and what monitors ask of it besides.
//
// # Once
//
// A call that writes has a Key, which is the same when the call is repeated and which nobody can guess. A review and a comment contain it
// in a comment that readers do not see. Before one is written, the host is asked whether it is there already; after an answer that did not
// come, the host is asked again, for some seconds, because its lists lag. If it is still not there the outcome is unknown, and nothing is
// written a second time. A pull request has the key of its publication (package pullrequest). A merge needs no key: it names the commit
// that it merges.
//
// # Heads
//
// A review and a merge are of one commit: that which the caller has seen (Call.HeadSHA), or else the one that is found first. If the head
// is another one, nothing is written. Hosts accept reviews of a commit that is no longer the head, so the head is read again after a
// review was written, and one that no longer is of the head, and approves, is dismissed.
//
// # Texts
//
// Texts that are written must not look as if they contained a secret, and must not contain the hidden comments of the platform, except
// that the body of a review may have the marker of its own head (package marker). Texts that are read were written by strangers; they are
// bounded, and nothing else is done to them.
package operation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/marker"
	"github.com/platform-ai/platform/pkg/codehost/pullrequest"
	"github.com/platform-ai/platform/pkg/egress"
)

// Tool is what is known of a tool before it is called.
type Tool struct {
	// Writes is set for tools that change something on the host.
	Writes bool
	// Issues is set for tools of the repository where the work comes from; the others are of the one it is published to.
	Issues bool
	// Collaborates is set for what only the credential of somebody who may write can read.
	Collaborates bool

	do func(context.Context, *Place, Call) (any, error)
}

// Find returns the tool with the given name, and false if there is none.
func Find(name string) (Tool, bool) {
	t, ok := tools()[name]
	return t, ok
}

// CreatePullRequest is the name of the tool that needs a publication.
const CreatePullRequest = "create_pull_request"

func tools() map[string]Tool {
	return map[string]Tool{
		CreatePullRequest:         {Writes: true, do: with(createPullRequest)},
		"check_pull_request_ci":   {do: with(checkCI)},
		"review_pull_request":     {do: with(readPullRequest)},
		"post_review_comment":     {Writes: true, do: with(postReview)},
		"merge_pull_request":      {Writes: true, do: with(merge)},
		"auto_merge_pull_request": {Writes: true, do: with(autoMerge)},
		"list_pull_requests":      {do: with(listPullRequests)},
		"check_pr_review_marker":  {do: with(checkMarker)},
		"list_issues":             {Issues: true, do: with(listIssues)},
		"get_issue":               {Issues: true, do: with(getIssue)},
		"comment_on_issue":        {Writes: true, Issues: true, do: with(commentOnIssue)},

		OpenPullRequests: {do: with(openPullRequests)},
		OpenIssues:       {do: with(openIssues)},
		PullRequestState: {do: with(pullRequestState)},
		IssueState:       {do: with(issueState)},
		ActorPermission:  {Collaborates: true, do: with(actorPermission)},
		RemoveLabel:      {Writes: true, do: with(removeLabel)},
		UpdateBranch:     {Writes: true, do: with(updateBranch)},
		LabelActor:       {do: with(labelActor)},
		PostedReview:     {do: with(postedReview)},
		Repository:       {do: with(repositoryState)},
	}
}

// with decodes the arguments, which satisfy the schema of the tool.
func with[A any](do func(ctx context.Context, p *Place, c Call, a A) (any, error)) func(context.Context, *Place, Call) (any, error) {
	return func(ctx context.Context, p *Place, c Call) (any, error) {
		var a A
		if err := json.Unmarshal(c.Arguments, &a); err != nil {
			return nil, invalid("%v", err)
		}
		return do(ctx, p, c, a)
	}
}

// Call is one call of a tool.
type Call struct {
	Tool string
	// Arguments satisfy the schema of the tool.
	Arguments json.RawMessage
	// Key identifies the call among all others. It consists of letters and digits, and cannot be guessed.
	Key string
	// HeadSHA is the commit that the caller has seen as the head of the pull request; empty if it has seen none.
	HeadSHA string
}

// Place is where calls are carried out.
type Place struct {
	Host codehost.Host
	// Repository is OWNER/NAME.
	Repository string
	// Markers makes and finds the marks of reviews.
	Markers marker.Keys
	// TrustedAuthor is the login whose marks without a signature are believed; empty for the user of the credential.
	TrustedAuthor string
	// Publication is what create_pull_request makes a pull request of; nil for other tools.
	Publication *Publication
	// Receipt is set by create_pull_request: the pull request that there is then.
	Receipt *v1alpha1.PullRequestReceipt
	// Adopted is set with Receipt if somebody else has created the pull request.
	Adopted bool
	// Worked is set by what reviews, merges or comments on a pull request, once the host has confirmed that.
	Worked *Worked
	Clock  clock.Clock
}

// Worked is what a call did with a pull request.
type Worked struct {
	Number int64
	// ID, URL, HeadSHA and State are what the host said of it; empty if it was not asked.
	ID, URL, HeadSHA string
	State            codehost.State
	// Reviewed is set if it was reviewed, and nothing else was done.
	Reviewed bool
	// Evidence identifies the review, the merge or the comment.
	Evidence string
}

func worked(is codehost.PullRequest, evidence string) *Worked {
	return &Worked{Number: is.Number, ID: is.ID, URL: is.URL, HeadSHA: is.HeadSHA, State: is.State, Evidence: evidence}
}

// Publication is a branch that a task has published and that was seen on the host afterwards.
type Publication struct {
	// Key, Generation and Since are those of the publication (pullrequest.Order).
	Key        string
	Generation int64
	Since      time.Time
	// Branch is the branch, and SHA the commit that it was seen at.
	Branch, SHA string
}

// Error is why a call was not made, for the model and for people. It contains nothing that a host sent.
type Error struct {
	Reason  v1alpha1.TaskCodeHostFailureReason
	Message string
	// RetryAfter is when the host answers again; 0 if it does not say.
	RetryAfter time.Duration
}

func (e *Error) Error() string { return e.Message }

func invalid(format string, a ...any) *Error {
	return &Error{Reason: v1alpha1.CodeHostInvalidArguments, Message: fmt.Sprintf(format, a...)}
}

func refused(format string, a ...any) *Error {
	return &Error{Reason: v1alpha1.CodeHostRefused, Message: fmt.Sprintf(format, a...)}
}

// Do carries out a call. The result can be encoded as JSON. An error is an *Error, or the cause of the end of ctx.
func Do(ctx context.Context, p *Place, c Call) (any, error) {
	t, ok := Find(c.Tool)
	if !ok {
		return nil, invalid("there is no tool %.64q", c.Tool)
	}
	result, err := t.do(ctx, p, c)
	if err != nil {
		return nil, Explain(err, p.Clock.Now())
	}
	return result, nil
}

// Explain returns the Error for an error of a code host. Other errors are returned as they are.
func Explain(err error, now time.Time) error {
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	e := &Error{Message: err.Error()}
	limited, isLimited := errors.AsType[*codehost.RateLimitError](err)
	switch {
	case errors.Is(err, errUnknown), errors.Is(err, pullrequest.ErrUnknown):
		e.Reason = v1alpha1.CodeHostOutcomeUnknown
	case isLimited:
		e.Reason = v1alpha1.CodeHostRateLimited
		if wait := limited.Until.Sub(now); !limited.Until.IsZero() && wait > 0 {
			e.RetryAfter = wait
		}
	case errors.Is(err, pullrequest.ErrOrder), errors.Is(err, codehost.ErrAddress):
		e.Reason = v1alpha1.CodeHostInvalidArguments
	case errors.Is(err, codehost.ErrNotFound):
		e.Reason = v1alpha1.CodeHostNotFound
	case errors.Is(err, codehost.ErrCredential), errors.Is(err, egress.ErrRefused):
		e.Reason = v1alpha1.CodeHostDenied
	case errors.Is(err, codehost.ErrRedirect), errors.Is(err, codehost.ErrConflict), errors.Is(err, codehost.ErrRefused), errors.Is(err, codehost.ErrMoved), errors.Is(err, codehost.ErrNotMergeable):
		e.Reason = v1alpha1.CodeHostRefused
	case errors.Is(err, codehost.ErrUnavailable):
		e.Reason = v1alpha1.CodeHostUnavailable
	default:
		return err
	}
	return e
}

// Seconds returns a time in whole seconds, rounded up.
func (e *Error) Seconds() int64 { return int64(math.Ceil(e.RetryAfter.Seconds())) }

// errUnknown means that what was to be written may be there.
var errUnknown = errors.New("the code host did not answer, and what was asked for is not to be seen, so whether it was done is not known")

// written returns what a call has written: what find finds before, what write returns, or what find finds when the answer of write did
// not come.
func written[T any](ctx context.Context, p *Place, find func(context.Context) (*T, error), write func(context.Context) (T, error)) (*T, error) {
	if there, err := find(ctx); there != nil || err != nil {
		return there, err
	}
	made, err := write(ctx)
	if err == nil {
		return &made, nil
	}
	if !errors.Is(err, codehost.ErrUnavailable) && ctx.Err() == nil {
		return nil, err
	}
	for _, pause := range lag() {
		if there, err := find(ctx); there != nil && err == nil {
			return there, nil
		}
		select {
		case <-ctx.Done():
			return nil, errUnknown
		case <-p.Clock.After(pause):
		}
	}
	if there, err := find(ctx); there != nil && err == nil {
		return there, nil
	}
	return nil, errUnknown
}

// lag is how long a host is given to show what it has accepted, in steps.
func lag() []time.Duration { return []time.Duration{time.Second, 2 * time.Second, 3 * time.Second} }
