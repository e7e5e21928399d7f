// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/platform-ai/platform/test/kit"
)

// mutations is how many bodies TestMutated tries, always the same ones. MUTATIONS in the environment asks for so many others.
func mutations() int {
	if kit.Offered(kit.Minutes) {
		return 5000
	}
	return 500
}

// blocks are what a mutation puts into a body: members and values that clients send and that this server may not know.
var blocks = []string{
	`{"type":"text","text":"T1"}`, `{"type":"thinking","thinking":"x","signature":"c2ln"}`, `{"type":"redacted_thinking","data":"AA=="}`,
	`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}`, `{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}`,
	`{"type":"tool_use","id":"c9","name":"n9","input":{"x":1.50}}`, `{"type":"tool_result","tool_use_id":"c9","content":[{"type":"text","text":"T2"}]}`,
	`{"type":"text","text":"T3","cache_control":{"type":"ephemeral"}}`, `{"id":"c8","type":"function","function":{"name":"n8","arguments":"{\"y\":2}"}}`,
	`{"type":"input_text","text":"T5"}`, `{"type":"output_text","text":"T6","annotations":[]}`, `{"type":"function_call","call_id":"c7","name":"n7","arguments":"{}"}`,
	`{"type":"function_call_output","call_id":"c7","output":"T7"}`, `{"type":"reasoning","summary":[]}`, `"T4"`, `null`, `[]`, `{}`, `1e2`, `true`, `"\ud800"`, `"user"`, `"assistant"`, `"tool"`, `"developer"`,
}

var names = []string{
	"model", "Model", "messages", "role", "content", "text", "tool_calls", "tool_call_id", "name", "type", "refusal", "audio", "is_error", "citations", "cache_control",
	"input", "instructions", "call_id", "output", "status", "annotations", "store", "system", "tools", "tool_choice", "stop", "stop_sequences", "response_format", "top_p", "thinking", "metadata", "future", "stream", "max_tokens", "n",
}

// mutate changes a body at one place of its text, so that members may occur twice and order and spelling are kept.
func mutate(r *rand.Rand, body string) string {
	var opens, values []int
	for i, c := range body {
		switch c {
		case '{', '[':
			opens = append(opens, i+1)
		case ':':
			values = append(values, i+1)
		}
	}
	if len(opens) == 0 || len(values) == 0 {
		return body
	}
	block, name := blocks[r.IntN(len(blocks))], names[r.IntN(len(names))]
	switch at := opens[r.IntN(len(opens))]; r.IntN(4) {
	case 0, 1: // a member or an element more
		more := block
		if body[at-1] == '{' {
			more = fmt.Sprintf("%q:%s", name, block)
		}
		if rest := strings.TrimLeft(body[at:], " "); !strings.HasPrefix(rest, "}") && !strings.HasPrefix(rest, "]") {
			more += ","
		}
		return body[:at] + more + body[at:]
	case 2: // another value
		at := values[r.IntN(len(values))]
		var old json.RawMessage
		if json.NewDecoder(strings.NewReader(body[at:])).Decode(&old) != nil {
			return body
		}
		end := at + strings.Index(body[at:], string(old)) + len(old)
		return body[:at] + block + body[end:]
	default: // another name
		old := names[r.IntN(len(names))]
		return strings.Replace(body, `"`+old+`":`, `"`+name+`":`, 1)
	}
}

// TestMutated changes the seeds of the fuzz tests at a few places each, knowing JSON and both protocols, and applies the
// same checks: passed on byte for byte, translated without loss, or refused with 400.
func TestMutated(t *testing.T) {
	t.Parallel()
	count, seed := mutations(), uint64(1)
	if n, err := strconv.Atoi(os.Getenv("MUTATIONS")); err == nil {
		count, seed = n, rand.Uint64()
	}
	r := rand.New(rand.NewPCG(seed, 1))
	all, to := slices.Concat(seeds, conversations, responses, others), newLoops(t)
	spokenBodies := slices.Concat(conversations, responses)
	passed, translated, reduced := 0, 0, 0
	for range count {
		body := all[r.IntN(len(all))]
		if r.IntN(2) == 0 {
			body = spokenBodies[r.IntN(len(spokenBodies))]
		}
		for range 1 + r.IntN(4)/2 {
			body = mutate(r, body)
		}
		for _, op := range []operation{opChat, opResponses, opMessages, opCount} {
			passed += checkPass(t, op, body, "other")
		}
		for _, op := range translatable {
			translated += checkTranslate(t, to, op, body)
			reduced += checkConversation(t, op, body)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("seed %d: of %d bodies, %d were passed on, %d translated, %d given to the server's tools", seed, count, passed, translated, reduced)
	if passed == 0 || translated == 0 || reduced == 0 {
		t.Error("the mutations reach nothing")
	}
}
