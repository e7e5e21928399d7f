// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bytes"
	"net/http"
	"slices"

	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/tool"
)

// Members that an answer can do without and that not all models take.
const (
	hintEffort   = "reasoning_effort"
	hintTopP     = "top_p"
	hintParallel = "parallel_tool_calls"
	hintStrict   = "strict"
)

// hints returns those that a request has.
func hints(req llm.Request) (all []string) {
	if req.Effort != "" {
		all = append(all, hintEffort)
	}
	if req.TopP != nil {
		all = append(all, hintTopP)
	}
	if req.Choice.Single && len(req.Tools) > 0 {
		all = append(all, hintParallel)
	}
	if slices.ContainsFunc(req.Tools, func(t tool.Definition) bool { return t.Strict }) {
		all = append(all, hintStrict)
	}
	return all
}

// refusesHint notes a hint that the server refused by its name, and reports whether there was one.
func (c *Client) refusesHint(req llm.Request, status int, body refusal, w *way) bool {
	if status != http.StatusBadRequest && status != http.StatusUnprocessableEntity {
		return false
	}
	for _, name := range hints(req) {
		if !w.lacks[name] && bytes.Contains(body, []byte(name)) {
			w.lacks[name] = true
			c.quirks.Lack(req.Model, name)
			return true
		}
	}
	return false
}
