// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// responses is OpenAI's Responses protocol, without a store.
type responses struct{ openAI }

const responseID = "resp_scripted"

// responsesRequest are the members of a request that clients of ours send.
type responsesRequest struct {
	Model           string          `json:"model"`
	Input           json.RawMessage `json:"input"`
	Instructions    string          `json:"instructions"`
	Store           *bool           `json:"store"`
	Stream          bool            `json:"stream"`
	MaxOutputTokens *int64          `json:"max_output_tokens"`
	Temperature     *float64        `json:"temperature"`
	Include         []string        `json:"include"`
	ToolChoice      json.RawMessage `json:"tool_choice"`
	Tools           []struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      *bool           `json:"strict"`
	} `json:"tools"`
}

// responsesItem is one item of the input, or of the output.
type responsesItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
}

// parseResponses turns a request into the form of a chat completion, so that the same rules and turns hold for it.
func parseResponses(_ *http.Request, body []byte) (*Request, error) {
	var in responsesRequest
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&in); err != nil {
		return nil, err
	}
	if in.Store == nil || *in.Store {
		return nil, errors.New("store: must be false, because nothing is stored here")
	}
	out := &Request{Model: in.Model, Stream: in.Stream, MaxTokens: in.MaxOutputTokens, Temperature: in.Temperature}
	if in.Instructions != "" {
		out.Messages = append(out.Messages, Message{Role: "system", Content: encode(in.Instructions)})
	}
	items, err := inputItems(in.Input)
	if err != nil {
		return nil, err
	}
	for i, item := range items {
		if err := out.add(item); err != nil {
			return nil, fmt.Errorf("input[%d]: %w", i, err)
		}
	}
	for _, t := range in.Tools {
		one := Tool{Type: t.Type}
		one.Function.Name, one.Function.Description, one.Function.Parameters = t.Name, t.Description, t.Parameters
		out.Tools = append(out.Tools, one)
	}
	switch {
	case out.Model == "":
		return nil, errors.New("model is required")
	case len(out.Messages) == 0:
		return nil, errors.New("input must not be empty")
	}
	if err := checkTools(out.Tools); err != nil {
		return nil, err
	}
	return out, checkMessages(out.Messages)
}

func inputItems(raw json.RawMessage) ([]responsesItem, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []responsesItem{{Role: "user", Content: raw}}, nil
	}
	var items []responsesItem
	return items, json.Unmarshal(raw, &items)
}

// add adds an item of the input. The text of an answer and its calls are items of their own, which become one message.
func (r *Request) add(item responsesItem) error {
	last := len(r.Messages) - 1
	answering := last >= 0 && r.Messages[last].Role == "assistant"
	switch item.Type {
	case "message", "":
		r.Messages = append(r.Messages, Message{Role: item.Role, Content: item.Content})
	case "function_call":
		if !answering {
			r.Messages = append(r.Messages, Message{Role: "assistant"})
			last++
		}
		call := MessageCall{ID: item.CallID, Type: "function"}
		call.Function.Name, call.Function.Arguments = item.Name, item.Arguments
		r.Messages[last].ToolCalls = append(r.Messages[last].ToolCalls, call)
	case "function_call_output":
		r.Messages = append(r.Messages, Message{Role: "tool", ToolCallID: item.CallID, Content: item.Output})
	default:
		return fmt.Errorf("type %q is not known", item.Type)
	}
	return nil
}

func (p responses) whole(o *rendered, req *Request) object { return p.response(o, req, "completed") }

// response is the answer in a state. It has its output and usage when it is complete.
func (p responses) response(o *rendered, req *Request, status string) object {
	answer := object{
		"id": responseID, "object": "response", "created_at": created, "model": req.Model, "status": status, "error": nil, "incomplete_details": nil,
		"instructions": nil, "metadata": object{}, "output": []object{}, "parallel_tool_calls": true, "tool_choice": "auto", "tools": []object{}, "store": false,
	}
	if status != "completed" {
		return answer
	}
	answer["output"] = p.items(o)
	if o.usage != nil {
		cached := int64(0)
		if o.usage.Cached != nil {
			cached = *o.usage.Cached
		}
		answer["usage"] = object{
			"input_tokens": o.usage.Input, "output_tokens": o.usage.Output, "total_tokens": o.usage.Input + o.usage.Output,
			"input_tokens_details": object{"cached_tokens": cached}, "output_tokens_details": object{"reasoning_tokens": 0},
		}
	}
	return answer
}

func (responses) items(o *rendered) []object {
	items := []object{}
	if o.text != "" {
		items = append(items, object{
			"id": "msg_0", "type": "message", "role": "assistant", "status": "completed",
			"content": []object{{"type": "output_text", "text": o.text, "annotations": []object{}}},
		})
	}
	for i, c := range o.calls {
		items = append(items, object{"id": fmt.Sprintf("fc_%d", i), "type": "function_call", "status": "completed", "call_id": c.id, "name": c.name, "arguments": c.arguments})
	}
	return items
}

func (p responses) events(o *rendered, req *Request) [][]byte {
	var out [][]byte
	emit := func(kind string, e object) {
		e["type"], e["sequence_number"] = kind, len(out)
		out = append(out, fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, encode(e)))
	}
	emit("response.created", object{"response": p.response(o, req, "in_progress")})
	for i, item := range p.items(o) {
		id := item["id"]
		if item["type"] == "message" {
			emit("response.output_item.added", object{"output_index": i, "item": object{"id": id, "type": "message", "role": "assistant", "status": "in_progress", "content": []object{}}})
			part := object{"item_id": id, "output_index": i, "content_index": 0}
			with := func(name string, v any) object {
				return object{"item_id": id, "output_index": i, "content_index": 0, name: v}
			}
			part["part"] = object{"type": "output_text", "text": "", "annotations": []object{}}
			emit("response.content_part.added", part)
			for _, piece := range pieces(o.text) {
				delta := with("delta", piece)
				delta["logprobs"] = []object{}
				emit("response.output_text.delta", delta)
			}
			done := with("text", o.text)
			done["logprobs"] = []object{}
			emit("response.output_text.done", done)
			emit("response.content_part.done", with("part", object{"type": "output_text", "text": o.text, "annotations": []object{}}))
		} else {
			begun := object{"id": id, "type": "function_call", "status": "in_progress", "call_id": item["call_id"], "name": item["name"], "arguments": ""}
			emit("response.output_item.added", object{"output_index": i, "item": begun})
			for _, piece := range pieces(fmt.Sprint(item["arguments"])) {
				emit("response.function_call_arguments.delta", object{"item_id": id, "output_index": i, "delta": piece})
			}
			emit("response.function_call_arguments.done", object{"item_id": id, "output_index": i, "name": item["name"], "arguments": item["arguments"]})
		}
		emit("response.output_item.done", object{"output_index": i, "item": item})
	}
	emit("response.completed", object{"response": p.response(o, req, "completed")})
	return out
}
