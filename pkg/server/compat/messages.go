// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"encoding/json"
	"slices"

	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/tool"
)

// messageRequest is what of a message is carried; see package members.
type messageRequest struct {
	Model         string          `json:"model"`
	MaxTokens     int64           `json:"max_tokens"`
	System        json.RawMessage `json:"system"`
	Messages      []messageTurn   `json:"messages"`
	Tools         []messageTool   `json:"tools"`
	Temperature   *float64        `json:"temperature"`
	TopP          *float64        `json:"top_p"`
	Stream        bool            `json:"stream"`
	StopSequences []string        `json:"stop_sequences"`
	ToolChoice    *struct {
		Type                   string `json:"type"`
		Name                   string `json:"name"`
		DisableParallelToolUse bool   `json:"disable_parallel_tool_use"`
	} `json:"tool_choice"`
	OutputConfig struct {
		Effort string         `json:"effort"`
		Format *messageFormat `json:"format"`
	} `json:"output_config"`
	// OutputFormat is what OutputConfig.Format was called before.
	OutputFormat *messageFormat `json:"output_format"`
}

type messageFormat struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
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
	Strict      bool            `json:"strict"`
}

// fromMessages reads a message.
func fromMessages(in *incoming) (*translated, error) {
	var c messageRequest
	if err := strict(in.data, &c); err != nil {
		return nil, err
	}
	t := &translated{stops: c.StopSequences}
	if err := checkStops("stop_sequences", t.stops); err != nil {
		return nil, err
	}
	t.Temperature, t.TopP, t.MaxTokens = c.Temperature, c.TopP, c.MaxTokens
	var err error
	if t.Effort, err = effort("output_config", c.OutputConfig.Effort); err != nil {
		return nil, err
	}
	if t.Format, err = c.format(); err != nil {
		return nil, err
	}
	for _, given := range c.Tools {
		if !isObject(given.InputSchema) {
			return nil, invalid("tools", "tools: the input_schema of tool %q must be a JSON object", given.Name)
		}
		t.Tools = append(t.Tools, tool.Definition{Name: given.Name, Description: given.Description, Parameters: given.InputSchema, Strict: given.Strict})
	}
	system, err := readBlocks(c.System, "system")
	if err != nil {
		return nil, err
	}
	if len(system) > 0 {
		first := llm.Message{Role: llm.RoleSystem}
		put(&first, system)
		t.Messages = append(t.Messages, first)
	}
	for _, turn := range c.Messages {
		if err := t.addTurn(turn); err != nil {
			return nil, err
		}
	}
	t.trim()
	if n := len(t.Messages); n == 0 || t.Messages[n-1].Role == llm.RoleAssistant {
		return nil, untranslatable("messages", "a conversation that does not end with a message of the user")
	}
	if choice := c.ToolChoice; choice != nil {
		return t, t.choose(choice.Type, choice.Name, choice.DisableParallelToolUse)
	}
	return t, nil
}

// format returns the form of the answer, as chat completions write it; nil for a text.
func (c *messageRequest) format() (json.RawMessage, error) {
	f := c.OutputConfig.Format
	if f == nil {
		f = c.OutputFormat
	}
	switch {
	case f == nil:
		return nil, nil
	case f.Type != formatSchema || !isObject(f.Schema):
		return nil, untranslatable("output_config", "another form than json_schema with an object schema,")
	}
	// Answers fit the schema in any case there.
	return slices.Concat([]byte(`{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":`), f.Schema, []byte("}}")), nil
}

// formatSchema is the type of a form that has a schema.
const formatSchema = "json_schema"

// addTurn reads a turn: results of tools become messages of their own.
func (t *translated) addTurn(m messageTurn) error {
	var text string
	blocks := []json.RawMessage{}
	switch {
	case json.Unmarshal(m.Content, &text) == nil && !null(m.Content):
		blocks = append(blocks, sseText(text))
	case json.Unmarshal(m.Content, &blocks) != nil:
		return invalid("messages", "messages: content must be a text or a list of blocks")
	}
	switch m.Role {
	case "user":
		return t.addUser(blocks)
	case "assistant":
		return t.addAssistant(blocks)
	case "system":
		said, err := readBlocks(m.Content, "messages")
		late := llm.Message{Role: llm.RoleSystem}
		if put(&late, said); err == nil && silent(&late) && late.Text != "" || len(late.Content) > 0 {
			err = untranslatable("messages", "a message of the system with nothing but white space, or with an image")
		}
		t.Messages = append(t.Messages, late)
		return err
	}
	return untranslatable("messages", "the role "+m.Role)
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
	imageBlock struct {
		Type   string `json:"type"`
		Source struct {
			Type      string `json:"type"`
			MediaType string `json:"media_type"`
			Data      string `json:"data"`
			URL       string `json:"url"`
		} `json:"source"`
	}
)

// image returns the image of a block.
func (b *imageBlock) image() (llm.Content, error) {
	switch s := b.Source; {
	case s.Type == "base64" && s.URL == "":
		return pictured("messages", "data:"+s.MediaType+";base64,"+s.Data)
	case s.Type == "url" && s.MediaType+s.Data == "":
		return pictured("messages", s.URL)
	}
	return llm.Content{}, untranslatable("messages", "an image whose source is neither base64 nor url")
}

// addUser reads a turn of the user: first the results, as both protocols demand. Its texts are messages of their own unless there
// are images between them.
func (t *translated) addUser(blocks []json.RawMessage) error {
	var said []llm.Content
	shows := false
	for _, raw := range blocks {
		switch kind := kindOf(raw); kind {
		case "text":
			var b textBlock
			if err := strict(raw, &b); err != nil {
				return err
			}
			said = append(said, llm.Content{Text: b.Text})
		case "image":
			var b imageBlock
			if err := strict(raw, &b); err != nil {
				return err
			}
			c, err := b.image()
			if err != nil {
				return err
			}
			said, shows = append(said, c), true
		case "tool_result":
			var b resultBlock
			if err := strict(raw, &b); err != nil {
				return err
			}
			result, err := readBlocks(b.Content, "messages")
			if err != nil {
				return err
			}
			out := llm.Message{Role: llm.RoleTool, ToolCallID: b.ToolUseID, Failed: b.IsError}
			put(&out, result)
			t.Messages = append(t.Messages, out)
		default:
			return untranslatable("messages", "a block of type "+kind)
		}
	}
	if shows || len(blocks) == 0 {
		one := llm.Message{Role: llm.RoleUser}
		put(&one, said)
		t.Messages = append(t.Messages, one)
		return nil
	}
	for _, c := range said {
		t.Messages = append(t.Messages, llm.Message{Role: llm.RoleUser, Text: c.Text})
	}
	return nil
}

// addAssistant reads a turn of the assistant. One in which it only thought is an empty one.
func (t *translated) addAssistant(blocks []json.RawMessage) error {
	out := llm.Message{Role: llm.RoleAssistant}
	for _, raw := range blocks {
		switch kind := kindOf(raw); kind {
		case "text":
			var b textBlock
			if err := strict(raw, &b); err != nil {
				return err
			}
			if len(out.ToolCalls) > 0 {
				return untranslatable("messages", "a text after a tool_use")
			}
			out.Text += b.Text
		case "tool_use":
			var b toolBlock
			if err := strict(raw, &b); err != nil {
				return err
			}
			if !isObject(b.Input) {
				return invalid("messages", "messages: the input of a tool_use must be an object")
			}
			out.ToolCalls = append(out.ToolCalls, llm.ToolCall{ID: b.ID, Name: b.Name, Arguments: string(b.Input)})
		default:
			return untranslatable("messages", "a block of type "+kind)
		}
	}
	t.Messages = append(t.Messages, out)
	return nil
}
