// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"fmt"
	"net/http"
)

// anthropic is the Messages protocol.
type anthropic struct{}

const messageID = "msg_scripted"

func (anthropic) errorBody(f *Fault) []byte {
	kind, message := f.Type, f.Message
	switch {
	case kind != "":
	case f.Code == "insufficient_quota":
		kind = "billing_error"
	default:
		kind = errorTypes[f.Status]
	}
	if kind == "" {
		kind = "api_error"
		if f.Status >= 400 && f.Status < 500 {
			kind = "invalid_request_error"
		}
	}
	switch {
	case message != "":
	case f.Code == "context_length_exceeded":
		message = "prompt is too long: 200001 tokens > 200000 maximum"
	case f.Status == 529:
		message = "Overloaded"
	default:
		message = http.StatusText(f.Status)
	}
	return encode(object{"type": "error", "error": object{"type": kind, "message": message}, "request_id": "req_scripted"})
}

// errorTypes are the types of errors by status.
var errorTypes = map[int]string{
	400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
	404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 529: "overloaded_error",
}

func (p anthropic) errorEvent(f *Fault) []byte {
	return fmt.Appendf(nil, "event: error\ndata: %s\n\n", p.errorBody(f))
}

func (p anthropic) whole(o *rendered, req *Request) object {
	content := []object{}
	for _, b := range p.blocks(o) {
		content = append(content, b.whole)
	}
	m := p.message(req, content)
	m["stop_reason"], m["usage"] = p.stop(o), p.usage(o, true)
	return m
}

func (anthropic) message(req *Request, content []object) object {
	return object{
		"id": messageID, "type": "message", "role": "assistant", "model": req.Model, "content": content,
		"stop_reason": nil, "stop_sequence": nil,
	}
}

// events are those of a stream. Each block begins empty, as the vendor's do.
func (p anthropic) events(o *rendered, req *Request) [][]byte {
	var out [][]byte
	emit := func(kind string, e object) {
		e["type"] = kind
		out = append(out, fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, encode(e)))
	}
	start := p.message(req, []object{})
	start["usage"] = p.usage(o, false)
	emit("message_start", object{"message": start})
	emit("ping", object{})
	for i, b := range p.blocks(o) {
		emit("content_block_start", object{"index": i, "content_block": b.begin})
		for _, d := range b.deltas {
			emit("content_block_delta", object{"index": i, "delta": d})
		}
		emit("content_block_stop", object{"index": i})
	}
	emit("message_delta", object{"delta": object{"stop_reason": p.stop(o), "stop_sequence": nil}, "usage": p.usage(o, true)})
	emit("message_stop", object{})
	return out
}

// contentBlock is one block of an answer: as a whole, and as a stream.
type contentBlock struct {
	whole, begin object
	deltas       []object
}

func (anthropic) blocks(o *rendered) []contentBlock {
	var out []contentBlock
	for _, t := range o.thinking {
		if t.Redacted != "" {
			b := object{"type": "redacted_thinking", "data": t.Redacted}
			out = append(out, contentBlock{whole: b, begin: b})
			continue
		}
		b := contentBlock{
			whole: object{"type": "thinking", "thinking": t.Text, "signature": t.Signature},
			begin: object{"type": "thinking", "thinking": "", "signature": ""},
		}
		for _, piece := range pieces(t.Text) {
			b.deltas = append(b.deltas, object{"type": "thinking_delta", "thinking": piece})
		}
		b.deltas = append(b.deltas, object{"type": "signature_delta", "signature": t.Signature})
		out = append(out, b)
	}
	if o.text != "" {
		b := contentBlock{whole: object{"type": "text", "text": o.text}, begin: object{"type": "text", "text": ""}}
		for _, piece := range pieces(o.text) {
			b.deltas = append(b.deltas, object{"type": "text_delta", "text": piece})
		}
		out = append(out, b)
	}
	for _, c := range o.calls {
		b := contentBlock{
			whole: object{"type": "tool_use", "id": c.id, "name": c.name, "input": rawOrText(c.arguments)},
			begin: object{"type": "tool_use", "id": c.id, "name": c.name, "input": object{}},
		}
		for _, piece := range pieces(c.arguments) {
			b.deltas = append(b.deltas, object{"type": "input_json_delta", "partial_json": piece})
		}
		out = append(out, b)
	}
	return out
}

// stop is the reason in the words of the protocol.
func (anthropic) stop(o *rendered) string {
	switch o.stop {
	case "stop":
		return "end_turn"
	case "tool_calls":
		return "tool_use"
	case "length":
		return "max_tokens"
	case "content_filter":
		return "refusal"
	default:
		return o.stop
	}
}

// usage leaves out of input_tokens what a cache supplied or took. The output is not known before the end.
func (anthropic) usage(o *rendered, ended bool) object {
	if o.usage == nil {
		return object{}
	}
	u := object{"input_tokens": o.usage.Input, "output_tokens": 1}
	if ended {
		u["output_tokens"] = o.usage.Output
	}
	rest := o.usage.Input
	for name, n := range map[string]*int64{"cache_read_input_tokens": o.usage.Cached, "cache_creation_input_tokens": o.usage.CacheWrite} {
		u[name] = nil
		if n != nil {
			u[name] = *n
			rest -= *n
		}
	}
	u["input_tokens"] = rest
	return u
}
