// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"errors"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

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
			server := modelfaults.Serve(t, modelfaults.Anthropic, row, 2)
			got, err := newClient(t, Config{APIKey: modelfaults.Key, BaseURL: server.URL}).Generate(t.Context(), ask("hi"), nil)
			mine, _ := errors.AsType[*llm.Error](err)

			client := sdk.NewClient(option.WithAPIKey(modelfaults.Key), option.WithBaseURL(server.URL), option.WithMaxRetries(0))
			stream := client.Messages.NewStreaming(t.Context(), sdk.MessageNewParams{Model: "m", MaxTokens: 100, Messages: []sdk.MessageParam{sdk.NewUserMessage(sdk.NewTextBlock("hi"))}})
			var all sdk.Message
			var broken error
			for stream.Next() {
				if err := all.Accumulate(stream.Current()); err != nil {
					broken = err
				}
			}
			var refused *sdk.Error
			if errors.As(stream.Err(), &refused) && refused.StatusCode >= 400 && (mine == nil || mine.Status != refused.StatusCode) {
				t.Errorf("%+v, but the SDK reads status %d", mine, refused.StatusCode)
			}
			if stream.Err() != nil && err == nil || err == nil && all.StopReason == "" {
				t.Errorf("the SDK reads %v, but the answer is %+v", stream.Err(), got)
			}
			if broken != nil {
				t.Errorf("the SDK does not accept an event: %v", broken)
			}
			if mine != nil && mine.Status >= 400 && row.Name != "error-in-stream" {
				return
			}
			text, calls := "", 0
			for _, b := range all.Content {
				text += b.Text
				if b.Type != blockToolUse {
					continue
				}
				// The SDK replaces arguments that are not JSON.
				whole := mine == nil && row.Name != "bad-arguments"
				if c := got.ToolCalls[calls]; c.ID != b.ID || c.Name != b.Name || whole && c.Arguments != string(b.Input) {
					t.Errorf("%+v, but the SDK reads %+v", c, b)
				}
				calls++
			}
			if got.Text != text || calls != len(got.ToolCalls) {
				t.Errorf("%+v, but the SDK reads %q and %d calls", got, text, calls)
			}
			read := all.Usage.InputTokens + all.Usage.CacheReadInputTokens + all.Usage.CacheCreationInputTokens
			if in := got.Usage.InputTokens; read != 0 && (in == nil || *in != read) {
				t.Errorf("%+v, but the SDK reads %+v", got.Usage, all.Usage)
			}
		})
	}
}

// TestWholeAnswers: an answer that is not a stream is read if the request accepts one.
func TestWholeAnswers(t *testing.T) {
	server := modelfaults.Serve(t, modelfaults.Anthropic, modelfaults.Row{Name: "wrong-content-type"}, 2)
	modelfaults.ReadsWhole(t, newClient(t, Config{APIKey: modelfaults.Key, BaseURL: server.URL}), ask("hi"))
}
