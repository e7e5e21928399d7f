// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package router

import (
	"errors"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
)

// The vendor's own client works through the router with nothing but a base URL and a token.
func TestOpenAIClient(t *testing.T) {
	t.Parallel()
	h := issuing(t)
	in := newInstallation(t, "installation-a")
	s := start(t, h, map[string]string{"team-a": in.URL})
	token := h.token(t, "team-a", "client")
	s.secrets = append(s.secrets, token)
	c := openai.NewClient(option.WithBaseURL(s.url+"/openai/v1"), option.WithAPIKey(token), option.WithMaxRetries(0))
	chat := openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hello")}}

	whole, err := c.Chat.Completions.New(t.Context(), chat)
	if err != nil || whole.Choices[0].Message.Content != "installation-a!" {
		t.Fatalf("chat completion: %v, %v", whole, err)
	}
	stream := c.Chat.Completions.NewStreaming(t.Context(), chat)
	var all openai.ChatCompletionAccumulator
	for stream.Next() {
		all.AddChunk(stream.Current())
	}
	if err := stream.Err(); err != nil || all.Choices[0].Message.Content != "installation-a!" {
		t.Errorf("streamed chat completion: %v, %v", all.Choices, err)
	}
	models, err := c.Models.List(t.Context())
	if err != nil || models.Data[0].ID != "installation-a/model" {
		t.Errorf("models: %v, %v", models, err)
	}
	request := responses.ResponseNewParams{Model: "m", Store: openai.Bool(false), Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("hello")}}
	response, err := c.Responses.New(t.Context(), request)
	if err != nil || response.OutputText() != "installation-a!" {
		t.Errorf("response: %v, %v", response, err)
	}
	text, parts := "", c.Responses.NewStreaming(t.Context(), request)
	for parts.Next() {
		text += parts.Current().Delta
	}
	if err := parts.Err(); err != nil || text != "installation-a!" {
		t.Errorf("streamed response: %q, %v", text, err)
	}

	for code, token := range map[int]string{401: forgedToken("team-a", "client"), 403: h.token(t, "team-b", "client")} {
		_, err := c.Chat.Completions.New(t.Context(), chat, option.WithAPIKey(token))
		e, ok := errors.AsType[*openai.Error](err)
		if !ok || e.StatusCode != code || e.Message == "" || e.Type == "" {
			t.Errorf("want %d, got %v", code, err)
		}
	}
}
