// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"crypto/rand"
	"encoding/json"
	"strings"
	"time"

	"github.com/platform-ai/platform/pkg/llm"
)

// maxRepeated is how long a setting of the request may be that its answer repeats, in bytes. A stream repeats each three times.
const maxRepeated = 64 << 10

// responseForm writes answers as responses. The ids of the items mean nothing, because nothing is stored.
type responseForm struct {
	id, model string
	created   int64
	// settings is the request, whose settings an answer repeats.
	settings *object
	spaces   map[string]spaced // the tools of namespaces, by the names that the model knows them by
	sent     int               // events
	output   []any
	// open is the message whose text is being sent; nil for none.
	open *responseMessage
	said strings.Builder
}

// The status of a response and of its items.
const (
	responseCompleted  = "completed"
	responseIncomplete = "incomplete"
	responseInProgress = "in_progress"
)

type (
	responseMessage struct {
		ID      string       `json:"id"`
		Type    string       `json:"type"`
		Status  string       `json:"status"`
		Role    string       `json:"role"`
		Content []outputPart `json:"content"`
	}
	responseCall struct {
		ID        string `json:"id"`
		Type      string `json:"type"`
		Status    string `json:"status"`
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Namespace string `json:"namespace,omitempty"`
		Arguments string `json:"arguments"`
	}
	outputPart struct {
		Type        string     `json:"type"`
		Text        string     `json:"text"`
		Annotations []struct{} `json:"annotations"`
		Logprobs    []struct{} `json:"logprobs"`
	}
	cachedTokens struct {
		CachedTokens int64 `json:"cached_tokens"`
	}
	reasoningTokens struct {
		ReasoningTokens int64 `json:"reasoning_tokens"`
	}
	responseUsage struct {
		InputTokens         int64           `json:"input_tokens"`
		InputTokensDetails  cachedTokens    `json:"input_tokens_details"`
		OutputTokens        int64           `json:"output_tokens"`
		OutputTokensDetails reasoningTokens `json:"output_tokens_details"`
		TotalTokens         int64           `json:"total_tokens"`
	}
)

func newResponseForm(model string, now time.Time, req *translated) *responseForm {
	return &responseForm{id: "resp_" + rand.Text(), model: model, created: now.Unix(), settings: req.in.object, spaces: req.spaces, output: []any{}}
}

// usageOf returns the usage if it is known. What of the output was reasoning is not known.
func (*responseForm) usageOf(u llm.Usage) *responseUsage {
	if !u.Known() {
		return nil
	}
	out := &responseUsage{InputTokens: *u.InputTokens, OutputTokens: *u.OutputTokens, TotalTokens: *u.InputTokens + *u.OutputTokens}
	if n := u.CachedInputTokens; n != nil {
		out.InputTokensDetails.CachedTokens = *n
	}
	return out
}

// response returns the object as it stands. stop is why the answer ended; empty before that.
func (f *responseForm) response(u *responseUsage, stop string) map[string]any {
	out := map[string]any{
		"id": f.id, "object": "response", "created_at": f.created, "model": f.model, "output": f.output, "usage": u, "error": nil,
		"status": responseInProgress, "incomplete_details": nil, "store": false, "background": false, "previous_response_id": nil,
		"instructions": nil, "max_output_tokens": nil, "metadata": map[string]string{}, "parallel_tool_calls": true, "temperature": nil,
		"text": json.RawMessage(`{"format":{"type":"text"}}`), "tool_choice": "auto", "tools": []any{}, "top_p": nil, "truncation": "disabled",
	}
	for _, name := range []string{"instructions", "max_output_tokens", "metadata", "parallel_tool_calls", "reasoning", "temperature", "text", "tool_choice", "tools", "top_p"} {
		if raw := f.settings.get(name); raw != nil && len(raw) <= maxRepeated {
			out[name] = raw
		}
	}
	switch stop {
	case "":
	case responseCompleted:
		out["status"] = stop
	default:
		out["status"], out["incomplete_details"] = responseIncomplete, map[string]string{"reason": stop}
	}
	return out
}

// event returns an event with its number.
func (f *responseForm) event(kind string, members map[string]any) []byte {
	members["type"], members["sequence_number"] = kind, f.sent
	f.sent++
	return sse(kind, members)
}

// ofItem returns an event about an item that is not complete yet.
func (f *responseForm) ofItem(kind, id string, members map[string]any) []byte {
	members["item_id"], members["output_index"] = id, len(f.output)
	return f.event(kind, members)
}

// added and done return the first and the last event of an item.
func (f *responseForm) added(item any) []byte {
	return f.event("response.output_item.added", map[string]any{"output_index": len(f.output), "item": item})
}

func (f *responseForm) done(item any) []byte {
	out := f.event("response.output_item.done", map[string]any{"output_index": len(f.output), "item": item})
	f.output = append(f.output, item)
	return out
}

func (f *responseForm) begin(bool) []byte {
	return append(f.event("response.created", map[string]any{"response": f.response(nil, "")}),
		f.event("response.in_progress", map[string]any{"response": f.response(nil, "")})...)
}

func newOutputPart(text string) outputPart {
	return outputPart{Type: partOutput, Text: text, Annotations: []struct{}{}, Logprobs: []struct{}{}}
}

func newResponseMessage(status string, content ...outputPart) *responseMessage {
	return &responseMessage{ID: "msg_" + rand.Text(), Type: "message", Status: status, Role: "assistant", Content: append([]outputPart{}, content...)}
}

func (f *responseForm) newCall(c llm.ToolCall) responseCall {
	var namespace string
	if s, ok := f.spaces[c.Name]; ok {
		c.Name, namespace = s.name, s.namespace
	}
	return responseCall{Namespace: namespace, ID: "fc_" + rand.Text(), Type: "function_call", Status: responseCompleted, CallID: c.ID, Name: c.Name, Arguments: c.Arguments}
}

func (f *responseForm) text(s string) []byte {
	var out []byte
	if f.open == nil {
		f.open = newResponseMessage(responseInProgress)
		out = append(f.added(f.open), f.ofItem("response.content_part.added", f.open.ID, map[string]any{"content_index": 0, "part": newOutputPart("")})...)
	}
	f.said.WriteString(s)
	return append(out, f.ofItem("response.output_text.delta", f.open.ID, map[string]any{"content_index": 0, "delta": s, "logprobs": []struct{}{}})...)
}

// endText completes the message whose text was sent.
func (f *responseForm) endText(stop string) []byte {
	m := f.open
	if m == nil {
		return nil
	}
	part := newOutputPart(f.said.String())
	out := f.ofItem("response.output_text.done", m.ID, map[string]any{"content_index": 0, "text": part.Text, "logprobs": part.Logprobs})
	out = append(out, f.ofItem("response.content_part.done", m.ID, map[string]any{"content_index": 0, "part": part})...)
	m.Content, m.Status = append(m.Content, part), statusOf(stop)
	f.open = nil
	return append(out, f.done(m)...)
}

func (f *responseForm) end(r *llm.Response, list []llm.ToolCall, stop string) []byte {
	out := f.endText(stop)
	for _, c := range list {
		item := f.newCall(c)
		begun := item
		begun.Status, begun.Arguments = responseInProgress, ""
		out = append(out, f.added(begun)...)
		out = append(out, f.ofItem("response.function_call_arguments.delta", item.ID, map[string]any{"delta": c.Arguments})...)
		out = append(out, f.ofItem("response.function_call_arguments.done", item.ID, map[string]any{"name": item.Name, "arguments": c.Arguments})...)
		out = append(out, f.done(item)...)
	}
	return append(out, f.event("response."+statusOf(stop), map[string]any{"response": f.response(f.usageOf(r.Usage), stop)})...)
}

func (f *responseForm) whole(r *llm.Response, stop string) ([]byte, error) {
	if r.Text != "" {
		f.output = append(f.output, newResponseMessage(statusOf(stop), newOutputPart(r.Text)))
	}
	for _, c := range r.ToolCalls {
		f.output = append(f.output, f.newCall(c))
	}
	return json.Marshal(f.response(f.usageOf(r.Usage), stop))
}

// check accepts all answers: arguments are a text, whatever is in it.
func (*responseForm) check(*llm.Response) error { return nil }

func (f *responseForm) failed(p problem) []byte {
	r := f.response(nil, "")
	r["status"], r["error"] = responseFailed, p.ofResponse()
	return f.event(eventFailed, map[string]any{"response": r})
}

// stoppedBy does nothing, because responses have no sequences.
func (*responseForm) stoppedBy(string) {}

// stop returns what statusOf takes.
func (*responseForm) stop(r *llm.Response) (string, bool) {
	switch r.StopReason {
	case llm.StopEnd, llm.StopToolCalls, stopSequence:
		return responseCompleted, true
	case llm.StopLength:
		return "max_output_tokens", true
	case llm.StopFiltered:
		return string(llm.StopFiltered), true
	}
	return "", false
}

// statusOf returns the status of what ended for a reason.
func statusOf(stop string) string {
	if stop == responseCompleted {
		return stop
	}
	return responseIncomplete
}
