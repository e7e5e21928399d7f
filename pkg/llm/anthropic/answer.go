// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/llm/wire"
)

// maxBlocks bounds the content blocks of one answer. Only some of them are tool calls.
const maxBlocks = 1024

// Types of content blocks that this package asks for or keeps.
const (
	blockText     = "text"
	blockThinking = "thinking"
	blockRedacted = "redacted_thinking"
	blockToolUse  = "tool_use"
)

// citations is the kind of content that texts refer to documents with.
const citations = "citations"

// answer assembles the events of one stream.
type answer struct {
	origin    string
	id, model string
	blocks    []*block
	calls     int
	size      int
	stop      llm.StopReason
	usage     usage
	count     llm.Count
	events    int
	lost      llm.Losses
	// over is set once the vendor has said that nothing follows.
	over bool
}

// block is one content block.
type block struct {
	index    int64
	kind     string
	id, name string
	// text is what was streamed: text, thinking, or the arguments of a call.
	text strings.Builder
	// sealed is the signature of thinking, or the whole of redacted thinking.
	sealed strings.Builder
}

// add adds one event.
func (a *answer) add(e event, parts func(llm.Part)) error {
	a.events++
	switch e.Type {
	case "message_start":
		a.id, a.model = e.Message.ID, e.Message.Model
		used := e.Message.Usage
		used.Output = figure{}
		a.usage.add(used)
		a.count.Report(a.usage.sum()) // without the output, of which this event has a first guess
	case "content_block_start":
		return a.start(e, parts)
	case "content_block_delta":
		return a.delta(e, parts)
	case "message_delta":
		a.usage.add(e.Usage)
		if e.Delta.StopReason != "" {
			a.stop = stopReason(e.Delta.StopReason)
			a.count.Ended()
		}
		a.count.Report(a.usage.sum())
	case "message_stop":
		a.over = true
		a.count.Complete()
	}
	return nil
}

func (a *answer) start(e event, parts func(llm.Part)) error {
	if len(a.blocks) == maxBlocks {
		return malformed("the answer has more than 1024 content blocks")
	}
	c := e.ContentBlock
	b := &block{index: e.Index, kind: c.Type, id: c.ID, name: c.Name}
	a.blocks = append(a.blocks, b)
	b.sealed.WriteString(c.Data + c.Signature)
	b.text.WriteString(c.Thinking)
	switch c.Type {
	case blockText:
		a.say(b, c.Text, parts)
	case blockToolUse:
		if a.calls++; a.calls > wire.MaxToolCalls {
			return malformed("the answer has more than 128 tool calls")
		}
		if b.id == "" {
			// The result needs an id to refer to the call.
			b.id = "toolu_" + rand.Text()
		}
		// The arguments follow as deltas; a server that does not stream sends them here.
		if raw := string(c.Input); raw != "" && raw != "{}" && raw != "null" {
			b.text.WriteString(raw)
		}
		if parts != nil {
			parts(llm.Part{ToolCall: &llm.ToolCall{ID: b.id, Name: b.name}})
		}
	case blockThinking, blockRedacted:
	default:
		a.lost.Add("content of type " + c.Type)
	}
	if len(c.Citations) > 0 {
		a.lost.Add(citations)
	}
	return a.grow(len(c.Data) + len(c.Signature) + len(c.Thinking) + len(c.Name))
}

func (a *answer) delta(e event, parts func(llm.Part)) error {
	i := slices.IndexFunc(a.blocks, func(b *block) bool { return b.index == e.Index })
	if i < 0 {
		return malformed("the answer continues a content block that did not begin")
	}
	b, d := a.blocks[i], e.Delta
	switch d.Type {
	case "text_delta":
		a.say(b, d.Text, parts)
	case "input_json_delta":
		b.text.WriteString(d.PartialJSON)
	case "thinking_delta":
		b.text.WriteString(d.Thinking)
	case "signature_delta":
		b.sealed.WriteString(d.Signature)
	case "citations_delta":
		a.lost.Add(citations)
	default:
		a.lost.Add("content of type " + d.Type)
	}
	return a.grow(len(d.Text) + len(d.PartialJSON) + len(d.Thinking) + len(d.Signature))
}

// say adds text that people read.
func (a *answer) say(b *block, text string, parts func(llm.Part)) {
	b.text.WriteString(text)
	if text != "" && parts != nil {
		parts(llm.Part{Text: text})
	}
}

func (a *answer) grow(n int) error {
	if a.size += n; a.size > wire.MaxAnswer {
		return malformed("the answer is larger than 8 MiB")
	}
	return nil
}

func (a *answer) response() llm.Response {
	r := llm.Response{ID: a.id, Model: a.model, StopReason: a.stop, Usage: a.count.Usage(), Lost: a.lost}
	for _, b := range a.blocks {
		if b.kind == blockToolUse {
			r.ToolCalls = append(r.ToolCalls, llm.ToolCall{ID: b.id, Name: b.name})
		}
	}
	llm.DistinctCalls(r.ToolCalls)
	var text, thinking strings.Builder
	var blocks []any
	opaque, calls := false, 0
	for _, b := range a.blocks {
		said := b.text.String()
		switch b.kind {
		case blockText:
			text.WriteString(said)
			if !blank(said) {
				blocks = append(blocks, textBlock{blockText, said})
			}
		case blockToolUse:
			if said == "" {
				said = "{}" // a call without arguments has no deltas
			}
			call := &r.ToolCalls[calls]
			call.Arguments = said
			calls++
			blocks = append(blocks, toolUseBlock{blockToolUse, toolID(call.ID), b.name, input(said)})
		case blockThinking:
			opaque = true
			thinking.WriteString(said)
			blocks = append(blocks, thinkingBlock{blockThinking, said, b.sealed.String()})
		case blockRedacted:
			opaque = true
			blocks = append(blocks, redactedBlock{blockRedacted, b.sealed.String()})
		}
	}
	r.Text = text.String()
	if opaque {
		if raw, err := json.Marshal(blocks); err == nil {
			r.Opaque = &llm.Opaque{Origin: a.origin, Data: raw, Thinking: thinking.String()}
		}
	}
	return r
}

// The content blocks of an answer, as they are sent back.
type (
	textBlock struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	toolUseBlock struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	thinkingBlock struct {
		Type      string `json:"type"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
	}
	redactedBlock struct {
		Type string `json:"type"`
		Data string `json:"data"`
	}
)

// stopReason returns the common name of a reason.
func stopReason(r string) llm.StopReason {
	switch r {
	case "end_turn", "stop_sequence":
		return llm.StopEnd
	case "tool_use":
		return llm.StopToolCalls
	case "max_tokens", "model_context_window_exceeded":
		return llm.StopLength
	case "refusal":
		return llm.StopFiltered
	default:
		return llm.StopReason(r)
	}
}

// usage holds the figures as the vendor reports them: input excludes what was read from and written to a cache.
type usage struct{ input, output, read, write *int64 }

// add replaces the figures that an event reports. It keeps the difference between zero and not reported.
func (u *usage) add(t tokens) {
	u.input, u.output = cmp.Or(t.Input.n, u.input), cmp.Or(t.Output.n, u.output)
	u.read, u.write = cmp.Or(t.Read.n, u.read), cmp.Or(t.Write.n, u.write)
}

// sum returns the figures as all vendors' are: input includes everything.
func (u *usage) sum() llm.Usage {
	out := llm.Usage{OutputTokens: u.output, CachedInputTokens: u.read, CacheWriteInputTokens: u.write}
	if u.input != nil {
		total := *u.input
		for _, n := range []*int64{u.read, u.write} {
			if n != nil {
				total += *n
			}
		}
		out.InputTokens = &total
	}
	return out
}

func malformed(message string) *llm.Error {
	return &llm.Error{Class: llm.ClassMalformed, Message: message}
}
