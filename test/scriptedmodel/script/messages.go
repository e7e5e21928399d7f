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

// messagesRequest is a request of the Messages protocol.
type messagesRequest struct {
	Model       string           `json:"model"`
	MaxTokens   *int64           `json:"max_tokens"`
	System      messagesContent  `json:"system,omitempty"`
	Messages    []messagesTurn   `json:"messages"`
	Tools       []messagesTool   `json:"tools,omitempty"`
	ToolChoice  *json.RawMessage `json:"tool_choice,omitempty"`
	Stream      bool             `json:"stream,omitempty"`
	Temperature *float64         `json:"temperature,omitempty"`
	// OutputConfig is the form of the answer and its effort. The answer is in the script.
	OutputConfig json.RawMessage `json:"output_config,omitempty"`
}

type messagesTurn struct {
	Role    string          `json:"role"`
	Content messagesContent `json:"content"`
}

// messagesContent is a list of blocks, or a text.
type messagesContent []messagesBlock

// UnmarshalJSON accepts both forms.
func (c *messagesContent) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*c = messagesContent{{Type: "text", Text: &text}}
		return nil
	}
	var list []messagesBlock
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	err := dec.Decode(&list)
	*c = list
	return err
}

type messagesBlock struct {
	Type         string          `json:"type"`
	Text         *string         `json:"text,omitempty"`
	Thinking     *string         `json:"thinking,omitempty"`
	Signature    string          `json:"signature,omitempty"`
	Data         string          `json:"data,omitempty"`
	ID           string          `json:"id,omitempty"`
	Name         string          `json:"name,omitempty"`
	Input        json.RawMessage `json:"input,omitempty"`
	ToolUseID    string          `json:"tool_use_id,omitempty"`
	Content      messagesContent `json:"content,omitempty"`
	IsError      bool            `json:"is_error,omitempty"`
	CacheControl *struct {
		Type string `json:"type"`
		TTL  string `json:"ttl,omitempty"`
	} `json:"cache_control,omitempty"`
}

func (b messagesBlock) text() string {
	if b.Text != nil {
		return *b.Text
	}
	var all strings.Builder
	for _, c := range b.Content {
		all.WriteString(c.text())
	}
	return all.String()
}

type messagesTool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema"`
	CacheControl json.RawMessage `json:"cache_control,omitempty"`
	// EagerInputStreaming is how newer clients ask for the arguments of a call in small parts. It changes nothing here.
	EagerInputStreaming *bool `json:"eager_input_streaming,omitempty"`
}

// toolUseID is what the vendor accepts as the id of a call.
var toolUseID = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

// maxMarks is how many blocks may carry cache_control.
const maxMarks = 4

// parseMessages decodes and checks a request. The error is for the client.
func (s *Server) parseMessages(r *http.Request, body []byte) (*Request, error) {
	var m messagesRequest
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return nil, err
	}
	switch {
	case r.Header.Get("Anthropic-Version") == "":
		return nil, errors.New("anthropic-version: header is required")
	case m.Model == "":
		return nil, errors.New("model: Field required")
	case m.MaxTokens == nil || *m.MaxTokens < 1:
		return nil, errors.New("max_tokens: Field required")
	case m.Temperature != nil && (*m.Temperature < 0 || *m.Temperature > 1):
		return nil, errors.New("temperature: range: 0..1")
	case bytes.Count(body, []byte(`"cache_control"`)) > maxMarks:
		return nil, errors.New("A maximum of 4 blocks with cache_control may be provided") //nolint:staticcheck // the vendor's words
	case len(m.Messages) == 0:
		return nil, errors.New("messages: at least one message is required")
	case m.Messages[0].Role != "user":
		return nil, errors.New("messages: first message must use the \"user\" role")
	}
	return s.translate(&m)
}

// translate returns the request as one of the other protocol, so that scripts match both.
func (s *Server) translate(m *messagesRequest) (*Request, error) {
	out := &Request{Model: m.Model, Stream: m.Stream, Temperature: m.Temperature, MaxTokens: m.MaxTokens}
	for _, b := range m.System {
		if strings.TrimSpace(b.text()) == "" {
			return nil, errors.New("system: text content blocks must be non-empty")
		}
		out.Messages = append(out.Messages, textMessage("system", b.text()))
	}
	for _, t := range m.Tools {
		var tool Tool
		tool.Type, tool.Function.Name, tool.Function.Description, tool.Function.Parameters = "function", t.Name, t.Description, t.InputSchema
		if len(t.InputSchema) == 0 {
			return nil, fmt.Errorf("tools.%s.input_schema: Field required", t.Name)
		}
		out.Tools = append(out.Tools, tool)
	}
	if err := checkTools(out.Tools); err != nil {
		return nil, err
	}
	for i, turn := range m.Messages {
		messages, err := s.turn(turn)
		if err != nil {
			return nil, fmt.Errorf("messages.%d: %w", i, err)
		}
		out.Messages = append(out.Messages, messages...)
	}
	if m.ToolChoice != nil && strings.Contains(string(*m.ToolChoice), `"none"`) {
		// No tool can be called, as if none were offered.
		for _, msg := range out.Messages {
			if len(msg.ToolCalls) > 0 && len(out.Tools) == 0 {
				return nil, errors.New("tools: required, because the conversation has calls")
			}
		}
		out.Tools = nil
	}
	return out, checkMessages(out.Messages)
}

// turn translates one message.
func (s *Server) turn(turn messagesTurn) ([]Message, error) {
	var out []Message
	assistant := Message{Role: "assistant"}
	var said strings.Builder
	for i, b := range turn.Content {
		if err := s.checkBlock(turn.Role, b); err != nil {
			return nil, fmt.Errorf("content.%d: %w", i, err)
		}
		switch b.Type {
		case "text":
			if turn.Role == "user" {
				out = append(out, textMessage("user", b.text()))
				continue
			}
			said.WriteString(b.text())
		case "tool_use":
			var call MessageCall
			call.ID, call.Type, call.Function.Name, call.Function.Arguments = b.ID, "function", b.Name, string(b.Input)
			assistant.ToolCalls = append(assistant.ToolCalls, call)
		case "tool_result":
			m := textMessage("tool", b.text())
			m.ToolCallID = b.ToolUseID
			out = append(out, m)
		}
	}
	if turn.Role == "assistant" {
		assistant.Content = encode(said.String())
		out = append(out, assistant)
	}
	return out, nil
}

func (s *Server) checkBlock(role string, b messagesBlock) error {
	switch role + " " + b.Type {
	case "user text", "assistant text":
		if strings.TrimSpace(b.text()) == "" {
			return errors.New("text content blocks must be non-empty")
		}
	case "user tool_result":
		if !toolUseID.MatchString(b.ToolUseID) {
			return fmt.Errorf("tool_use_id %q is not valid", b.ToolUseID)
		}
	case "assistant tool_use":
		if !toolUseID.MatchString(b.ID) || !bytes.HasPrefix(b.Input, []byte("{")) {
			return fmt.Errorf("tool_use %q is not valid", b.ID)
		}
	case "assistant thinking":
		if b.Thinking == nil || !s.wasIssued(Thinking{Text: *b.Thinking, Signature: b.Signature}) {
			return errors.New("Invalid `signature` in `thinking` block") //nolint:staticcheck // the vendor's words
		}
	case "assistant redacted_thinking":
		if !s.wasIssued(Thinking{Redacted: b.Data}) {
			return errors.New("Invalid `data` in `redacted_thinking` block") //nolint:staticcheck // the vendor's words
		}
	default:
		return fmt.Errorf("role %q may not have a block of type %q", role, b.Type)
	}
	return nil
}

// issue notes thinking that is sent, so that its return can be checked.
func (s *Server) issue(list []Thinking) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range list {
		s.issued[t] = true
	}
}

func (s *Server) wasIssued(t Thinking) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.issued[t]
}

func textMessage(role, text string) Message { return Message{Role: role, Content: encode(text)} }

// rawOrText returns JSON as it is, and anything else as a text.
func rawOrText(s string) any {
	if json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	return s
}
