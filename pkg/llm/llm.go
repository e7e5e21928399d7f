// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package llm is the interface to language models. The input is a conversation with tool
// definitions; the output is a stream of parts and one final response with its usage. Each
// vendor has a package that implements the Model interface and makes one HTTP request for each
// call. Only Call retries, waits and falls back to another model, so that every attempt is
// observed and accounted for. There is one exception: a server that refuses an optional
// parameter is asked once more without it, within the same attempt (Quirks). The refused request
// has used no tokens.
//
// Package test/modelfaults serves the same faults in each protocol. How a run handles each of
// them is listed in pkg/worker/runner/ai/testdata/faults.md, which a test writes.
package llm

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/tool"
)

// Role says who speaks in a Message.
type Role string

// Roles of a conversation.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one turn of a conversation.
type Message struct {
	Role Role
	// Text is what was said; for RoleTool, the result of the call.
	Text string
	// ToolCalls are the calls an assistant asked for. Each must be answered by
	// one RoleTool message before the next assistant turn.
	ToolCalls []ToolCall
	// ToolCallID is the call that a RoleTool message answers.
	ToolCallID string
	// Content has the texts and the images of a RoleUser or a RoleTool message in their order, if there are images. Text then
	// has the texts alone.
	Content []Content
	// Failed marks a RoleTool message as the result of a call that failed.
	Failed bool
	// Opaque is what the model that wrote a RoleAssistant message must get back unchanged; nil for nothing.
	Opaque *Opaque
}

// Opaque is the part of an answer that only the vendor understands, such as signed or encrypted reasoning. It lives in
// the memory of one run or one turn of a chat: neither transcripts nor the journal of chats hold it.
type Opaque struct {
	// Origin identifies the endpoint and the model that wrote it. Every other one is sent the message's text and
	// calls instead.
	Origin string
	// Thinking is what the vendor shows of the model's thinking, as text.
	Thinking string
	// Data is the whole message in the vendor's format, or what the text and the calls lack of it.
	Data json.RawMessage
}

// ToolCall is a model's request to call a tool.
type ToolCall struct {
	// ID correlates the call with its result. It is never empty in a Response.
	ID   string
	Name string
	// Arguments is JSON text as the model wrote it. It may be malformed: the caller checks it and
	// reports errors to the model.
	Arguments string
}

// Request is one question to a model.
type Request struct {
	// Model is the vendor's name of the model.
	Model    string
	Messages []Message
	Tools    []tool.Definition
	// Temperature is left to the vendor when nil.
	Temperature *float64
	// TopP is left to the vendor when nil.
	TopP *float64
	// Choice says which of Tools the answer may call.
	Choice ToolChoice
	// Effort is how much the model thinks: low, medium or high; empty leaves it to the vendor. It is a hint.
	Effort string
	// MaxTokens bounds the answer; 0 leaves it to the vendor.
	MaxTokens int64
	// Stop are sequences before which the answer ends. A Response does not say whether one of them ended it.
	Stop []string
	// Format is the form of the answer, as the member response_format of chat completions; nil for a text. A model of
	// another protocol gets the schema that it has, and refuses the request if it has none.
	Format json.RawMessage
	// Verbatim sends the conversation as it is, because a client wrote it. Otherwise what a vendor would refuse is changed:
	// blank texts are left out, for example.
	Verbatim bool
	// Whole accepts an answer that is not a stream, from servers that do not stream. Otherwise it is malformed.
	Whole bool
}

// StopReason is why a model ended its answer, with the same values for all vendors.
type StopReason string

// Stop reasons. Any other value of a vendor is passed through unchanged.
const (
	StopEnd       StopReason = "stop"
	StopToolCalls StopReason = "tool_calls"
	StopLength    StopReason = "length"
	StopFiltered  StopReason = "content_filter"
)

// Part is one piece of an answer as it arrives.
type Part struct {
	// Text continues the answer.
	Text string
	// ToolCall is set when a new tool call begins in the stream. Its arguments are complete only
	// in the Response.
	ToolCall *ToolCall
}

// Response is a complete answer.
type Response struct {
	// ID is the vendor's id of the answer; empty if it gave none.
	ID string
	// Model is the model that answered, according to the vendor.
	Model      string
	Text       string
	ToolCalls  []ToolCall
	StopReason StopReason
	Usage      Usage
	// Opaque is for the message that the answer becomes; see Message.
	Opaque *Opaque
	// Refused is set if the vendor marks a part of Text as the model's refusal to answer.
	Refused bool
	// Lost is the content of the answer that no other field has.
	Lost Losses
}

// Losses names, once each, the kinds of content that the model said and that a Response has no place for, such as citations
// and blocks of an unknown type. Thinking is none of them, because it is not part of what the model says.
type Losses []string

// maxKind bounds the name of a kind, which the vendor may have chosen, in bytes; maxLosses bounds their number.
const maxKind, maxLosses = 64, 8

// Add notes a kind.
func (l *Losses) Add(kind string) {
	kind = strings.ToValidUTF8(kind[:min(len(kind), maxKind)], "")
	if len(*l) < maxLosses && !slices.Contains(*l, kind) {
		*l = append(*l, kind)
	}
}

// Message returns the answer as a message of the conversation.
func (r *Response) Message() Message {
	return Message{Role: RoleAssistant, Text: r.Text, ToolCalls: r.ToolCalls, Opaque: r.Opaque}
}

// Usage is what a vendor reported for one attempt. A nil figure was not reported and is
// unknown; it never counts as zero. The figures mean the same for all vendors.
type Usage struct {
	// InputTokens counts all input, however much of it a cache supplied.
	InputTokens  *int64
	OutputTokens *int64
	// CachedInputTokens is the part of InputTokens that was read from a cache, and
	// CacheWriteInputTokens the part that was written to one. They do not overlap.
	CachedInputTokens, CacheWriteInputTokens *int64
}

// Known reports whether both the input and the output figure were reported.
func (u Usage) Known() bool { return u.InputTokens != nil && u.OutputTokens != nil }

// Model is one vendor's endpoint.
type Model interface {
	// Generate makes one attempt. It calls parts (which may be nil) with each piece of the answer,
	// in order and on the calling goroutine, and returns when the answer is complete.
	//
	// A non-nil error is an *Error. The Response that comes with it holds what had arrived, and
	// the usage if the vendor reported any; it is never a complete answer.
	Generate(ctx context.Context, req Request, parts func(Part)) (Response, error)
}
