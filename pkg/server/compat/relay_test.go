// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// says returns the answer of a vendor that does not stream.
func says(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

const (
	wholeChat = `{"id":"c1","object":"chat.completion","created":7,"model":"m1","future":{"n":9007199254740993},"choices":[{"index":0,"message":{"role":"assistant","content":"Hello.",` +
		`"refusal":null,"future":[1],"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"2","type":"function","function":{"name":"g","arguments":"{\"x\":1}"}}]},` +
		`"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`
	wholeMessage = `{"id":"msg_1","type":"message","role":"assistant","model":"m1","future":1,"content":[{"type":"thinking","thinking":"hm","signature":"s=="},{"type":"text","text":"Hello."},` +
		`{"type":"tool_use","id":"t1","name":"f","input":{"n":9007199254740993}},{"type":"future","x":[1]}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":4}}`
)

// A client that asks for a stream gets one also from a vendor that does not stream: in the order of a stream, with all that the
// vendor said, whether the vendor answers as a whole or refuses to stream.
func TestVendorThatDoesNotStream(t *testing.T) {
	t.Parallel()
	const chunk = `data: {"choices":[{"delta":%s,"finish_reason":null,"index":0}],"created":7,"future":{"n":9007199254740993},"id":"c1","model":"m1","object":"chat.completion.chunk"}` + "\n\n"
	chat := strings.Replace(chunk, "%s", `{"content":"","role":"assistant"}`, 1) +
		strings.Replace(chunk, "%s", `{"content":"Hello.","future":[1],"refusal":null}`, 1) +
		strings.Replace(chunk, "%s", `{"tool_calls":[{"function":{"name":"f","arguments":"{}"},"id":"1","index":0,"type":"function"}]}`, 1) +
		strings.Replace(chunk, "%s", `{"tool_calls":[{"function":{"name":"g","arguments":"{\"x\":1}"},"id":"2","index":1,"type":"function"}]}`, 1) +
		strings.Replace(chunk, `%s,"finish_reason":null,"index":0`, `{},"finish_reason":"tool_calls","index":0,"logprobs":null`, 1)
	usage := strings.NewReplacer(`{"delta":%s,"finish_reason":null,"index":0}`, "", `"object":"chat.completion.chunk"`, `"object":"chat.completion.chunk","usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}`).Replace(chunk)
	message := `event: message_start
data: {"message":{"content":[],"future":1,"id":"msg_1","model":"m1","role":"assistant","stop_reason":null,"stop_sequence":null,"type":"message","usage":{"input_tokens":3,"output_tokens":4}},"type":"message_start"}

event: content_block_start
data: {"content_block":{"signature":"","thinking":"","type":"thinking"},"index":0,"type":"content_block_start"}

event: content_block_delta
data: {"delta":{"thinking":"hm","type":"thinking_delta"},"index":0,"type":"content_block_delta"}

event: content_block_delta
data: {"delta":{"signature":"s==","type":"signature_delta"},"index":0,"type":"content_block_delta"}

event: content_block_stop
data: {"index":0,"type":"content_block_stop"}

event: content_block_start
data: {"content_block":{"text":"","type":"text"},"index":1,"type":"content_block_start"}

event: content_block_delta
data: {"delta":{"text":"Hello.","type":"text_delta"},"index":1,"type":"content_block_delta"}

event: content_block_stop
data: {"index":1,"type":"content_block_stop"}

event: content_block_start
data: {"content_block":{"id":"t1","input":{},"name":"f","type":"tool_use"},"index":2,"type":"content_block_start"}

event: content_block_delta
data: {"delta":{"partial_json":"{\"n\":9007199254740993}","type":"input_json_delta"},"index":2,"type":"content_block_delta"}

event: content_block_stop
data: {"index":2,"type":"content_block_stop"}

event: content_block_start
data: {"content_block":{"type":"future","x":[1]},"index":3,"type":"content_block_start"}

event: content_block_stop
data: {"index":3,"type":"content_block_stop"}

event: message_delta
data: {"delta":{"stop_reason":"tool_use","stop_sequence":null},"type":"message_delta","usage":{"input_tokens":3,"output_tokens":4}}

event: message_stop
data: {"type":"message_stop"}

`
	const refusal = `{"error":{"message":"Unsupported value: 'stream' does not support true with this model.","type":"invalid_request_error","param":"stream","code":"unsupported_value"}}`
	refuses := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), `"stream":true`) {
			says(http.StatusBadRequest, refusal)(w, r)
			return
		}
		says(http.StatusOK, wholeChat)(w, r)
	}
	const done, question = "data: [DONE]\n\n", `"messages":[{"role":"user","content":"h"}]}`
	for name, tc := range map[string]struct {
		op         operation
		kind       v1alpha1.ProviderType
		body, want string
		answer     http.HandlerFunc
		last       string // of the vendor's requests
	}{
		"chat":             {opChat, v1alpha1.ProviderOpenAI, `{"stream":true,` + question, chat + done, says(200, wholeChat), `{"model":"m","stream_options":{"include_usage":true},"stream":true,` + question},
		"chat with usage":  {opChat, v1alpha1.ProviderOpenAI, `{"stream":true,"stream_options":{"include_usage":true},` + question, chat + usage + done, says(200, wholeChat), `{"model":"m","stream":true,"stream_options":{"include_usage":true},` + question},
		"a refusal":        {opChat, v1alpha1.ProviderOpenAI, `{"stream":true,"stream_options":{"include_usage":true},` + question, chat + usage + done, refuses, `{"model":"m","stream":false,` + question},
		"messages":         {opMessages, v1alpha1.ProviderAnthropic, `{"model":"m","max_tokens":9,"stream":true,` + question, message, says(200, wholeMessage), `{"model":"m","max_tokens":9,"stream":true,` + question},
		"no stream wanted": {opChat, v1alpha1.ProviderOpenAI, `{` + question, wholeChat, says(200, wholeChat), `{"model":"m",` + question},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLoop(t, tc.op, tc.kind)
			l.answer = tc.answer
			answer, got := l.post(t, tc.body)
			if answer.Code != http.StatusOK || answer.Body.String() != tc.want {
				t.Errorf("%d %s\nwant %s", answer.Code, answer.Body, tc.want)
			}
			if streamed := strings.HasPrefix(answer.Header().Get("Content-Type"), "text/event-stream"); streamed != strings.Contains(tc.want, "data: ") {
				t.Errorf("the header is %v", answer.Header())
			}
			if last := string(got[len(got)-1]); tc.last != "" && last != tc.last {
				t.Errorf("the vendor got %s\nwant %s", last, tc.last)
			}
			if e := <-l.ended; tc.last != "" && (!e.Usage.Known() || *e.Usage.InputTokens != 3 || *e.Usage.OutputTokens != 4) || len(l.ended) > 0 {
				t.Errorf("the end says %+v, and there are %d more", e, len(l.ended))
			}
		})
	}
}

// The same holds if the vendor has the other protocol.
func TestVendorThatDoesNotStreamTranslated(t *testing.T) {
	t.Parallel()
	chat, messages := newLoop(t, opChat, v1alpha1.ProviderAnthropic), newLoop(t, opMessages, v1alpha1.ProviderOpenAI)
	chat.answer = says(http.StatusOK, strings.Replace(wholeMessage, `,{"type":"future","x":[1]}`, "", 1))
	messages.answer = says(http.StatusOK, wholeChat)
	for _, stream := range []string{"false", "true"} {
		for l, wants := range map[*loop][]string{
			chat:     {"Hello.", `{"name":"f","arguments":"{\"n\":9007199254740993}"}`, `"finish_reason":"tool_calls"`},
			messages: {"Hello.", `"name":"f"`, `"name":"g"`, `tool_use`, `"output_tokens":4`},
		} {
			answer, _ := l.post(t, `{"model":"m","max_tokens":99,"stream":`+stream+`,"messages":[{"role":"user","content":"h"}]}`)
			for _, want := range wants {
				if body := answer.Body.String(); answer.Code != http.StatusOK || !strings.Contains(body, want) || strings.Contains(body, "error") {
					t.Errorf("%s, stream %s: %d %s, without %s", l.path, stream, answer.Code, body, want)
				}
			}
			if e := <-l.ended; !e.Usage.Known() || *e.Usage.InputTokens != 3 {
				t.Errorf("%s: the end says %+v", l.path, e)
			}
		}
	}
}

// A vendor that refuses stream_options, which this server added, is asked once more without it. The usage is then unknown, and the
// vendor is not asked for it again. What the client itself asked for is the vendor's to refuse.
func TestVendorWithoutUsageOption(t *testing.T) {
	t.Parallel()
	l := newLoop(t, opChat, v1alpha1.ProviderOpenAI)
	const events, refusal = `data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}],"usage":null}` + "\n\ndata: [DONE]\n\n",
		`{"object":"error","message":"[{'loc': ('body', 'stream_options'), 'msg': 'Extra inputs are not permitted'}]","code":400}`
	l.answer = func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "stream_options") {
			says(http.StatusBadRequest, refusal)(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, events)
	}
	const question = `"messages":[{"role":"user","content":"h"}]}`
	for i, tc := range []struct {
		body, want string
		code       int
		asked      int
		refused    bool
	}{
		{`{"stream":true,` + question, events, 200, 2, false},
		{`{"stream":true,` + question, events, 200, 1, false},
		{`{"stream":true,"stream_options":{"include_usage":true},` + question, refusal, 400, 1, true},
		{`{"stream":true,"stream_options":{"future":1},` + question, refusal, 400, 1, true},
	} {
		answer, got := l.post(t, tc.body)
		e := <-l.ended
		if answer.Code != tc.code || answer.Body.String() != tc.want || len(got) != tc.asked || e.Refused != tc.refused || e.Usage.Known() || len(l.ended) > 0 {
			t.Errorf("%d: after %d requests to the vendor %d %s; the end says %+v", i, len(got), answer.Code, answer.Body, e)
		}
	}
}
