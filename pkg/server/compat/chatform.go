// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"crypto/rand"
	"encoding/json"
	"time"

	"github.com/platform-ai/platform/pkg/llm"
)

// chatForm writes answers as chat completions.
type chatForm struct {
	id, model string
	created   int64
	usage     bool
}

func newChatForm(model string, now time.Time, usage bool) *chatForm {
	return &chatForm{id: "chatcmpl-" + rand.Text(), model: model, created: now.Unix(), usage: usage}
}

type chatUsage struct {
	PromptTokens        int64 `json:"prompt_tokens"`
	CompletionTokens    int64 `json:"completion_tokens"`
	TotalTokens         int64 `json:"total_tokens"`
	PromptTokensDetails *struct {
		CachedTokens int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details,omitempty"`
}

type chatChoice struct {
	Index int `json:"index"`
	// Delta is a chatContent at first, and then chatDeltas.
	Delta        json.RawMessage `json:"delta,omitempty"`
	Message      *chatContent    `json:"message,omitempty"`
	Logprobs     *struct{}       `json:"logprobs"`
	FinishReason *string         `json:"finish_reason"`
}

// chatContent is a message, whose content is null if it has calls and no text. Models of other vendors have no refusals beside it.
type chatContent struct {
	Role      string     `json:"role"`
	Content   *string    `json:"content"`
	Refusal   *string    `json:"refusal"`
	ToolCalls []chatCall `json:"tool_calls,omitempty"`
}

// chatDelta is what a chunk adds to a message.
type chatDelta struct {
	Content   *string    `json:"content,omitempty"`
	ToolCalls []chatCall `json:"tool_calls,omitempty"`
}

type chatReply struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []chatChoice `json:"choices"`
	// Usage is that of a whole answer. A stream has it for clients that ask for it: null in all chunks but the last one.
	Usage json.RawMessage `json:"usage,omitempty"`
}

// usageOf returns the usage if it is known.
func (*chatForm) usageOf(u llm.Usage) json.RawMessage {
	if !u.Known() {
		return nil
	}
	out := &chatUsage{PromptTokens: *u.InputTokens, CompletionTokens: *u.OutputTokens, TotalTokens: *u.InputTokens + *u.OutputTokens}
	if n := u.CachedInputTokens; n != nil {
		out.PromptTokensDetails = &struct {
			CachedTokens int64 `json:"cached_tokens"`
		}{*n}
	}
	return encoded(out)
}

func (f *chatForm) reply(object string, choices ...chatChoice) chatReply {
	return chatReply{ID: f.id, Object: object, Created: f.created, Model: f.model, Choices: append([]chatChoice{}, choices...)}
}

func (f *chatForm) chunk(delta any, stop *string) []byte {
	c := f.reply("chat.completion.chunk", chatChoice{Delta: encoded(delta), FinishReason: stop})
	if f.usage {
		c.Usage = json.RawMessage("null")
	}
	return sse("", c)
}

func (f *chatForm) begin(text bool) []byte {
	first := &chatContent{Role: "assistant"}
	if text {
		first.Content = new(string)
	}
	return f.chunk(first, nil)
}

func (f *chatForm) text(s string) []byte { return f.chunk(chatDelta{Content: &s}, nil) }

func calls(list []llm.ToolCall, indexed bool) []chatCall {
	var out []chatCall
	for i, c := range list {
		call := chatCall{ID: c.ID, Type: "function", Function: chatFunc{c.Name, c.Arguments}}
		if indexed {
			call.Index = &i
		}
		out = append(out, call)
	}
	return out
}

func (f *chatForm) end(r *llm.Response, list []llm.ToolCall, stop string) []byte {
	var out []byte
	for _, c := range calls(list, true) {
		out = append(out, f.chunk(chatDelta{ToolCalls: []chatCall{c}}, nil)...)
	}
	out = append(out, f.chunk(chatDelta{}, &stop)...)
	if u := f.usageOf(r.Usage); f.usage && u != nil {
		last := f.reply("chat.completion.chunk")
		last.Usage = u
		out = append(out, sse("", last)...)
	}
	return append(out, "data: [DONE]\n\n"...)
}

func (f *chatForm) whole(r *llm.Response, stop string) ([]byte, error) {
	content := &chatContent{Role: "assistant", Content: &r.Text, ToolCalls: calls(r.ToolCalls, false)}
	if r.Text == "" && len(r.ToolCalls) > 0 {
		content.Content = nil
	}
	out := f.reply("chat.completion", chatChoice{Message: content, FinishReason: &stop})
	out.Usage = f.usageOf(r.Usage)
	return json.Marshal(out)
}

// check accepts all answers: arguments are a text, whatever is in it.
func (*chatForm) check(*llm.Response) error { return nil }

func (*chatForm) failed(p problem) []byte { return failure(opChat, p) }

// stoppedBy does nothing, because chat completions do not name the sequence.
func (*chatForm) stoppedBy(string) {}

func (*chatForm) stop(r *llm.Response) (string, bool) {
	switch r.StopReason {
	case stopSequence:
		return string(llm.StopEnd), true
	case llm.StopEnd, llm.StopLength, llm.StopToolCalls, llm.StopFiltered:
		return string(r.StopReason), true
	}
	return "", false
}
