// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"net/http"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/chat"
	"github.com/platform-ai/platform/pkg/server/chat/toolbox"
)

// Without a header, the server's tools are for clients that bring none: any sign of tools of the client's own means that the
// request is passed on. The header decides otherwise, and an option gives every such request the server's tools.
func TestWhoseTools(t *testing.T) {
	t.Parallel()
	const user = `{"role":"user","content":"a"}`
	for _, tc := range []struct {
		op            operation
		body          string
		unsaid, drops bool // whether the server's tools are on, without a header
	}{
		{opChat, `"messages":[` + user + `]`, true, true},
		{opChat, `"tools":[],"functions":null,"messages":[` + user + `,{"role":"assistant","content":"b","tool_calls":[],"function_call":null},` + user + `]`, true, true},
		{opChat, `"tools":[{"type":"function","function":{"name":"f"}}],"messages":[` + user + `]`, false, true},
		{opChat, `"functions":[{"name":"f"}],"messages":[` + user + `]`, false, true},
		{opChat, `"messages":[` + user + `,{"role":"assistant","tool_calls":[{"id":"1"}]},{"role":"tool","tool_call_id":"1","content":"b"}]`, false, true},
		{opChat, `"messages":[{"role":"tool","tool_call_id":"1","content":"b"},` + user + `]`, false, true},
		{opChat, `"messages":[{"role":"function","name":"f","content":"b"},` + user + `]`, false, true},
		{opChat, `"messages":[` + user + `,{"role":"assistant","function_call":{"name":"f"}},` + user + `]`, false, true},
		{opMessages, `"messages":[` + user + `]`, true, true},
		{opMessages, `"tools":null,"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]`, true, true},
		{opMessages, `"tools":[{"name":"f","input_schema":{}}],"messages":[` + user + `]`, false, true},
		{opMessages, `"messages":[` + user + `,{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}}]},` + user + `]`, false, true},
		{opMessages, `"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1"}]}]`, false, true},
		{opResponses, `"input":"a"`, false, false},
		{opCount, `"messages":[` + user + `]`, false, false},
	} {
		in, err := read(tc.op, []byte(`{"model":"m","max_tokens":16,`+tc.body+`}`))
		if err != nil {
			t.Fatalf("%s: %v", tc.body, err)
		}
		for header, want := range map[string]map[bool]bool{"": {false: tc.unsaid, true: tc.drops}, "disabled": {}, "enabled": {false: tc.op != opCount, true: tc.op != opCount}} {
			for _, drop := range []bool{false, true} {
				x := &exchange{
					h:    &Handler{o: Options{Tools: &toolbox.Maker{}, Limits: chat.Limits{Enabled: true}, DropClientTools: drop}},
					call: &call{route: route{op: tc.op}, header: http.Header{headerToolsAlias: {header}}},
				}
				got, err := x.tools(in)
				if got != want[drop] || (err != nil) != (header == "enabled" && tc.op == opCount) {
					t.Errorf("%s %s, header %q, drop %v: %v, %v", tc.op, tc.body, header, drop, got, err)
				}
			}
		}
	}
}

// A response is never stored: its vendor is told so if the client leaves it to the default, and whatever needs a store is refused
// with what to send instead.
func TestStore(t *testing.T) {
	t.Parallel()
	l := newLoop(t, opResponses, v1alpha1.ProviderOpenAI)
	l.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"id":"r","store":false,"output":[]}`))
	}
	for body, want := range map[string]string{
		`{"model":"m","input":"a"}`:                              `{"store":false,"model":"m","input":"a"}`,
		`{"model":"m","store":null,"input":"a"}`:                 `{"model":"m","store":false,"input":"a"}`,
		`{"model":"m","store":false,"input":"a"}`:                `{"model":"m","store":false,"input":"a"}`,
		`{"model":"m","store":false,"input":[{"role":"user"}]}`:  `{"model":"m","store":false,"input":[{"role":"user"}]}`,
		`{"model":"m","input":[{"id":"msg_1","role":"user"}]}`:   `{"store":false,"model":"m","input":[{"id":"msg_1","role":"user"}]}`,
		`{"model":"m","input":"a","previous_response_id":null}`:  `{"store":false,"model":"m","input":"a","previous_response_id":null}`,
		`{"model":"m","input":[{"type":"reasoning","id":"r1"}]}`: `{"store":false,"model":"m","input":[{"type":"reasoning","id":"r1"}]}`,
	} {
		answer, got := l.post(t, body)
		if answer.Code != http.StatusOK || len(got) != 1 || string(got[0]) != want {
			t.Errorf("%s: %d %s, and the vendor got %s", body, answer.Code, answer.Body, got)
		}
	}
	for body, want := range map[string]string{
		`{"model":"m","store":true,"input":"a"}`:                               "store",
		`{"model":"m","input":"a","previous_response_id":"r"}`:                 "previous_response_id",
		`{"model":"m","input":[{"type":"item_reference","id":"msg_1"}]}`:       `\"store\": false`,
		`{"model":"m","store":false,"input":[{"role":"user"},{"id":"msg_1"}]}`: `\"store\": false`,
	} {
		if answer, got := l.post(t, body); answer.Code != http.StatusBadRequest || len(got) > 0 || !strings.Contains(answer.Body.String(), want) {
			t.Errorf("%s: %d %s, after %d requests to the vendor", body, answer.Code, answer.Body, len(got))
		}
	}
}
