// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package transcribe_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm/members"
	"github.com/platform-ai/platform/pkg/llm/transcribe"
)

// TestRequest: what is not known is shown as it is, images and long parts by their size, and results of tools as messages of their own.
func TestRequest(t *testing.T) {
	for name, c := range map[string]struct {
		api        members.API
		body, want string
	}{
		"a part that is not known": {members.Messages, `{"messages":[{"role":"user","content":[{"type":"text","text":"See: "},{"type":"new","x":1}]}]}`, `user:See: {"type":"new","x":1}`},
		"an item of a new type":    {members.Responses, `{"input":[{"type":"web_search_call","id":"w"}]}`, `web_search_call:{"type":"web_search_call","id":"w"}`},
		"input that is a text":     {members.Responses, `{"input":"Hello."}`, `user:Hello.`},
		"reasoning":                {members.Responses, `{"input":[{"type":"reasoning","summary":[{"type":"summary_text","text":"Hm."}]}]}`, `assistant:(Hm.)`},
		"a system of parts":        {members.Messages, `{"system":[{"type":"text","text":"Be "},{"type":"text","text":"brief."}],"messages":[]}`, `system:Be brief.`},
		"results beside a text": {
			members.Messages, `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":[{"type":"text","text":"no"}]},{"type":"text","text":"Go on."}]}]}`,
			`tool:no a!|user:Go on.`,
		},
		"images": {
			members.Chat, `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}},{"type":"image_url","image_url":{"url":"https://example.com/x"}}]}]}`,
			`user: [image/png 3] [ 0]`,
		},
		"a long part":               {members.Messages, `{"messages":[{"role":"user","content":[{"type":"document","data":"` + strings.Repeat("A", 1<<17) + `"}]}]}`, `user:(131101 bytes)`},
		"thinking of an open model": {members.Chat, `{"messages":[{"role":"assistant","content":"Yes.","reasoning_content":"Hm."}]}`, `assistant:Yes.(Hm.)`},
		"members of other types":    {members.Chat, `{"messages":[{"role":1,"content":2},3,null],"tools":4,"max_tokens":"x"}`, `user:2|user:|user:`},
		"no JSON":                   {members.Chat, `{`, ``},
	} {
		if got := line(transcribe.Request(c.api, []byte(c.body)).Messages); got != c.want {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
	}
}

// line returns messages on one line.
func line(list []v1alpha1.RecordedMessage) string {
	var out []string
	for _, m := range list {
		text := m.Role + ":" + m.Text
		if m.Thinking != "" {
			text += "(" + m.Thinking + ")"
		}
		for _, i := range m.Images {
			text += fmt.Sprintf(" [%s %d]", i.MediaType, i.Bytes)
		}
		if m.ToolCallID != "" {
			text += " " + m.ToolCallID
		}
		if m.Failed {
			text += "!"
		}
		out = append(out, text)
	}
	return strings.Join(out, "|")
}

// TestCutStream: what came before a stream broke off is heard.
func TestCutStream(t *testing.T) {
	for api, events := range map[members.API][]string{
		members.Chat:      {`{"choices":[{"delta":{"content":"Hel"}}]}`, `{"choices":[{"delta":{"content":"lo"}}]}`, `[DONE`},
		members.Messages:  {`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`, `{"type":`},
		members.Responses: {`{"type":"response.output_text.delta","delta":"Hel"}`, `{"type":"response.output_text.delta","delta":"lo"}`},
	} {
		s := transcribe.Stream{API: api}
		if s.Answer() != nil {
			t.Errorf("%s: an answer before there is one", api)
		}
		for _, e := range events {
			s.Event([]byte(e))
		}
		if m := s.Answer(); m == nil || m.Text != "Hello" {
			t.Errorf("%s: %+v", api, m)
		}
	}
}

// FuzzRequest: whatever clients and vendors send can be read.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"text":"x"}]}]}],"tools":[{"function":{"name":"a"}}]}`))
	f.Add([]byte(`{"input":[{"type":"function_call","arguments":"{}"}],"choices":[{"message":{"content":"x"},"delta":{"tool_calls":[{"index":1,"id":"a"}]}}]}`))
	f.Add([]byte(`{"type":"content_block_delta","delta":{"partial_json":"x"},"content":[{"type":"image","source":{"data":"x"}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, api := range []members.API{members.Chat, members.Messages, members.Responses} {
			transcribe.Request(api, data)
			transcribe.Answer(api, data)
			s := transcribe.Stream{API: api}
			s.Event(data)
			s.Event(data)
			if m := s.Answer(); m != nil && m.Role == "" {
				t.Errorf("%s: an answer without a role", api)
			}
		}
	})
}
