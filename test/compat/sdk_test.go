// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

// turns asks for two calls of tools in one answer, and answers with their results.
const turns = `
apiKey: ` + vendorKey + `
models: [m]
turns:
- match: {contains: finished, offered: [create_ai_task]}
  reply: {text: "[goal: reached]\nAll is done.", usage: {input: 9, output: 3}}
- match: {turn: 1, contains: fail}
  fault: {status: 503, message: The model is overloaded}
- match: {turn: 1, offered: [weather]}
  reply:
    text: I look.
    usage: {input: 100, output: 20, cached: 60}
    toolCalls:
    - {name: weather, arguments: {city: Bonn}}
    - {name: weather, arguments: {city: Köln}}
- match: {turn: 2, lastRole: tool}
  reply: {text: "It is {{ .Results.weather }}.", usage: {input: 150, output: 10}}
- match: {turn: 1}
  reply: {text: "You said: {{ .Prompt }}", usage: {input: 7, output: 5}}
`

// onScript starts a server whose Providers "openai" and "claude" are both served by the scripted model.
func onScript(t *testing.T, configure ...func(*standalone.Options)) (*server, string) {
	t.Helper()
	parsed, err := script.Parse([]byte(turns))
	if err != nil {
		t.Fatal(err)
	}
	v := newVendor(t, script.New(parsed, io.Discard).ServeHTTP)
	s := start(t, configure...)
	s.namespace("team")
	s.provider("team", "openai", v1alpha1.ProviderOpenAI, v.URL+"/v1", "m")
	s.provider("team", "claude", v1alpha1.ProviderAnthropic, v.URL, "m")
	return s, s.Token(t, "team", "client", "chat")
}

// OpenAI's own client works with Providers of both protocols.
func TestOpenAIClient(t *testing.T) {
	t.Parallel()
	s, token := onScript(t)
	client := openai.NewClient(option.WithBaseURL(s.RESTURL+"/openai/v1"), option.WithAPIKey(token), option.WithMaxRetries(0), option.WithHeader("X-Platform-Tools", "disabled"))
	for _, model := range []string{"openai/m", "claude/m"} {
		conversation := openai.ChatCompletionNewParams{
			Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("Be brief."), openai.UserMessage("weather?")},
			Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
				Name: "weather", Parameters: shared.FunctionParameters{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}},
			})},
		}
		first, err := client.Chat.Completions.New(t.Context(), conversation)
		if err != nil {
			t.Fatalf("%s: %v", model, err)
		}
		m := first.Choices[0].Message
		if m.Content != "I look." || len(m.ToolCalls) != 2 || first.Choices[0].FinishReason != "tool_calls" || first.Usage.PromptTokens != 100 || first.Usage.CompletionTokens != 20 {
			t.Fatalf("%s: %s", model, first.RawJSON())
		}
		conversation.Messages = append(conversation.Messages, m.ToParam())
		for _, call := range m.ToolCalls {
			conversation.Messages = append(conversation.Messages, openai.ToolMessage("sunny in "+call.Function.Arguments, call.ID))
		}
		stream := client.Chat.Completions.NewStreaming(t.Context(), conversation)
		var all openai.ChatCompletionAccumulator
		for stream.Next() {
			all.AddChunk(stream.Current())
		}
		if err := stream.Err(); err != nil || !strings.Contains(all.Choices[0].Message.Content, "sunny in") || all.Usage.TotalTokens != 0 {
			t.Errorf("%s: streamed: %v, %+v", model, err, all.ChatCompletion)
		}
		conversation.StreamOptions.IncludeUsage = openai.Bool(true)
		conversation.Messages = conversation.Messages[:2]
		stream, all = client.Chat.Completions.NewStreaming(t.Context(), conversation), openai.ChatCompletionAccumulator{}
		for stream.Next() {
			all.AddChunk(stream.Current())
		}
		calls := all.Choices[0].Message.ToolCalls
		if err := stream.Err(); err != nil || len(calls) != 2 || !strings.Contains(calls[1].Function.Arguments, "Köln") || all.Usage.TotalTokens != 120 {
			t.Errorf("%s: streamed calls: %v, %+v", model, err, all.ChatCompletion)
		}
		_, err = client.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("fail")}})
		e, ok := errors.AsType[*openai.Error](err)
		if !ok || e.StatusCode < 500 || !strings.Contains(e.Message, "overloaded") {
			t.Errorf("%s: a vendor that fails: %v", model, err)
		}
	}
	_, err := client.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{Model: "nobody/m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("h")}})
	if e, ok := errors.AsType[*openai.Error](err); !ok || e.StatusCode != http.StatusBadRequest || e.Param != "model" || !strings.Contains(e.Message, "PROVIDER/MODEL") {
		t.Errorf("no such provider: %v", err)
	}
	models, err := client.Models.List(t.Context())
	if err != nil || len(models.Data) != 3 || models.Data[0].ID != "claude/m" {
		t.Errorf("models: %v, %v", models, err)
	}
}

// Anthropic's own client works with Providers of both protocols.
func TestAnthropicClient(t *testing.T) {
	t.Parallel()
	s, token := onScript(t)
	client := anthropic.NewClient(anthropicoption.WithBaseURL(s.RESTURL+"/anthropic/"), anthropicoption.WithAPIKey(token), anthropicoption.WithMaxRetries(0), anthropicoption.WithHeader("X-Platform-Tools", "disabled"))
	for _, model := range []string{"claude/m", "openai/m"} {
		schema := anthropic.ToolInputSchemaParam{Properties: map[string]any{"city": map[string]any{"type": "string"}}}
		request := anthropic.MessageNewParams{
			Model: model, MaxTokens: 100, System: []anthropic.TextBlockParam{{Text: "Be brief."}},
			Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("weather?"))},
			Tools:    []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{Name: "weather", InputSchema: schema}}},
		}
		first, err := client.Messages.New(t.Context(), request)
		if err != nil {
			t.Fatalf("%s: %v", model, err)
		}
		if len(first.Content) != 3 || first.Content[0].Text != "I look." || first.StopReason != "tool_use" ||
			first.Usage.InputTokens != 40 || first.Usage.CacheReadInputTokens != 60 || first.Usage.OutputTokens != 20 {
			t.Fatalf("%s: %s", model, first.RawJSON())
		}
		var results []anthropic.ContentBlockParamUnion
		for _, block := range first.Content[1:] {
			results = append(results, anthropic.NewToolResultBlock(block.ID, "sunny in "+string(block.Input), false))
		}
		if model == "openai/m" { // is_error is sent even if it is false, and says nothing
			for i := range results {
				results[i].OfToolResult.IsError = anthropic.Bool(false)
			}
		}
		request.Messages = append(request.Messages, first.ToParam(), anthropic.NewUserMessage(results...))
		var all anthropic.Message
		stream := client.Messages.NewStreaming(t.Context(), request)
		for stream.Next() {
			if err := all.Accumulate(stream.Current()); err != nil {
				t.Fatal(err)
			}
		}
		if err := stream.Err(); err != nil || len(all.Content) != 1 || !strings.Contains(all.Content[0].Text, "sunny in") || all.Usage.OutputTokens != 10 || all.StopReason != "end_turn" {
			t.Errorf("%s: streamed: %v, %s", model, err, mustJSON(all))
		}
		request.Messages, all = request.Messages[:1], anthropic.Message{}
		stream = client.Messages.NewStreaming(t.Context(), request)
		for stream.Next() {
			if err := all.Accumulate(stream.Current()); err != nil {
				t.Fatal(err)
			}
		}
		if err := stream.Err(); err != nil || len(all.Content) != 3 || !strings.Contains(string(all.Content[2].Input), "Köln") {
			t.Errorf("%s: streamed calls: %v, %s", model, err, mustJSON(all))
		}
		request.Messages = []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("fail"))}
		_, err = client.Messages.New(t.Context(), request)
		if e, ok := errors.AsType[*anthropic.Error](err); !ok || e.StatusCode < 500 || !strings.Contains(e.RawJSON(), "overloaded") {
			t.Errorf("%s: a vendor that fails: %v", model, err)
		}
	}
	counted, err := client.Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{
		Model: "openai/m", Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("h"))},
	})
	if err != nil || counted.InputTokens <= 0 {
		t.Errorf("counting at a Provider that cannot: %v, %v", counted, err)
	}
	models, err := client.Models.List(t.Context(), anthropic.ModelListParams{})
	if err != nil || len(models.Data) != 3 || models.Data[0].ID != "claude/m" || models.HasMore {
		t.Errorf("models: %v, %v", models, err)
	}
}

func mustJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
