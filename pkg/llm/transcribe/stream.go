// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package transcribe

import (
	"encoding/json"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm/members"
)

// maxHeard bounds what is kept of an answer, in bytes; more is left out.
const maxHeard = 4 << 20

// Stream reads an answer that comes in pieces. The zero value with an API is ready.
type Stream struct {
	API members.API

	text, thinking strings.Builder
	calls          []*piece
	size           int
	// whole is the response that the last event of the responses API has.
	whole json.RawMessage
}

// piece is a call of a tool whose arguments come in pieces. index is its place in the answer, as the API counts.
type piece struct {
	index     int
	id, name  string
	arguments strings.Builder
}

// event has what is read of an event of any API.
type event struct {
	body

	Type         string          `json:"type"`
	Index        int             `json:"index"`
	ContentBlock item            `json:"content_block"`
	Delta        json.RawMessage `json:"delta"`
	Response     json.RawMessage `json:"response"`
}

// Event reads the data of an event.
func (s *Stream) Event(data []byte) {
	if s.size += len(data); s.size > maxHeard {
		return
	}
	var e event
	if err := json.Unmarshal(data, &e); err != nil && e.Type == "" && len(e.Choices) == 0 {
		return // an end, such as [DONE]
	}
	switch s.API {
	case members.Chat:
		if len(e.Choices) == 0 {
			return
		}
		d := &e.Choices[0].Delta
		_, _ = s.text.WriteString(textOf(d.Content) + d.Refusal)
		_, _ = s.thinking.WriteString(d.ReasoningContent)
		for i := range d.ToolCalls {
			c := &d.ToolCalls[i]
			s.call(c.Index, c.ID, c.Function.Name, c.Function.Arguments)
		}
	case members.Messages:
		s.message(&e)
	case members.Responses:
		switch e.Type {
		case "response.completed", "response.incomplete", "response.failed":
			s.whole = append(json.RawMessage(nil), e.Response...)
		case "response.output_text.delta": // in case the end does not come
			_, _ = s.text.WriteString(textOf(e.Delta))
		}
	}
}

// message reads an event of the messages API.
func (s *Stream) message(e *event) {
	if b := &e.ContentBlock; b.Type == "tool_use" || b.Type == "server_tool_use" {
		s.call(e.Index, b.ID, b.Name, "")
	}
	var d struct {
		Text        string `json:"text"`
		Thinking    string `json:"thinking"`
		PartialJSON string `json:"partial_json"`
	}
	if len(e.Delta) == 0 || json.Unmarshal(e.Delta, &d) != nil {
		return
	}
	_, _ = s.text.WriteString(d.Text)
	_, _ = s.thinking.WriteString(d.Thinking)
	if d.PartialJSON != "" {
		s.call(e.Index, "", "", d.PartialJSON)
	}
}

// call adds a piece to a call.
func (s *Stream) call(index int, id, name, arguments string) {
	for _, c := range s.calls {
		if c.index == index && (id == "" || id == c.id) {
			_, _ = c.arguments.WriteString(arguments)
			return
		}
	}
	c := &piece{index: index, id: id, name: name}
	_, _ = c.arguments.WriteString(arguments)
	s.calls = append(s.calls, c)
}

// Answer returns what was heard; nil if nothing was.
func (s *Stream) Answer() *v1alpha1.RecordedMessage {
	if s.whole != nil {
		return Answer(members.Responses, s.whole)
	}
	m := &v1alpha1.RecordedMessage{Role: assistant, Text: s.text.String(), Thinking: s.thinking.String()}
	for _, c := range s.calls {
		m.ToolCalls = append(m.ToolCalls, v1alpha1.RecordedToolCall{ID: c.id, Name: c.name, Arguments: c.arguments.String()})
	}
	if m.Text == "" && m.Thinking == "" && len(m.ToolCalls) == 0 {
		return nil
	}
	return m
}
