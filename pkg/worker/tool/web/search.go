// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/platform-ai/platform/pkg/egress"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
	"github.com/platform-ai/platform/pkg/worker/toolkit"
)

const (
	defaultSearchLimit = 5
	// maxSearchBody bounds the answer of the search service, in bytes.
	maxSearchBody = 2 << 20
)

// SearchBuiltin is the tool web_search.
var SearchBuiltin = toolkit.Tool{Of: builtin.WebSearch, New: func(g toolkit.Given) (tool.Tool, error) {
	return Search(SearchConfig{URL: g.SearchURL, Key: g.SearchKey}), nil
}}

// SearchHit is one result of web_search.
type SearchHit struct {
	Title   string `json:"title"`
	URL     string `json:"url"`
	Snippet string `json:"snippet"`
}

// SearchConfig names the search service. Without a URL the tool returns an error that says that
// it is not set up.
type SearchConfig struct {
	// URL is requested with the query parameters q and limit.
	URL string
	// Key, if not empty, is sent as a bearer token.
	Key string
}

// Search returns the tool web_search. The operator chooses the service, so its address may be
// private.
func Search(c SearchConfig) tool.Tool {
	noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	s := &searcher{config: c, client: client(egress.Guard{Private: true}, noRedirect)}
	return tool.New(builtin.WebSearch.Definition(), s.call)
}

type searcher struct {
	config SearchConfig
	client *http.Client
}

func (s *searcher) call(ctx context.Context, a builtin.SearchArguments) (any, error) {
	if s.config.URL == "" {
		return nil, tool.Errorf(tool.TypeUnavailable, "web search is not set up here").
			Suggest("use web_fetch with an address that you know, or say that you could not search")
	}
	limit := defaultSearchLimit
	if a.Limit != nil {
		limit = *a.Limit
	}
	u, err := url.Parse(s.config.URL)
	if err != nil {
		return nil, tool.Errorf(tool.TypeUnavailable, "web search is set up wrongly")
	}
	q := u.Query()
	q.Set("q", a.Query)
	q.Set("limit", strconv.Itoa(limit))
	u.RawQuery = q.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, tool.Errorf(tool.TypeUnavailable, "web search is set up wrongly")
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept", "application/json")
	if s.config.Key != "" {
		req.Header.Set("Authorization", "Bearer "+s.config.Key)
	}
	res, err := s.client.Do(req)
	if err != nil {
		return nil, transportError(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, tool.Errorf(tool.TypeUnavailable, "the search service answered with status %d", res.StatusCode)
	}
	body, _, err := toolkit.ReadAtMost(res.Body, maxSearchBody)
	if err != nil {
		return nil, transportError(err)
	}
	hits, ok := parseHits(toolkit.UTF8(body, res.Header.Get("Content-Type")))
	if !ok {
		return nil, tool.Errorf(tool.TypeUnavailable, "the search service's answer is not understood")
	}
	return hits[:min(len(hits), limit)], nil
}

// parseHits reads an array of hits, bare or under the key results.
func parseHits(body []byte) ([]SearchHit, bool) {
	hits := []SearchHit{}
	if json.Unmarshal(body, &hits) == nil && hits != nil {
		return hits, true
	}
	var wrapped struct {
		Results *[]SearchHit `json:"results"`
	}
	if json.Unmarshal(body, &wrapped) != nil || wrapped.Results == nil {
		return nil, false
	}
	return *wrapped.Results, true
}
