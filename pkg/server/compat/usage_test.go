// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/usage"
)

// TestUsageOfVendors: the columns that recorded answers come to. OpenAI, and Azure with it, includes cached tokens in its
// input and does not report what a cache took; Anthropic excludes both parts from its input. A dash is not reported.
func TestUsageOfVendors(t *testing.T) {
	const (
		openAI    = `{"object":"chat.completion","choices":[{}],"usage":{"prompt_tokens":%d,"completion_tokens":7%s}}`
		responses = `{"object":"response","output":[],"usage":{"input_tokens":%d,"output_tokens":7%s}}`
		anthropic = `{"type":"message","content":[],"usage":{"input_tokens":%d,"output_tokens":7%s}}`
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
			err := y.body(fmt.Appendf(nil, c.format, c.input, c.parts))
			if got := columns(y.count.Usage()); err != nil || got != c.want {
				t.Errorf("%v; the columns are %s, want %s", err, got, c.want)
			}
		})
	}
}

// columns writes the columns of a usage; a dash is not reported.
func columns(u llm.Usage) string {
	var got []string
	for _, n := range []*int64{u.InputTokens, u.OutputTokens, u.CachedInputTokens, u.CacheWriteInputTokens} {
		if n == nil {
			got = append(got, "-")
		} else {
			got = append(got, strconv.FormatInt(*n, 10))
		}
	}
	return strings.Join(got, " ")
}

// TestCutStream: only the vendor's final count of the output counts. An answer that was cut, also one that ends without an error,
// has failed, and what the vendor had counted until then is no output. Its client gets the bytes that the vendor sent; of a response,
// the end besides.
func TestCutStream(t *testing.T) {
	t.Parallel()
	const (
		chat      = `data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}],"usage":{"prompt_tokens":9,"completion_tokens":1}}` + "\n\n"
		chatEnd   = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":%d}}` + "\n\n"
		chatStop  = `data: {"choices":[{"index":0,"delta":{},"finish_reason": "stop"}]}` + "\n\n"
		done      = "data: [DONE]\n\n"
		start     = `data: {"type":"message_start","message":{"usage":{"input_tokens":9,"output_tokens":1}}}` + "\n\n"
		counting  = `data: {"type":"message_delta","delta":{},"usage":{"output_tokens":5}}` + "\n\n"
		end       = `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}` + "\n\n"
		endBare   = `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}` + "\n\n"
		stop      = `data: {"type":"message_stop"}` + "\n\n"
		overload  = `data: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}` + "\n\n"
		created   = `data: {"type":"response.in_progress","response":{"usage":{"input_tokens":9,"output_tokens":1}}}` + "\n\n"
		completed = `data: {"type":"response.completed","response":{"usage":{"input_tokens":9,"output_tokens":7}}}`
		broke     = "event: error\n" + `data: {"type":"error","code":"server_error","message":"Provider \"default\": the answer broke off","param":null,"sequence_number":0}` + "\n\n"
	)
	for name, c := range map[string]struct {
		op     operation
		kind   v1alpha1.ProviderType
		stream string
		want   string
		status usage.Status
		ends   string // in place of all that is no whole event
	}{
		"chat, running count":             {opChat, v1alpha1.ProviderOpenAI, chat, "9 - - -", usage.StatusFailed, ""},
		"chat, count of the end":          {opChat, v1alpha1.ProviderOpenAI, chat + fmt.Sprintf(chatEnd, 7), "9 7 - -", usage.StatusCompleted, ""},
		"chat, running count and end":     {opChat, v1alpha1.ProviderOpenAI, chat + chatStop, "9 - - -", usage.StatusCompleted, ""},
		"chat, complete":                  {opChat, v1alpha1.ProviderOpenAI, chat + chatStop + done, "9 1 - -", usage.StatusCompleted, ""},
		"chat, failed":                    {opChat, v1alpha1.ProviderOpenAI, chat + `data: {"error":{"message":"busy"}}` + "\n\n", "9 - - -", usage.StatusFailed, ""},
		"messages, before the delta":      {opMessages, v1alpha1.ProviderAnthropic, start, "9 - - -", usage.StatusFailed, ""},
		"messages, running count":         {opMessages, v1alpha1.ProviderAnthropic, start + counting, "9 - - -", usage.StatusFailed, ""},
		"messages, after the delta":       {opMessages, v1alpha1.ProviderAnthropic, start + end, "9 7 - -", usage.StatusCompleted, ""},
		"messages, complete":              {opMessages, v1alpha1.ProviderAnthropic, start + end + stop, "9 7 - -", usage.StatusCompleted, ""},
		"messages, complete, no count":    {opMessages, v1alpha1.ProviderAnthropic, start + endBare + stop, "9 - - -", usage.StatusCompleted, ""},
		"messages, failed":                {opMessages, v1alpha1.ProviderAnthropic, start + overload, "9 - - -", usage.StatusFailed, ""},
		"responses, before the end":       {opResponses, v1alpha1.ProviderOpenAI, created, "9 - - -", usage.StatusFailed, created + broke},
		"responses, complete":             {opResponses, v1alpha1.ProviderOpenAI, created + completed + "\n\n", "9 7 - -", usage.StatusCompleted, ""},
		"responses, without a last line":  {opResponses, v1alpha1.ProviderOpenAI, created + completed, "9 7 - -", usage.StatusCompleted, ""},
		"responses, cut within the event": {opResponses, v1alpha1.ProviderOpenAI, created + completed[:len(completed)-1], "9 - - -", usage.StatusFailed, created + broke},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLoop(t, c.op, c.kind)
			l.answer = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, c.stream)
			}
			question := map[operation]string{opResponses: `"store":false,"input":"h"`}[c.op]
			answer, _ := l.post(t, `{"model":"m","max_tokens":99,"stream":true,`+cmp.Or(question, `"messages":[{"role":"user","content":"h"}]`)+`}`)
			e := <-l.ended
			if got := columns(e.Usage); got != c.want || e.Status != c.status || answer.Body.String() != cmp.Or(c.ends, c.stream) {
				t.Errorf("the columns are %s, want %s; it %s, want %s\n%s", got, c.want, e.Status, c.status, answer.Body)
			}
		})
	}
}

// TestRefusals: a request that the vendor refused, or did not get, used nothing, and nobody reports so; whether it was passed through or
// translated. One that the vendor may have worked on is charged.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for code, refused := range map[int]bool{
		301: true, 400: true, 401: true, 403: true, 404: true, 429: true, 408: false, 409: false, 500: false, 529: false,
		0: true,  // no server
		1: false, // the connection breaks after the request
	} {
		for kind, op := range map[v1alpha1.ProviderType]operation{v1alpha1.ProviderOpenAI: opChat, v1alpha1.ProviderAnthropic: opChat} {
			t.Run(fmt.Sprint(code, kind), func(t *testing.T) {
				t.Parallel()
				l := newLoop(t, op, kind)
				l.answer = func(w http.ResponseWriter, r *http.Request) {
					if code == 1 {
						panic(http.ErrAbortHandler)
					}
					says(code, `{"error":{"message":"no"}}`)(w, r)
				}
				if code == 0 {
					l.close()
				}
				l.post(t, `{"model":"m","max_tokens":99,"messages":[{"role":"user","content":"h"}]}`)
				if e := <-l.ended; e.Refused != refused || e.Usage != (llm.Usage{}) || e.Status != usage.StatusFailed {
					t.Errorf("the end says %+v", e)
				}
			})
		}
	}
}
