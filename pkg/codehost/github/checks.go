// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	sdk "github.com/google/go-github/v93/github"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/wire"
)

// CommitChecks implements codehost.Checks.
func (h *Host) CommitChecks(ctx context.Context, sha string) ([]codehost.Check, error) {
	if !wire.IsCommit(sha) {
		return nil, codehost.ErrNotFound
	}
	statuses, err := h.statuses(ctx, sha)
	if err != nil {
		return nil, noCommit(err)
	}
	runs, err := h.runs(ctx, sha)
	if err != nil {
		return nil, noCommit(err)
	}
	return append(statuses, runs...), nil
}

// noCommit returns ErrNotFound for the answer to a commit that does not exist, which has the status 422 in some requests.
func noCommit(err error) error {
	if wire.Status(err) == http.StatusUnprocessableEntity {
		return codehost.ErrNotFound
	}
	return err
}

// statusStates are GitHub's words for the states of statuses.
var statusStates = map[string]codehost.CheckState{
	"success": codehost.CheckPassed, "failure": codehost.CheckFailed, "error": codehost.CheckFailed, "pending": codehost.CheckPending,
}

// statuses returns the statuses of a commit: of each context the newest, as they are in its combined status.
func (h *Host) statuses(ctx context.Context, sha string) ([]codehost.Check, error) {
	var newest newest[string, *sdk.RepoStatus]
	err := each(ctx, wire.LargePage, func(page sdk.ListOptions) ([]*sdk.RepoStatus, *sdk.Response, error) {
		combined, answer, err := h.client.Repositories.GetCombinedStatus(ctx, h.at.Owner, h.at.Name, sha, &page)
		if err == nil && combined == nil {
			err = wire.Malformed(kind)
		}
		return combined.GetStatuses(), answer, err
	}, func(s *sdk.RepoStatus) error {
		// A status that was set between two pages may be on both.
		newest.add(s.GetContext(), s, func(a, b *sdk.RepoStatus) bool { return a.GetID() > b.GetID() })
		return nil
	})
	if err != nil {
		return nil, err
	}
	return checks(newest.items, func(s *sdk.RepoStatus) codehost.Check {
		return codehost.Check{Name: s.GetContext(), State: statusStates[s.GetState()], Said: s.GetState(), URL: s.GetTargetURL()}
	})
}

// conclusions are GitHub's words for the outcome of check runs. A stale one did not end within two weeks.
var conclusions = map[string]codehost.CheckState{
	"success": codehost.CheckPassed,
	"neutral": codehost.CheckSkipped, "skipped": codehost.CheckSkipped,
	"failure": codehost.CheckFailed, "timed_out": codehost.CheckFailed, "cancelled": codehost.CheckFailed, "action_required": codehost.CheckFailed,
	"startup_failure": codehost.CheckFailed, "stale": codehost.CheckFailed,
}

// nameInSuite identifies a check: the suite in which it ran, and its name.
type nameInSuite struct {
	suite int64
	name  string
}

// runs returns the check runs of a commit: of each suite the newest of each name, since what is run again is in the same suite. All
// workflows of GitHub Actions are one app, so runs of one name in two suites may be of two workflows, and both count.
func (h *Host) runs(ctx context.Context, sha string) ([]codehost.Check, error) {
	latest := "latest"
	var newest newest[nameInSuite, *sdk.CheckRun]
	err := each(ctx, wire.LargePage, func(page sdk.ListOptions) ([]*sdk.CheckRun, *sdk.Response, error) {
		o := &sdk.ListCheckRunsOptions{Filter: &latest, ListOptions: page}
		found, answer, err := h.client.Checks.ListCheckRunsForRef(ctx, h.at.Owner, h.at.Name, sha, o)
		if err == nil && found == nil {
			err = wire.Malformed(kind)
		}
		return found.GetCheckRuns(), answer, err
	}, func(r *sdk.CheckRun) error {
		newest.add(nameInSuite{r.GetCheckSuite().GetID(), r.GetName()}, r, startedAfter)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return checks(newest.items, func(r *sdk.CheckRun) codehost.Check {
		out := codehost.Check{Name: r.GetName(), State: conclusions[r.GetConclusion()], Said: r.GetConclusion(), URL: r.GetHTMLURL()}
		if r.GetStatus() != "completed" {
			out.State, out.Said = codehost.CheckPending, r.GetStatus()
		}
		return out
	})
}

// startedAfter reports whether a run is newer than another one. Those that wait may have no time yet.
func startedAfter(a, b *sdk.CheckRun) bool {
	if x, y := a.GetStartedAt().Time, b.GetStartedAt().Time; !x.IsZero() && !y.IsZero() && !x.Equal(y) {
		return x.After(y)
	}
	return a.GetID() > b.GetID()
}

// newest keeps the newest item of each key, in the order in which the keys came.
type newest[K comparable, T any] struct {
	items []T
	at    map[K]int
}

func (n *newest[K, T]) add(key K, item T, newer func(a, b T) bool) {
	if i, ok := n.at[key]; ok {
		if newer(item, n.items[i]) {
			n.items[i] = item
		}
		return
	}
	if n.at == nil {
		n.at = map[K]int{}
	}
	n.at[key] = len(n.items)
	n.items = append(n.items, item)
}

func checks[T any](items []T, check func(T) codehost.Check) ([]codehost.Check, error) {
	var all []codehost.Check
	for _, item := range items {
		c := check(item)
		if err := wire.CheckRun(&c, kind); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// RequiredChecks implements codehost.Checks. A branch may be protected by a rule of its own and by sets of rules.
func (h *Host) RequiredChecks(ctx context.Context, branch string) (codehost.Required, error) {
	var required []string
	for _, read := range []func(context.Context, string) ([]string, error){h.protection, h.rules} {
		some, err := read(ctx, branch)
		switch {
		case errors.Is(err, codehost.ErrCredential):
			return codehost.Required{Unknown: true}, nil
		case err != nil:
			return codehost.Required{}, err
		}
		for _, name := range some {
			if name == "" {
				return codehost.Required{}, wire.Malformed(kind)
			}
			if name = wire.Text(name); !slices.Contains(required, name) {
				required = append(required, name)
			}
		}
	}
	return codehost.Required{Names: required}, nil
}

// protectedBranch is a branch with what GitHub shows of its protection to all who may read it. The client does not read all of it.
type protectedBranch struct {
	Name       string `json:"name"`
	Protection struct {
		Enabled              bool `json:"enabled"`
		RequiredStatusChecks struct {
			EnforcementLevel string          `json:"enforcement_level"`
			Contexts         []string        `json:"contexts"`
			Checks           []requiredCheck `json:"checks"`
		} `json:"required_status_checks"`
	} `json:"protection"`
}

type requiredCheck struct {
	Context string `json:"context"`
}

// protection returns which checks the rule of the branch itself requires. GitHub names them twice, and servers of before 2021 once.
func (h *Host) protection(ctx context.Context, branch string) ([]string, error) {
	var b protectedBranch
	if _, err := h.get(ctx, &b, "branches/"+url.PathEscape(branch), sdk.ListOptions{}); err != nil {
		return nil, err
	}
	if b.Name != branch {
		return nil, wire.Malformed(kind)
	}
	required := b.Protection.RequiredStatusChecks
	if !b.Protection.Enabled || required.EnforcementLevel == "off" {
		return nil, nil
	}
	return append(required.Contexts, names(required.Checks, func(c requiredCheck) string { return c.Context })...), nil
}

// rules returns which checks the sets of rules require that apply to a branch. A server of before 2023 has no sets of rules.
func (h *Host) rules(ctx context.Context, branch string) ([]string, error) {
	type rule struct {
		Type       string          `json:"type"`
		Parameters json.RawMessage `json:"parameters"`
	}
	var required []string
	err := each(ctx, wire.LargePage, func(page sdk.ListOptions) (rules []rule, answer *sdk.Response, err error) {
		answer, err = h.get(ctx, &rules, "rules/branches/"+url.PathEscape(branch), page)
		return rules, answer, err
	}, func(r rule) error {
		if r.Type != "required_status_checks" {
			return nil
		}
		var parameters struct {
			RequiredStatusChecks []requiredCheck `json:"required_status_checks"`
		}
		if err := json.Unmarshal(r.Parameters, &parameters); err != nil {
			return wire.Malformed(kind)
		}
		required = append(required, names(parameters.RequiredStatusChecks, func(c requiredCheck) string { return c.Context })...)
		return nil
	})
	if errors.Is(err, codehost.ErrNotFound) {
		return nil, nil
	}
	return required, err
}

// get reads a page of what is below the repository. Names in the path are escaped.
func (h *Host) get(ctx context.Context, into any, path string, page sdk.ListOptions) (*sdk.Response, error) {
	path = fmt.Sprintf("repos/%s/%s/%s", h.at.Owner, h.at.Name, path)
	if page.PerPage > 0 {
		path += fmt.Sprintf("?per_page=%d&page=%d", page.PerPage, max(1, page.Page))
	}
	r, err := h.client.NewRequest(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, wire.Error(ctx, err, kind)
	}
	answer, err := h.client.Do(r, into)
	return answer, wire.Error(ctx, err, kind)
}
