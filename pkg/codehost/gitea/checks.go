// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gitea

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/wire"
)

// checkStates are Gitea's words for the states of statuses. One with a warning has passed.
var checkStates = map[sdk.StatusState]codehost.CheckState{
	sdk.StatusSuccess: codehost.CheckPassed, sdk.StatusWarning: codehost.CheckPassed,
	sdk.StatusError: codehost.CheckFailed, sdk.StatusFailure: codehost.CheckFailed,
	sdk.StatusPending: codehost.CheckPending, "skipped": codehost.CheckSkipped,
}

// CommitChecks implements codehost.Checks. Gitea numbers the statuses of a commit. All of them are read, the oldest first, because one that
// is set meanwhile then comes last; Gitea's list of the newest ones, from the newest to the oldest, would lose one between two pages.
func (h *Host) CommitChecks(ctx context.Context, sha string) ([]codehost.Check, error) {
	if !wire.IsCommit(sha) {
		return nil, codehost.ErrNotFound
	}
	var contexts []string
	newest := map[string]*sdk.Status{}
	read := func(page sdk.ListOptions) ([]*sdk.Status, http.Header, error) { return h.statuses(ctx, sha, page) }
	err := each(read, func(s *sdk.Status) int64 { return s.ID }, func(s *sdk.Status) error {
		known := newest[s.Context]
		if known == nil {
			contexts = append(contexts, s.Context)
		}
		if known == nil || s.ID > known.ID {
			newest[s.Context] = s
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var all []codehost.Check
	for _, name := range contexts {
		s := newest[name]
		c := codehost.Check{Name: name, State: checkStates[s.State], Said: string(s.State), URL: s.TargetURL}
		if err := wire.CheckRun(&c, kind); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// statuses returns a page of the statuses of a commit. The SDK cannot ask for their order. If asked for "highestindex", Gitea puts the one
// with the lowest number first; sorted by time, those of the same second have no order, and one may be on no page.
func (h *Host) statuses(ctx context.Context, sha string, page sdk.ListOptions) ([]*sdk.Status, http.Header, error) {
	query := url.Values{"sort": {"highestindex"}, "page": {strconv.Itoa(page.Page)}, "limit": {strconv.Itoa(page.PageSize)}}
	answer, err := h.get(ctx, query, "commits", sha, "statuses")
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	var all []*sdk.Status
	if err := json.NewDecoder(answer.Body).Decode(&all); err != nil {
		return nil, nil, wire.Error(ctx, err, kind)
	}
	return all, answer.Header, nil
}

// RequiredChecks implements codehost.Checks.
func (h *Host) RequiredChecks(ctx context.Context, branch string) (codehost.Required, error) {
	b, err := h.branch(ctx, branch)
	if err != nil {
		return codehost.Required{}, err
	}
	return requiredBy(b)
}

// requiredBy returns which checks a branch requires.
func requiredBy(b *sdk.Branch) (codehost.Required, error) {
	if !b.EnableStatusCheck {
		return codehost.Required{}, nil
	}
	required := codehost.Required{Any: len(b.StatusCheckContexts) == 0, Patterns: true}
	for _, name := range b.StatusCheckContexts {
		if name == "" {
			return codehost.Required{}, wire.Malformed(kind)
		}
		required.Names = append(required.Names, wire.Text(name))
	}
	return required, nil
}
