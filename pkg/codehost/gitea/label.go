// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gitea

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/wire"
)

// event is what happened to an issue. The SDK does not read its label.
type event struct {
	ID      int64     `json:"id"`
	Type    string    `json:"type"`
	Body    string    `json:"body"`
	Poster  *sdk.User `json:"user"`
	Created time.Time `json:"created_at"`
	Label   *struct {
		ID   int64  `json:"id"`
		Name string `json:"name"`
	} `json:"label"`
}

// Labeling implements codehost.Issues. An event has the present name of the label, and "1" as its text if the label was set. Several labels
// may have one name.
func (h *Host) Labeling(ctx context.Context, number int64, label string) (codehost.Labeling, error) {
	set := map[int64]event{}
	err := h.eachEvent(ctx, number, func(e event) {
		switch {
		case e.Type != "label" || e.Label == nil || !strings.EqualFold(e.Label.Name, label):
		case e.Body == "1":
			set[e.Label.ID] = e
		default:
			delete(set, e.Label.ID)
		}
	})
	switch {
	case err != nil:
		return codehost.Labeling{}, h.missing(ctx, number, err)
	case len(set) == 0:
		return codehost.Labeling{}, codehost.ErrNotFound
	}
	last := slices.MaxFunc(slices.Collect(maps.Values(set)), func(a, b event) int { return cmp.Compare(a.ID, b.ID) })
	return wire.Labeling(login(last.Poster), last.Created, kind)
}

// eachEvent calls do for the events of an issue, the oldest first. Gitea counts the events of one page only, and leaves comments on lines out of
// a page after it has filled it. So the list ends with some pages in a row that have nothing new.
func (h *Host) eachEvent(ctx context.Context, number int64, do func(event)) error {
	const enough = 3
	seen := map[int64]bool{}
	for page, idle := 1, 0; idle < enough; page++ {
		if page > wire.MaxPages {
			return wire.TooMany()
		}
		some, err := h.events(ctx, number, page)
		if err != nil {
			return err
		}
		idle++
		for _, e := range some {
			if e.ID <= 0 {
				return wire.Malformed(kind)
			}
			if !seen[e.ID] {
				seen[e.ID], idle = true, 0
				do(e)
			}
		}
	}
	return nil
}

func (h *Host) events(ctx context.Context, number int64, page int) (some []event, err error) {
	query := url.Values{"page": {strconv.Itoa(page)}, "limit": {strconv.Itoa(wire.PageSize)}}
	answer, err := h.get(ctx, query, "issues", strconv.FormatInt(number, 10), "timeline")
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	err = json.NewDecoder(answer.Body).Decode(&some)
	return some, wire.Error(ctx, err, kind)
}

// RemoveLabel implements codehost.Issues. Gitea removes labels by their ids. Several may have one name, for example one of them of the
// organization, or differ in case only.
func (h *Host) RemoveLabel(ctx context.Context, number int64, label string) error {
	if err := wire.CheckLabel(label); err != nil {
		return err
	}
	has, err := ask(ctx, h, func(c *sdk.Client) ([]*sdk.Label, *sdk.Response, error) {
		return c.GetIssueLabels(h.at.Owner, h.at.Name, number, sdk.ListLabelsOptions{})
	})
	if err != nil {
		return err
	}
	for _, l := range has {
		switch {
		case l == nil:
			return wire.Malformed(kind)
		case !strings.EqualFold(l.Name, label):
			continue
		}
		_, err := ask(ctx, h, func(c *sdk.Client) (struct{}, *sdk.Response, error) {
			answer, err := c.DeleteIssueLabel(h.at.Owner, h.at.Name, number, l.ID)
			return struct{}{}, answer, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
