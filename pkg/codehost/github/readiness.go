// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	sdk "github.com/google/go-github/v93/github"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/wire"
)

// mergeStates are why a pull request is not ready in a state of GitHub's; empty for the states in which it is. A server with hooks of its
// own says so of each pull request that is clean otherwise.
var mergeStates = map[string]string{
	"clean": "", "has_hooks": "",
	"behind":   wire.Outdated,
	"blocked":  "the rules of the base branch block the merge, for example until a review approves it or a required check passes",
	"dirty":    wire.Conflicts,
	"draft":    wire.IsDraft,
	"unstable": wire.CheckFailed,
	"unknown":  wire.NotYetKnown,
}

// Readiness implements codehost.Reviews. GitHub itself says it, in one answer, so it holds for the head that is in it.
func (h *Host) Readiness(ctx context.Context, number int64) (codehost.Readiness, error) {
	p, said, err := h.one(ctx, number)
	if err != nil {
		return codehost.Readiness{}, err
	}
	reason := wire.Unready(p)
	if reason == "" {
		known := false
		if reason, known = mergeStates[said.GetMergeableState()]; !known {
			reason = "the code host says of the merge what the platform does not know"
		}
	}
	return codehost.Readiness{PullRequest: p, Ready: reason == "", Reason: reason}, nil
}

// UpdateBranch implements codehost.Reviews. GitHub compares the head itself, and merges later.
func (h *Host) UpdateBranch(ctx context.Context, number int64, head string) error {
	if !wire.IsCommit(head) {
		return codehost.ErrMoved
	}
	_, _, err := h.client.PullRequests.UpdateBranch(ctx, h.at.Owner, h.at.Name, int(number), sdk.UpdatePullRequestBranchRequest{ExpectedHeadSHA: &head})
	if _, accepted := errors.AsType[*sdk.AcceptedError](err); accepted {
		return nil
	}
	if err = wire.Error(ctx, err, kind); wire.Status(err) == http.StatusUnprocessableEntity {
		return h.notUpdated(ctx, number, head, err)
	}
	return err
}

// notUpdated returns why GitHub refused to update a branch, which has one status for all reasons; nil if there is nothing to merge.
func (h *Host) notUpdated(ctx context.Context, number int64, head string, refused error) error {
	p, err := h.PullRequest(ctx, number)
	switch {
	case err != nil:
		return err
	case p.State != codehost.Open:
		return codehost.ErrNotMergeable
	case p.HeadSHA != head:
		return codehost.ErrMoved
	}
	switch behind, err := h.behind(ctx, head, p.Base); {
	case err != nil:
		return err
	case !behind:
		return nil
	case p.Mergeable == codehost.Conflicting:
		return codehost.ErrNotMergeable
	}
	return refused
}

// behind reports whether a branch has commits that a commit lacks. Only the first page of the answer would list the files that differ.
func (h *Host) behind(ctx context.Context, commit, branch string) (bool, error) {
	var compared struct {
		AheadBy *int `json:"ahead_by"`
	}
	if _, err := h.get(ctx, &compared, "compare/"+commit+"..."+url.PathEscape(branch), sdk.ListOptions{PerPage: 1, Page: 2}); err != nil {
		return false, err
	}
	if compared.AheadBy == nil || *compared.AheadBy < 0 {
		return false, wire.Malformed(kind)
	}
	return *compared.AheadBy > 0, nil
}
