// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"

	sdk "github.com/google/go-github/v93/github"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/wire"
)

// Labeling implements codehost.Issues. GitHub lists the events of an issue, the oldest first. The client takes the number 0 for all issues.
func (h *Host) Labeling(ctx context.Context, number int64, label string) (codehost.Labeling, error) {
	if number <= 0 {
		return codehost.Labeling{}, codehost.ErrNotFound
	}
	var last *sdk.IssueEvent
	err := each(ctx, wire.LargePage, func(page sdk.ListOptions) ([]*sdk.IssueEvent, *sdk.Response, error) {
		return h.client.Issues.ListIssueEvents(ctx, h.at.Owner, h.at.Name, int(number), &page)
	}, func(e *sdk.IssueEvent) error {
		if e == nil {
			return wire.Malformed(kind)
		}
		if (e.GetEvent() == "labeled" || e.GetEvent() == "unlabeled") && strings.EqualFold(e.GetLabel().GetName(), label) {
			last = e
		}
		return nil
	})
	switch {
	case err != nil:
		return codehost.Labeling{}, err
	case last.GetEvent() != "labeled":
		return codehost.Labeling{}, codehost.ErrNotFound
	}
	return wire.Labeling(last.GetActor().GetLogin(), last.GetCreatedAt().Time, kind)
}

// RemoveLabel implements codehost.Issues. GitHub answers in the same way for an issue without the label and for no issue.
func (h *Host) RemoveLabel(ctx context.Context, number int64, label string) error {
	if err := wire.CheckLabel(label); err != nil {
		return err
	}
	_, err := h.client.Issues.RemoveLabelForIssue(ctx, h.at.Owner, h.at.Name, int(number), url.PathEscape(label))
	if err = wire.Error(ctx, err, kind); !errors.Is(err, codehost.ErrNotFound) {
		return err
	}
	i, gone := h.issue(ctx, number)
	switch {
	case gone != nil:
		return gone
	case slices.ContainsFunc(i.Labels, func(l *sdk.Label) bool { return strings.EqualFold(l.GetName(), label) }):
		return err // hidden from this credential
	}
	return nil
}
