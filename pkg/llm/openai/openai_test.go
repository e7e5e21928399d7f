// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package openai

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

const key = "sk-test-0123456789abcdef"

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
	return llm.Request{Model: "m", MaxTokens: 100, Messages: []llm.Message{{Role: llm.RoleUser, Text: text}}}
}

func TestStreamsTextAndUsage(t *testing.T) {
	_, url := serve(t, `
apiKey: `+key+`
turns: [{reply: {text: "The answer is forty-two, of course – ünïcode too.", usage: {input: 7, output: 0, cached: 3}}}]`)
	var parts strings.Builder
	n := 0
	got, err := newClient(t, Config{APIKey: key, BaseURL: url + "/v1"}).Generate(t.Context(), ask("hi"), func(p llm.Part) {
		parts.WriteString(p.Text)
		n++
	})
	if err != nil {
		t.Fatal(err)
	}
	want := llm.Response{
		ID: "chatcmpl-scripted", Model: "m", Text: "The answer is forty-two, of course – ünïcode too.", StopReason: llm.StopEnd,
		Usage: llm.Usage{InputTokens: new(int64(7)), OutputTokens: new(int64(0)), CachedInputTokens: new(int64(3))},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if parts.String() != got.Text || n < 3 {
		t.Errorf("%d parts: %q", n, parts.String())
	}
}

func TestToolCallsRoundTrip(t *testing.T) {
	model, url := serve(t, `
turns:
- match: {turn: 1, offered: [file_write, web_fetch]}
  reply:
    text: On it.
    toolCalls:
    - {name: file_write, arguments: {path: a.txt, content: "hello\nworld"}}
    - {id: second, name: web_fetch, rawArguments: "{\"url\": "}
- match: {turn: 2, lastRole: tool}
  reply: {text: "{{ .Results.file_write }} and {{ .Results.web_fetch.error }}"}`)
	c := newClient(t, Config{APIKey: key, BaseURL: url + "/v1"})
	req := ask("write it")
	req.Tools = []tool.Definition{
		{Name: "file_write", Description: "writes", Parameters: []byte(`{"type":"object","properties":{"path":{"type":"string"}}}`)},
		{Name: "web_fetch", Parameters: []byte(`{"type":"object"}`)},
	}
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
	req.Messages = append(req.Messages,
		llm.Message{Role: llm.RoleAssistant, Text: first.Text, ToolCalls: first.ToolCalls},
		llm.Message{Role: llm.RoleTool, ToolCallID: "call_1_1", Text: "done"},
		llm.Message{Role: llm.RoleTool, ToolCallID: "second", Text: `{"error":"bad arguments"}`})
	second, err := c.Generate(t.Context(), req, nil)
	if err != nil || second.Text != "done and bad arguments" {
		t.Errorf("%q, %v", second.Text, err)
	}
	if r := model.Refused(); len(r) > 0 {
		t.Error(r)
	}
}

// TestSchemasAreSentAsTheyAre: also numbers that no float64 has. What is no schema is left out.
func TestSchemasAreSentAsTheyAre(t *testing.T) {
	model, url := serve(t, `turns: [{reply: {text: hi}}]`)
	req := ask("hi")
	const schema = `{"type":"object","z":9007199254740993,"a":1.50}`
	req.Tools = []tool.Definition{{Name: "a", Parameters: []byte(schema)}, {Name: "b"}, {Name: "c", Parameters: []byte(`null`)}, {Name: "d", Parameters: []byte(`true`)}}
	if _, err := newClient(t, Config{APIKey: key, BaseURL: url + "/v1"}).Generate(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	body := string(model.Exchanges()[0].Request.Body)
	if !strings.Contains(body, `"parameters":`+schema) || strings.Count(body, `"parameters"`) != 1 {
		t.Errorf("the vendor got %s", body)
	}
}

func TestUsageUnknownIsNotZero(t *testing.T) {
	_, url := serve(t, `turns: [{reply: {text: hi, noUsage: true}}]`)
	got, err := newClient(t, Config{APIKey: key, BaseURL: url + "/v1"}).Generate(t.Context(), ask("hi"), nil)
	if err != nil || got.Usage.Known() || got.Usage.InputTokens != nil || got.Usage.OutputTokens != nil {
		t.Errorf("%+v, %v", got.Usage, err)
	}
}

func TestErrorsAreClassified(t *testing.T) {
	tests := map[string]struct {
		fault string
		want  llm.Error
	}{
		"bad key": {
			`{status: 401, code: invalid_api_key, message: "Incorrect API key provided: ` + key + `"}`,
			llm.Error{Class: llm.ClassAuth, Status: 401, Code: "invalid_api_key", Message: "the provider refused the API key"},
		},
		"forbidden": {`{status: 403, message: no}`, llm.Error{Class: llm.ClassAuth, Status: 403, Message: "the provider does not permit this request with this API key"}},
		"rate limited": {
			`{status: 429, retryAfter: "7", code: rate_limit_exceeded, message: slow down}`,
			llm.Error{Class: llm.ClassRateLimited, Status: 429, Code: "rate_limit_exceeded", Message: "slow down", RetryAfter: 7 * time.Second},
		},
		"out of money": {
			`{status: 429, code: insufficient_quota, message: no credit}`,
			llm.Error{Class: llm.ClassQuota, Status: 429, Code: "insufficient_quota", Message: "no credit"},
		},
		"context": {
			`{status: 400, code: context_length_exceeded, message: too much}`,
			llm.Error{Class: llm.ClassContextTooLong, Status: 400, Code: "context_length_exceeded", Message: "too much"},
		},
		"context in words": {
			`{status: 400, message: "This model's maximum context length is 8192 tokens"}`,
			llm.Error{Class: llm.ClassContextTooLong, Status: 400, Message: "This model's maximum context length is 8192 tokens"},
		},
		"refused": {`{status: 400, message: bad temperature}`, llm.Error{Class: llm.ClassInvalidRequest, Status: 400, Message: "bad temperature"}},
		"no model": {
			`{status: 404, code: model_not_found, message: "no such model, key ` + key + `"}`,
			llm.Error{Class: llm.ClassInvalidRequest, Status: 404, Code: "model_not_found", Message: "no such model, key [REDACTED]"},
		},
		"server": {`{status: 500, message: oops}`, llm.Error{Class: llm.ClassServer, Status: 500, Message: "oops"}},
		"gateway page": {
			`{status: 502, body: "<html>bad gateway</html>", retryAfter: "1.5"}`,
			llm.Error{Class: llm.ClassServer, Status: 502, Message: "Bad Gateway (the answer is an HTML page, perhaps of a proxy; check baseURL)", RetryAfter: 1500 * time.Millisecond},
		},
		"error as text": {`{status: 503, body: '{"error":"model is loading"}'}`, llm.Error{Class: llm.ClassServer, Status: 503, Message: "model is loading"}},
		"redirect":      {`{status: 302}`, llm.Error{Class: llm.ClassInvalidRequest, Status: 302, Message: "the server answered with a redirect or an empty success; check baseURL"}},
		"login page":    {`{notAStream: true}`, llm.Error{Class: llm.ClassMalformed, Status: 200, Message: `the answer is "text/html", not an event stream`}},
		"in band":       {`{inBand: true, status: 500, message: overloaded}`, llm.Error{Class: llm.ClassServer, Status: 500, Message: "overloaded", Accepted: true}},
		"in band limit": {
			`{inBand: true, status: 500, code: rate_limit_exceeded, message: later}`,
			llm.Error{Class: llm.ClassRateLimited, Status: 500, Code: "rate_limit_exceeded", Message: "later", Accepted: true},
		},
		"garbage":   {`{garbage: true}`, llm.Error{Class: llm.ClassMalformed, Message: "a chunk of the stream is not valid JSON"}},
		"cut":       {`{cutAfterBytes: 400}`, llm.Error{Class: llm.ClassCutStream, Message: "the stream ended before the model was done"}},
		"reset":     {`{cutAfterBytes: 400, reset: true}`, llm.Error{Class: llm.ClassCutStream, Message: "the stream broke off: connection closed by the server"}},
		"empty":     {`{cutAfterBytes: 0}`, llm.Error{Class: llm.ClassMalformed, Message: "the stream was empty"}},
		"long text": {`{status: 400, message: "` + strings.Repeat("é", 400) + `"}`, llm.Error{Class: llm.ClassInvalidRequest, Status: 400, Message: strings.Repeat("é", 256) + "…"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, url := serve(t, `turns: [{reply: {text: "a text that takes several chunks to send"}, fault: `+tt.fault+`}]`)
			got, err := newClient(t, Config{APIKey: key, BaseURL: url + "/v1"}).Generate(t.Context(), ask("hi"), nil)
			var e *llm.Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v", err)
			}
			if strings.Contains(err.Error(), key) || strings.Contains(err.Error(), url) {
				t.Errorf("the error tells too much: %v", err)
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

// TestEveryCut ends a stream at each of its bytes: the answer is whole exactly
// when the model's stop reason arrived, and never different from the script's.
func TestEveryCut(t *testing.T) {
	srv := &cutServer{}
	http := httptest.NewServer(srv)
	defer http.Close()
	c := newClient(t, Config{APIKey: key, BaseURL: http.URL})
	end := strings.Index(cutStream, "\n\ndata: [DONE]")
	whole := strings.Index(cutStream, `"finish_reason":"tool_calls"}]}`) + len(`"finish_reason":"tool_calls"}]}`) + 2
	for srv.cut = 0; srv.cut <= end; srv.cut++ {
		got, err := c.Generate(t.Context(), ask("hi"), nil)
		switch {
		case srv.cut < whole && err == nil:
			t.Fatalf("cut at %d of %d is a success: %+v", srv.cut, end, got)
		case srv.cut >= whole && (err != nil || got.ToolCalls[0].Arguments != `{"a":1}`):
			t.Fatalf("cut at %d of %d: %+v, %v", srv.cut, end, got, err)
		case err != nil && llm.ClassOf(err) != llm.ClassCutStream && llm.ClassOf(err) != llm.ClassMalformed:
			t.Fatalf("cut at %d: %v", srv.cut, err)
		}
	}
}

const cutStream = `data: {"id":"x","model":"m","choices":[{"index":0,"delta":{"content":"hé"}}]}

data: {"id":"x","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{\"a\""}}]}}]}

data: {"id":"x","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}}]}

data: {"id":"x","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: {"id":"x","model":"m","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}

data: [DONE]

`

type cutServer struct{ cut int }

func (s *cutServer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	_, _ = w.Write([]byte(cutStream[:s.cut]))
}

func TestStalledStreamIsCut(t *testing.T) {
	_, url := serve(t, `turns: [{reply: {text: "never to be finished"}, fault: {stall: true}}]`)
	c := newClient(t, Config{APIKey: key, BaseURL: url + "/v1", IdleTimeout: 20 * time.Millisecond}) // short, because the stream never goes on
	_, err := c.Generate(t.Context(), ask("hi"), nil)
	if llm.ClassOf(err) != llm.ClassCutStream || !strings.Contains(err.Error(), "nothing for 20ms") {
		t.Errorf("got %v", err)
	}
}

// TestCancelIsNotAFailureOfTheVendor: the model says one thing and waits, so nothing but the stop ends the stream.
func TestCancelIsNotAFailureOfTheVendor(t *testing.T) {
	first, _, _ := strings.Cut(cutStream, "\n\n")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then the server sees the client leave
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, first+"\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer srv.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := newClient(t, Config{APIKey: key, BaseURL: srv.URL})
	stopAtFirst := func(llm.Part) { cancel() }
	if _, err := c.Generate(ctx, ask("hi"), stopAtFirst); llm.ClassOf(err) != llm.ClassCanceled {
		t.Errorf("got %v", err)
	}
}

func TestUnreachable(t *testing.T) {
	_, err := newClient(t, Config{APIKey: key, BaseURL: "http://127.0.0.1:1/v1"}).Generate(t.Context(), ask("hi"), nil)
	if llm.ClassOf(err) != llm.ClassUnreachable || !llm.Unused(err) || !strings.Contains(err.Error(), "refused") || strings.Contains(err.Error(), "/v1") {
		t.Errorf("got %v", err)
	}
}

// TestEnvironmentIsIgnored holds the client to its configuration: a key in the
// worker's environment must not be sent to a task's provider.
func TestEnvironmentIsIgnored(t *testing.T) {
	var seen http.Header
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header
		w.WriteHeader(http.StatusTeapot)
	}))
	defer srv.Close()
	t.Setenv("OPENAI_API_KEY", "sk-from-the-environment")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Surprise: yes")
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	_, err := newClient(t, Config{BaseURL: srv.URL}).Generate(t.Context(), ask("hi"), nil)
	if llm.ClassOf(err) != llm.ClassInvalidRequest || seen.Get("Authorization") != "" || seen.Get("X-Surprise") != "" {
		t.Errorf("%v, headers %v", err, seen)
	}
}

func TestAzure(t *testing.T) {
	model, url := serve(t, `{apiKey: `+key+`, turns: [{reply: {text: hello}}]}`)
	c := newClient(t, Config{APIKey: key, BaseURL: url, Azure: &Azure{Deployment: "prod"}})
	if got, err := c.Generate(t.Context(), ask("hi"), nil); err != nil || got.Text != "hello" {
		t.Errorf("%q, %v %v", got.Text, err, model.Refused())
	}
}

// TestLearnsParameters covers servers that refuse an optional parameter: the
// request is repeated without it, and later requests leave it out.
func TestLearnsParameters(t *testing.T) {
	model, url := serve(t, `
turns:
- {times: 1, fault: {status: 400, message: "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."}}
- {times: 1, fault: {status: 400, message: "Unrecognized request argument supplied: stream_options"}}
- {reply: {text: hello}}`)
	c := newClient(t, Config{APIKey: key, BaseURL: url + "/v1"})
	for range 2 {
		if got, err := c.Generate(t.Context(), ask("hi"), nil); err != nil || got.Text != "hello" || got.Usage.Known() {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	all := model.Exchanges()
	last := all[len(all)-1].Request
	if len(all) != 4 || last.MaxTokens != nil || last.MaxCompletionTokens == nil || last.StreamOptions != nil {
		t.Errorf("%d requests, last %+v", len(all), last)
	}
}

func TestBadConfiguration(t *testing.T) {
	for _, c := range []Config{
		{BaseURL: "localhost:80"},
		{BaseURL: "ftp://host/v1"},
		{BaseURL: "https://user:hunter22@host/v1"},
		{BaseURL: "https://host/v1?key=hunter22"},
		{Azure: &Azure{Deployment: "d"}},
		{BaseURL: "https://host", Azure: &Azure{}},
	} {
		c.Clock = clock.RealClock{}
		if _, err := New(c); err == nil || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
