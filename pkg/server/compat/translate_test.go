// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"net/http"
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
