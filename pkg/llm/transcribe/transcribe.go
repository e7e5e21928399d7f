// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package transcribe reads what requests to the vendors' APIs and their answers say, for people who read it later. It is lenient: what it
// does not know is shown as the JSON that it is, and nothing is refused. What carries requests to models is package members.
package transcribe

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm/members"
)

// maxUnknown bounds what is shown of a part that is not known, in bytes. A longer one, such as a document, is shown as its size.
const maxUnknown = 64 << 10

// Conversation is what a request says.
type Conversation struct {
	Messages   []v1alpha1.RecordedMessage
	Tools      []v1alpha1.RecordedTool
	Parameters *v1alpha1.RecordedParameters
}

// Roles of messages.
const (
	system    = "system"
	user      = "user"
	assistant = "assistant"
	tool      = "tool"
)

// item is a message, a part of one, an item of a response, or a tool, of any API: each has some of these members.
type item struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Text    string          `json:"text"`
	Refusal string          `json:"refusal"`

	Thinking         string `json:"thinking"`
	ReasoningContent string `json:"reasoning_content"`
	Summary          []item `json:"summary"`

	ID         string          `json:"id"`
	CallID     string          `json:"call_id"`
	ToolUseID  string          `json:"tool_use_id"`
	ToolCallID string          `json:"tool_call_id"`
	Name       string          `json:"name"`
	Arguments  string          `json:"arguments"`
	Input      json.RawMessage `json:"input"`
	Output     json.RawMessage `json:"output"`
	IsError    bool            `json:"is_error"`
	ToolCalls  []call          `json:"tool_calls"`
	Function   *item           `json:"function"`

	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	InputSchema json.RawMessage `json:"input_schema"`

	ImageURL json.RawMessage `json:"image_url"`
	Source   struct {
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
		URL       string `json:"url"`
	} `json:"source"`
}

// call is a call of a tool in a chat completion. Index orders the pieces of a stream.
type call struct {
	Index    int    `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// body has what is read of a request or an answer of any API.
type body struct {
	Messages     json.RawMessage `json:"messages"`
	Input        json.RawMessage `json:"input"`
	System       json.RawMessage `json:"system"`
	Instructions string          `json:"instructions"`
	Tools        []item          `json:"tools"`

	MaxTokens           int64           `json:"max_tokens"`
	MaxCompletionTokens int64           `json:"max_completion_tokens"`
	MaxOutputTokens     int64           `json:"max_output_tokens"`
	Temperature         json.RawMessage `json:"temperature"`
	ResponseFormat      json.RawMessage `json:"response_format"`
	Text                struct {
		Format json.RawMessage `json:"format"`
	} `json:"text"`

	Choices []struct {
		Message item `json:"message"`
		Delta   item `json:"delta"`
	} `json:"choices"`
	Content json.RawMessage   `json:"content"`
	Output  []json.RawMessage `json:"output"`
}

// Request reads a request.
func Request(api members.API, data []byte) Conversation {
	var b body
	_ = json.Unmarshal(data, &b) // what has another type is left out
	var c Conversation
	if len(b.System) > 0 {
		c.Messages = append(c.Messages, message(system, b.System)...)
	}
	if b.Instructions != "" {
		c.Messages = append(c.Messages, v1alpha1.RecordedMessage{Role: system, Text: b.Instructions})
	}
	said := b.Messages
	if api == members.Responses {
		said = b.Input
	}
	var list []json.RawMessage
	if json.Unmarshal(said, &list) == nil {
		for _, raw := range list {
			c.Messages = append(c.Messages, messages(raw)...)
		}
	} else if len(said) > 0 {
		c.Messages = append(c.Messages, message(user, said)...)
	}
	for i := range b.Tools {
		c.Tools = append(c.Tools, offered(&b.Tools[i]))
	}
	c.Parameters = &v1alpha1.RecordedParameters{
		MaxTokens:   cmp.Or(b.MaxCompletionTokens, b.MaxOutputTokens, b.MaxTokens),
		Temperature: string(bytes.Trim(b.Temperature, `"`)), Format: cmp.Or(string(b.ResponseFormat), string(b.Text.Format)),
	}
	return c
}

// offered reads a tool.
func offered(t *item) v1alpha1.RecordedTool {
	if t.Function != nil {
		t = t.Function
	}
	out := v1alpha1.RecordedTool{Name: cmp.Or(t.Name, t.Type), Description: t.Description}
	for _, schema := range []json.RawMessage{t.Parameters, t.InputSchema} {
		if len(schema) > 0 {
			out.Parameters = &apiextensionsv1.JSON{Raw: schema}
		}
	}
	return out
}

// messages reads a message, or an item of a response. One that has results of tools is several.
func messages(raw json.RawMessage) []v1alpha1.RecordedMessage {
	var it item
	_ = json.Unmarshal(raw, &it)
	switch it.Type {
	case "function_call", "custom_tool_call":
		return []v1alpha1.RecordedMessage{{Role: assistant, ToolCalls: []v1alpha1.RecordedToolCall{{
			ID: cmp.Or(it.CallID, it.ID), Name: it.Name, Arguments: cmp.Or(it.Arguments, textOf(it.Input)),
		}}}}
	case "function_call_output", "custom_tool_call_output":
		return []v1alpha1.RecordedMessage{{Role: tool, ToolCallID: it.CallID, Text: textOf(it.Output)}}
	case "reasoning":
		return []v1alpha1.RecordedMessage{{Role: assistant, Thinking: summary(it.Summary)}}
	case "", "message":
	default:
		return []v1alpha1.RecordedMessage{{Role: cmp.Or(it.Role, it.Type), Text: shown(raw)}}
	}
	list := message(cmp.Or(it.Role, user), it.Content)
	last := &list[len(list)-1]
	last.ToolCallID = it.ToolCallID
	last.Thinking = cmp.Or(last.Thinking, it.ReasoningContent)
	if last.Text == "" {
		last.Text = it.Refusal
	}
	for i := range it.ToolCalls {
		last.ToolCalls = append(last.ToolCalls, it.ToolCalls[i].recorded())
	}
	return list
}

func (c *call) recorded() v1alpha1.RecordedToolCall {
	return v1alpha1.RecordedToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments}
}

// message reads content, a text or a list of parts. The last message is the one of the role; results of tools come before it, and it is
// left out if it says nothing besides.
func message(role string, content json.RawMessage) []v1alpha1.RecordedMessage {
	m := v1alpha1.RecordedMessage{Role: role}
	var results []v1alpha1.RecordedMessage
	var parts []json.RawMessage
	if json.Unmarshal(content, &parts) != nil {
		m.Text = textOf(content)
		return []v1alpha1.RecordedMessage{m}
	}
	for _, raw := range parts {
		var p item
		_ = json.Unmarshal(raw, &p)
		switch p.Type {
		case "text", "input_text", "output_text":
			m.Text += p.Text
		case "refusal":
			m.Text += p.Refusal
		case "thinking":
			m.Thinking += p.Thinking
		case "redacted_thinking":
		case "tool_use", "server_tool_use":
			m.ToolCalls = append(m.ToolCalls, v1alpha1.RecordedToolCall{ID: p.ID, Name: p.Name, Arguments: string(p.Input)})
		case "tool_result":
			results = append(results, v1alpha1.RecordedMessage{Role: tool, ToolCallID: p.ToolUseID, Text: textOf(p.Content), Failed: p.IsError})
		case "image", "image_url", "input_image":
			m.Images = append(m.Images, p.image())
		default:
			m.Text += shown(raw)
		}
	}
	if len(results) > 0 && m.Text == "" && m.Thinking == "" && len(m.ToolCalls)+len(m.Images) == 0 {
		return results
	}
	return append(results, m)
}

// image describes an image: data of base64, a data: URL, or an address.
func (i *item) image() v1alpha1.RecordedImage {
	address := i.Source.URL
	var of struct {
		URL string `json:"url"`
	}
	if len(i.ImageURL) > 0 && json.Unmarshal(i.ImageURL, &address) != nil && json.Unmarshal(i.ImageURL, &of) == nil {
		address = of.URL
	}
	data, media := i.Source.Data, i.Source.MediaType
	if rest, ok := strings.CutPrefix(address, "data:"); ok {
		head, text, _ := strings.Cut(rest, ",")
		media, _, _ = strings.Cut(head, ";")
		data, address = text, ""
	}
	sum := sha256.Sum256([]byte(data + address))
	return v1alpha1.RecordedImage{MediaType: media, Digest: hex.EncodeToString(sum[:]), Bytes: int64(len(data)) / 4 * 3}
}

// textOf returns a text, the texts of a list of parts, or other JSON as it is.
func textOf(raw json.RawMessage) string {
	var text string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []item
	if json.Unmarshal(raw, &parts) != nil {
		return shown(raw)
	}
	var out strings.Builder
	for i := range parts {
		if parts[i].Text == "" {
			return shown(raw)
		}
		out.WriteString(parts[i].Text)
	}
	return out.String()
}

// shown returns JSON that is not known, as far as it is short.
func shown(raw json.RawMessage) string {
	if len(raw) > maxUnknown {
		return fmt.Sprintf("(%d bytes)", len(raw))
	}
	return string(raw)
}

func summary(parts []item) string {
	var out strings.Builder
	for i := range parts {
		out.WriteString(parts[i].Text)
	}
	return out.String()
}

// Answer reads an answer that is not a stream; nil if it says nothing.
func Answer(api members.API, data []byte) *v1alpha1.RecordedMessage {
	var b body
	_ = json.Unmarshal(data, &b)
	m := &v1alpha1.RecordedMessage{Role: assistant}
	switch api {
	case members.Chat:
		if len(b.Choices) == 0 {
			return nil
		}
		c := &b.Choices[0].Message
		m.Text, m.Thinking = cmp.Or(textOf(c.Content), c.Refusal), c.ReasoningContent
		for i := range c.ToolCalls {
			m.ToolCalls = append(m.ToolCalls, c.ToolCalls[i].recorded())
		}
	case members.Messages:
		list := message(assistant, b.Content)
		m = &list[len(list)-1]
	case members.Responses:
		for _, raw := range b.Output {
			for _, one := range messages(raw) {
				m.Text += one.Text
				m.Thinking += one.Thinking
				m.ToolCalls = append(m.ToolCalls, one.ToolCalls...)
			}
		}
	}
	if m.Text == "" && m.Thinking == "" && len(m.ToolCalls) == 0 {
		return nil
	}
	return m
}
