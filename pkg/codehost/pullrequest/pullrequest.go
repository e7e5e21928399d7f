// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pullrequest makes exactly one pull request for an intent, on any code host, however often it is asked to.
//
// Hosts offer neither a key for the creation of a pull request nor, all of them, a creation that refuses a second one: Gitea looks
// before it makes one, so two requests at once make two. The key is therefore written into the body, as a comment, and everything
// begins with a look:
//
//  1. A pull request from the branch with the key's comment is the one, whatever became of it. If there are several, the one with the
//     lowest number is, and the others are closed that are open and go to the same branch. Everybody who looks later decides the same.
//  2. Otherwise an open one with the same branches is adopted. Its text stays as somebody wrote it.
//  3. Otherwise one is made, unless the branches are not what the order says. Then follows another look, for one that was made at the
//     same time. When the host's answer was lost, or says that there is one, nothing more is made: the looks are repeated for some
//     seconds, as the lists of hosts lag.
//
// Nothing is kept between two calls, so a process may be killed at any point and the order repeated. A pull request counts only if its
// branch belongs to the same repository, so nobody without the right to push there can pass one off as the platform's.
package pullrequest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/codehost"
)

// ErrUnknown means that the host was asked to make the pull request, and that whether it did is not known. Repeating the order is safe.
var ErrUnknown = errors.New("the code host was asked to make the pull request, and whether it did is not known")

// Outcome says whether the pull request is as it was ordered.
type Outcome string

// Outcomes. With those up to Merged there is a receipt.
const (
	// Open: it is open, and its branches and its commit are as ordered.
	Open Outcome = "Open"
	// HeadMoved: the branch is at another commit. Without a receipt nothing was made.
	HeadMoved Outcome = "HeadMoved"
	// Retargeted: it is open and goes to another branch, as after the renaming of a branch.
	Retargeted Outcome = "Retargeted"
	// BaseMissing: there is no such branch to merge into. Without a receipt nothing was made.
	BaseMissing Outcome = "BaseMissing"
	// Closed: somebody closed it, or the host did with a branch of it.
	Closed Outcome = "Closed"
	// Merged: it was merged.
	Merged Outcome = "Merged"

	// HeadMissing: there is no such branch with changes, and nothing was made.
	HeadMissing Outcome = "HeadMissing"
	// NothingToMerge: both branches are the same, and nothing was made.
	NothingToMerge Outcome = "NothingToMerge"
	// OtherRepository: the repository of this name is not the one that was ordered, and nothing was made.
	OtherRepository Outcome = "OtherRepository"
	// Gone: there is no pull request of the number that an earlier order got.
	Gone Outcome = "Gone"
)

// How says where a pull request comes from.
type How string

// Ways to get a pull request.
const (
	// Created: this call made it.
	Created How = "Created"
	// Found: an earlier call, or another one at the same time, made it.
	Found How = "Found"
	// Adopted: somebody else made it.
	Adopted How = "Adopted"
)

// Answer says what became of an order.
type Answer struct {
	Outcome Outcome `json:"outcome"`
	How     How     `json:"how,omitempty"`
	// Receipt describes the pull request as the host does now; nil if there is none.
	Receipt *v1alpha1.PullRequestReceipt `json:"receipt,omitempty"`
}

// Reconcile sees to it that there is exactly one pull request for the order's key, and describes it. An error that is neither ErrOrder
// nor ErrUnknown is one of codehost's, and then nothing was made.
func Reconcile(ctx context.Context, host codehost.Host, o Order) (Answer, error) {
	return reconciler{host: host, order: o, wait: wait}.reconcile(ctx)
}

// looks is how often a host is asked for what it has but may not show yet, and firstWait the pause after the first look. Each pause is
// twice the one before, which makes six seconds.
const (
	looks     = 7
	firstWait = 100 * time.Millisecond
	// skew is how much the clock of a host may be wrong.
	skew = 24 * time.Hour
)

func wait(ctx context.Context, d time.Duration) error {
	timer := clock.RealClock{}.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

type reconciler struct {
	host  codehost.Host
	order Order
	// base is the branch to merge into.
	base string
	wait func(ctx context.Context, d time.Duration) error
}

func (r reconciler) reconcile(ctx context.Context) (Answer, error) {
	if err := r.order.Validate(); err != nil {
		return Answer{}, err
	}
	repository, err := r.host.Repository(ctx)
	if err != nil {
		return Answer{}, err
	}
	if want := r.order.Repository; want != (v1alpha1.RepositoryIdentity{}) && want != repository.RepositoryIdentity {
		return Answer{Outcome: OtherRepository}, nil
	}
	if r.base = r.order.Base; r.base == "" {
		r.base = repository.DefaultBranch
	}
	if r.order.Number > 0 {
		return r.again(ctx)
	}
	found, how, err := r.look(ctx)
	if err != nil {
		return Answer{}, err
	}
	if found != nil {
		return r.describe(ctx, *found, how)
	}
	if o, err := r.obstacle(ctx); err != nil || o != "" {
		return Answer{Outcome: o}, err
	}
	return r.create(ctx)
}

// again describes the pull request that an earlier order got.
func (r reconciler) again(ctx context.Context) (Answer, error) {
	p, err := r.host.PullRequest(ctx, r.order.Number)
	if errors.Is(err, codehost.ErrNotFound) {
		return Answer{Outcome: Gone}, nil
	}
	if err != nil {
		return Answer{}, err
	}
	how := Adopted
	if r.order.has(p) {
		how = Found
	}
	return r.describe(ctx, p, how)
}

// look finds the pull request of the key, or one to adopt; nil if there is neither. also are pull requests that exist although the host
// may not list them yet.
func (r reconciler) look(ctx context.Context, also ...codehost.PullRequest) (*codehost.PullRequest, How, error) {
	since := r.order.Since
	if !since.IsZero() {
		since = since.Add(-skew)
	}
	all, err := r.host.PullRequests(ctx, r.order.Head, since)
	if err != nil {
		return nil, "", err
	}
	var ours, others []codehost.PullRequest
	for _, p := range append(all, also...) {
		switch {
		case r.order.has(p):
			ours = append(ours, p)
		case p.State == codehost.Open && p.Base == r.base:
			others = append(others, p)
		}
	}
	byNumber := func(a, b codehost.PullRequest) int { return int(a.Number - b.Number) }
	slices.SortStableFunc(ours, byNumber)
	slices.SortStableFunc(others, byNumber)
	switch {
	case len(ours) > 0:
		return &ours[0], Found, r.close(ctx, ours)
	case len(others) > 0:
		return &others[0], Adopted, nil
	}
	return nil, "", nil
}

// close closes the pull requests of the key that were made twice. One that goes to another branch was made by a person, who copied the
// text.
func (r reconciler) close(ctx context.Context, ours []codehost.PullRequest) error {
	for _, p := range ours[1:] {
		if p.Number == ours[0].Number || p.State != codehost.Open || p.Base != ours[0].Base {
			continue
		}
		err := r.host.ClosePullRequest(ctx, p.Number)
		if err == nil {
			continue
		}
		// Another caller may have closed it at the same time, at which Gitea fails.
		if now, look := r.host.PullRequest(ctx, p.Number); look != nil || now.State == codehost.Open {
			return fmt.Errorf("close the second pull request of one publication, number %d: %w", p.Number, err)
		}
	}
	return nil
}

// obstacle says why a pull request of these branches is not made; empty if it is.
func (r reconciler) obstacle(ctx context.Context) (Outcome, error) {
	head, err := r.host.Head(ctx, r.order.Head)
	switch {
	case errors.Is(err, codehost.ErrNotFound):
		return HeadMissing, nil
	case err != nil:
		return "", err
	case head != r.order.HeadSHA:
		return HeadMoved, nil
	case r.base == "":
		return BaseMissing, nil
	}
	base, err := r.host.Head(ctx, r.base)
	switch {
	case errors.Is(err, codehost.ErrNotFound):
		return BaseMissing, nil
	case err != nil:
		return "", err
	case base == head:
		return NothingToMerge, nil
	}
	return "", nil
}

// create makes the pull request.
func (r reconciler) create(ctx context.Context) (Answer, error) {
	made, asked := r.host.CreatePullRequest(ctx, codehost.NewPullRequest{Title: r.order.Title, Body: r.order.body(), Base: r.base, Head: r.order.Head})
	switch {
	case asked == nil:
		first, _, err := r.look(ctx, made)
		if err != nil {
			return Answer{}, fmt.Errorf("%w: %w", ErrUnknown, err) // another may exist
		}
		if first.Number != made.Number {
			return r.describe(ctx, *first, Found)
		}
		return r.describe(ctx, made, Created)
	case ctx.Err() != nil:
		return Answer{}, fmt.Errorf("%w: %w", ErrUnknown, asked)
	case errors.Is(asked, codehost.ErrConflict), errors.Is(asked, codehost.ErrUnavailable):
		return r.seek(ctx, asked)
	}
	// The host refused. If the branches have changed in between, that is the reason.
	if errors.Is(asked, codehost.ErrRefused) || errors.Is(asked, codehost.ErrNotFound) {
		if o, err := r.obstacle(ctx); err != nil || o != "" {
			return Answer{Outcome: o}, err
		}
	}
	return Answer{}, asked
}

// seek looks for a pull request that the host said it has, or was asked for.
func (r reconciler) seek(ctx context.Context, asked error) (Answer, error) {
	pause := firstWait
	for n := 1; ; n++ {
		found, how, err := r.look(ctx)
		switch {
		case err == nil && found != nil:
			return r.describe(ctx, *found, how)
		case n == looks && err != nil:
			return Answer{}, fmt.Errorf("%w: %w", ErrUnknown, err)
		case n == looks:
			return Answer{}, fmt.Errorf("%w: %w", ErrUnknown, asked)
		}
		if err := r.wait(ctx, pause); err != nil {
			return Answer{}, fmt.Errorf("%w: %w", ErrUnknown, err)
		}
		pause *= 2
	}
}

// describe says whether a pull request is as it was ordered. Hosts update its commit some time after the branch, so it is read again as
// long as the branch is at the ordered commit.
func (r reconciler) describe(ctx context.Context, p codehost.PullRequest, how How) (Answer, error) {
	pause := firstWait
	for n := 1; ; n++ {
		outcome, late, err := r.outcome(ctx, p)
		if err != nil {
			return Answer{}, err
		}
		if !late || n == looks {
			return Answer{Outcome: outcome, How: how, Receipt: receipt(p)}, nil
		}
		if err := r.wait(ctx, pause); err != nil {
			return Answer{}, err
		}
		pause *= 2
		if p, err = r.host.PullRequest(ctx, p.Number); err != nil {
			return Answer{}, err
		}
	}
}

// outcome also reports whether what the host says about the commit may be late.
func (r reconciler) outcome(ctx context.Context, p codehost.PullRequest) (o Outcome, late bool, err error) {
	switch {
	case p.State == codehost.Merged:
		return Merged, false, nil
	case p.State == codehost.Closed:
		return Closed, false, nil
	case r.order.Base != "" && p.Base != r.order.Base:
		return Retargeted, false, nil
	case p.HeadSHA != r.order.HeadSHA:
		head, err := r.host.Head(ctx, r.order.Head)
		if err != nil && !errors.Is(err, codehost.ErrNotFound) {
			return "", false, err
		}
		return HeadMoved, head == r.order.HeadSHA, nil
	}
	if _, err := r.host.Head(ctx, p.Base); errors.Is(err, codehost.ErrNotFound) {
		return BaseMissing, false, nil
	} else if err != nil {
		return "", false, err
	}
	return Open, false, nil
}

func receipt(p codehost.PullRequest) *v1alpha1.PullRequestReceipt {
	return &v1alpha1.PullRequestReceipt{
		ID: p.ID, Number: p.Number, URL: p.URL, State: string(p.State), BaseBranch: p.Base, HeadBranch: p.Head, HeadSHA: p.HeadSHA,
	}
}
