// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"fmt"
	"testing"
)

// TestUsageOfVendors: the columns that recorded answers come to. OpenAI, and Azure with it, includes cached tokens in its
// input and does not report what a cache took; Anthropic excludes both parts from its input. A dash is not reported.
func TestUsageOfVendors(t *testing.T) {
	const (
		openAI    = `{"object":"chat.completion","usage":{"prompt_tokens":%d,"completion_tokens":7%s}}`
		responses = `{"object":"response","usage":{"input_tokens":%d,"output_tokens":7%s}}`
		anthropic = `{"type":"message","usage":{"input_tokens":%d,"output_tokens":7%s}}`
	)
	for _, c := range []struct {
		vendor, cache string
		op            operation
		format        string
		input         int64
		parts         string
		want          string // input, output, cached, written
	}{
		{"openai", "none", opChat, openAI, 100, `,"prompt_tokens_details":{"cached_tokens":0}`, "100 7 0 -"},
		{"openai", "unreported", opChat, openAI, 100, ``, "100 7 - -"},
		{"openai", "read", opChat, openAI, 100, `,"prompt_tokens_details":{"cached_tokens":60,"audio_tokens":0}`, "100 7 60 -"},
		{"openai", "write", opChat, openAI, 100, `,"prompt_tokens_details":{"cached_tokens":0}`, "100 7 0 -"},
		{"openai", "both", opChat, openAI, 100, `,"prompt_tokens_details":{"cached_tokens":60}`, "100 7 60 -"},
		{"openai responses", "read", opResponses, responses, 100, `,"input_tokens_details":{"cached_tokens":60}`, "100 7 60 -"},
		{"azure", "none", opChat, openAI, 100, `,"prompt_tokens_details":{"audio_tokens":0,"cached_tokens":0}`, "100 7 0 -"},
		{"azure", "unreported", opChat, openAI, 100, `,"prompt_tokens_details":null`, "100 7 - -"},
		{"azure", "read", opChat, openAI, 100, `,"prompt_tokens_details":{"audio_tokens":0,"cached_tokens":60}`, "100 7 60 -"},
		{"azure", "write", opChat, openAI, 100, `,"prompt_tokens_details":{"cached_tokens":0}`, "100 7 0 -"},
		{"azure", "both", opChat, openAI, 100, `,"prompt_tokens_details":{"cached_tokens":60}`, "100 7 60 -"},
		{"anthropic", "none", opMessages, anthropic, 100, `,"cache_read_input_tokens":0,"cache_creation_input_tokens":0`, "100 7 0 0"},
		{"anthropic", "unreported", opMessages, anthropic, 100, ``, "100 7 - -"},
		{"anthropic", "read", opMessages, anthropic, 40, `,"cache_read_input_tokens":60,"cache_creation_input_tokens":0`, "100 7 60 0"},
		{"anthropic", "write", opMessages, anthropic, 70, `,"cache_read_input_tokens":0,"cache_creation_input_tokens":30`, "100 7 0 30"},
		{"anthropic", "both", opMessages, anthropic, 10, `,"cache_read_input_tokens":60,"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":30}`, "100 7 60 30"},
	} {
		t.Run(c.vendor+"/"+c.cache, func(t *testing.T) {
			y := tally{op: c.op}
			y.body(fmt.Appendf(nil, c.format, c.input, c.parts))
			got := ""
			for _, n := range []*int64{y.usage.InputTokens, y.usage.OutputTokens, y.usage.CachedInputTokens, y.usage.CacheWriteInputTokens} {
				if n == nil {
					got += " -"
				} else {
					got += fmt.Sprintf(" %d", *n)
				}
			}
			if got[1:] != c.want {
				t.Errorf("the columns are %s, want %s", got[1:], c.want)
			}
		})
	}
}
