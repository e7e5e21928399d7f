// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/platform-ai/platform/pkg/llm"
)

// chunksOf decodes stream payloads the way the SDK does.
func chunksOf(t *testing.T, payloads ...string) []sdk.ChatCompletionChunk {
	t.Helper()
	out := make([]sdk.ChatCompletionChunk, len(payloads))
	for i, p := range payloads {
		if err := out[i].UnmarshalJSON([]byte(p)); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestToolCallsOfCompatibleServers(t *testing.T) {
	call := func(index int, id, name, args string) string {
		return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":%d,"id":%q,"function":{"name":%q,"arguments":%q}}]}}]}`, index, id, name, args)
	}
	tests := map[string]struct {
		chunks []string
		want   []llm.ToolCall
	}{
		"interleaved": {
			[]string{call(0, "a", "f", ""), call(1, "b", "g", "{"), call(0, "", "", "{}"), call(1, "", "", "}")},
			[]llm.ToolCall{{ID: "a", Name: "f", Arguments: "{}"}, {ID: "b", Name: "g", Arguments: "{}"}},
		},
		"index always zero": {
			[]string{call(0, "a", "f", "{}"), call(0, "b", "g", "{}")},
			[]llm.ToolCall{{ID: "a", Name: "f", Arguments: "{}"}, {ID: "b", Name: "g", Arguments: "{}"}},
		},
		"id on each delta": {
			[]string{call(0, "a", "f", "{"), call(0, "a", "", "}")},
			[]llm.ToolCall{{ID: "a", Name: "f", Arguments: "{}"}},
		},
		"name on each delta": {
			[]string{call(0, "a", "f", ""), call(0, "a", "f", "{"), call(0, "", "f", "}")},
			[]llm.ToolCall{{ID: "a", Name: "f", Arguments: "{}"}},
		},
		"name in pieces": {
			[]string{call(0, "a", "f", ""), call(0, "", "g", ""), call(0, "", "", "{}")},
			[]llm.ToolCall{{ID: "a", Name: "fg", Arguments: "{}"}},
		},
		"one id for two calls": {
			[]string{call(0, "a", "f", "{}"), call(1, "a", "g", "{}")},
			[]llm.ToolCall{{ID: "a", Name: "f", Arguments: "{}"}, {ID: "a_2", Name: "g", Arguments: "{}"}},
		},
		"one id and one index for two calls": {
			[]string{call(0, "a", "f", "{}"), call(0, "a", "f", "{}")},
			[]llm.ToolCall{{ID: "a", Name: "f", Arguments: "{}"}, {ID: "a_2", Name: "f", Arguments: "{}"}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var a answer
			for _, c := range chunksOf(t, tt.chunks...) {
				if err := a.add(c, nil); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tt.want, a.response().ToolCalls); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCallWithoutIDGetsOne(t *testing.T) {
	var a answer
	for _, c := range chunksOf(t, `{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}]}`) {
		if err := a.add(c, nil); err != nil {
			t.Fatal(err)
		}
	}
	r := a.response()
	if len(r.ToolCalls) != 1 || r.ToolCalls[0].ID == "" || r.StopReason != llm.StopToolCalls {
		t.Errorf("%+v", r)
	}
}

// FuzzStream feeds arbitrary bytes as a stream: whatever comes, the answer is
// whole only with a stop reason, calls always have ids, and nothing panics.
func FuzzStream(f *testing.F) {
	f.Add([]byte(cutStream))
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":-1}]}}]}\n\n"))
	f.Add([]byte("event: error\ndata: {\"error\":{\"message\":\"x\"}}\n\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		stream := ssestream.NewStream[sdk.ChatCompletionChunk](ssestream.NewDecoder(&http.Response{Body: io.NopCloser(bytes.NewReader(body))}), nil)
		c := &Client{}
		var a answer
		for stream.Next() {
			if a.add(stream.Current(), nil) != nil {
				return
			}
		}
		err := c.ended(t.Context(), &a, stream.Err())
		r := a.response()
		if err == nil && r.StopReason == "" {
			t.Errorf("whole without a stop reason: %+v", r)
		}
		for _, call := range r.ToolCalls {
			if call.ID == "" {
				t.Errorf("a call without id: %+v", r)
			}
		}
	})
}

// TestLost: content that a Response has no place for is named, once, and is no text. Thinking and members that say nothing are not.
func TestLost(t *testing.T) {
	delta := func(index int, d string) string {
		return fmt.Sprintf(`{"choices":[{"index":%d,"delta":%s}]}`, index, d)
	}
	for name, tt := range map[string]struct {
		chunks  []string
		lost    llm.Losses
		text    string
		refused bool
	}{
		"a text":           {chunks: []string{delta(0, `{"role":"assistant","content":"a","refusal":null,"tool_calls":null,"function_call":null,"audio":null,"annotations":[],"future":1}`)}, text: "a"},
		"thinking":         {chunks: []string{delta(0, `{"content":null,"reasoning_content":"hm","reasoning":"hm"}`)}},
		"a refusal":        {chunks: []string{delta(0, `{"refusal":"no"}`)}, text: "no", refused: true},
		"parts":            {chunks: []string{delta(0, `{"content":[{"type":"text","text":"x"}]}`), delta(0, `{"content":[]}`)}, lost: llm.Losses{"content that is not a text"}},
		"audio":            {chunks: []string{delta(0, `{"audio":{"data":"AA=="}}`)}, lost: llm.Losses{"audio"}},
		"an old call":      {chunks: []string{delta(0, `{"function_call":{"name":"f","arguments":""}}`)}, lost: llm.Losses{"function_call"}},
		"references":       {chunks: []string{delta(0, `{"annotations":[{}],"images":[{}]}`)}, lost: llm.Losses{"annotations", "images"}},
		"another choice":   {chunks: []string{delta(1, `{"content":"x"}`)}, lost: llm.Losses{"more than one choice"}},
		"a call of a kind": {chunks: []string{delta(0, `{"tool_calls":[{"index":0,"id":"c","type":"custom"}]}`)}, lost: llm.Losses{"a tool call of type custom"}},
	} {
		var a answer
		for _, c := range chunksOf(t, tt.chunks...) {
			if err := a.add(c, nil); err != nil {
				t.Fatal(name, err)
			}
		}
		if r := a.response(); cmp.Diff(tt.lost, r.Lost) != "" || r.Text != tt.text || r.Refused != tt.refused {
			t.Errorf("%s: lost %v, text %q, refused %v", name, r.Lost, r.Text, r.Refused)
		}
	}
}
