// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"encoding/json"
	"slices"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/respjson"

	"github.com/platform-ai/platform/pkg/llm"
)

// OpenAI's own API does not show what a model thinks. Compatible servers have it in a member of the message that the SDK does
// not know. Their models are meant to get it back while they call tools, or they begin to think anew after each result, and
// not in later turns. What came in one of these members goes back in the same one; servers that have both say the same in them.
func thinkingMembers() []string { return []string{"reasoning_content", "reasoning"} }

// think keeps what a delta says of the model's thinking.
func (a *answer) think(d sdk.ChatCompletionChunkChoiceDelta) {
	for _, name := range thinkingMembers() {
		raw := d.JSON.ExtraFields[name].Raw() // the SDK calls no such member valid
		if raw == respjson.Omitted || raw == respjson.Null {
			continue
		}
		a.size += len(raw)
		var text string
		if json.Unmarshal([]byte(raw), &text) != nil || text == "" {
			continue
		}
		if a.thinking[name] == nil {
			if a.thinking == nil {
				a.thinking = map[string]*strings.Builder{}
			}
			a.thinking[name] = &strings.Builder{}
		}
		_, _ = a.thinking[name].WriteString(text) // never fails
	}
}

// thought returns the member of the message with the model's thinking; nil if there is none.
func (a *answer) thought() *llm.Opaque {
	for _, name := range thinkingMembers() {
		if b := a.thinking[name]; b != nil {
			raw, err := json.Marshal(map[string]string{name: b.String()})
			if err != nil {
				return nil
			}
			return &llm.Opaque{Origin: a.origin, Data: raw, Thinking: b.String()}
		}
	}
	return nil
}

// lastTurn returns where the messages after the last one of a user begin.
func lastTurn(messages []llm.Message) int {
	for i, m := range slices.Backward(messages) {
		if m.Role == llm.RoleUser {
			return i + 1
		}
	}
	return 0
}

// thinkingOf returns the members of a message with the thinking of that origin.
func thinkingOf(m llm.Message, origin string) map[string]any {
	if origin == "" || m.Opaque == nil || m.Opaque.Origin != origin || len(m.ToolCalls) == 0 {
		return nil
	}
	var members map[string]json.RawMessage
	_ = json.Unmarshal(m.Opaque.Data, &members) // damaged content is left out
	all := make(map[string]any, len(members))
	for name, value := range members {
		all[name] = value
	}
	return all
}

// hasThinking reports whether the current turn has thinking of that origin.
func hasThinking(messages []llm.Message, origin string) bool {
	return slices.ContainsFunc(messages[lastTurn(messages):], func(m llm.Message) bool { return len(thinkingOf(m, origin)) > 0 })
}
