// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/platform-ai/platform/pkg/llm"
)

// TestUsageColumns: what a run records of an answer, by vendor and by what a cache had to do with it. OpenAI, and Azure
// with it, includes cached tokens in its input and does not report what a cache took. A dash is not reported.
func TestUsageColumns(t *testing.T) {
	const answer = `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}

data: {"object":"chat.completion.chunk","choices":[]%s}

data: [DONE]

`
	for cache, c := range map[string]struct{ usage, want string }{
		"none":       {`,"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":0}}`, "100 7 0 -"},
		"unreported": {`,"usage":{"prompt_tokens":100,"completion_tokens":7}`, "100 7 - -"},
		"read":       {`,"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"audio_tokens":0,"cached_tokens":60}}`, "100 7 60 -"},
		"write":      {`,"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":0}}`, "100 7 0 -"},
		"both":       {`,"usage":{"prompt_tokens":100,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":60}}`, "100 7 60 -"},
		"no usage":   {``, "- - - -"},
	} {
		for vendor, azure := range map[string]*Azure{"openai": nil, "azure": {Deployment: "prod"}} {
			t.Run(vendor+"/"+cache, func(t *testing.T) {
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = fmt.Fprintf(w, answer, c.usage) // the client may have left
				}))
				defer server.Close()
				got, err := newClient(t, Config{APIKey: "k", BaseURL: server.URL, Azure: azure}).Generate(t.Context(), ask("hi"), nil)
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
}

// TestUsageOfACutStream: some servers count while they answer. Only the count at the end is final, so the output of an answer that
// was cut is not known.
func TestUsageOfACutStream(t *testing.T) {
	const (
		running = `data: {"choices":[{"index":0,"delta":{"content":"x"}}],"usage":{"prompt_tokens":9,"completion_tokens":1}}` + "\n\n"
		stop    = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]%s}` + "\n\n"
		last    = `,"usage":{"prompt_tokens":9,"completion_tokens":7}`
	)
	for name, c := range map[string]struct {
		stream string
		drop   bool // the connection ends, and the body does not
		want   string
		class  llm.Class
	}{
		"before the end":            {running, false, "9 -", llm.ClassCutStream},
		"before the end, dropped":   {running, true, "9 -", llm.ClassCutStream},
		"count with the end":        {running + fmt.Sprintf(stop, last), true, "9 7", ""},
		"end without count":         {running + fmt.Sprintf(stop, ""), true, "9 -", ""},
		"complete, count before it": {running + fmt.Sprintf(stop, "") + "data: [DONE]\n\n", false, "9 1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = fmt.Fprint(w, c.stream) // the client may have left
				if c.drop {
					_ = http.NewResponseController(w).Flush()
					panic(http.ErrAbortHandler)
				}
			}))
			defer server.Close()
			got, err := newClient(t, Config{APIKey: "k", BaseURL: server.URL}).Generate(t.Context(), ask("hi"), nil)
			text := "9 -"
			if u := got.Usage; u.InputTokens == nil || *u.InputTokens != 9 {
				text = "?"
			} else if u.OutputTokens != nil {
				text = fmt.Sprintf("9 %d", *u.OutputTokens)
			}
			if text != c.want || llm.ClassOf(err) != c.class {
				t.Errorf("%s, %v; want %s, %q", text, err, c.want, c.class)
			}
		})
	}
}
