// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gitea

import (
	"context"
	"errors"
	"fmt"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/checks"
	"github.com/platform-ai/platform/pkg/codehost/wire"
)

// Readiness implements codehost.Reviews. Gitea says only whether a pull request conflicts, so the rules of its base branch are compared
// here with its reviews and checks. The pull request is read once more at the end, since all that lies between must be about its head.
// What only a merge finds out is left to it: whether issues have to be closed first, and whether the server can sign the commit.
func (h *Host) Readiness(ctx context.Context, number int64) (codehost.Readiness, error) {
	p, err := h.PullRequest(ctx, number)
	if err != nil {
		return codehost.Readiness{}, err
	}
	reason := wire.Unready(p)
	switch {
	case reason == "":
		if reason, err = h.lacks(ctx, p); err != nil {
			return codehost.Readiness{}, err
		}
	case p.Mergeable == codehost.Conflicting:
		reason += ", or the code host has not found out yet that it does not"
	}
	return codehost.Readiness{PullRequest: p, Ready: reason == "", Reason: reason}, nil
}

// lacks returns what a pull request lacks that does not conflict; empty if it is nothing.
func (h *Host) lacks(ctx context.Context, p codehost.PullRequest) (string, error) {
	base, err := h.branch(ctx, p.Base)
	if err != nil {
		return "", err
	}
	c := candidate{h, p, base}
	for _, look := range []func(context.Context) (string, error){c.checks, c.rules, c.again} {
		if reason, err := look(ctx); reason != "" || err != nil {
			return reason, err
		}
	}
	return "", nil
}

// candidate is a pull request that may be ready to be merged into a branch. Its methods return what it lacks; empty if it is nothing.
type candidate struct {
	host *Host
	pull codehost.PullRequest
	base *sdk.Branch
}

// checks looks at the checks of the head, which have passed or are none.
func (c candidate) checks(ctx context.Context) (string, error) {
	required, err := requiredBy(c.base)
	if err != nil {
		return "", err
	}
	found, err := c.host.CommitChecks(ctx, c.pull.HeadSHA)
	if err != nil {
		return "", err
	}
	switch checks.Evaluate(c.pull, found, required).Status {
	case checks.Passed, checks.NoChecks:
		return "", nil
	}
	return wire.CheckFailed, nil
}

// rules looks at the rules of the branch.
func (c candidate) rules(ctx context.Context) (string, error) {
	if !c.base.Protected {
		return "", nil
	}
	rule, err := c.host.protection(ctx, c.base)
	switch {
	case errors.Is(err, codehost.ErrCredential), errors.Is(err, codehost.ErrNotFound):
		return "the base branch has rules, which the code host shows only to administrators of the repository", nil
	case err != nil:
		return "", err
	case rule.ProtectedFilePatterns != "":
		return "the base branch protects files, which the platform does not compare with those of the pull request", nil
	}
	if reason, err := c.reviews(ctx, rule); reason != "" || err != nil || !rule.BlockOnOutdatedBranch {
		return reason, err
	}
	behind, err := c.host.behind(ctx, c.pull, c.base)
	if err != nil || !behind {
		return "", err
	}
	return wire.Outdated, nil
}

// reviews looks at the reviews. Those count that Gitea calls official, because the rule gives their users a say. Approvals of earlier
// commits do not count, even if the rule lets them: Gitea marks them as stale some time after a push, and only if it changes something.
func (c candidate) reviews(ctx context.Context, rule *sdk.BranchProtection) (string, error) {
	approved, rejected, asked := map[string]bool{}, false, false
	err := c.host.eachReview(ctx, c.pull.Number, func(r *sdk.PullReview) error {
		switch who := login(r.Reviewer); {
		case !r.Official || r.Dismissed:
		case r.State == sdk.ReviewStateApproved:
			if !r.Stale && r.CommitID == c.pull.HeadSHA && who != "" {
				approved[who] = true
			}
		case r.State == sdk.ReviewStateRequestChanges:
			rejected = true
		case r.State == sdk.ReviewStateRequestReview:
			asked = true
		}
		return nil
	})
	switch {
	case err != nil:
		return "", err
	case rejected && rule.BlockOnRejectedReviews:
		return "a review requests changes", nil
	case asked && rule.BlockOnOfficialReviewRequests:
		return "a review was asked for and has not been submitted", nil
	case int64(len(approved)) < rule.RequiredApprovals:
		return fmt.Sprintf("the base branch requires %d approvals of the head, and there are %d", rule.RequiredApprovals, len(approved)), nil
	}
	return "", nil
}

// again looks whether the pull request is still what all of this was about.
func (c candidate) again(ctx context.Context) (string, error) {
	now, err := c.host.PullRequest(ctx, c.pull.Number)
	if err != nil {
		return "", err
	}
	if reason := wire.Unready(now); reason != "" {
		return reason, nil
	}
	if now.HeadSHA != c.pull.HeadSHA || now.Base != c.pull.Base {
		return "the pull request was changed while it was looked at", nil
	}
	return "", nil
}

// protection returns the rule of a protected branch.
func (h *Host) protection(ctx context.Context, b *sdk.Branch) (*sdk.BranchProtection, error) {
	name := b.EffectiveBranchProtectionName
	if name == "" { // it is not shown
		return nil, codehost.ErrCredential
	}
	rule, err := ask(ctx, h, func(c *sdk.Client) (*sdk.BranchProtection, *sdk.Response, error) {
		return c.GetBranchProtection(h.at.Owner, h.at.Name, name)
	})
	if err == nil && (rule == nil || rule.RuleName != name && rule.BranchName != name || rule.RequiredApprovals < 0) {
		err = wire.Malformed(kind)
	}
	return rule, err
}

// UpdateBranch implements codehost.Reviews. Gitea does not compare the head, so it is read first. What is pushed between that and the merge
// becomes part of the branch under the merge; nothing is lost, but the new head has a commit in it that the caller did not name.
func (h *Host) UpdateBranch(ctx context.Context, number int64, head string) error {
	p, err := h.openAt(ctx, number, head)
	switch {
	case err != nil:
		return err
	case p.HeadRepository == "":
		return fmt.Errorf("%w: the repository that the head is in no longer exists", codehost.ErrRefused)
	}
	base, err := h.branch(ctx, p.Base)
	if err != nil {
		return err
	}
	if behind, err := h.behind(ctx, p, base); err != nil || !behind { // Gitea answers what is up to date as if it had broken down
		return err
	}
	_, err = ask(ctx, h, func(c *sdk.Client) (struct{}, *sdk.Response, error) {
		answer, err := c.UpdatePullRequest(h.at.Owner, h.at.Name, number) // by a merge, unless a rebase is asked for
		return struct{}{}, answer, err
	})
	if errors.Is(err, codehost.ErrConflict) {
		return codehost.ErrNotMergeable
	}
	return err
}

// behind reports whether the base branch has commits that the head of a pull request lacks. What Gitea says of the two without being asked
// is as old as its last look for conflicts.
func (h *Host) behind(ctx context.Context, p codehost.PullRequest, base *sdk.Branch) (bool, error) {
	if base.Commit == nil || !wire.IsCommit(base.Commit.ID) {
		return false, wire.Malformed(kind)
	}
	o := sdk.ListCommitOptions{SHA: base.Commit.ID, Not: p.HeadSHA, ListOptions: sdk.ListOptions{Page: 1, PageSize: 1}}
	missing, err := ask(ctx, h, func(c *sdk.Client) ([]*sdk.Commit, *sdk.Response, error) {
		return c.ListRepoCommits(h.at.Owner, h.at.Name, o)
	})
	return len(missing) > 0, err
}
