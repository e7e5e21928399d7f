// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"

	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/llm/wire"
)

// fields are the members of a JSON object.
type fields = map[string]json.RawMessage

// What answers of Anthropic's API have.
var (
	MessageAnswer = wire.Answer{Name: "a message", Member: "content", Event: "type"}
	CountAnswer   = wire.Answer{Name: "a count of tokens", Member: "input_tokens", Number: true}
)

var errNoMessage = errors.New("it is not a message")

// Event is an event of a stream.
type Event struct {
	Name string
	Data json.RawMessage
}

// Events returns the stream that a message would have been, of which no member is left out. Each block begins empty, as the
// vendor's do, and has one delta; a block of a type that this package does not know begins with all that it has.
func Events(message []byte) ([]Event, error) {
	var whole fields
	var blocks []fields
	if json.Unmarshal(message, &whole) != nil || string(whole["type"]) != `"message"` || json.Unmarshal(whole["content"], &blocks) != nil {
		return nil, errNoMessage
	}
	s := &stream{}
	delta := map[string]any{}
	for _, name := range []string{"stop_reason", "stop_sequence"} {
		delta[name] = whole[name]
		whole[name] = json.RawMessage("null")
	}
	whole["content"] = json.RawMessage("[]")
	s.event("message_start", map[string]any{"message": whole})
	for i, b := range blocks {
		begin, deltas := begun(b)
		s.event("content_block_start", map[string]any{"index": i, "content_block": begin})
		for _, d := range deltas {
			s.event("content_block_delta", map[string]any{"index": i, "delta": d})
		}
		s.event("content_block_stop", map[string]any{"index": i})
	}
	end := map[string]any{"delta": delta}
	if used := whole["usage"]; len(used) > 0 {
		end["usage"] = used
	}
	s.event("message_delta", end)
	s.event("message_stop", map[string]any{})
	return s.events, s.err
}

// begun returns how a block begins, and the deltas that complete it.
func begun(b fields) (begin fields, deltas []map[string]any) {
	begin = maps.Clone(b)
	move := func(member, kind, as string, empty string) {
		if value := b[member]; len(value) > 0 {
			begin[member] = json.RawMessage(empty)
			deltas = append(deltas, map[string]any{"type": kind, as: value})
		}
	}
	switch string(b["type"]) {
	case `"` + blockText + `"`:
		move("text", "text_delta", "text", `""`)
	case `"` + blockThinking + `"`:
		move("thinking", "thinking_delta", "thinking", `""`)
		move("signature", "signature_delta", "signature", `""`)
	case `"` + blockToolUse + `"`:
		if input := b["input"]; len(input) > 0 && string(input) != "null" {
			begin["input"] = json.RawMessage("{}")
			deltas = append(deltas, map[string]any{"type": "input_json_delta", "partial_json": string(input)})
		}
	}
	return begin, deltas
}

// stream makes events.
type stream struct {
	events []Event
	err    error
}

func (s *stream) event(name string, e map[string]any) {
	e["type"] = name
	raw, err := json.Marshal(e)
	s.events, s.err = append(s.events, Event{name, raw}), cmp.Or(s.err, err)
}

// whole reads an answer that is not a stream.
func (c *Client) whole(ctx context.Context, a *answer, from io.Reader, parts func(llm.Part)) (llm.Response, error) {
	data, fits, err := wire.ReadWhole(from)
	if err != nil {
		return a.response(), c.ended(ctx, a, err)
	}
	if !fits {
		return a.response(), malformed("the answer is larger than 8 MiB")
	}
	if err := MessageAnswer.Whole(data); err != nil {
		return a.response(), malformed("the vendor sent " + wire.Sent(err, c.key))
	}
	events, err := Events(data)
	if err != nil {
		return a.response(), malformed("the answer is neither an event stream nor a message")
	}
	for _, e := range events {
		event, err := decode(e.Data)
		if err != nil {
			return a.response(), malformed("the answer is neither an event stream nor a message")
		}
		if err := a.add(event, parts); err != nil {
			return a.response(), err
		}
	}
	return a.response(), c.ended(ctx, a, nil)
}
