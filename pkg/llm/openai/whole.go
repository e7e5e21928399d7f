// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	sdk "github.com/openai/openai-go/v3"

	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/llm/wire"
)

// fields are the members of a JSON object.
type fields = map[string]json.RawMessage

// What answers of OpenAI's APIs have.
var (
	ChatAnswer     = wire.Answer{Name: "a chat completion", Member: "choices", Filled: true, Event: "choices"}
	ResponseAnswer = wire.Answer{Name: "a response", Member: "output", Event: "type"}
)

var errNoCompletion = errors.New("it is not a chat completion")

// Chunks returns the stream that a chat completion would have been, of which no member is left out. Each choice has a chunk for
// the role, one for the rest of its message, one for each call of a tool, and one for the end. If usage is set, the use of
// tokens follows in a chunk without choices.
func Chunks(completion []byte, usage bool) ([]json.RawMessage, error) {
	var whole fields
	var choices []fields
	if json.Unmarshal(completion, &whole) != nil || json.Unmarshal(whole["choices"], &choices) != nil || len(choices) == 0 {
		return nil, errNoCompletion
	}
	used := whole["usage"]
	delete(whole, "usage")
	s := &stream{of: whole}
	for i, choice := range choices {
		if err := s.choice(i, choice); err != nil {
			return nil, err
		}
	}
	if usage && !null(used) {
		s.of["usage"] = used
		s.chunk()
	}
	return s.chunks, s.err
}

func null(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// stream makes the chunks of a completion.
type stream struct {
	of     fields // what all chunks have
	chunks []json.RawMessage
	err    error
}

// choice adds the chunks of a choice.
func (s *stream) choice(i int, choice fields) error {
	var message fields
	var calls []fields
	if json.Unmarshal(choice["message"], &message) != nil || message == nil {
		return errNoCompletion
	}
	if raw := message["tool_calls"]; !null(raw) && json.Unmarshal(raw, &calls) != nil {
		return errNoCompletion
	}
	if null(choice["index"]) {
		choice["index"] = json.RawMessage(strconv.Itoa(i))
	}
	role := fields{"role": json.RawMessage(`"assistant"`), "content": json.RawMessage(`""`)}
	if own := message["role"]; !null(own) {
		role["role"] = own
	}
	delete(choice, "message")
	delete(message, "role")
	delete(message, "tool_calls")
	if null(message["content"]) {
		delete(message, "content")
	}
	part := func(delta any) {
		s.chunk(map[string]any{"index": choice["index"], "delta": delta, "finish_reason": nil})
	}
	part(role)
	if len(message) > 0 {
		part(message)
	}
	for i, call := range calls {
		if call == nil {
			return errNoCompletion
		}
		if null(call["index"]) {
			call["index"] = json.RawMessage(strconv.Itoa(i))
		}
		part(map[string]any{"tool_calls": []fields{call}})
	}
	end := map[string]any{"delta": struct{}{}}
	for name, value := range choice {
		end[name] = value
	}
	s.chunk(end)
	return nil
}

// chunk adds a chunk.
func (s *stream) chunk(choices ...map[string]any) {
	c := make(map[string]any, len(s.of))
	for name, value := range s.of {
		c[name] = value
	}
	c["object"], c["choices"] = "chat.completion.chunk", append([]map[string]any{}, choices...)
	raw, err := json.Marshal(c)
	s.chunks, s.err = append(s.chunks, raw), cmp.Or(s.err, err)
}

// whole reads an answer that is not a stream.
func (c *Client) whole(ctx context.Context, from io.Reader, origin string, parts func(llm.Part)) (llm.Response, error) {
	a := answer{origin: origin}
	data, fits, err := wire.ReadWhole(from)
	if err != nil {
		return a.response(), c.ended(ctx, &a, err)
	}
	if !fits {
		return a.response(), malformed("the answer is larger than 8 MiB")
	}
	if err := ChatAnswer.Whole(data); err != nil {
		return a.response(), malformed("the vendor sent " + wire.Sent(err, c.key))
	}
	chunks, err := Chunks(data, true)
	if err != nil {
		return a.response(), malformed("the answer is neither an event stream nor a chat completion")
	}
	for _, raw := range chunks {
		var chunk sdk.ChatCompletionChunk
		if err := json.Unmarshal(raw, &chunk); err != nil {
			return a.response(), malformed("the answer is neither an event stream nor a chat completion")
		}
		if err := a.add(chunk, parts); err != nil {
			return a.response(), err
		}
	}
	err = c.ended(ctx, &a, nil)
	return a.response(), err
}

// RefusesStream reports whether an error says that the model cannot stream. Some models cannot, or not for everybody.
func RefusesStream(body []byte) bool {
	v := vendorErrorOf(body)
	return v.Param == "stream" || strings.Contains(v.Message, "'stream'")
}

// RefusesUsage reports whether an error names stream_options, which some servers do not know.
func RefusesUsage(body []byte) bool { return bytes.Contains(body, []byte("stream_options")) }
