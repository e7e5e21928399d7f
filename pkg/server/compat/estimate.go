// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/platform-ai/platform/pkg/canonical"
	"github.com/platform-ai/platform/pkg/llm"
)

// headerEstimated says that this server has estimated a number of tokens, because the Provider's vendor does not count them.
const headerEstimated = "X-Platform-Estimated"

// countOfTokens is the answer to a count of tokens.
type countOfTokens struct {
	InputTokens int64 `json:"input_tokens"`
}

// estimate answers a count of tokens that the vendor cannot be asked for.
func (a *attempt) estimate() error {
	defer a.release()
	a.w.Header().Set(headerEstimated, "true")
	return a.answer(countOfTokens{a.in.estimated()})
}

// estimated returns about how many tokens the request has.
func (in *incoming) estimated() int64 {
	all, err := canonical.Decode(in.data)
	if err != nil {
		return llm.TokensOf(int64(len(in.data)))
	}
	var size, images int64
	count(all, &size, &images)
	return max(1, llm.TokensOf(size)+images*llm.UsualImage)
}

// count adds the bytes of what a model reads of a value, and its images, which their bytes say nothing about.
func count(v any, size, images *int64) {
	switch v := v.(type) {
	case string:
		*size += int64(len(v))
	case []any:
		for _, one := range v {
			count(one, size, images)
		}
	case map[string]any:
		if v["type"] == "image" {
			*images++
			return
		}
		for name, one := range v {
			*size += int64(len(name))
			count(one, size, images)
		}
	default: // a number, true, false or null
		*size += 4
	}
}

// lacksCount reports whether an error says that the vendor does not count tokens. The API itself has the status 404 for models that
// it does not know, in its own form.
func (in *incoming) lacksCount(p problem) bool {
	if in.op != opCount {
		return false
	}
	switch p.code {
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true
	case http.StatusNotFound:
		o, err := parse(p.raw)
		return err != nil || string(bytes.TrimSpace(o.get("type"))) != `"error"` || !strings.Contains(string(o.get("error")), "model")
	}
	return false
}
