// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/platform-ai/platform/pkg/llm"
)

// messageForm writes answers as messages.
type messageForm struct {
	id, model string
	sequence  *string // that ended the answer
	open      bool    // a block of text
	index     int     // of the next block
}

func newMessageForm(model string) *messageForm {
	return &messageForm{id: "msg_" + rand.Text(), model: model}
}

// messageUsage has null for what is unknown. The protocol requires the members.
type messageUsage struct {
	InputTokens              *int64 `json:"input_tokens"`
	CacheCreationInputTokens *int64 `json:"cache_creation_input_tokens"`
	CacheReadInputTokens     *int64 `json:"cache_read_input_tokens"`
	OutputTokens             *int64 `json:"output_tokens"`
}

type messageReply struct {
	ID           string       `json:"id"`
	Type         string       `json:"type"`
	Role         string       `json:"role"`
	Model        string       `json:"model"`
	Content      []any        `json:"content"`
	StopReason   *string      `json:"stop_reason"`
	StopSequence *string      `json:"stop_sequence"`
	Usage        messageUsage `json:"usage"`
}

// usageOf returns the usage. A figure that is unknown is not 0.
func (*messageForm) usageOf(u llm.Usage) messageUsage {
	out := messageUsage{CacheCreationInputTokens: u.CacheWriteInputTokens, CacheReadInputTokens: u.CachedInputTokens, OutputTokens: u.OutputTokens}
	if u.InputTokens == nil {
		return out
	}
	rest := *u.InputTokens
	for _, n := range []*int64{u.CacheWriteInputTokens, u.CachedInputTokens} {
		if n != nil {
			rest -= *n
		}
	}
	out.InputTokens = new(max(rest, 0))
	return out
}

func (f *messageForm) reply() messageReply {
	r := messageReply{ID: f.id, Type: "message", Role: "assistant", Model: f.model, Content: []any{}}
	r.Usage = messageUsage{InputTokens: new(int64), OutputTokens: new(int64)} // nothing was used before the answer began
	return r
}

func (f *messageForm) begin(bool) []byte {
	return sse("message_start", map[string]any{"type": "message_start", "message": f.reply()})
}

func (f *messageForm) start(block any) []byte {
	return sse("content_block_start", map[string]any{"type": "content_block_start", "index": f.index, "content_block": block})
}

func (f *messageForm) delta(delta map[string]any) []byte {
	return sse("content_block_delta", map[string]any{"type": "content_block_delta", "index": f.index, "delta": delta})
}

func (f *messageForm) close() []byte {
	out := sse("content_block_stop", map[string]any{"type": "content_block_stop", "index": f.index})
	f.index++
	return out
}

func (f *messageForm) text(s string) []byte {
	var out []byte
	if !f.open {
		f.open = true
		out = f.start(textBlock{Type: "text"})
	}
	return append(out, f.delta(map[string]any{"type": "text_delta", "text": s})...)
}

func (f *messageForm) end(r *llm.Response, list []llm.ToolCall, stop string) []byte {
	var out []byte
	if f.open {
		out = f.close()
	}
	for _, c := range list {
		out = append(out, f.start(toolBlock{Type: "tool_use", ID: c.ID, Name: c.Name, Input: json.RawMessage("{}")})...)
		out = append(out, f.delta(map[string]any{"type": "input_json_delta", "partial_json": c.Arguments})...)
		out = append(out, f.close()...)
	}
	out = append(out, sse("message_delta", map[string]any{
		"type": "message_delta", "delta": map[string]any{"stop_reason": stop, "stop_sequence": f.sequence}, "usage": f.usageOf(r.Usage),
	})...)
	return append(out, sse("message_stop", map[string]any{"type": "message_stop"})...)
}

// check refuses calls whose arguments are not an object, such as one that was cut: clients take what they cannot read for {}.
func (*messageForm) check(r *llm.Response) error {
	for _, c := range r.ToolCalls {
		if !isObject(inputOf(c)) {
			return fmt.Errorf("the arguments of its call of tool %q are not a JSON object", strings.ToValidUTF8(c.Name, ""))
		}
	}
	return nil
}

func inputOf(c llm.ToolCall) json.RawMessage {
	raw := bytes.TrimSpace([]byte(c.Arguments))
	if len(raw) == 0 {
		return json.RawMessage("{}")
	}
	return raw
}

func (f *messageForm) whole(r *llm.Response, stop string) ([]byte, error) {
	out := f.reply()
	if r.Text != "" {
		out.Content = append(out.Content, textBlock{"text", r.Text})
	}
	for _, c := range r.ToolCalls {
		out.Content = append(out.Content, toolBlock{"tool_use", c.ID, c.Name, inputOf(c)})
	}
	out.StopReason, out.StopSequence, out.Usage = &stop, f.sequence, f.usageOf(r.Usage)
	return json.Marshal(out)
}

// stopRefusal is the reason of an answer that is a refusal.
const stopRefusal = "refusal"

func (*messageForm) failed(p problem) []byte { return failure(opMessages, p) }

func (f *messageForm) stoppedBy(sequence string) { f.sequence = &sequence }

func (*messageForm) stop(r *llm.Response) (string, bool) {
	if r.Refused && r.StopReason == llm.StopEnd {
		return stopRefusal, true
	}
	switch r.StopReason {
	case stopSequence:
		return string(stopSequence), true
	case llm.StopEnd:
		return "end_turn", true
	case llm.StopLength:
		return "max_tokens", true
	case llm.StopToolCalls:
		return "tool_use", true
	case llm.StopFiltered:
		return stopRefusal, true
	}
	return "", false
}
