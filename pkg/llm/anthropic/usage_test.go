// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestUsageColumns: what a run records of an answer, by what a cache had to do with it. Anthropic leaves what a cache
// supplied or took out of its input; the columns include both. A dash is not reported.
func TestUsageColumns(t *testing.T) {
	const answer = `event: message_start
data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"usage":{"output_tokens":1%s}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"x"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}

event: message_stop
data: {"type":"message_stop"}

`
	for cache, c := range map[string]struct{ usage, want string }{
		"none":       {`,"input_tokens":100,"cache_read_input_tokens":0,"cache_creation_input_tokens":0`, "100 7 0 0"},
		"unreported": {`,"input_tokens":100`, "100 7 - -"},
		"read":       {`,"input_tokens":40,"cache_read_input_tokens":60,"cache_creation_input_tokens":0`, "100 7 60 0"},
		"write":      {`,"input_tokens":70,"cache_read_input_tokens":0,"cache_creation_input_tokens":30`, "100 7 0 30"},
		"both":       {`,"input_tokens":10,"cache_read_input_tokens":60,"cache_creation_input_tokens":30`, "100 7 60 30"},
	} {
		t.Run(cache, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = fmt.Fprintf(w, answer, c.usage) // the client may have left
			}))
			defer server.Close()
			got, err := newClient(t, Config{APIKey: "k", BaseURL: server.URL}).Generate(t.Context(), ask("hi"), nil)
			if err != nil {
				t.Fatal(err)
			}
			u, columns := got.Usage, ""
			for _, n := range []*int64{u.InputTokens, u.OutputTokens, u.CachedInputTokens, u.CacheWriteInputTokens} {
				if n == nil {
					columns += " -"
				} else {
					columns += fmt.Sprintf(" %d", *n)
				}
			}
			if columns[1:] != c.want {
				t.Errorf("the columns are %s, want %s", columns[1:], c.want)
			}
		})
	}
}
