// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// object is a JSON object of the vendor's protocol.
type object = map[string]any

// encode returns the JSON of a value that consists only of texts, numbers and objects.
func encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

const (
	answerID = "chatcmpl-scripted"
	created  = 1700000000
)

// openAI is the chat completions protocol.
type openAI struct{}

func (openAI) errorBody(f *Fault) []byte {
	kind, message := f.Type, f.Message
	if kind == "" {
		kind = "invalid_request_error"
	}
	if message == "" {
		message = http.StatusText(f.Status)
	}
	var code any
	if f.Code != "" {
		code = f.Code
	}
	return encode(object{"error": object{"message": message, "type": kind, "param": nil, "code": code}})
}

func (p openAI) errorEvent(f *Fault) []byte { return fmt.Appendf(nil, "data: %s\n\n", p.errorBody(f)) }

func (openAI) whole(o *rendered, req *Request) object {
	model := req.Model
	message := object{"role": "assistant", "content": o.text}
	if len(o.calls) > 0 {
		calls := make([]object, 0, len(o.calls))
		for _, c := range o.calls {
			calls = append(calls, object{"id": c.id, "type": "function", "function": object{"name": c.name, "arguments": c.arguments}})
		}
		message["tool_calls"] = calls
	}
	answer := object{
		"id": answerID, "object": "chat.completion", "created": created, "model": model,
		"choices": []object{{"index": 0, "message": message, "finish_reason": o.stop}},
	}
	if o.usage != nil {
		answer["usage"] = o.usage.wire()
	}
	return answer
}

func (openAI) events(o *rendered, req *Request) [][]byte {
	model, includeUsage := req.Model, req.StreamOptions != nil && req.StreamOptions.IncludeUsage
	var out [][]byte
	emit := func(choices []object, usage any) {
		c := object{"id": answerID, "object": "chat.completion.chunk", "created": created, "model": model, "choices": choices}
		if includeUsage && o.usage != nil {
			// Null on every chunk but the last, as the vendor does.
			c["usage"] = usage
		}
		out = append(out, fmt.Appendf(nil, "data: %s\n\n", encode(c)))
	}
	delta := func(d object) { emit([]object{{"index": 0, "delta": d, "finish_reason": nil}}, nil) }

	delta(object{"role": "assistant", "content": ""})
	for _, piece := range pieces(o.text) {
		delta(object{"content": piece})
	}
	for i, c := range o.calls {
		delta(object{"tool_calls": []object{{
			"index": i, "id": c.id, "type": "function", "function": object{"name": c.name, "arguments": ""},
		}}})
		for _, piece := range pieces(c.arguments) {
			delta(object{"tool_calls": []object{{"index": i, "function": object{"arguments": piece}}}})
		}
	}
	emit([]object{{"index": 0, "delta": object{}, "finish_reason": o.stop}}, nil)
	if includeUsage && o.usage != nil {
		emit([]object{}, o.usage.wire())
	}
	return append(out, []byte("data: [DONE]\n\n"))
}

func (u *Usage) wire() object {
	w := object{"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Input + u.Output}
	if u.Cached != nil {
		w["prompt_tokens_details"] = object{"cached_tokens": *u.Cached}
	}
	return w
}

// pieces cuts s into chunks at rune boundaries.
func pieces(s string) []string {
	var out []string
	start := 0
	for i := range s {
		if i-start >= pieceSize {
			out = append(out, s[start:i])
			start = i
		}
	}
	if start < len(s) {
		out = append(out, s[start:])
	}
	return out
}
