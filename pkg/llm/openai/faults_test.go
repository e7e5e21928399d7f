// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"errors"
	"slices"
	"testing"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/test/modelfaults"
)

// TestFaultsAsTheSDKReadsThem: the recorded answers are what the vendor's SDK takes them for, and a client of this
// package reads the same status, text, calls and usage in them.
func TestFaultsAsTheSDKReadsThem(t *testing.T) {
	for _, row := range append(modelfaults.Rows(), modelfaults.Row{Name: modelfaults.Fine}) {
		if !row.Ends() {
			continue
		}
		t.Run(row.Name, func(t *testing.T) {
			server := modelfaults.Serve(t, modelfaults.OpenAI, row, 2)
			got, err := newClient(t, Config{APIKey: modelfaults.Key, BaseURL: server.URL + "/v1"}).Generate(t.Context(), ask("hi"), nil)
			mine, _ := errors.AsType[*llm.Error](err)

			client := sdk.NewClient(option.WithAPIKey(modelfaults.Key), option.WithBaseURL(server.URL+"/v1"), option.WithMaxRetries(0))
			stream := client.Chat.Completions.NewStreaming(t.Context(), sdk.ChatCompletionNewParams{Model: "m", Messages: []sdk.ChatCompletionMessageParamUnion{sdk.UserMessage("hi")}})
			var all sdk.ChatCompletionAccumulator
			for stream.Next() {
				if !all.AddChunk(stream.Current()) {
					t.Error("the SDK does not accept a chunk")
				}
			}
			var refused *sdk.Error
			if errors.As(stream.Err(), &refused) && (mine == nil || mine.Status != refused.StatusCode) {
				t.Errorf("%+v, but the SDK reads status %d", mine, refused.StatusCode)
			}
			if stream.Err() != nil && err == nil || err == nil && len(all.Choices) == 0 {
				t.Errorf("the SDK reads %v, but the answer is %+v", stream.Err(), got)
			}
			if mine != nil && mine.Status >= 400 && row.Name != "error-in-stream" {
				return
			}
			text, calls := "", []sdk.ChatCompletionMessageToolCallUnion(nil)
			if len(all.Choices) > 0 {
				text, calls = all.Choices[0].Message.Content, all.Choices[0].Message.ToolCalls
			}
			if got.Text != text || len(calls) != len(got.ToolCalls) {
				t.Errorf("%+v, but the SDK reads %q and %d calls", got, text, len(calls))
			}
			for i, c := range got.ToolCalls {
				if c.ID != calls[i].ID || c.Name != calls[i].Function.Name || c.Arguments != calls[i].Function.Arguments {
					t.Errorf("%+v, but the SDK reads %+v", c, calls[i])
				}
			}
			if in := got.Usage.InputTokens; all.Usage.PromptTokens != 0 && (in == nil || *in != all.Usage.PromptTokens) {
				t.Errorf("%+v, but the SDK reads %+v", got.Usage, all.Usage)
			}
		})
	}
}

// TestWholeAnswers: an answer that is not a stream is read if the request accepts one.
func TestWholeAnswers(t *testing.T) {
	server := modelfaults.Serve(t, modelfaults.OpenAI, modelfaults.Row{Name: "wrong-content-type"}, 2)
	modelfaults.ReadsWhole(t, newClient(t, Config{APIKey: modelfaults.Key, BaseURL: server.URL + "/v1"}), ask("hi"))
}

// TestModelsThatCannotStream: the refusal of a stream is a matter of the model, so the next request asks for one again.
func TestModelsThatCannotStream(t *testing.T) {
	model, url := serve(t, `
turns:
- {times: 1, fault: {status: 400, message: "Unsupported value: 'stream' does not support true with this model."}}
- {times: 1, reply: {text: whole}}
- {reply: {text: streamed}}`)
	c := newClient(t, Config{APIKey: key, BaseURL: url + "/v1"})
	for _, want := range []string{"whole", "streamed"} {
		req := ask("hi")
		req.Whole = true
		if got, err := c.Generate(t.Context(), req, nil); err != nil || got.Text != want || !got.Usage.Known() {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	var streams []bool
	for _, e := range model.Exchanges() {
		streams = append(streams, e.Request.Stream)
	}
	if !slices.Equal(streams, []bool{true, false, true}) {
		t.Errorf("the requests for streams are %v", streams)
	}
}
