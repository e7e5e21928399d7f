// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/agentloop"
	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/llm/openai"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

type place struct {
	N int `json:"page" desc:"Which page"`
}

// TestContextWindow: with a window, no request has more than it, as far as the bytes of its texts tell. Without one the model
// gets everything.
func TestContextWindow(t *testing.T) {
	for _, window := range []int64{0, 1500, 500} {
		t.Run(fmt.Sprint(window), func(t *testing.T) {
			text := "models: [m]\nturns:\n- {match: {noTools: true}, reply: {text: done}}\n"
			for i := range 8 { // calls that differ, though turns are removed
				text += fmt.Sprintf("- {times: 1, reply: {toolCalls: [{id: c%d, name: read, arguments: {page: %d}}]}}\n", i, i)
			}
			parsed, err := script.Parse([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			served := script.New(parsed, io.Discard)
			server := httptest.NewServer(served)
			defer server.Close()
			model, err := openai.New(openai.Config{APIKey: "k", BaseURL: server.URL + "/v1", Clock: clock.RealClock{}})
			if err != nil {
				t.Fatal(err)
			}
			tools, err := tool.NewCatalogue(tool.New(tool.Definition{Name: "read", Description: "reads", Parameters: tool.SchemaOf[place]()}, func(_ context.Context, a place) (any, error) {
				return fmt.Sprint(a.N, strings.Repeat("x", 700)), nil
			}))
			if err != nil {
				t.Fatal(err)
			}
			messages := []llm.Message{{Role: llm.RoleSystem, Text: strings.Repeat("s", 400)}, {Role: llm.RoleUser, Text: "go"}}
			p := &plan.Plan{ContextWindow: window, MaxTokens: 100}
			events := &noted{t: t}
			_, err = agentloop.Run(t.Context(), agentloop.Config{
				Candidates: []llm.Candidate{{Provider: "p", Name: "m", Model: model}}, Tools: tools, Recorder: events,
				MaxTokens: p.MaxTokens, MaxContext: maxContext(p, messages, tools), MaxIterations: 8, Clock: clock.RealClock{},
			}, messages)
			exchanges := served.Exchanges()
			last := exchanges[len(exchanges)-1]
			if len(exchanges) != 9 {
				t.Fatalf("%d requests, %v", len(exchanges), err)
			}
			if window == 0 && len(last.Request.Body) < 8*700 {
				t.Errorf("the last request has %d bytes", len(last.Request.Body))
			}
			for _, x := range exchanges {
				size := 0
				for _, m := range x.Request.Messages {
					size += len(m.Text())
				}
				if window > 0 && int64(size) > llm.BytesOf(window-p.MaxTokens) {
					t.Errorf("a request has %d bytes", size)
				}
			}
			if e, _ := events.first(v1alpha1.EventContextTruncated); (e.Type != "") != (window > 0) {
				t.Errorf("event %q", e.Type)
			}
		})
	}
}
