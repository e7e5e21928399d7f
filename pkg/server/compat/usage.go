// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"encoding/json"

	"github.com/platform-ai/platform/pkg/llm"
)

// tally collects what an answer says about the use of tokens, and about its end.
type tally struct {
	op    operation
	count llm.Count
	sum   anthropicUsage
	// failed is set once the vendor has said in its stream that it failed.
	failed bool
}

// openAIUsage has the names of chat completions and of responses.
type openAIUsage struct {
	PromptTokens        *int64 `json:"prompt_tokens"`
	CompletionTokens    *int64 `json:"completion_tokens"`
	InputTokens         *int64 `json:"input_tokens"`
	OutputTokens        *int64 `json:"output_tokens"`
	PromptTokensDetails struct {
		CachedTokens *int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	InputTokensDetails struct {
		CachedTokens *int64 `json:"cached_tokens"`
	} `json:"input_tokens_details"`
}

// anthropicUsage counts what caches supplied and took beside the input.
type anthropicUsage struct {
	InputTokens              *int64 `json:"input_tokens"`
	OutputTokens             *int64 `json:"output_tokens"`
	CacheReadInputTokens     *int64 `json:"cache_read_input_tokens"`
	CacheCreationInputTokens *int64 `json:"cache_creation_input_tokens"`
}

func first(figures ...*int64) *int64 {
	for _, n := range figures {
		if n != nil && *n >= 0 {
			return n
		}
	}
	return nil
}

func (t *tally) openAI(raw json.RawMessage) {
	var u openAIUsage
	if len(raw) == 0 || json.Unmarshal(raw, &u) != nil {
		return
	}
	t.count.Report(llm.Usage{
		InputTokens: first(u.PromptTokens, u.InputTokens), OutputTokens: first(u.CompletionTokens, u.OutputTokens),
		CachedInputTokens: first(u.PromptTokensDetails.CachedTokens, u.InputTokensDetails.CachedTokens),
	})
}

// anthropic adds a report. A later report of a stream replaces the figures that it repeats. The output of the first one is a guess.
func (t *tally) anthropic(raw json.RawMessage, start bool) {
	var u anthropicUsage
	if len(raw) == 0 || json.Unmarshal(raw, &u) != nil {
		return
	}
	if start {
		u.OutputTokens = nil
	}
	sum := &t.sum
	sum.InputTokens = first(u.InputTokens, sum.InputTokens)
	sum.OutputTokens = first(u.OutputTokens, sum.OutputTokens)
	sum.CacheReadInputTokens = first(u.CacheReadInputTokens, sum.CacheReadInputTokens)
	sum.CacheCreationInputTokens = first(u.CacheCreationInputTokens, sum.CacheCreationInputTokens)
	all := llm.Usage{OutputTokens: sum.OutputTokens, CachedInputTokens: sum.CacheReadInputTokens, CacheWriteInputTokens: sum.CacheCreationInputTokens}
	if sum.InputTokens != nil {
		input := *sum.InputTokens
		for _, part := range []*int64{sum.CacheReadInputTokens, sum.CacheCreationInputTokens} {
			if part != nil {
				input += *part
			}
		}
		all.InputTokens = &input
	}
	t.count.Report(all)
}

// body reads the usage of a whole answer. It returns a *wire.NoAnswerError for what is none.
func (t *tally) body(data []byte) error {
	is := answerOf(t.op)
	o, err := scan(data)
	if err != nil {
		return is.Whole(data)
	}
	if err := is.Object(o.get); err != nil {
		return err
	}
	t.count.Complete()
	switch t.op {
	case opMessages:
		t.anthropic(o.get("usage"), false)
	case opCount:
		t.count.Report(llm.Usage{InputTokens: new(int64), OutputTokens: new(int64)})
	case opChat, opResponses:
		t.openAI(o.get("usage"))
	case opModels:
	}
	return nil
}
