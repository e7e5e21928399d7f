// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"encoding/json"

	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/tool"
)

// chatRequest is what of a chat completion is carried; see package members.
type chatRequest struct {
	Model               string        `json:"model"`
	Messages            []chatMessage `json:"messages"`
	Tools               []chatTool    `json:"tools"`
	Temperature         *float64      `json:"temperature"`
	TopP                *float64      `json:"top_p"`
	MaxTokens           *int64        `json:"max_tokens"`
	MaxCompletionTokens *int64        `json:"max_completion_tokens"`
	Stream              bool          `json:"stream"`
	StreamOptions       *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	ParallelToolCalls *bool           `json:"parallel_tool_calls"`
	ReasoningEffort   string          `json:"reasoning_effort"`
	ToolChoice        json.RawMessage `json:"tool_choice"`
	ResponseFormat    json.RawMessage `json:"response_format"`
	Stop              json.RawMessage `json:"stop"`
}

type chatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  []chatCall      `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
	Refusal    string          `json:"refusal"`
}

type chatCall struct {
	Index    *int     `json:"index,omitempty"`
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function chatFunc `json:"function"`
}

type chatFunc struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type chatTool struct {
	Type     string       `json:"type"`
	Function toolFunction `json:"function"`
}

type toolFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

// definition returns the tool.
func (f *toolFunction) definition() (tool.Definition, error) {
	d := tool.Definition{Name: f.Name, Description: f.Description, Strict: f.Strict}
	if !null(f.Parameters) {
		if d.Parameters = f.Parameters; !isObject(d.Parameters) {
			return d, invalid("tools", "tools: the parameters of function %q must be a JSON object", d.Name)
		}
	}
	return d, nil
}

// fromChat reads a chat completion.
func fromChat(in *incoming) (*translated, error) {
	var c chatRequest
	if err := strict(in.data, &c); err != nil {
		return nil, err
	}
	t := &translated{usage: in.usage}
	var err error
	if t.stops, err = c.stops(); err != nil {
		return nil, err
	}
	if t.Format, err = c.format(); err != nil {
		return nil, err
	}
	t.Temperature, t.TopP = c.Temperature, c.TopP
	if t.Effort, err = effort("reasoning_effort", c.ReasoningEffort); err != nil {
		return nil, err
	}
	for _, limit := range []*int64{c.MaxCompletionTokens, c.MaxTokens} {
		if limit != nil && t.MaxTokens == 0 {
			t.MaxTokens = *limit
		}
	}
	for _, tool := range c.Tools {
		d, err := tool.Function.definition()
		if err != nil {
			return nil, err
		}
		t.Tools = append(t.Tools, d)
	}
	for i := range c.Messages {
		if err := t.addChat(&c.Messages[i]); err != nil {
			return nil, err
		}
	}
	t.trim()
	return t, t.chooseAs(c.ToolChoice, c.ParallelToolCalls)
}

// stops returns the sequences that end the answer.
func (c *chatRequest) stops() (list []string, err error) {
	var one string
	switch {
	case null(c.Stop):
	case json.Unmarshal(c.Stop, &one) == nil:
		list = []string{one}
	case json.Unmarshal(c.Stop, &list) != nil:
		return nil, invalid("stop", "stop: must be a text or a list of texts")
	}
	return list, checkStops("stop", list)
}

// format returns the form of the answer, as the client wrote it; nil for a text.
func (c *chatRequest) format() (json.RawMessage, error) {
	var f struct {
		Type       string          `json:"type"`
		JSONSchema json.RawMessage `json:"json_schema"`
	}
	if null(c.ResponseFormat) {
		return nil, nil
	}
	if err := strict(c.ResponseFormat, &f); err != nil {
		return nil, err
	}
	switch schema := !null(f.JSONSchema); {
	case f.Type == "text" && !schema:
		return nil, nil
	case f.Type == "json_object" && !schema, f.Type == "json_schema" && schema && isObject(f.JSONSchema):
		return c.ResponseFormat, nil
	}
	return nil, untranslatable("response_format", "another form than text, json_object, and json_schema with an object json_schema,")
}

// addChat reads a message.
func (t *translated) addChat(m *chatMessage) error {
	said, err := readChat(m.Content)
	if err != nil {
		return err
	}
	if m.Refusal != "" {
		said = append(said, llm.Content{Text: m.Refusal})
	}
	out := llm.Message{ToolCallID: m.ToolCallID}
	for _, call := range m.ToolCalls {
		if !isObject([]byte(call.Function.Arguments)) {
			return untranslatable("messages", "a tool call whose arguments are not a JSON object")
		}
		out.ToolCalls = append(out.ToolCalls, llm.ToolCall{ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments})
	}
	roles := map[string]llm.Role{"system": llm.RoleSystem, "developer": llm.RoleSystem, "user": llm.RoleUser, "assistant": llm.RoleAssistant, "tool": llm.RoleTool}
	role, known := roles[m.Role]
	out.Role = role
	put(&out, said)
	switch {
	case !known:
		return untranslatable("messages", "the role "+m.Role)
	case len(out.ToolCalls) > 0 && role != llm.RoleAssistant, (out.ToolCallID != "") != (role == llm.RoleTool):
		return invalid("messages", "messages: tool_calls are for the assistant, and a message of a tool, and no other, has a tool_call_id")
	case m.Refusal != "" && role != llm.RoleAssistant:
		return untranslatable("messages", "a refusal of the role "+m.Role)
	case len(out.Content) > 0 && role != llm.RoleUser && role != llm.RoleTool:
		return untranslatable("messages", "an image of the role "+m.Role)
	case silent(&out) && out.Text != "":
		return untranslatable("messages", "a text of nothing but white space")
	}
	t.Messages = append(t.Messages, out)
	return nil
}

// isObject reports whether a text is a JSON object.
func isObject(data []byte) bool {
	_, err := parse(data)
	return err == nil
}
