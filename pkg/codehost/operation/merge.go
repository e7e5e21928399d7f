// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"context"
	"errors"
	"fmt"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/checks"
)

type mergeArguments struct {
	Number  int64  `json:"pr_number"`
	Method  string `json:"merge_method"`
	Title   string `json:"commit_title"`
	Message string `json:"commit_message"`
}

func (a mergeArguments) check() error {
	for name, text := range map[string]string{"commit_title": a.Title, "commit_message": a.Message} {
		if text == "" {
			continue
		}
		if err := checkText(name, text); err != nil {
			return err
		}
	}
	return nil
}

type merged struct {
	SHA          string `json:"sha"`
	Merged       bool   `json:"merged"`
	ChecksPassed bool   `json:"checks_passed"`
	Message      string `json:"message"`
}

func merge(ctx context.Context, p *Place, c Call, a mergeArguments) (any, error) {
	t, err := p.tryMerge(ctx, c, a)
	if err != nil {
		return nil, err
	}
	done := t.state != notMerged
	return merged{SHA: t.sha, Merged: done, ChecksPassed: done || t.verdict.Status == checks.Passed, Message: t.message}, nil
}

// autoMerged is what auto_merge_pull_request returns. Without an outcome the worker repeats the call, and sets timeout at last.
type autoMerged struct {
	Outcome string  `json:"outcome"`
	Number  int64   `json:"pr_number"`
	HeadSHA string  `json:"head_sha"`
	SHA     string  `json:"sha"`
	Merged  bool    `json:"merged"`
	Details []check `json:"checks_details"`
	Message string  `json:"message"`
}

func autoMerge(ctx context.Context, p *Place, c Call, a mergeArguments) (any, error) {
	t, err := p.tryMerge(ctx, c, a)
	if err != nil {
		return nil, err
	}
	out := autoMerged{Number: t.is.Number, HeadSHA: t.is.HeadSHA, SHA: t.sha, Details: details(t.verdict), Message: t.message}
	switch {
	case t.state == nowMerged:
		out.Outcome, out.Merged = "merged", true
	case t.state == wasMerged:
		out.Outcome, out.Merged = "already_merged", true
	case t.is.State == codehost.Closed:
		out.Outcome = "closed"
	case t.verdict.Status == checks.Failed:
		out.Outcome = "ci_failed"
	}
	return out, nil
}

// mergeState is what became of a try to merge.
type mergeState int

const (
	notMerged mergeState = iota
	nowMerged
	wasMerged
)

// tried is a try to merge a pull request.
type tried struct {
	state   mergeState
	is      codehost.PullRequest
	verdict checks.Verdict
	sha     string
	message string
}

// tryMerge merges a pull request if the checks of its head have passed, or if there are none.
func (p *Place) tryMerge(ctx context.Context, c Call, a mergeArguments) (tried, error) {
	if err := a.check(); err != nil {
		return tried{}, err
	}
	is, v, err := p.verdict(ctx, a.Number)
	if err != nil {
		return tried{}, err
	}
	t := tried{is: is, verdict: v, message: v.Message}
	switch {
	case is.State == codehost.Merged:
		t.state, t.sha, t.message = wasMerged, is.MergeSHA, "the pull request was merged already"
		return t, nil
	case is.State != codehost.Open:
		t.message = "the pull request is closed"
		return t, nil
	}
	if err := sameHead(c, is); err != nil {
		return tried{}, err
	}
	switch {
	case is.Draft:
		t.message = "the pull request is a draft"
		return t, nil
	case v.Status == checks.NoChecks && is.Mergeable != codehost.Clean:
		t.message = "the code host has not found out yet whether the pull request can be merged"
		return t, nil
	case v.Status != checks.Passed && v.Status != checks.NoChecks:
		return t, nil
	}
	order := codehost.Merge{SHA: is.HeadSHA, Method: codehost.MergeMethod(a.Method), Title: a.Title, Message: a.Message}
	if order.Method == "" {
		order.Method = codehost.Squash
	}
	t.sha, err = p.Host.Merge(ctx, a.Number, order)
	switch {
	case err == nil:
		t.state, t.message = nowMerged, "the pull request was merged"
		p.merged(is, t.sha)
		if v.Status == checks.NoChecks {
			t.message += "; its branch has no checks"
		}
		return t, nil
	case errors.Is(err, codehost.ErrMoved):
		return tried{}, refused("the head of the pull request moved; it was not merged: read it again")
	case errors.Is(err, codehost.ErrUnavailable), errors.Is(err, codehost.ErrNotMergeable), errors.Is(err, codehost.ErrConflict):
		return p.afterMerge(ctx, t, err)
	}
	return tried{}, err
}

// afterMerge looks whether a merge whose answer did not come, or that was refused, was made.
func (p *Place) afterMerge(ctx context.Context, t tried, why error) (tried, error) {
	now, err := p.Host.PullRequest(ctx, t.is.Number)
	switch {
	case err == nil && now.State == codehost.Merged:
		t.state, t.is, t.sha, t.message = nowMerged, now, now.MergeSHA, "the pull request was merged"
		if errors.Is(why, codehost.ErrUnavailable) {
			p.merged(now, now.MergeSHA)
		}
		return t, nil
	case errors.Is(why, codehost.ErrUnavailable):
		return tried{}, errUnknown
	}
	t.message = fmt.Sprintf("%v; all checks that it has passed", why)
	return t, nil
}

// merged notes that the call has merged a pull request.
func (p *Place) merged(is codehost.PullRequest, sha string) {
	p.Worked = worked(is, "merge-"+sha)
	p.Worked.State = codehost.Merged
}

// sameHead refuses a pull request whose head is another commit than the one that the caller has seen.
func sameHead(c Call, is codehost.PullRequest) error {
	if c.HeadSHA == "" || c.HeadSHA == is.HeadSHA {
		return nil
	}
	return refused("the head of pull request %d is %s now, and the one that was read is %s: read it again", is.Number, is.HeadSHA, c.HeadSHA)
}
