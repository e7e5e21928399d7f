// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// What the messages protocol does not allow in a conversation is refused by its name. What it allows is sent as the client wrote
// it, white space included.
func TestFits(t *testing.T) {
	t.Parallel()
	l := newLoop(t, opChat, v1alpha1.ProviderAnthropic)
	const user, call = `{"role":"user","content":"a"}`, `"tool_calls":[{"id":"%s","type":"function","function":{"name":"f","arguments":"{}"}}]`
	for messages, want := range map[string]string{
		`{"role":"assistant","content":"b"},` + user:                                   "a conversation that begins with the assistant",
		`{"role":"system","content":"s"},{"role":"assistant","content":"b"},` + user:   "a conversation that begins with the assistant",
		user + `,{"role":"assistant","content":"\n",` + call + `}`:                     "a text of nothing but white space",
		user + `,{"role":"assistant","content":"b\n"}`:                                 "white space at the end of a conversation that ends with the assistant",
		user + `,{"role":"assistant",` + strings.Replace(call, "%s", "f.1", 1) + `}`:   `the id \"f.1\" of a tool call`,
		user + `,{"role":"assistant",` + strings.Replace(call, "%s", "", 1) + `}`:      `the id \"\" of a tool call`,
		user + `,{"role":"assistant",` + call + `},{"role":"tool","tool_call_id":"ü"}`: `the id \"ü\" of a tool call`,
	} {
		answer, got := l.post(t, `{"messages":[`+strings.Replace(messages, "%s", "1", 1)+`]}`)
		body := answer.Body.String()
		if answer.Code != http.StatusBadRequest || len(got) > 0 || !strings.Contains(body, want) || !strings.Contains(body, `"type":"invalid_request_error","param":"messages"`) {
			t.Errorf("%s: %d %s, after %d requests to the vendor", messages, answer.Code, body, len(got))
		}
	}
	answer, got := l.post(t, `{"messages":[`+user+`,{"role":"assistant","content":"b \n",`+strings.Replace(call, "%s", "c-1_A", 1)+`},{"role":"tool","tool_call_id":"c-1_A","content":"\n"},`+user+`]}`)
	if answer.Code != http.StatusOK || len(got) != 1 {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	for _, want := range []string{`{"text":"b \n","type":"text"}`, `"content":[{"text":"\n","type":"text"}]`} {
		if !strings.Contains(string(got[0]), want) {
			t.Errorf("the vendor got %s, without %s", got[0], want)
		}
	}
}

// A schema of a tool that is no object is refused, whoever would get it.
func TestSchemas(t *testing.T) {
	t.Parallel()
	chat, messages := newLoop(t, opChat, v1alpha1.ProviderAnthropic), newLoop(t, opMessages, v1alpha1.ProviderOpenAI)
	for _, schema := range []string{`true`, `[]`, `"{}"`, `{"type":"object","type":"object"}`} {
		for l, tool := range map[*loop]string{chat: `{"type":"function","function":{"name":"f","parameters":%s}}`, messages: `{"name":"f","input_schema":%s}`} {
			answer, got := l.post(t, `{"model":"m","max_tokens":16,"tools":[`+strings.Replace(tool, "%s", schema, 1)+`],"messages":[{"role":"user","content":"a"}]}`)
			if answer.Code != http.StatusBadRequest || len(got) > 0 || !strings.Contains(answer.Body.String(), `\"f\" must be a JSON object`) {
				t.Errorf("%s: %d %s, after %d requests to the vendor", schema, answer.Code, answer.Body, len(got))
			}
		}
	}
}

// Sequences of a chat completion end the answer at the vendor, whose protocol has them.
func TestStopOfChat(t *testing.T) {
	t.Parallel()
	l := newLoop(t, opChat, v1alpha1.ProviderAnthropic)
	l.answer = stream(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"One "}}`,
		`{"type":"message_delta","delta":{"stop_reason":"stop_sequence","stop_sequence":"two"},"usage":{"output_tokens":1}}`, `{"type":"message_stop"}`)
	for given, want := range map[string]string{`"two"`: `["two"]`, `["two","three"]`: `["two","three"]`, `[]`: ``, `null`: ``} {
		answer, got := l.post(t, `{"stop":`+given+`,"messages":[{"role":"user","content":"a"}]}`)
		body := answer.Body.String()
		if answer.Code != http.StatusOK || len(got) != 1 || !strings.Contains(body, `"content":"One "`) || !strings.Contains(body, `"finish_reason":"stop"`) {
			t.Fatalf("%s: %d %s", given, answer.Code, body)
		}
		if has := strings.Contains(string(got[0]), `"stop_sequences":`+want); has != (want != "") {
			t.Errorf("%s: the vendor got %s", given, got[0])
		}
	}
}

// Sequences of a message end its answer here, however the vendor cuts it into pieces, and the client learns which one it was.
// What the vendor says after it is not part of the answer, but for the tokens.
func TestStopOfMessages(t *testing.T) {
	t.Parallel()
	l := newLoop(t, opMessages, v1alpha1.ProviderOpenAI)
	const said, usage = `{"choices":[{"index":0,"delta":{"content":%q}}]}`, `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":9}}`
	for name, tc := range map[string]struct {
		pieces       []string
		end          string
		text, reason string
	}{
		"in a piece":     {[]string{"One two three"}, `{}`, "One ", `"stop_reason":"stop_sequence","stop_sequence":"two"`},
		"across pieces":  {[]string{"One t", "w", "o three"}, `{}`, "One ", `"stop_reason":"stop_sequence","stop_sequence":"two"`},
		"before a call":  {[]string{"One two"}, `{"tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":"{}"}}]}`, "One ", `"stop_reason":"stop_sequence","stop_sequence":"two"`},
		"another":        {[]string{"One zebra two"}, `{}`, "One ", `"stop_reason":"stop_sequence","stop_sequence":"zebra"`},
		"none":           {[]string{"One tw"}, `{}`, "One tw", `"stop_reason":"end_turn","stop_sequence":null`},
		"at once":        {[]string{"two"}, `{}`, "", `"stop_reason":"stop_sequence","stop_sequence":"two"`},
		"none, but call": {[]string{"One t"}, `{"tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":"{}"}}]}`, "One t", `"stop_reason":"tool_use","stop_sequence":null`},
	} {
		events := []string{}
		for _, p := range tc.pieces {
			events = append(events, fmt.Sprintf(said, p))
		}
		l.answer = stream(append(events, `{"choices":[{"index":0,"delta":`+tc.end+`,"finish_reason":"stop"}]}`, usage)...)
		for _, streamed := range []bool{false, true} {
			answer, got := l.post(t, fmt.Sprintf(`{"model":"m","max_tokens":9,"stream":%v,"stop_sequences":["two","zebra"],"messages":[{"role":"user","content":"a"}]}`, streamed))
			body := answer.Body.String()
			// The members of a streamed end are sorted.
			reason := strings.Contains(body, tc.reason) || strings.Contains(body, strings.Join(reversed(strings.Split(tc.reason, ",")), ","))
			if answer.Code != http.StatusOK || textOfMessage(t, body) != tc.text || !reason || strings.Contains(body, `"tool_use","id"`) != strings.Contains(tc.reason, "tool_use") {
				t.Errorf("%s, stream %v: %d %s", name, streamed, answer.Code, body)
			}
			if !strings.Contains(body, `"output_tokens":9`) || len(got) != 1 || strings.Contains(string(got[0]), "zebra") {
				t.Errorf("%s, stream %v: %s; the vendor got %s", name, streamed, body, got)
			}
		}
	}
}

// A call whose arguments were cut is no good call: the stream of a message ends with an error, and an answer that is not streamed
// is a 502. Usage that the vendor did not report is null and not 0.
func TestCarelessVendor(t *testing.T) {
	t.Parallel()
	l := newLoop(t, opMessages, v1alpha1.ProviderOpenAI)
	const text, call = `{"choices":[{"index":0,"delta":{"content":"One"}}]}`, `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":%q}}]}}]}`
	for _, tc := range []struct {
		arguments, reason, usage string
		streamed                 bool
		code                     int
		want, never              string
	}{
		{`{"a":`, "tool_calls", "", true, http.StatusOK, "event: error\n", "message_stop"},
		{`{"a":`, "length", "", true, http.StatusOK, "event: error\n", "tool_use"},
		{`[1]`, "tool_calls", "", true, http.StatusOK, "event: error\n", "tool_use"},
		{`{"a":`, "tool_calls", "", false, http.StatusBadGateway, "are not a JSON object", "tool_use"},
		{`{"a":1}`, "tool_calls", "", true, http.StatusOK, `"output_tokens":null`, "event: error"},
		{`{"a":1}`, "tool_calls", "", false, http.StatusOK, `"output_tokens":null`, `"output_tokens":0`},
		{``, "tool_calls", `,"usage":{"prompt_tokens":3,"completion_tokens":0}`, true, http.StatusOK, `"output_tokens":0}}`, "event: error"},
	} {
		l.answer = stream(text, fmt.Sprintf(call, tc.arguments), fmt.Sprintf(`{"choices":[{"index":0,"delta":{},"finish_reason":%q}]%s}`, tc.reason, tc.usage))
		answer, _ := l.post(t, fmt.Sprintf(`{"model":"m","max_tokens":9,"stream":%v,"messages":[{"role":"user","content":"a"}]}`, tc.streamed))
		body := answer.Body.String()
		if answer.Code != tc.code || !strings.Contains(body, tc.want) || strings.Contains(body, tc.never) {
			t.Errorf("%+v: %d %s", tc, answer.Code, body)
		}
	}
}

// stream returns the answer of a vendor that sends events, which have their type as name if they have one.
func stream(events ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			var kind struct{ Type string }
			if json.Unmarshal([]byte(e), &kind) == nil && kind.Type != "" {
				_, _ = fmt.Fprintf(w, "event: %s\n", kind.Type)
			}
			_, _ = fmt.Fprintf(w, "data: %s\n\n", e)
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// textOfMessage returns the text of a message, whole or streamed.
func textOfMessage(t *testing.T, body string) (text string) {
	t.Helper()
	for line := range strings.Lines(body) {
		data := strings.TrimPrefix(line, "data: ")
		var e struct {
			Content []struct{ Text string }
			Delta   struct{ Text string }
		}
		if !strings.HasPrefix(data, "{") {
			continue
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatal(err)
		}
		for _, c := range e.Content {
			text += c.Text
		}
		text += e.Delta.Text
	}
	return text
}

func reversed(list []string) []string {
	slices.Reverse(list)
	return list
}

// Escapes for one half of a character are found, and none else.
func TestHalved(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]bool{
		`{}`: false, `"a"`: false, `"\n\\\""`: false, `"\u00e9"`: false, `"\ud83d\ude00"`: false, `"\uD83D\uDE00\\"`: false, `"\\ud800"`: false, `"\\\\ud800\n"`: false,
		`"\ud800"`: true, `"\udc00"`: true, `"x\ud800\ud800"`: true, `"\ud83dx\ude00"`: true, `"\ud83d\n"`: true, `"\\\ud800"`: true, `"\ud83d\ude00\ude00"`: true,
	} {
		if got := halved([]byte(data)); got != want {
			t.Errorf("%s: %v", data, got)
		}
	}
}
