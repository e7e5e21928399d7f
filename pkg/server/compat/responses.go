// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/tool"
)

// responseRequest is what of a response is carried; see package members and https://platform.openai.com/docs/api-reference/responses.
type responseRequest struct {
	Model           string          `json:"model"`
	Input           json.RawMessage `json:"input"`
	Instructions    string          `json:"instructions"`
	Tools           []responseTool  `json:"tools"`
	Temperature     *float64        `json:"temperature"`
	TopP            *float64        `json:"top_p"`
	MaxOutputTokens *int64          `json:"max_output_tokens"`
	Stream          bool            `json:"stream"`
	Text            struct {
		Format json.RawMessage `json:"format"`
	} `json:"text"`
	Reasoning struct {
		Effort string `json:"effort"`
	} `json:"reasoning"`
	ParallelToolCalls *bool           `json:"parallel_tool_calls"`
	ToolChoice        json.RawMessage `json:"tool_choice"`
}

// responseTool is a function, or a namespace of functions.
type responseTool struct {
	toolFunction

	Type  string `json:"type"`
	Tools []struct {
		toolFunction

		Type string `json:"type"`
	} `json:"tools"`
}

// Items have a struct for each type, because a member that belongs to another type would otherwise be lost.
type (
	itemState struct {
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
		Namespace string `json:"namespace"`
		Arguments string `json:"arguments"`
	}
	resultItem struct {
		itemState

		Type   string          `json:"type"`
		CallID string          `json:"call_id"`
		Output json.RawMessage `json:"output"`
	}
)

// partOutput is the type of the parts of a message that the model says.
const partOutput = "output_text"

// fromResponses reads a response.
func fromResponses(in *incoming) (*translated, error) {
	var c responseRequest
	if err := strict(in.data, &c); err != nil {
		return nil, err
	}
	t := &translated{spaces: map[string]spaced{}}
	var err error
	if t.Format, err = c.format(); err != nil {
		return nil, err
	}
	t.Temperature, t.TopP = c.Temperature, c.TopP
	if t.Effort, err = effort("reasoning", c.Reasoning.Effort); err != nil {
		return nil, err
	}
	if n := c.MaxOutputTokens; n != nil {
		if *n < minTokens {
			return nil, invalid("max_output_tokens", "max_output_tokens: must be at least %d", minTokens)
		}
		t.MaxTokens = *n
	}
	for i := range c.Tools {
		if err := t.addTool(&c.Tools[i]); err != nil {
			return nil, err
		}
	}
	if err := t.converse(&c); err != nil {
		return nil, err
	}
	return t, t.chooseAs(c.ToolChoice, c.ParallelToolCalls)
}

// spaced is the name of a tool in a namespace.
type spaced struct{ namespace, name string }

// flat is the name that a tool of a namespace has where there are no namespaces.
func (s spaced) flat() string {
	if s.namespace == "" {
		return s.name
	}
	return strings.TrimSuffix(s.namespace, "__") + "__" + s.name
}

// addTool adds a function, or those of a namespace.
func (t *translated) addTool(given *responseTool) error {
	add := func(f *toolFunction, namespace string) error {
		d, err := f.definition()
		s := spaced{namespace, f.Name}
		if d.Name = s.flat(); namespace != "" {
			if slices.ContainsFunc(t.Tools, func(other tool.Definition) bool { return other.Name == d.Name }) {
				return untranslatable("tools", "two tools that are both called "+d.Name+" without a namespace")
			}
			t.spaces[d.Name] = s
		}
		t.Tools = append(t.Tools, d)
		return err
	}
	if given.Type == callFunction {
		return add(&given.toolFunction, "")
	}
	if given.Name == "" {
		return untranslatable("tools", "a namespace without a name")
	}
	for i := range given.Tools {
		if err := add(&given.Tools[i].toolFunction, given.Name); err != nil {
			return err
		}
	}
	return nil
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
	case kind == formatSchema && !alone:
		f.remove("type")
		return slices.Concat([]byte(`{"type":"json_schema","json_schema":`), f.bytes(), []byte("}")), nil
	}
	return nil, untranslatable("text", "another form than text, json_object, and json_schema with its members,")
}

// converse reads the conversation: the instructions, and a text or items.
func (t *translated) converse(c *responseRequest) error {
	if c.Instructions != "" {
		t.Messages = append(t.Messages, llm.Message{Role: llm.RoleSystem, Text: c.Instructions})
	}
	var text string
	var items []json.RawMessage
	switch {
	case json.Unmarshal(c.Input, &text) == nil:
		if strings.TrimSpace(text) == "" {
			return untranslatable("input", "a message without text")
		}
		t.Messages = append(t.Messages, llm.Message{Role: llm.RoleUser, Text: text})
	case json.Unmarshal(c.Input, &items) != nil:
		return invalid("input", "input: must be a text or a list of items")
	}
	for _, raw := range items {
		var err error
		switch kind := kindOf(raw); kind {
		case "", "message":
			err = t.addMessage(raw)
		case "function_call":
			err = t.addCall(raw)
		case "function_call_output":
			err = t.addResult(raw)
		default:
			err = untranslatable("input", "an item of type "+kind)
		}
		if err != nil {
			return err
		}
	}
	t.trim()
	for _, m := range slices.Backward(t.Messages) {
		switch m.Role {
		case llm.RoleSystem: // which may be anywhere
		case llm.RoleUser, llm.RoleTool:
			return nil
		case llm.RoleAssistant:
			return untranslatable("input", "a conversation that does not end with the user or a result")
		}
	}
	return untranslatable("input", "a conversation in which the user says nothing")
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

// last returns the message before; the zero message if there is none.
func (t *translated) last() *llm.Message {
	if n := len(t.Messages); n > 0 {
		return &t.Messages[n-1]
	}
	return &llm.Message{}
}

func (t *translated) addMessage(raw json.RawMessage) error {
	var m messageItem
	if err := readItem(raw, &m); err != nil {
		return err
	}
	roles := map[string]llm.Role{"system": llm.RoleSystem, "developer": llm.RoleSystem, "user": llm.RoleUser, "assistant": llm.RoleAssistant}
	role, known := roles[m.Role]
	if !known {
		return untranslatable("input", "the role "+m.Role)
	}
	said, err := readInput(m.Content)
	if err != nil {
		return err
	}
	out := llm.Message{Role: role}
	put(&out, said)
	switch {
	case len(t.last().ToolCalls) > 0:
		return untranslatable("input", "a message between a function_call and its output")
	case len(out.Content) > 0 && role != llm.RoleUser:
		return untranslatable("input", "an image of the role "+m.Role)
	case silent(&out) && out.Text != "":
		return untranslatable("input", "a text of nothing but white space")
	}
	t.Messages = append(t.Messages, out)
	return nil
}

func (t *translated) addCall(raw json.RawMessage) error {
	var c callItem
	if err := readItem(raw, &c); err != nil {
		return err
	}
	if !isObject([]byte(c.Arguments)) {
		return untranslatable("input", "a function_call whose arguments are not a JSON object")
	}
	if t.last().Role != llm.RoleAssistant {
		t.Messages = append(t.Messages, llm.Message{Role: llm.RoleAssistant})
	}
	last := t.last()
	last.ToolCalls = append(last.ToolCalls, llm.ToolCall{ID: c.CallID, Name: spaced{c.Namespace, c.Name}.flat(), Arguments: c.Arguments})
	return nil
}

func (t *translated) addResult(raw json.RawMessage) error {
	var r resultItem
	if err := readItem(raw, &r); err != nil {
		return err
	}
	if r.CallID == "" {
		return invalid("input", "input: a function_call_output must have a call_id")
	}
	said, err := readInput(r.Output)
	out := llm.Message{Role: llm.RoleTool, ToolCallID: r.CallID}
	put(&out, said)
	t.Messages = append(t.Messages, out)
	return err
}
