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
	// late are images of results that are still to be said.
	late []string
}

func (c *carried) say(kind string, parts ...string) {
	if text := strings.Join(parts, ""); text == "" || text == "[platform notice] This message is empty." {
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

// block is a part of a message in any API.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Refusal   string          `json:"refusal"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	IsError   bool            `json:"is_error"`
	Content   json.RawMessage `json:"content"`
	ImageURL  json.RawMessage `json:"image_url"`
	Source    struct {
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
		URL       string `json:"url"`
	} `json:"source"`
}

// image returns the address of an image; empty for another block.
func (b *block) image(t *testing.T) string {
	t.Helper()
	if b.Type == "image" && b.Source.Data != "" {
		return "data:" + b.Source.MediaType + ";base64," + b.Source.Data
	}
	if b.Type == "image" {
		return b.Source.URL
	}
	var url string
	var nested struct{ URL string }
	if (b.Type == "image_url" || b.Type == "input_image") && json.Unmarshal(b.ImageURL, &url) != nil && json.Unmarshal(b.ImageURL, &nested) != nil {
		t.Fatalf("an image has the address %s", b.ImageURL)
	}
	return url + nested.URL
}

// blocksOf returns content as blocks, without what a model thought, which is not carried.
func blocksOf(t *testing.T, raw json.RawMessage) (all []block) {
	t.Helper()
	var text string
	var list []json.RawMessage
	switch {
	case len(raw) == 0 || string(raw) == "null":
	case json.Unmarshal(raw, &text) == nil:
		all = []block{{Type: "text", Text: text}}
	case json.Unmarshal(raw, &list) != nil:
		t.Fatalf("content is neither a text nor blocks: %s", raw)
	}
	for _, one := range list {
		if slices.Contains([]string{"thinking", "redacted_thinking", "reasoning"}, kindOf(one)) {
			continue
		}
		var b block
		if err := json.Unmarshal(one, &b); err != nil {
			t.Fatalf("%v: a block that was translated: %s", err, one)
		}
		all = append(all, b)
	}
	return all
}

// textIn returns the texts of content, and the addresses of its images.
func textIn(t *testing.T, raw json.RawMessage) (text string, images []string) {
	t.Helper()
	var all []string
	for _, b := range blocksOf(t, raw) {
		switch b.Type {
		case "text", "input_text", "output_text", "refusal":
			all = append(all, b.Text+b.Refusal)
		case "image", "image_url", "input_image":
			images = append(images, b.image(t))
		default:
			t.Fatalf("content of type %q was translated", b.Type)
		}
	}
	return strings.Join(all, "\n"), images
}

// content notes what somebody says: a text, or texts and images in their order if there are images.
func (c *carried) content(t *testing.T, role string, raw json.RawMessage) {
	t.Helper()
	text, images := textIn(t, raw)
	if len(images) == 0 {
		c.say(role, text)
		return
	}
	for _, b := range blocksOf(t, raw) {
		c.say(role, b.Text)
		c.say("image", b.image(t))
	}
}

// result notes the result of a call, whose images follow all results of a turn.
func (c *carried) result(t *testing.T, id string, failed bool, raw json.RawMessage) {
	t.Helper()
	text, images := textIn(t, raw)
	text, noted := strings.CutPrefix(text, "[platform notice] The call failed.\n")
	const follow = "[platform notice] The images of the result follow."
	if text = strings.TrimSuffix(text, "\n"+follow); text == follow {
		text = ""
	}
	if kind := "result"; failed || noted {
		c.say(kind+" of failure", id, text)
	} else {
		c.say(kind, id, text)
	}
	c.late = append(c.late, images...)
}

// show notes the images of the results before.
func (c *carried) show() {
	for _, url := range c.late {
		c.say("image", url)
	}
	c.late = nil
}

// tool notes a tool. One without a schema is one that takes no arguments, and one without a type takes an object.
func (c *carried) tool(name, description string, schema json.RawMessage) {
	var root map[string]json.RawMessage
	if len(schema) == 0 || string(schema) == "null" {
		schema = json.RawMessage(`{"type":"object"}`)
	} else if json.Unmarshal(schema, &root) == nil && root["type"] == nil {
		rest := strings.TrimSpace(string(schema))[1:]
		if len(root) > 0 {
			rest = "," + rest
		}
		schema = json.RawMessage(`{"type":"object"` + rest)
	}
	c.tools = append(c.tools, fmt.Sprintf("%q %q %s", name, description, meant(string(schema))))
}

// gets checks the members of a request that a vendor may get.
func gets(t *testing.T, body []byte, known ...string) {
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
			Refusal    string          `json:"refusal"`
			ToolCallID string          `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string `json:"id"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
		Tools               []json.RawMessage `json:"tools"`
		Temperature         *float64          `json:"temperature"`
		MaxTokens           *float64          `json:"max_tokens"`
		MaxCompletionTokens *float64          `json:"max_completion_tokens"`
		Stop                json.RawMessage   `json:"stop"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	var system []string
	for _, m := range r.Messages {
		if m.Role != "tool" {
			c.show()
		}
		switch m.Role {
		case "system", "developer":
			if text, _ := textIn(t, m.Content); text != "" {
				system = append(system, text)
			}
		case "tool":
			c.result(t, m.ToolCallID, false, m.Content)
		case "assistant":
			text, _ := textIn(t, m.Content)
			if m.Refusal != "" && text != "" {
				text += "\n"
			}
			c.say(m.Role, text+m.Refusal)
		default:
			c.content(t, m.Role, m.Content)
		}
		for _, call := range m.ToolCalls {
			c.say("call", call.ID, call.Function.Name, meant(call.Function.Arguments))
		}
	}
	c.show()
	c.system = strings.Join(system, "\n")
	for _, raw := range r.Tools {
		if kindOf(raw) == "function" {
			tool := as[struct{ Function function }](t, raw)
			c.tool(tool.Function.Name, tool.Function.Description, tool.Function.Parameters)
		}
	}
	if r.MaxCompletionTokens == nil {
		r.MaxCompletionTokens = r.MaxTokens
	}
	c.temperature, c.limit = number(r.Temperature), number(r.MaxCompletionTokens)
	if stop := bytes.TrimSpace(r.Stop); len(stop) > 0 && string(stop) != "null" && string(stop) != "[]" {
		if stop[0] == '"' {
			stop = fmt.Appendf(nil, "[%s]", stop)
		}
		var list []string
		_ = json.Unmarshal(stop, &list)
		list = slices.DeleteFunc(list, func(s string) bool { return strings.TrimSpace(s) == "" }) // those end the text here
		stop, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) > 0 {
			c.stops = meant(string(stop))
		}
	}
	return c
}

// function is a tool in any API.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// as decodes what was translated.
func as[T any](t *testing.T, raw json.RawMessage) (v T) {
	t.Helper()
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%v: what was translated: %s", err, raw)
	}
	return v
}

// carriedByResponses reads a response.
func carriedByResponses(t *testing.T, body []byte) (c carried) {
	t.Helper()
	var r struct {
		Instructions    string            `json:"instructions"`
		Input           json.RawMessage   `json:"input"`
		Tools           []json.RawMessage `json:"tools"`
		Temperature     *float64          `json:"temperature"`
		MaxOutputTokens *float64          `json:"max_output_tokens"`
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
		Namespace string          `json:"namespace"`
		Arguments string          `json:"arguments"`
		Output    json.RawMessage `json:"output"`
	}
	var items []json.RawMessage
	var text string
	if json.Unmarshal(r.Input, &text) == nil {
		c.say("user", text)
	} else if err := json.Unmarshal(r.Input, &items); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	system := []string{r.Instructions}
	for _, raw := range items {
		if kind := kindOf(raw); kind == "reasoning" || kind == "web_search_call" { // they are not carried
			continue
		}
		i := as[item](t, raw)
		if i.Type != "function_call_output" {
			c.show()
		}
		switch i.Type + i.Role {
		case "system", "messagesystem", "developer", "messagedeveloper":
			text, _ := textIn(t, i.Content)
			system = append(system, text)
		case "function_call":
			if i.Namespace != "" {
				i.Name = strings.TrimSuffix(i.Namespace, "__") + "__" + i.Name
			}
			c.say("call", i.CallID, i.Name, meant(i.Arguments))
		case "function_call_output":
			c.result(t, i.CallID, false, i.Output)
		default:
			c.content(t, i.Role, i.Content)
		}
	}
	c.show()
	c.system = strings.Join(slices.DeleteFunc(system, func(s string) bool { return s == "" }), "\n")
	for _, raw := range r.Tools {
		switch kindOf(raw) {
		case "function":
			tool := as[function](t, raw)
			c.tool(tool.Name, tool.Description, tool.Parameters)
		case "namespace":
			space := as[struct {
				Name  string
				Tools []json.RawMessage
			}](t, raw)
			for _, raw := range space.Tools {
				if kindOf(raw) == "function" {
					tool := as[function](t, raw)
					c.tool(strings.TrimSuffix(space.Name, "__")+"__"+tool.Name, tool.Description, tool.Parameters)
				}
			}
		}
	}
	c.temperature, c.limit = number(r.Temperature), number(r.MaxOutputTokens)
	return c
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
		Tools         []json.RawMessage `json:"tools"`
		Temperature   *float64          `json:"temperature"`
		MaxTokens     *float64          `json:"max_tokens"`
		StopSequences json.RawMessage   `json:"stop_sequences"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	system, _ := textIn(t, r.System)
	all := []string{system}
	for _, m := range r.Messages {
		blocks := blocksOf(t, m.Content)
		if m.Role == "system" {
			text, _ := textIn(t, m.Content)
			all = append(all, text)
			continue
		}
		for _, b := range blocks { // results come first
			if b.Type == "tool_result" {
				c.result(t, b.ToolUseID, b.IsError, b.Content)
			}
		}
		c.show()
		for _, b := range blocks {
			switch b.Type {
			case "text":
				c.say(m.Role, b.Text)
			case "image":
				c.say("image", b.image(t))
			case "tool_use":
				c.say("call", b.ID, b.Name, meant(string(b.Input)))
			case "tool_result":
			default:
				t.Fatalf("a block of type %q was translated: %s", b.Type, body)
			}
		}
	}
	c.system = strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), "\n")
	for _, raw := range r.Tools {
		if kind := kindOf(raw); kind == "" || kind == "custom" {
			tool := as[function](t, raw)
			c.tool(tool.Name, tool.Description, tool.InputSchema)
		}
	}
	c.temperature, c.limit = number(r.Temperature), number(r.MaxTokens)
	if stop := string(r.StopSequences); stop != "" && stop != "null" && stop != "[]" {
		c.stops = meant(stop)
	}
	return c
}
