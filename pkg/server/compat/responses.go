// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/llm"
)

// responseRequest is what of a response another protocol can carry. See https://platform.openai.com/docs/api-reference/responses.
type responseRequest struct {
	Model           string          `json:"model"`
	Input           json.RawMessage `json:"input"`
	Instructions    string          `json:"instructions"`
	Tools           []responseTool  `json:"tools"`
	Temperature     *float64        `json:"temperature"`
	MaxOutputTokens *int64          `json:"max_output_tokens"`
	Stream          bool            `json:"stream"`
	Text            struct {
		Format    json.RawMessage `json:"format"`
		Verbosity *string         `json:"verbosity"`
	} `json:"text"`

	// What follows is accepted with the value that changes nothing. The last four were checked when the body was read.
	TopP               *float64        `json:"top_p"`
	TopLogprobs        *int64          `json:"top_logprobs"`
	ParallelToolCalls  *bool           `json:"parallel_tool_calls"`
	ToolChoice         json.RawMessage `json:"tool_choice"`
	Truncation         *string         `json:"truncation"`
	Include            []string        `json:"include"`
	Store              *bool           `json:"store"`
	Background         *bool           `json:"background"`
	PreviousResponseID json.RawMessage `json:"previous_response_id"`
	Conversation       json.RawMessage `json:"conversation"`
}

type responseTool struct {
	toolFunction

	Type string `json:"type"`
}

// Items have a struct for each type, because a member that belongs to another type would otherwise be lost. Their ids are those of a
// store, which there is none of here.
type (
	itemState struct {
		ID     string `json:"id"`
		Status string `json:"status"`
	}
	messageItem struct {
		itemState

		Type    string          `json:"type"`
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	callItem struct {
		itemState

		Type      string `json:"type"`
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	resultItem struct {
		itemState

		Type   string          `json:"type"`
		CallID string          `json:"call_id"`
		Output json.RawMessage `json:"output"`
	}
	inputPart struct {
		Type        string            `json:"type"`
		Text        string            `json:"text"`
		Annotations []json.RawMessage `json:"annotations"`
		Logprobs    []json.RawMessage `json:"logprobs"`
	}
)

// Types of the parts of a message: what is said to the model, and what it says.
const partInput, partOutput = "input_text", "output_text"

// fromResponses reads a response.
func fromResponses(in *incoming) (*translated, error) {
	var c responseRequest
	if err := strict(in.data, &c); err != nil {
		return nil, err
	}
	if err := c.neutral(); err != nil {
		return nil, err
	}
	t := &translated{}
	var err error
	if t.Format, err = c.format(); err != nil {
		return nil, err
	}
	t.Temperature = c.Temperature
	if n := c.MaxOutputTokens; n != nil {
		if *n < minTokens {
			return nil, invalid("max_output_tokens", "max_output_tokens: must be at least %d", minTokens)
		}
		t.MaxTokens = *n
	}
	for _, tool := range c.Tools {
		d, err := tool.definition(tool.Type)
		if err != nil {
			return nil, err
		}
		t.Tools = append(t.Tools, d)
	}
	t.Messages, err = c.messages()
	return t, err
}

// neutral refuses members that would change the answer and cannot be carried.
func (c *responseRequest) neutral() error {
	return unchanging(map[string]bool{
		"top_p": unlike(c.TopP, 1), "top_logprobs": unlike(c.TopLogprobs, 0), "parallel_tool_calls": unlike(c.ParallelToolCalls, true),
		"truncation": unlike(c.Truncation, "disabled"), "include": len(c.Include) > 0, "text": unlike(c.Text.Verbosity, "medium"),
		"tool_choice": !auto(c.ToolChoice),
	})
}

// format returns the form of the answer, as chat completions write it; nil for a text.
func (c *responseRequest) format() (json.RawMessage, error) {
	if null(c.Text.Format) {
		return nil, nil
	}
	f, err := parse(c.Text.Format)
	if err != nil {
		return nil, invalid("text", "text.format: %v", err)
	}
	var kind string
	if err := f.decode("type", &kind); err != nil {
		return nil, err
	}
	switch alone := len(f.members) == 1; {
	case kind == "text" && alone:
		return nil, nil
	case kind == "json_object" && alone:
		return c.Text.Format, nil
	case kind == "json_schema" && !alone:
		f.remove("type")
		return slices.Concat([]byte(`{"type":"json_schema","json_schema":`), f.bytes(), []byte("}")), nil
	}
	return nil, untranslatable("text", "another form than text, json_object, and json_schema with its members,")
}

// messages returns the conversation: the instructions, and a text or items.
func (c *responseRequest) messages() ([]llm.Message, error) {
	var out []llm.Message
	if c.Instructions != "" {
		out = append(out, llm.Message{Role: llm.RoleSystem, Text: c.Instructions})
	}
	var text string
	var items []json.RawMessage
	switch {
	case json.Unmarshal(c.Input, &text) == nil:
		if strings.TrimSpace(text) == "" {
			return nil, untranslatable("input", "a message without text")
		}
		out = append(out, llm.Message{Role: llm.RoleUser, Text: text})
	case json.Unmarshal(c.Input, &items) != nil:
		return nil, invalid("input", "input: must be a text or a list of items")
	}
	for _, raw := range items {
		var err error
		switch kind := kindOf(raw); kind {
		case "", "message":
			out, err = addMessage(out, raw)
		case "function_call":
			out, err = addCall(out, raw)
		case "function_call_output":
			out, err = addResult(out, raw)
		default:
			err = untranslatable("input", "an item of type "+kind)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(out) == 0 || out[len(out)-1].Role == llm.RoleAssistant || out[len(out)-1].Role == llm.RoleSystem {
		return nil, untranslatable("input", "a conversation that does not end with the user or a result")
	}
	return out, nil
}

// readItem reads an item.
func readItem(raw json.RawMessage, into interface{ complete() error }) error {
	if err := strict(raw, into); err != nil {
		return err
	}
	return into.complete()
}

// complete refuses an item that is only a part of what was said.
func (s itemState) complete() error {
	if s.Status != "" && s.Status != responseCompleted {
		return untranslatable("input", "an item whose status is not completed")
	}
	return nil
}

func addMessage(to []llm.Message, raw json.RawMessage) ([]llm.Message, error) {
	var m messageItem
	if err := readItem(raw, &m); err != nil {
		return nil, err
	}
	roles := map[string]llm.Role{"system": llm.RoleSystem, "developer": llm.RoleSystem, "user": llm.RoleUser, "assistant": llm.RoleAssistant}
	role, known := roles[m.Role]
	if !known {
		return nil, untranslatable("input", "the role "+m.Role)
	}
	kind := partInput
	if role == llm.RoleAssistant {
		kind = partOutput
	}
	text, err := inputText(m.Content, kind)
	last := llm.Message{Role: llm.RoleSystem}
	if len(to) > 0 {
		last = to[len(to)-1]
	}
	switch {
	case err != nil:
		return nil, err
	case strings.TrimSpace(text) == "":
		return nil, untranslatable("input", "a message without text")
	case role == llm.RoleSystem && last.Role != llm.RoleSystem:
		return nil, untranslatable("input", "a system message after others")
	case len(last.ToolCalls) > 0:
		return nil, untranslatable("input", "a message between a function_call and its output")
	}
	return append(to, llm.Message{Role: role, Text: text}), nil
}

func addCall(to []llm.Message, raw json.RawMessage) ([]llm.Message, error) {
	var c callItem
	if err := readItem(raw, &c); err != nil {
		return nil, err
	}
	if !isObject([]byte(c.Arguments)) {
		return nil, untranslatable("input", "a function_call whose arguments are not a JSON object")
	}
	if n := len(to); n == 0 || to[n-1].Role != llm.RoleAssistant {
		to = append(to, llm.Message{Role: llm.RoleAssistant})
	}
	last := &to[len(to)-1]
	last.ToolCalls = append(last.ToolCalls, llm.ToolCall{ID: c.CallID, Name: c.Name, Arguments: c.Arguments})
	return to, nil
}

func addResult(to []llm.Message, raw json.RawMessage) ([]llm.Message, error) {
	var r resultItem
	if err := readItem(raw, &r); err != nil {
		return nil, err
	}
	if r.CallID == "" {
		return nil, invalid("input", "input: a function_call_output must have a call_id")
	}
	text, err := inputText(r.Output, partInput)
	return append(to, llm.Message{Role: llm.RoleTool, ToolCallID: r.CallID, Text: text}), err
}

// inputText returns a text, or the texts of parts that are nothing but texts.
func inputText(raw json.RawMessage, kind string) (string, error) {
	if null(raw) {
		return "", nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var parts []inputPart
	if err := strict(raw, &parts); err != nil {
		return "", untranslatable("input", "content that is not plain text")
	}
	var texts []string
	for _, p := range parts {
		if p.Type != kind || len(p.Annotations) > 0 || len(p.Logprobs) > 0 {
			return "", untranslatable("input", "content that is not plain text of type "+kind)
		}
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "\n"), nil
}
