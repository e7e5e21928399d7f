// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

const key = "sk-ant-test-0123456789abcdef"

// serve starts the scripted model and returns it with its address.
func serve(t *testing.T, text string) (*script.Server, string) {
	t.Helper()
	s, err := script.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	model := script.New(s, t.Output())
	srv := httptest.NewServer(model)
	t.Cleanup(srv.Close)
	return model, srv.URL
}

func newClient(t *testing.T, c Config) *Client {
	t.Helper()
	if c.Clock == nil {
		c.Clock = clock.RealClock{}
	}
	client, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func ask(text string) llm.Request {
	return llm.Request{Model: "m", MaxTokens: 100, Messages: []llm.Message{{Role: llm.RoleSystem, Text: "Be brief."}, {Role: llm.RoleUser, Text: text}}}
}

// TestStreamsTextAndUsage: the text arrives in parts, and the figures mean what those of other vendors mean, although
// Anthropic's input_tokens leaves out what a cache supplied or took.
func TestStreamsTextAndUsage(t *testing.T) {
	const text = "The answer is forty-two, of course – ünïcode too."
	for name, tt := range map[string]struct {
		usage string
		want  llm.Usage
	}{
		"no cache":      {`{input: 7, output: 0}`, llm.Usage{InputTokens: new(int64(7)), OutputTokens: new(int64(0))}},
		"cache is cold": {`{input: 70, output: 5, cached: 0, cacheWrite: 60}`, llm.Usage{InputTokens: new(int64(70)), OutputTokens: new(int64(5)), CachedInputTokens: new(int64(0)), CacheWriteInputTokens: new(int64(60))}},
		"cache is warm": {`{input: 70, output: 5, cached: 60, cacheWrite: 0}`, llm.Usage{InputTokens: new(int64(70)), OutputTokens: new(int64(5)), CachedInputTokens: new(int64(60)), CacheWriteInputTokens: new(int64(0))}},
		"cache grows":   {`{input: 70, output: 5, cached: 40, cacheWrite: 20}`, llm.Usage{InputTokens: new(int64(70)), OutputTokens: new(int64(5)), CachedInputTokens: new(int64(40)), CacheWriteInputTokens: new(int64(20))}},
	} {
		t.Run(name, func(t *testing.T) {
			_, url := serve(t, `{apiKey: `+key+`, turns: [{reply: {text: "`+text+`", usage: `+tt.usage+`}}]}`)
			var parts strings.Builder
			n := 0
			got, err := newClient(t, Config{APIKey: key, BaseURL: url}).Generate(t.Context(), ask("hi"), func(p llm.Part) {
				parts.WriteString(p.Text)
				n++
			})
			if err != nil {
				t.Fatal(err)
			}
			want := llm.Response{ID: "msg_scripted", Model: "m", Text: text, StopReason: llm.StopEnd, Usage: tt.want}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if parts.String() != text || n < 3 {
				t.Errorf("%d parts: %q", n, parts.String())
			}
		})
	}
}

func TestUsageUnknownIsNotZero(t *testing.T) {
	_, url := serve(t, `turns: [{reply: {text: hi, noUsage: true}}]`)
	got, err := newClient(t, Config{APIKey: key, BaseURL: url}).Generate(t.Context(), ask("hi"), nil)
	if diff := cmp.Diff(llm.Usage{}, got.Usage); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

// TestUsageOfACutStreamIsAGap: the figure of output that comes first is not final.
func TestUsageOfACutStreamIsAGap(t *testing.T) {
	_, url := serve(t, `turns: [{reply: {text: hi, toolCalls: [{name: f, arguments: {path: a-long-path-of-many-pieces}}], usage: {input: 9, output: 4}}, fault: {cutInToolCall: true}}]`)
	got, err := newClient(t, Config{APIKey: key, BaseURL: url}).Generate(t.Context(), ask("hi"), nil)
	if llm.ClassOf(err) != llm.ClassCutStream || got.Usage.Known() || got.Usage.InputTokens == nil || *got.Usage.InputTokens != 9 {
		t.Errorf("%v: %+v", err, got.Usage)
	}
}

var tools = []tool.Definition{
	{Name: "file_write", Description: "writes", Parameters: []byte(`{"type":"object","properties":{"path":{"type":"string"}},"additionalProperties":false}`)},
	{Name: "web_fetch", Parameters: []byte(`{"type":"object"}`)},
}

// TestThinkingIsReturnedUnchanged: the vendor gets back each block of an answer as it was, in its order. The scripted
// vendor refuses a block that it did not issue. Another model and another vendor get text and calls only.
func TestThinkingIsReturnedUnchanged(t *testing.T) {
	const text = `
turns:
- match: {turn: 1, offered: [file_write, web_fetch]}
  reply:
    thinking: [{text: "Let me think <b>hard</b>…", signature: "c2ln+/=="}, {redacted: "ZW5jcnlwdGVk"}]
    text: On it.
    toolCalls:
    - {name: file_write, arguments: {path: a.txt, content: "hello\nworld"}}
    - {id: second, name: web_fetch, rawArguments: "{\"url\": "}
- match: {turn: 2, lastRole: tool}
  reply: {text: "{{ .Results.file_write }} and {{ .Results.web_fetch.error }}"}`
	model, url := serve(t, text)
	c := newClient(t, Config{APIKey: key, BaseURL: url + "/v1/"})
	req := ask("write it")
	req.Tools = tools
	first, err := c.Generate(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []llm.ToolCall{
		{ID: "call_1_1", Name: "file_write", Arguments: `{"content":"hello\nworld","path":"a.txt"}`},
		{ID: "second", Name: "web_fetch", Arguments: `{"url": `},
	}
	if diff := cmp.Diff(want, first.ToolCalls); diff != "" || first.StopReason != llm.StopToolCalls || first.Text != "On it." {
		t.Errorf("%s %+v", diff, first)
	}
	req.Messages = append(req.Messages, first.Message(),
		llm.Message{Role: llm.RoleTool, ToolCallID: "call_1_1", Text: "done"},
		llm.Message{Role: llm.RoleTool, ToolCallID: "second", Text: `{"error":"bad arguments"}`},
		llm.Message{Role: llm.RoleUser, Text: "go on"})
	req.Messages = req.Messages[:len(req.Messages)-1]
	second, err := c.Generate(t.Context(), req, nil)
	if err != nil || second.Text != "done and bad arguments" || second.Opaque != nil {
		t.Errorf("%+v, %v", second, err)
	}
	body := string(last(model).Request.Body)
	const blocks = `{"type":"thinking","thinking":"Let me think \u003cb\u003ehard\u003c/b\u003e…","signature":"c2ln+/=="},{"type":"redacted_thinking","data":"ZW5jcnlwdGVk"},{"type":"text","text":"On it."},{"type":"tool_use"`
	if !strings.Contains(body, blocks) {
		t.Errorf("the thinking is not as it was: %s", body)
	}
	req.Model = "other"
	if _, err := c.Generate(t.Context(), req, nil); err != nil || strings.Contains(string(last(model).Request.Body), "thinking") {
		t.Errorf("%v: another model got %s", err, last(model).Request.Body)
	}
	if r := model.Refused(); len(r) > 0 {
		t.Error(r)
	}
}

func last(m *script.Server) script.Exchange {
	all := m.Exchanges()
	return all[len(all)-1]
}

// TestConversations: every conversation that the loop can make is one that the vendor accepts.
func TestConversations(t *testing.T) {
	call := llm.Message{Role: llm.RoleAssistant, Text: "trailing space ", ToolCalls: []llm.ToolCall{{ID: "call:1/ü", Name: "file_write", Arguments: "[]"}}}
	result := llm.Message{Role: llm.RoleTool, ToolCallID: "call:1/ü", Text: "ok"}
	user := func(text string) llm.Message { return llm.Message{Role: llm.RoleUser, Text: text} }
	for name, messages := range map[string][]llm.Message{
		"no system text":         {user("hi")},
		"two users in a row":     {user("hi"), user("again")},
		"begins with the model":  {{Role: llm.RoleAssistant, Text: "hello"}, user("hi")},
		"ends with results":      {user("hi"), call, result},
		"one id in each turn":    {user("hi"), call, result, call, result},
		"notice after results":   {user("hi"), call, result, user("[platform notice] hurry")},
		"empty result":           {user("hi"), call, {Role: llm.RoleTool, ToolCallID: "call:1/ü"}},
		"blank system and user":  {{Role: llm.RoleSystem, Text: " "}, user("hi"), user("\n"), {Role: llm.RoleAssistant, Text: " "}, user("there")},
		"damaged opaque content": {user("hi"), {Role: llm.RoleAssistant, Text: "x", Opaque: &llm.Opaque{Origin: "anthropic", Data: []byte("{")}}, user("there")},
	} {
		for kind, offered := range map[string][]tool.Definition{"with tools": tools, "without tools": nil} {
			t.Run(name+" "+kind, func(t *testing.T) {
				model, url := serve(t, `turns: [{reply: {text: fine}}]`)
				got, err := newClient(t, Config{APIKey: key, BaseURL: url}).Generate(t.Context(), llm.Request{Model: "m", Messages: messages, Tools: offered}, nil)
				if err != nil || got.Text != "fine" {
					t.Errorf("%q, %v: %v\n%s", got.Text, err, model.Refused(), last(model).Request.Body)
				}
				if n := strings.Count(string(last(model).Request.Body), `"id":"call_1__"`); n > 1 {
					t.Errorf("%d calls have one id: %s", n, last(model).Request.Body)
				}
				if n := strings.Count(string(last(model).Request.Body), `"cache_control":{"type":"ephemeral"}`); n == 0 || n > 2 {
					t.Errorf("%d marks for the cache: %s", n, last(model).Request.Body)
				}
			})
		}
	}
}

func TestErrorsAreClassified(t *testing.T) {
	tests := map[string]struct {
		fault string
		want  llm.Error
	}{
		"bad key":      {`{status: 401, message: "invalid x-api-key ` + key + `"}`, llm.Error{Class: llm.ClassAuth, Status: 401, Code: "authentication_error", Message: "the provider refused the API key"}},
		"forbidden":    {`{status: 403, message: no}`, llm.Error{Class: llm.ClassAuth, Status: 403, Code: "permission_error", Message: "the provider does not permit this request with this API key"}},
		"rate limited": {`{status: 429, retryAfter: "7", message: slow down}`, llm.Error{Class: llm.ClassRateLimited, Status: 429, Code: "rate_limit_error", Message: "slow down", RetryAfter: 7 * time.Second}},
		"out of money": {`{status: 400, message: "Your credit balance is too low to access the API."}`, llm.Error{Class: llm.ClassQuota, Status: 400, Code: "invalid_request_error", Message: "Your credit balance is too low to access the API."}},
		"billing":      {`{status: 402, code: insufficient_quota, message: pay}`, llm.Error{Class: llm.ClassQuota, Status: 402, Code: "billing_error", Message: "pay"}},
		"context":      {`{status: 400, code: context_length_exceeded}`, llm.Error{Class: llm.ClassContextTooLong, Status: 400, Code: "invalid_request_error", Message: "prompt is too long: 200001 tokens > 200000 maximum"}},
		"context and answer": {
			"{status: 400, message: \"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000\"}",
			llm.Error{Class: llm.ClassContextTooLong, Status: 400, Code: "invalid_request_error", Message: "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"},
		},
		"too large":     {`{status: 413}`, llm.Error{Class: llm.ClassContextTooLong, Status: 413, Code: "request_too_large", Message: "Request Entity Too Large"}},
		"refused":       {`{status: 400, message: bad temperature}`, llm.Error{Class: llm.ClassInvalidRequest, Status: 400, Code: "invalid_request_error", Message: "bad temperature"}},
		"no model":      {`{status: 404, message: "model: x, key ` + key + `"}`, llm.Error{Class: llm.ClassInvalidRequest, Status: 404, Code: "not_found_error", Message: "model: x, key [REDACTED]"}},
		"server":        {`{status: 500}`, llm.Error{Class: llm.ClassServer, Status: 500, Code: "api_error", Message: "Internal Server Error"}},
		"overloaded":    {`{status: 529, retryAfter: "3"}`, llm.Error{Class: llm.ClassServer, Status: 529, Code: "overloaded_error", Message: "Overloaded", RetryAfter: 3 * time.Second}},
		"gateway page":  {`{status: 502, body: "<html>bad gateway</html>", retryAfter: "1.5"}`, llm.Error{Class: llm.ClassServer, Status: 502, Message: "Bad Gateway (the answer is an HTML page, perhaps of a proxy; check baseURL)", RetryAfter: 1500 * time.Millisecond}},
		"error as text": {`{status: 503, body: '{"error":"model is loading"}'}`, llm.Error{Class: llm.ClassServer, Status: 503, Message: "model is loading"}},
		"redirect":      {`{status: 302}`, llm.Error{Class: llm.ClassInvalidRequest, Status: 302, Message: "the server answered with a redirect or an empty success; check baseURL"}},
		"login page":    {`{notAStream: true}`, llm.Error{Class: llm.ClassMalformed, Status: 200, Message: `the answer is "text/html", not an event stream`}},
		"in band":       {`{inBand: true, status: 529}`, llm.Error{Class: llm.ClassServer, Status: 529, Code: "overloaded_error", Message: "Overloaded", Accepted: true}},
		"in band limit": {`{inBand: true, status: 429, message: later}`, llm.Error{Class: llm.ClassRateLimited, Status: 429, Code: "rate_limit_error", Message: "later", Accepted: true}},
		"garbage":       {`{garbage: true}`, llm.Error{Class: llm.ClassMalformed, Message: "an event of the stream is not valid JSON"}},
		"cut":           {`{cutAfterBytes: 700}`, llm.Error{Class: llm.ClassCutStream, Message: "the stream ended before the model was done"}},
		"reset":         {`{cutAfterBytes: 700, reset: true}`, llm.Error{Class: llm.ClassCutStream, Message: "the stream broke off: connection closed by the server"}},
		"cut in call":   {`{cutInToolCall: true}`, llm.Error{Class: llm.ClassCutStream, Message: "the stream ended before the model was done"}},
		"empty":         {`{cutAfterBytes: 0}`, llm.Error{Class: llm.ClassMalformed, Message: "the stream was empty"}},
		"long text":     {`{status: 400, message: "` + strings.Repeat("é", 400) + `"}`, llm.Error{Class: llm.ClassInvalidRequest, Status: 400, Code: "invalid_request_error", Message: strings.Repeat("é", 256) + "…"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, url := serve(t, `turns: [{reply: {text: "a text that takes several events", toolCalls: [{name: f, arguments: {path: a-long-path-of-many-pieces}}]}, fault: `+tt.fault+`}]`)
			got, err := newClient(t, Config{APIKey: key, BaseURL: url}).Generate(t.Context(), ask("hi"), nil)
			var e *llm.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			if strings.Contains(err.Error(), key) || strings.Contains(err.Error(), url) {
				t.Errorf("the error says too much: %v", err)
			}
			shown := *e
			shown.Err = nil
			if diff := cmp.Diff(tt.want, shown); diff != "" {
				t.Error(diff)
			}
			if got.StopReason != "" {
				t.Errorf("a failed attempt has stop reason %q", got.StopReason)
			}
		})
	}
}

func TestStopReasons(t *testing.T) {
	for stop, want := range map[string]llm.StopReason{
		"stop": llm.StopEnd, "length": llm.StopLength, "content_filter": llm.StopFiltered, "stop_sequence": llm.StopEnd,
		"model_context_window_exceeded": llm.StopLength, "pause_turn": "pause_turn",
	} {
		_, url := serve(t, `turns: [{reply: {text: hi, stop: `+stop+`}}]`)
		if got, err := newClient(t, Config{APIKey: key, BaseURL: url}).Generate(t.Context(), ask("hi"), nil); err != nil || got.StopReason != want {
			t.Errorf("%s: %q, %v", stop, got.StopReason, err)
		}
	}
}

const cutStream = `event: message_start
data: {"type":"message_start","message":{"id":"x","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hé"}}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c","name":"f","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\""}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":":1}"}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}}

event: message_stop
data: {"type":"message_stop"}

`

type cutServer struct{ cut int }

func (s *cutServer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	_, _ = w.Write([]byte(cutStream[:s.cut]))
}

// TestEveryCut ends a stream at each of its bytes: the answer is whole exactly when the model's stop reason arrived,
// and never different from the script's.
func TestEveryCut(t *testing.T) {
	srv := &cutServer{}
	server := httptest.NewServer(srv)
	defer server.Close()
	c := newClient(t, Config{APIKey: key, BaseURL: server.URL})
	const stop = `"usage":{"output_tokens":2}}`
	whole := strings.Index(cutStream, stop) + len(stop) + 2
	for srv.cut = 0; srv.cut <= len(cutStream); srv.cut++ {
		got, err := c.Generate(t.Context(), ask("hi"), nil)
		switch {
		case srv.cut < whole && err == nil:
			t.Fatalf("cut at %d of %d is a success: %+v", srv.cut, whole, got)
		case srv.cut >= whole && (err != nil || got.ToolCalls[0].Arguments != `{"a":1}`):
			t.Fatalf("cut at %d of %d: %+v, %v", srv.cut, whole, got, err)
		case err != nil && llm.ClassOf(err) != llm.ClassCutStream && llm.ClassOf(err) != llm.ClassMalformed:
			t.Fatalf("cut at %d: %v", srv.cut, err)
		}
	}
}

func TestStalledStreamIsCut(t *testing.T) {
	_, url := serve(t, `turns: [{reply: {text: "never to be finished"}, fault: {stall: true}}]`)
	c := newClient(t, Config{APIKey: key, BaseURL: url, IdleTimeout: 20 * time.Millisecond}) // short, because the stream never goes on
	_, err := c.Generate(t.Context(), ask("hi"), nil)
	if llm.ClassOf(err) != llm.ClassCutStream || !strings.Contains(err.Error(), "nothing for 20ms") {
		t.Errorf("got %v", err)
	}
}

// TestCancelIsNotAFailureOfTheVendor: the model says one thing and waits, so nothing but the stop ends the stream.
func TestCancelIsNotAFailureOfTheVendor(t *testing.T) {
	first, _, ok := strings.Cut(cutStream, "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1")
	if !ok {
		t.Fatal("the stream has no second block")
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server sees the client leave
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, first)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer srv.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := newClient(t, Config{APIKey: key, BaseURL: srv.URL})
	if _, err := c.Generate(ctx, ask("hi"), func(llm.Part) { cancel() }); llm.ClassOf(err) != llm.ClassCanceled {
		t.Errorf("got %v", err)
	}
}

// TestEnvironmentIsIgnored: a key in the worker's environment must not be sent to a task's provider.
func TestEnvironmentIsIgnored(t *testing.T) {
	var seen http.Header
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header
		w.WriteHeader(http.StatusTeapot)
	}))
	defer srv.Close()
	t.Setenv("ANTHROPIC_API_KEY", "sk-ant-from-the-environment")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "token-from-the-environment")
	t.Setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Surprise: yes")
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	_, err := newClient(t, Config{BaseURL: srv.URL}).Generate(t.Context(), ask("hi"), nil)
	if llm.ClassOf(err) != llm.ClassInvalidRequest || seen.Get("X-Api-Key")+seen.Get("Authorization")+seen.Get("X-Surprise") != "" {
		t.Errorf("%v, headers %v", err, seen)
	}
}

// TestLearnsAboutCaching: a compatible server that does not know cache_control gets requests without it.
func TestLearnsAboutCaching(t *testing.T) {
	model, url := serve(t, `
turns:
- {times: 1, fault: {status: 400, message: "system.0.cache_control: Extra inputs are not permitted"}}
- {reply: {text: hello}}`)
	c := newClient(t, Config{APIKey: key, BaseURL: url})
	for range 2 {
		if got, err := c.Generate(t.Context(), ask("hi"), nil); err != nil || got.Text != "hello" {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if all := model.Exchanges(); len(all) != 3 || strings.Contains(string(last(model).Request.Body), "cache_control") {
		t.Errorf("%d requests, last %s", len(all), last(model).Request.Body)
	}
}

func TestBadConfiguration(t *testing.T) {
	for _, url := range []string{"localhost:80", "ftp://host/v1", "https://user:hunter22@host", "https://host?key=hunter22"} {
		if _, err := New(Config{BaseURL: url, Clock: clock.RealClock{}}); err == nil || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
