// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/openai/openai-go/v3"

	"github.com/platform-ai/platform/pkg/llm"
)

// thinker is a server whose model thinks in a member of its messages, calls a tool in each answer, and may refuse to read what it
// thought. It keeps what the messages of the model had in these members.
type thinker struct {
	member  string
	whole   bool
	refuses bool
	got     [][]string
}

func (s *thinker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request sdk.ChatCompletionNewParams
	var members struct {
		Messages []map[string]any `json:"messages"`
	}
	if err != nil || json.Unmarshal(body, &request) != nil || json.Unmarshal(body, &members) != nil {
		http.Error(w, "not a request", http.StatusBadRequest)
		return
	}
	var seen []string
	for i, m := range request.Messages {
		if m.OfAssistant != nil { // the SDK does not decode members that it does not know
			seen = append(seen, fmt.Sprint(members.Messages[i]["reasoning_content"], "/", members.Messages[i]["reasoning"]))
		}
	}
	s.got = append(s.got, seen)
	w.Header().Set("Content-Type", "application/json")
	if s.refuses && strings.Contains(string(body), s.member) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"message":"property '`+s.member+`' is unsupported"}}`)
		return
	}
	n := len(s.got)
	if s.whole {
		_, _ = fmt.Fprintf(w, `{"id":"x","model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,%q:"think %d",
			"tool_calls":[{"id":"c%d","type":"function","function":{"name":"f","arguments":"{}"}}]}}]}`, s.member, n, n)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, delta := range []string{
		fmt.Sprintf(`{"role":"assistant","content":null,%q:"think "}`, s.member), fmt.Sprintf(`{"content":null,%q:"%d"}`, s.member, n), fmt.Sprintf(`{%q:null,"content":"So:"}`, s.member),
		fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"c%d","type":"function","function":{"name":"f","arguments":"{}"}}]}`, n),
	} {
		_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":%s}]}\n\n", delta)
	}
	_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`+"\n\ndata: [DONE]\n\n")
}

// TestThinkingGoesBack: what a model thinks before it calls a tool goes back in the member that had it, until the next
// message of a user, and to the same endpoint and model only. A server that refuses it gets it once.
func TestThinkingGoesBack(t *testing.T) {
	const none = "<nil>/<nil>"
	for name, tt := range map[string]struct {
		server thinker
		want   [][]string
	}{
		"reasoning_content": {thinker{member: "reasoning_content"}, [][]string{nil, {"think 1/<nil>"}, {"think 1/<nil>", "think 2/<nil>"}, {none, none, none}, {none, none, none, "think 4/<nil>"}, {none, none, none, none, none}}},
		"reasoning":         {thinker{member: "reasoning"}, [][]string{nil, {"<nil>/think 1"}, {"<nil>/think 1", "<nil>/think 2"}, {none, none, none}, {none, none, none, "<nil>/think 4"}, {none, none, none, none, none}}},
		"not streamed":      {thinker{member: "reasoning_content", whole: true}, [][]string{nil, {"think 1/<nil>"}, {"think 1/<nil>", "think 2/<nil>"}, {none, none, none}, {none, none, none, "think 4/<nil>"}, {none, none, none, none, none}}},
		"refused":           {thinker{member: "reasoning_content", refuses: true}, [][]string{nil, {"think 1/<nil>"}, {none}, {none, none}, {none, none, none}, {none, none, none, none}, {none, none, none, none, none}}},
		"no thinking":       {thinker{member: "other"}, [][]string{nil, {none}, {none, none}, {none, none, none}, {none, none, none, none}, {none, none, none, none, none}}},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(&tt.server)
			defer srv.Close()
			c := newClient(t, Config{APIKey: key, BaseURL: srv.URL + "/v1"})
			req := ask("hi")
			req.Whole = tt.server.whole
			for i := range 6 {
				switch i {
				case 3:
					req.Messages = append(req.Messages, llm.Message{Role: llm.RoleUser, Text: "and now?"})
				case 5:
					req.Model = "another"
				}
				r, err := c.Generate(t.Context(), req, nil)
				if err != nil || len(r.ToolCalls) != 1 || strings.Contains(r.Text, "think") || len(r.Lost) > 0 {
					t.Fatalf("%+v, %v", r, err)
				}
				req.Messages = append(req.Messages, r.Message(), llm.Message{Role: llm.RoleTool, ToolCallID: r.ToolCalls[0].ID, Text: "ok"})
			}
			if diff := cmp.Diff(tt.want, tt.server.got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
