// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agentloop

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/platform-ai/platform/pkg/llm"
)

// conversation makes a valid one of random shape.
func conversation(r *rand.Rand) []llm.Message {
	text := func(n int) string { return strings.Repeat("é", r.IntN(n)+1) }
	m := []llm.Message{{Role: llm.RoleSystem, Text: text(50)}, {Role: llm.RoleUser, Text: text(50)}}
	id := 0
	for range r.IntN(8) {
		if r.IntN(4) == 0 {
			m = append(m, llm.Message{Role: llm.RoleUser, Text: text(300)})
			continue
		}
		answer := llm.Message{Role: llm.RoleAssistant, Text: text(100)}
		var results []llm.Message
		for range r.IntN(4) {
			id++
			call := fmt.Sprint("c", id)
			answer.ToolCalls = append(answer.ToolCalls, llm.ToolCall{ID: call, Name: "f", Arguments: text(100)})
			results = append(results, llm.Message{Role: llm.RoleTool, ToolCallID: call, Text: text(4000)})
		}
		m = append(append(m, answer), results...)
	}
	return m
}

// TestHalve checks, for many conversations, what a vendor demands of one: every
// call has its result, the beginning is there, texts are valid; and that
// halving again and again comes to an end.
func TestHalve(t *testing.T) {
	for seed := range uint64(500) {
		m := conversation(rand.New(rand.NewPCG(seed, 1)))
		for round := 0; ; round++ {
			if round > 100 {
				t.Fatalf("seed %d: no end", seed)
			}
			before := size(m)
			out, ok := halve(m, "")
			if !ok {
				break
			}
			open := map[string]bool{}
			for _, x := range out {
				for _, c := range x.ToolCalls {
					open[c.ID] = true
				}
				if x.Role == llm.RoleTool && !open[x.ToolCallID] || !utf8.ValidString(x.Text) {
					t.Fatalf("seed %d: result without call, or broken text", seed)
				}
				delete(open, x.ToolCallID)
			}
			if len(open) > 0 || out[0].Text != m[0].Text || out[1].Text != m[1].Text {
				t.Fatalf("seed %d: calls without result, or no beginning", seed)
			}
			if size(out) >= before+len(removedNotice) {
				t.Fatalf("seed %d: %d bytes became %d", seed, before, size(out))
			}
			m = out
		}
	}
}

func TestHalveCutsALargeResult(t *testing.T) {
	m := []llm.Message{
		{Role: llm.RoleUser, Text: "go"},
		{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: "a", Name: "f"}}},
		{Role: llm.RoleTool, ToolCallID: "a", Text: strings.Repeat("x", 100_000)},
	}
	out, ok := halve(m, "")
	if !ok || len(out) != 3 || len(out[2].Text) > 50_100 || !strings.HasSuffix(out[2].Text, cutMark) {
		t.Errorf("%v, %d messages", ok, len(out))
	}
	if len(m[2].Text) != 100_000 {
		t.Error("the caller's conversation was changed")
	}
	if _, ok := halve(m[:1], ""); ok {
		t.Error("a lone prompt was halved")
	}
}

// History is removed before the prompt of the run.
func TestHalveKeepsThePrompt(t *testing.T) {
	m := []llm.Message{{Role: llm.RoleSystem, Text: "system"}}
	for i := range 10 {
		m = append(m, llm.Message{Role: llm.RoleUser, Text: fmt.Sprint("asked before ", i, strings.Repeat("x", 100))},
			llm.Message{Role: llm.RoleAssistant, Text: fmt.Sprint("answered before ", i, strings.Repeat("x", 100))})
	}
	m = append(m, llm.Message{Role: llm.RoleUser, Text: "the prompt"})
	for i := range 3 {
		id := fmt.Sprint(i)
		m = append(m, llm.Message{Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: id, Name: "f"}}}, llm.Message{Role: llm.RoleTool, ToolCallID: id, Text: strings.Repeat("y", 1000)})
	}
	for round, ok := 0, true; ok; round++ {
		var out []llm.Message
		if out, ok = halve(m, "the prompt"); !ok {
			if round < 3 {
				t.Errorf("only %d rounds", round)
			}
			break
		}
		at := slices.IndexFunc(out, func(x llm.Message) bool { return x.Text == "the prompt" })
		last := slices.IndexFunc(out, func(x llm.Message) bool { return x.Role == llm.RoleTool })
		if at < 0 || out[0].Text != "system" || last >= 0 && last < at {
			t.Fatalf("round %d: %+v", round, out)
		}
		m = out
	}
}

// TestTrim: what is short stays as it is, and what is long becomes as short as was asked for, without a call that has no result.
func TestTrim(t *testing.T) {
	for seed := range uint64(500) {
		m := conversation(rand.New(rand.NewPCG(seed, 2)))
		head, turns := split(m)
		whole := size(slices.Concat(turns...))
		if _, ok := trim(m, "", size(m)); ok {
			t.Fatalf("seed %d: a short conversation was trimmed", seed)
		}
		if whole < 5000 {
			continue
		}
		limit := whole/2 + sizeOf(head[1])
		out, ok := trim(m, "", limit)
		if !ok || out[0].Text != m[0].Text || out[1].Text != m[1].Text {
			t.Fatalf("seed %d: %v", seed, ok)
		}
		open := map[string]bool{}
		results := 0
		for _, x := range out[2:] {
			for _, c := range x.ToolCalls {
				open[c.ID] = true
			}
			if x.Role == llm.RoleTool {
				results++
				if !open[x.ToolCallID] {
					t.Fatalf("seed %d: a result without a call", seed)
				}
			}
		}
		if got := size(out) - sizeOf(m[0]); got > limit+len(removedNotice)+results*(200+len(cutMark)) {
			t.Errorf("seed %d: %d bytes, at most %d", seed, got, limit)
		}
	}
	long := []llm.Message{{Role: llm.RoleUser, Text: strings.Repeat("x", 1000)}, {Role: llm.RoleAssistant, Text: "y"}, {Role: llm.RoleUser, Text: "now"}}
	if _, ok := trim(long, "now", 100); ok {
		t.Error("history was removed because the first prompt is long")
	}
}
