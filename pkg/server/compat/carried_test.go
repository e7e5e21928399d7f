// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// carried is what a request says, in the same form for both protocols. It is read by code of its own, so that an error in the
// translation is none of the test.
type carried struct {
	system string
	// said are the texts, calls and results in their order. Texts of the assistant that follow each other are one.
	said        []string
	tools       []string
	temperature string
	limit       string
	stops       string
}

func (c *carried) say(kind string, parts ...string) {
	if strings.Join(parts, "") == "" {
		return // an empty text
	}
	if n := len(c.said); kind == "assistant" && n > 0 && strings.HasPrefix(c.said[n-1], kind+" ") {
		c.said[n-1] += parts[0]
		return
	}
	c.said = append(c.said, kind+" "+strings.Join(parts, "\x00"))
}

// meant is JSON without its spelling: numbers, order and members that occur twice are kept.
func meant(raw string) string {
	dec := json.NewDecoder(strings.NewReader(raw))
	dec.UseNumber()
	var out strings.Builder
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return out.String()
		}
		if err != nil {
			return "not JSON: " + raw
		}
		fmt.Fprintf(&out, "%T %v ", token, token)
	}
}

// number is a number without its spelling; empty for none.
func number(n *float64) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}

// block is a part of a message in either protocol.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
}

// blocksOf returns content as blocks.
func blocksOf(t *testing.T, raw json.RawMessage) (all []block) {
	t.Helper()
	var text string
	switch {
	case len(raw) == 0 || string(raw) == "null":
	case json.Unmarshal(raw, &text) == nil:
		all = []block{{Type: "text", Text: text}}
	case json.Unmarshal(raw, &all) != nil:
		t.Fatalf("content is neither a text nor blocks: %s", raw)
	}
	return all
}

// textIn returns the texts of content, which has nothing else.
func textIn(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var all []string
	for _, b := range blocksOf(t, raw) {
		if b.Type != "text" {
			t.Fatalf("content of type %q was translated", b.Type)
		}
		all = append(all, b.Text)
	}
	return strings.Join(all, "\n")
}

// tool notes a tool. One without a schema is one that takes no arguments.
func (c *carried) tool(name, description string, schema json.RawMessage) {
	if len(schema) == 0 || string(schema) == "null" {
		schema = json.RawMessage(`{"type":"object"}`)
	}
	c.tools = append(c.tools, fmt.Sprintf("%q %q %s", name, description, meant(string(schema))))
}

// members are those of a request that a vendor may get.
func members(t *testing.T, body []byte, known ...string) {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	for name := range all {
		if !slices.Contains(known, name) {
			t.Fatalf("the vendor got a member %q: %s", name, body)
		}
	}
}

// carriedByChat reads a chat completion.
func carriedByChat(t *testing.T, body []byte) (c carried) {
	t.Helper()
	var r struct {
		Messages []struct {
			Role       string          `json:"role"`
			Content    json.RawMessage `json:"content"`
			ToolCallID string          `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string `json:"id"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
		Tools []struct {
			Function struct {
				Name        string          `json:"name"`
				Description string          `json:"description"`
				Parameters  json.RawMessage `json:"parameters"`
			} `json:"function"`
		} `json:"tools"`
		Temperature         *float64        `json:"temperature"`
		MaxTokens           *float64        `json:"max_tokens"`
		MaxCompletionTokens *float64        `json:"max_completion_tokens"`
		Stop                json.RawMessage `json:"stop"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	var system []string
	for _, m := range r.Messages {
		text := textIn(t, m.Content)
		switch m.Role {
		case "system", "developer":
			system = append(system, text)
		case "tool":
			c.say("result", m.ToolCallID, text)
		default:
			c.say(m.Role, text)
		}
		for _, call := range m.ToolCalls {
			c.say("call", call.ID, call.Function.Name, meant(call.Function.Arguments))
		}
	}
	c.system = strings.Join(system, "\n")
	for _, tool := range r.Tools {
		c.tool(tool.Function.Name, tool.Function.Description, tool.Function.Parameters)
	}
	if r.MaxCompletionTokens == nil {
		r.MaxCompletionTokens = r.MaxTokens
	}
	c.temperature, c.limit = number(r.Temperature), number(r.MaxCompletionTokens)
	if stop := bytes.TrimSpace(r.Stop); len(stop) > 0 && string(stop) != "null" && string(stop) != "[]" {
		if stop[0] == '"' {
			stop = fmt.Appendf(nil, "[%s]", stop)
		}
		c.stops = meant(string(stop))
	}
	return c
}

// carriedByResponses reads a response.
func carriedByResponses(t *testing.T, body []byte) (c carried) {
	t.Helper()
	var r struct {
		Instructions string          `json:"instructions"`
		Input        json.RawMessage `json:"input"`
		Tools        []struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"tools"`
		Temperature     *float64 `json:"temperature"`
		MaxOutputTokens *float64 `json:"max_output_tokens"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	type item struct {
		Type      string          `json:"type"`
		Role      string          `json:"role"`
		Content   json.RawMessage `json:"content"`
		CallID    string          `json:"call_id"`
		Name      string          `json:"name"`
		Arguments string          `json:"arguments"`
		Output    json.RawMessage `json:"output"`
	}
	var items []item
	var text string
	if json.Unmarshal(r.Input, &text) == nil {
		c.say("user", text)
	} else if err := json.Unmarshal(r.Input, &items); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	system := []string{r.Instructions}
	for _, i := range items {
		switch i.Type + i.Role {
		case "system", "messagesystem", "developer", "messagedeveloper":
			system = append(system, spokenIn(t, i.Content))
		case "function_call":
			c.say("call", i.CallID, i.Name, meant(i.Arguments))
		case "function_call_output":
			c.say("result", i.CallID, spokenIn(t, i.Output))
		default:
			c.say(i.Role, spokenIn(t, i.Content))
		}
	}
	c.system = strings.Join(slices.DeleteFunc(system, func(s string) bool { return s == "" }), "\n")
	for _, tool := range r.Tools {
		c.tool(tool.Name, tool.Description, tool.Parameters)
	}
	c.temperature, c.limit = number(r.Temperature), number(r.MaxOutputTokens)
	return c
}

// spokenIn returns the texts of content of a response, which has nothing else.
func spokenIn(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var all []string
	for _, b := range blocksOf(t, raw) {
		if b.Type != "text" && b.Type != "input_text" && b.Type != "output_text" {
			t.Fatalf("content of type %q was translated", b.Type)
		}
		all = append(all, b.Text)
	}
	return strings.Join(all, "\n")
}

// carriedByMessages reads a message.
func carriedByMessages(t *testing.T, body []byte) (c carried) {
	t.Helper()
	var r struct {
		System   json.RawMessage `json:"system"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			InputSchema json.RawMessage `json:"input_schema"`
		} `json:"tools"`
		ToolChoice struct {
			Type string `json:"type"`
		} `json:"tool_choice"`
		Temperature   *float64        `json:"temperature"`
		MaxTokens     *float64        `json:"max_tokens"`
		StopSequences json.RawMessage `json:"stop_sequences"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	c.system = textIn(t, r.System)
	for _, m := range r.Messages {
		for _, b := range blocksOf(t, m.Content) {
			switch b.Type {
			case "text":
				c.say(m.Role, b.Text)
			case "tool_use":
				c.say("call", b.ID, b.Name, meant(string(b.Input)))
			case "tool_result":
				c.say("result", b.ToolUseID, textIn(t, b.Content))
			default:
				t.Fatalf("a block of type %q was translated: %s", b.Type, body)
			}
		}
	}
	if r.ToolChoice.Type != "none" { // with none, tools are there only because the conversation has calls of them
		for _, tool := range r.Tools {
			c.tool(tool.Name, tool.Description, tool.InputSchema)
		}
	}
	c.temperature, c.limit = number(r.Temperature), number(r.MaxTokens)
	if stop := string(r.StopSequences); stop != "" && stop != "null" && stop != "[]" {
		c.stops = meant(stop)
	}
	return c
}
