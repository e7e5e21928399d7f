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
	"github.com/platform-ai/platform/pkg/tooldef"
)

// messageRequest is what of a message another protocol can carry.
type messageRequest struct {
	Model         string          `json:"model"`
	MaxTokens     int64           `json:"max_tokens"`
	System        json.RawMessage `json:"system"`
	Messages      []messageTurn   `json:"messages"`
	Tools         []messageTool   `json:"tools"`
	Temperature   *float64        `json:"temperature"`
	Stream        bool            `json:"stream"`
	StopSequences []string        `json:"stop_sequences"`
	ToolChoice    *struct {
		Type                   string `json:"type"`
		DisableParallelToolUse *bool  `json:"disable_parallel_tool_use"`
	} `json:"tool_choice"`
	Thinking *struct {
		Type string `json:"type"`
	} `json:"thinking"`
	TopP *float64 `json:"top_p"`
}

type messageTurn struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type messageTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// fromMessages reads a message.
func fromMessages(in *incoming) (*translated, error) {
	var c messageRequest
	if err := strict(in.data, &c); err != nil {
		return nil, err
	}
	if err := unchanging(map[string]bool{
		"top_p": unlike(c.TopP, 1), "thinking": c.Thinking != nil && c.Thinking.Type != "disabled",
		"tool_choice": c.ToolChoice != nil && (c.ToolChoice.Type != "auto" || unlike(c.ToolChoice.DisableParallelToolUse, false)),
	}); err != nil {
		return nil, err
	}
	t := &translated{stops: c.StopSequences}
	if err := checkStops("stop_sequences", t.stops); err != nil {
		return nil, err
	}
	t.Temperature, t.MaxTokens = c.Temperature, c.MaxTokens
	for _, tool := range c.Tools {
		if tool.Type != "" && tool.Type != "custom" {
			return nil, untranslatable("tools", "tools of type "+tool.Type)
		}
		if !isObject(tool.InputSchema) {
			return nil, invalid("tools", "tools: the input_schema of tool %q must be a JSON object", tool.Name)
		}
		t.Tools = append(t.Tools, tooldef.Definition{Name: tool.Name, Description: tool.Description, Parameters: tool.InputSchema})
	}
	system, err := textOf(c.System, "system", "\n")
	if err != nil {
		return nil, err
	}
	if system != "" {
		t.Messages = append(t.Messages, llm.Message{Role: llm.RoleSystem, Text: system})
	}
	for _, turn := range c.Messages {
		messages, err := turn.messages()
		if err != nil {
			return nil, err
		}
		t.Messages = append(t.Messages, messages...)
	}
	if n := len(t.Messages); n == 0 || t.Messages[n-1].Role == llm.RoleAssistant {
		return nil, untranslatable("messages", "a conversation that does not end with a message of the user")
	}
	return t, nil
}

// messages reads a turn: results of tools become messages of their own.
func (m *messageTurn) messages() ([]llm.Message, error) {
	var text string
	blocks := []json.RawMessage{}
	switch {
	case json.Unmarshal(m.Content, &text) == nil && !null(m.Content):
		blocks = append(blocks, sseText(text))
	case json.Unmarshal(m.Content, &blocks) != nil:
		return nil, invalid("messages", "messages: content must be a text or a list of blocks")
	}
	switch m.Role {
	case "user":
		return userTurn(blocks)
	case "assistant":
		return assistantTurn(blocks)
	}
	return nil, untranslatable("messages", "the role "+m.Role)
}

func sseText(text string) json.RawMessage {
	raw, err := json.Marshal(textBlock{"text", text})
	if err != nil { // strings can always be encoded
		return json.RawMessage("{}")
	}
	return raw
}

func kindOf(block json.RawMessage) string {
	var b struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(block, &b) != nil {
		return ""
	}
	return b.Type
}

// Blocks have a struct for each type, because a member that belongs to another type would otherwise be lost.
type (
	textBlock struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	toolBlock struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	resultBlock struct {
		Type      string          `json:"type"`
		ToolUseID string          `json:"tool_use_id"`
		Content   json.RawMessage `json:"content"`
		IsError   bool            `json:"is_error"`
	}
)

func userTurn(blocks []json.RawMessage) ([]llm.Message, error) {
	var out []llm.Message
	for _, raw := range blocks {
		switch kind := kindOf(raw); kind {
		case "text":
			var b textBlock
			if err := strict(raw, &b); err != nil {
				return nil, err
			}
			out = append(out, llm.Message{Role: llm.RoleUser, Text: b.Text})
		case "tool_result":
			var b resultBlock
			if err := strict(raw, &b); err != nil {
				return nil, err
			}
			if b.IsError {
				return nil, untranslatable("messages", "is_error of a tool_result")
			}
			text, err := textOf(b.Content, "messages", "\n")
			if err != nil {
				return nil, err
			}
			out = append(out, llm.Message{Role: llm.RoleTool, ToolCallID: b.ToolUseID, Text: text})
		default:
			return nil, untranslatable("messages", "a block of type "+kind)
		}
	}
	return out, nil
}

func assistantTurn(blocks []json.RawMessage) ([]llm.Message, error) {
	out := llm.Message{Role: llm.RoleAssistant}
	for _, raw := range blocks {
		switch kind := kindOf(raw); kind {
		case "text":
			var b textBlock
			if err := strict(raw, &b); err != nil {
				return nil, err
			}
			if len(out.ToolCalls) > 0 {
				return nil, untranslatable("messages", "a text after a tool_use")
			}
			out.Text += b.Text
		case "tool_use":
			var b toolBlock
			if err := strict(raw, &b); err != nil {
				return nil, err
			}
			if !isObject(b.Input) {
				return nil, invalid("messages", "messages: the input of a tool_use must be an object")
			}
			out.ToolCalls = append(out.ToolCalls, llm.ToolCall{ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
		default:
			return nil, untranslatable("messages", "a block of type "+kind)
		}
	}
	return []llm.Message{out}, nil
}

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

func (f *messageForm) begin() []byte {
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
