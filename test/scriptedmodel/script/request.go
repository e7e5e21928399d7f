// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// Request is a chat completion request, or a request of another protocol in the form of one. Fields that no client
// of ours sends are refused.
type Request struct {
	protocol protocol
	// Body is the request as it was sent.
	Body []byte `json:"-"`

	Model               string    `json:"model"`
	Messages            []Message `json:"messages"`
	Tools               []Tool    `json:"tools,omitempty"`
	Stream              bool      `json:"stream,omitempty"`
	Temperature         *float64  `json:"temperature,omitempty"`
	MaxTokens           *int64    `json:"max_tokens,omitempty"`
	MaxCompletionTokens *int64    `json:"max_completion_tokens,omitempty"`
	StreamOptions       *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options,omitempty"`
	// ResponseFormat is what the client asked for. The script decides what it gets.
	ResponseFormat json.RawMessage `json:"response_format,omitempty"`
	// ToolChoice may be auto, which says nothing.
	ToolChoice json.RawMessage `json:"tool_choice,omitempty"`
}

// Message is one message of a request.
type Message struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content,omitempty"`
	ToolCallID string          `json:"tool_call_id,omitempty"`
	ToolCalls  []MessageCall   `json:"tool_calls,omitempty"`
}

// MessageCall is a tool call that an assistant message repeats.
type MessageCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// Tool is a tool that a request offers.
type Tool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
	} `json:"function"`
}

// Text returns the message's content as text.
func (m Message) Text() string {
	var s string
	if json.Unmarshal(m.Content, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(m.Content, &parts) != nil {
		return ""
	}
	var all strings.Builder
	for _, p := range parts {
		all.WriteString(p.Text)
	}
	return all.String()
}

// Turn returns the number of the answer that the request asks for, from 1.
func (r *Request) Turn() int {
	n := 1
	for _, m := range r.Messages {
		if m.Role == "assistant" {
			n++
		}
	}
	return n
}

// Step returns the number of the answer that the request asks for since the last message of the user, from 1.
func (r *Request) Step() int {
	n := 1
	for _, m := range r.Messages {
		switch m.Role {
		case "user":
			n = 1
		case "assistant":
			n++
		}
	}
	return n
}

// System returns all system messages.
func (r *Request) System() string {
	var all []string
	for _, m := range r.Messages {
		if m.Role == "system" || m.Role == "developer" {
			all = append(all, m.Text())
		}
	}
	return strings.Join(all, "\n")
}

func (r *Request) offers(name string) bool {
	for _, t := range r.Tools {
		if t.Function.Name == name {
			return true
		}
	}
	return false
}

// data collects what the templates of a reply may use.
func (r *Request) data() Data {
	d := Data{Results: map[string]any{}, All: map[string][]any{}}
	names := map[string]string{}
	for _, m := range r.Messages {
		for _, c := range m.ToolCalls {
			names[c.ID] = c.Function.Name
		}
		switch m.Role {
		case "user":
			d.Prompt = m.Text()
			if words := strings.Fields(d.Prompt); len(words) > 0 {
				d.LastWord = words[len(words)-1]
			}
		case "tool":
			var v any = m.Text()
			if decoded := any(nil); json.Unmarshal([]byte(m.Text()), &decoded) == nil {
				v = decoded
			}
			name := names[m.ToolCallID]
			d.Results[name], d.All[name] = v, append(d.All[name], v)
		}
	}
	return d
}

// parseRequest decodes and checks a request. The error is for the client.
func parseRequest(_ *http.Request, body []byte) (*Request, error) {
	var r Request
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return nil, err
	}
	if r.Model == "" {
		return nil, errors.New("model is required")
	}
	if len(r.Messages) == 0 {
		return nil, errors.New("messages must not be empty")
	}
	if r.StreamOptions != nil && !r.Stream {
		return nil, errors.New("stream_options is only allowed when stream is true")
	}
	if r.MaxTokens != nil && r.MaxCompletionTokens != nil {
		return nil, errors.New("max_tokens and max_completion_tokens exclude each other")
	}
	if err := checkTools(r.Tools); err != nil {
		return nil, err
	}
	return &r, checkMessages(r.Messages)
}

func checkTools(tools []Tool) error {
	name := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	seen := map[string]bool{}
	for i, t := range tools {
		var schema struct {
			Type string `json:"type"`
		}
		switch {
		case t.Type != "function":
			return fmt.Errorf("tools[%d].type must be function", i)
		case !name.MatchString(t.Function.Name):
			return fmt.Errorf("tools[%d].function.name %q is not valid", i, t.Function.Name)
		case seen[t.Function.Name]:
			return fmt.Errorf("tools[%d].function.name %q is there twice", i, t.Function.Name)
		case len(t.Function.Parameters) > 0 && (json.Unmarshal(t.Function.Parameters, &schema) != nil || schema.Type != "object"):
			return fmt.Errorf("tools[%d].function.parameters must be a schema of type object", i)
		}
		seen[t.Function.Name] = true
	}
	return nil
}

// checkMessages checks a conversation against the vendor's rules: every call is
// answered immediately and exactly once, and every answer belongs to a call.
func checkMessages(messages []Message) error {
	open := map[string]bool{}
	known := map[string]bool{}
	for i, m := range messages {
		if m.Role != "tool" && len(open) > 0 {
			return fmt.Errorf("messages[%d]: %d tool calls before it have no result", i, len(open))
		}
		switch m.Role {
		case "system", "developer", "user":
			if m.Text() == "" {
				return fmt.Errorf("messages[%d]: content is empty", i)
			}
		case "assistant":
			if err := checkAssistant(m, open, known); err != nil {
				return fmt.Errorf("messages[%d]: %w", i, err)
			}
		case "tool":
			if !open[m.ToolCallID] {
				return fmt.Errorf("messages[%d]: tool_call_id %q answers no open call", i, m.ToolCallID)
			}
			delete(open, m.ToolCallID)
		default:
			return fmt.Errorf("messages[%d]: role %q is not known", i, m.Role)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%d tool calls have no result", len(open))
	}
	return nil
}

// checkAssistant notes the calls of an answer as open and known.
func checkAssistant(m Message, open, known map[string]bool) error {
	if len(m.Content) == 0 && len(m.ToolCalls) == 0 {
		return errors.New("an assistant message needs content or tool_calls")
	}
	for _, c := range m.ToolCalls {
		if c.ID == "" || c.Type != "function" || c.Function.Name == "" || known[c.ID] {
			return fmt.Errorf("tool call %q is not valid", c.ID)
		}
		if !json.Valid([]byte(c.Function.Arguments)) {
			return fmt.Errorf("arguments of tool call %q are not JSON", c.ID)
		}
		open[c.ID], known[c.ID] = true, true
	}
	return nil
}
