// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gitea

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/platform-ai/platform/pkg/codehost/wire"
)

// each calls do for each item of a list. read returns a page of it and the answer's header, and id what tells the items apart.
//
// Gitea's pages may be smaller than was asked for. A page may lack items that are not shown to everybody, or all of them, and still count
// them. Some lists come whole, whatever page is asked for. So the list ends when as many items were read as Gitea counts, or with a page
// that has nothing new, unless the pages until then cannot have covered as many.
func each[T any, K comparable](read func(page sdk.ListOptions) ([]*T, http.Header, error), id func(*T) K, do func(*T) error) error {
	seen, largest := map[K]bool{}, 1
	for page := 1; page <= wire.MaxPages; page++ {
		items, header, err := read(sdk.ListOptions{Page: page, PageSize: wire.PageSize})
		if err != nil {
			return err
		}
		before := len(seen)
		for _, item := range items {
			if item == nil {
				return wire.Malformed(kind)
			}
			if seen[id(item)] {
				continue
			}
			seen[id(item)] = true
			if err := do(item); err != nil {
				return err
			}
		}
		largest = max(largest, len(items))
		total, err := strconv.Atoi(header.Get("X-Total-Count"))
		counted := err == nil
		if counted && len(seen) >= total || len(seen) == before && (!counted || page*largest >= total) {
			return nil
		}
	}
	return wire.TooMany()
}

// pages returns a function for each that reads a list with the SDK.
func pages[T any](ctx context.Context, h *Host, request func(c *sdk.Client, page sdk.ListOptions) ([]*T, *sdk.Response, error)) func(sdk.ListOptions) ([]*T, http.Header, error) {
	return func(page sdk.ListOptions) ([]*T, http.Header, error) {
		items, answer, err := askFor(ctx, h, func(c *sdk.Client) ([]*T, *sdk.Response, error) { return request(c, page) })
		if err != nil {
			return nil, nil, err
		}
		return items, answer.Header, nil
	}
}

// get sends a request of which the SDK cannot make use: it reads each answer whole, and lacks some options. The caller closes the body.
func (h *Host) get(ctx context.Context, query url.Values, path ...string) (*http.Response, error) {
	at := h.at.Root.JoinPath("api/v1/repos", h.at.Owner, h.at.Name).JoinPath(path...)
	at.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		return nil, wire.Error(ctx, err, kind)
	}
	if h.token != "" {
		r.Header.Set("Authorization", "token "+h.token)
	}
	answer, err := h.http.Do(r)
	return answer, wire.Error(ctx, err, kind)
}
