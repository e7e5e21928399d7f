// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// The failure of a vendor keeps its status and its pause in the other API, and has the code that its clients look for.
func TestFailuresAcross(t *testing.T) {
	t.Parallel()
	const openAI, claude = `{"error":{"message":"m","type":%q,"code":%q}}`, `{"type":"error","error":{"type":%q,"message":%q}}`
	chat := func(kind, code string) string { return fmt.Sprintf(openAI, kind, code) }
	message := func(kind, text string) string { return fmt.Sprintf(claude, kind, text) }
	for _, tc := range []struct {
		op         operation // of the client
		code       int
		body       string
		kind, says string // what the client gets: the type, and the code or the beginning of the message
	}{
		{opChat, 429, message("rate_limit_error", "m"), "rate_limit_error", "rate_limit_exceeded"},
		{opChat, 402, message("billing_error", "m"), "insufficient_quota", "insufficient_quota"},
		{opChat, 400, message("invalid_request_error", "Your credit balance is too low"), "insufficient_quota", "insufficient_quota"},
		{opChat, 400, message("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"), "invalid_request_error", "context_length_exceeded"},
		{opResponses, 400, message("invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"), "invalid_request_error", "context_length_exceeded"},
		{opChat, 413, message("request_too_large", "m"), "invalid_request_error", "request_too_large"},
		{opChat, 503, message("api_error", "m"), "server_error", "server_is_overloaded"},
		{opChat, 529, message("overloaded_error", "m"), "server_error", "server_is_overloaded"},
		{opChat, 500, message("api_error", "m"), "server_error", ""},
		{opChat, 404, message("not_found_error", "m"), "not_found_error", ""},
		{opMessages, 429, chat("requests", "rate_limit_exceeded"), "rate_limit_error", ""},
		{opMessages, 429, chat("insufficient_quota", "insufficient_quota"), "billing_error", ""},
		{opMessages, 400, chat("invalid_request_error", "context_length_exceeded"), "invalid_request_error", "prompt is too long: "},
		{opMessages, 413, chat("invalid_request_error", "x"), "request_too_large", ""},
		{opMessages, 503, chat("server_error", "x"), "overloaded_error", ""},
		{opMessages, 529, chat("server_error", "x"), "overloaded_error", ""},
		{opMessages, 500, chat("server_error", "x"), "api_error", ""},
		{opMessages, 422, chat("invalid_request_error", "x"), "invalid_request_error", ""},
	} {
		other := v1alpha1.ProviderOpenAI
		if tc.op != opMessages {
			other = v1alpha1.ProviderAnthropic
		}
		l := newLoop(t, tc.op, other)
		l.answer = func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "17")
			says(tc.code, tc.body)(w, r)
		}
		answer, _ := l.post(t, `{"model":"m",`+asking(tc.op)+`}`)
		var got struct {
			Error struct{ Type, Code, Message string }
		}
		if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		said := got.Error.Code == tc.says
		if tc.op == opMessages {
			said = strings.HasPrefix(got.Error.Message, tc.says)
		}
		if answer.Code != tc.code || answer.Header().Get("Retry-After") != "17" || got.Error.Type != tc.kind || !said {
			t.Errorf("%s, %d %s: %d %v %s", tc.op, tc.code, tc.body, answer.Code, answer.Header(), answer.Body)
		}
	}
}

// Within a stream, the failure of a vendor has the same names.
func TestFailuresAcrossInStreams(t *testing.T) {
	t.Parallel()
	begin := []string{`{"type":"message_start","message":{"usage":{"input_tokens":3}}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"One "}}`, `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`}
	for op, want := range map[operation]string{
		opChat:      `"type":"server_error","param":null,"code":"server_is_overloaded"}}` + "\n\n",
		opResponses: `"error":{"code":"server_is_overloaded","message":"Provider \"default\": busy"}`,
	} {
		l := newLoop(t, op, v1alpha1.ProviderAnthropic)
		l.answer = stream(begin...)
		answer, _ := l.post(t, `{"model":"m","stream":true,`+asking(op)+`}`)
		if body := answer.Body.String(); answer.Code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", op, answer.Code, body)
		}
		if e := <-l.ended; e.Refused || e.Usage.InputTokens == nil {
			t.Errorf("%s: the end says %+v", op, e)
		}
	}
}
