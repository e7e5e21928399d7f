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

// A chat completion has null where OpenAI's have it: as the content of a message with nothing but calls, as the refusal, and, for clients
// that ask for the usage of a stream, as the usage of all chunks but the last one.
func TestNullsOfChats(t *testing.T) {
	t.Parallel()
	const usage = `{"type":"message_start","message":{"usage":{"input_tokens":3}}}`
	call := []string{usage, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"1","name":"f","input":{}}}`, `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}}`, `{"type":"message_stop"}`}
	text := []string{usage, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"One"}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}`, `{"type":"message_stop"}`}
	const body = `{"stream":%v,"stream_options":{"include_usage":%v},` + hello + `,"tools":[{"type":"function","function":{"name":"f"}}]}`
	for _, tc := range []struct {
		events      []string
		whole, part string
	}{
		{call, `"message":{"role":"assistant","content":null,"refusal":null,"tool_calls":[`, `"delta":{"role":"assistant","content":null,"refusal":null}`},
		{text, `"message":{"role":"assistant","content":"One","refusal":null}`, `"delta":{"role":"assistant","content":"","refusal":null}`},
	} {
		l := newLoop(t, opChat, v1alpha1.ProviderAnthropic)
		l.answer = stream(tc.events...)
		whole, _ := l.post(t, strings.Replace(fmt.Sprintf(body, false, false), `"stream_options":{"include_usage":false},`, "", 1))
		if whole.Code != http.StatusOK || !strings.Contains(whole.Body.String(), tc.whole) {
			t.Errorf("%d %s, want %s", whole.Code, whole.Body, tc.whole)
		}
		for _, asks := range []bool{false, true} {
			streamed, _ := l.post(t, fmt.Sprintf(body, true, asks))
			first, all, _ := strings.Cut(streamed.Body.String(), "\n\n")
			if streamed.Code != http.StatusOK || !strings.Contains(first, tc.part) {
				t.Errorf("%d %s, want %s", streamed.Code, first, tc.part)
			}
			var used []string
			for event := range strings.SplitSeq(first+"\n\n"+all, "\n\n") {
				var c map[string]json.RawMessage
				if json.Unmarshal([]byte(strings.TrimPrefix(event, "data: ")), &c) == nil {
					used = append(used, string(c["usage"]))
				}
			}
			for i, got := range used {
				want := ""
				if asks {
					want = "null"
				}
				if last := i == len(used)-1; asks && last != strings.HasPrefix(got, "{") || (!asks || !last) && got != want {
					t.Errorf("usage asked for %v: chunk %d of %d has %q", asks, i, len(used), got)
				}
			}
		}
	}
}
