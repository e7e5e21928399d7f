// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/respjson"

	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/llm/wire"
)

// answer assembles the chunks of one stream.
type answer struct {
	id, model string
	text      strings.Builder
	calls     []*callBuilder
	size      int
	stop      llm.StopReason
	count     llm.Count
	chunks    int
	refused   bool
	lost      llm.Losses
	// begun is set once a chunk has a choice.
	begun bool
	// origin identifies the endpoint and the model, and thinking is what the model thought, by the member that had it.
	origin   string
	thinking map[string]*strings.Builder
}

type callBuilder struct {
	index     int64
	id, name  string
	arguments strings.Builder
}

// add adds one chunk. Choices other than the first are lost, because only one was asked for.
func (a *answer) add(c sdk.ChatCompletionChunk, parts func(llm.Part)) error {
	a.chunks++
	if a.id == "" {
		a.id = c.ID
	}
	if a.model == "" {
		a.model = c.Model
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			a.lost.Add("more than one choice")
			continue
		}
		a.begun = true
		if err := a.delta(choice.Delta, parts); err != nil {
			return err
		}
		if choice.FinishReason != "" {
			a.stop = llm.StopReason(choice.FinishReason)
			a.count.Ended()
		}
	}
	if c.JSON.Usage.Valid() {
		a.count.Report(usageOf(c.Usage))
	}
	return nil
}

func (a *answer) delta(d sdk.ChatCompletionChunkChoiceDelta, parts func(llm.Part)) error {
	// The SDK gives anything that is not a text as its JSON.
	if raw := d.JSON.Content.Raw(); raw != "" && raw != respjson.Null && !strings.HasPrefix(raw, `"`) {
		a.lost.Add("content that is not a text")
		d.Content = ""
	}
	// A refusal is also an answer in words, but in another field.
	a.refused = a.refused || d.Refusal != ""
	for _, text := range []string{d.Content, d.Refusal} {
		if text == "" {
			continue
		}
		a.size += len(text)
		a.text.WriteString(text)
		if parts != nil {
			parts(llm.Part{Text: text})
		}
	}
	a.think(d)
	a.leaveOut(d)
	for _, t := range d.ToolCalls {
		if t.Type != "" && t.Type != callFunction {
			a.lost.Add("a tool call of type " + t.Type)
		}
		b, fresh := a.call(t)
		if b == nil {
			return malformed("the answer has more than 128 tool calls")
		}
		if t.Function.Name != b.name { // some servers repeat the name in each delta
			b.name += t.Function.Name
		}
		b.arguments.WriteString(t.Function.Arguments)
		a.size += len(t.Function.Name) + len(t.Function.Arguments)
		if fresh && parts != nil {
			parts(llm.Part{ToolCall: &llm.ToolCall{ID: b.id, Name: b.name}})
		}
	}
	if a.size > wire.MaxAnswer {
		return malformed("the answer is larger than 8 MiB")
	}
	return nil
}

// leaveOut notes the members of a delta that are not kept.
func (a *answer) leaveOut(d sdk.ChatCompletionChunkChoiceDelta) {
	for _, name := range unkept() {
		if raw := d.JSON.ExtraFields[name].Raw(); !slices.Contains([]string{respjson.Omitted, respjson.Null, "[]", "{}"}, raw) {
			a.lost.Add(name)
		}
	}
	if call := d.FunctionCall; call.Name+call.Arguments != "" { //nolint:staticcheck // older servers send this call of the API before tools
		a.lost.Add("function_call")
	}
	if d.JSON.Audio.Valid() {
		a.lost.Add("audio")
	}
}

// callFunction is the only type of call that is asked for.
const callFunction = "function"

// unkept are the members of a delta that say something and that the SDK does not know. Others describe the answer.
func unkept() []string {
	return []string{"annotations", "citations", "images"}
}

// followedBy reports whether a delta begins another call, although it has the index and the id of b: b is complete, and the delta
// has a name and an object.
func (b *callBuilder) followedBy(t sdk.ChatCompletionChunkChoiceDeltaToolCall) bool {
	return t.Function.Name != "" && strings.HasPrefix(strings.TrimSpace(t.Function.Arguments), "{") && json.Valid([]byte(b.arguments.String()))
}

// call returns the call that a delta continues, or begins a new one. Calls are distinguished by
// index. A new id at a known index is also a new call, since some compatible servers send index
// 0 for every call, and some the same id, too.
func (a *answer) call(t sdk.ChatCompletionChunkChoiceDeltaToolCall) (b *callBuilder, fresh bool) {
	for _, b := range slices.Backward(a.calls) {
		if b.index == t.Index && (t.ID == "" || b.id == t.ID) {
			if b.followedBy(t) {
				break
			}
			return b, false
		}
	}
	if len(a.calls) == wire.MaxToolCalls {
		return nil, false
	}
	b = &callBuilder{index: t.Index, id: t.ID}
	if b.id == "" {
		// The result needs an id to refer to the call.
		b.id = "call_" + rand.Text()
	}
	a.calls = append(a.calls, b)
	return b, true
}

func (a *answer) response() llm.Response {
	r := llm.Response{ID: a.id, Model: a.model, Text: a.text.String(), StopReason: a.stop, Usage: a.count.Usage(), Refused: a.refused, Lost: a.lost}
	if len(a.calls) > 0 { // the model goes on with what it thought
		r.Opaque = a.thought()
	}
	for _, b := range a.calls {
		r.ToolCalls = append(r.ToolCalls, llm.ToolCall{ID: b.id, Name: b.name, Arguments: b.arguments.String()})
	}
	llm.DistinctCalls(r.ToolCalls)
	// Some servers say "stop" although they call tools.
	if len(r.ToolCalls) > 0 && r.StopReason == llm.StopEnd {
		r.StopReason = llm.StopToolCalls
	}
	return r
}

// usageOf keeps the difference between zero and not reported. A negative figure counts as not
// reported.
func usageOf(u sdk.CompletionUsage) llm.Usage {
	figure := func(n int64, f respjson.Field) *int64 {
		if !f.Valid() || n < 0 {
			return nil
		}
		return &n
	}
	return llm.Usage{
		InputTokens:       figure(u.PromptTokens, u.JSON.PromptTokens),
		OutputTokens:      figure(u.CompletionTokens, u.JSON.CompletionTokens),
		CachedInputTokens: figure(u.PromptTokensDetails.CachedTokens, u.PromptTokensDetails.JSON.CachedTokens),
	}
}

func malformed(message string) *llm.Error {
	return &llm.Error{Class: llm.ClassMalformed, Message: message}
}
