// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agentloop

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/tool"
)

// TestRecordingGrowsWithWhatIsSaid: of 200 requests with a conversation that grows to 400 KiB, each message is sent once, and each
// request, answer, call and result can be put together again from what was sent.
func TestRecordingGrowsWithWhatIsSaid(t *testing.T) {
	r := NewRecording("")
	tools := []tool.Definition{{Name: "look", Parameters: json.RawMessage(`{"type":"object"}`)}}
	parts := map[int32]v1alpha1.RecordedPart{}
	sent := 0
	receive := func(e *v1alpha1.EventRecording) *v1alpha1.EventRecording {
		t.Helper()
		raw, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		sent += len(raw)
		for i, p := range e.Parts {
			parts[e.First+int32(i)] = p
		}
		return e
	}
	text := func(n *int32) string { return parts[*n].Message.Text }
	messages := []llm.Message{{Role: llm.RoleSystem, Text: "You look."}, {Role: llm.RoleUser, Text: "Look."}}
	said := 0
	for i := range 200 {
		if i == 150 { // the conversation is shortened
			messages = append(messages[:2:2], messages[100:]...)
		}
		e := receive(r.request(&llm.Request{Messages: messages, Tools: tools, MaxTokens: 100}))
		n := 0
		for _, c := range e.Conversation {
			for k := c.From; k <= c.To; k, n = k+1, n+1 {
				if got := parts[k].Message; got == nil || got.Text != messages[n].Text || got.Role != string(messages[n].Role) {
					t.Fatalf("request %d, message %d: %+v, want %+v", i, n, got, messages[n])
				}
			}
		}
		if n != len(messages) || len(parts[*e.Tools].Tools) != 1 {
			t.Fatalf("request %d has %d of %d messages", i, n, len(messages))
		}
		call := llm.ToolCall{ID: fmt.Sprint("call-", i), Name: "look", Arguments: fmt.Sprintf(`{"at":%d}`, i)}
		resp := llm.Response{Text: fmt.Sprintf("answer %d", i), ToolCalls: []llm.ToolCall{call}}
		result := tool.Result{Text: fmt.Sprintf("%d %s", i, strings.Repeat("x", 2000))}
		if got := text(receive(r.answer(&resp)).Message); got != resp.Text {
			t.Fatalf("answer %d: %q", i, got)
		}
		if e := receive(r.call(call)); len(e.Parts) > 0 || parts[*e.Message].Message.ToolCalls[0].Arguments != call.Arguments || e.ToolCallID != call.ID {
			t.Fatalf("call %d: %+v", i, e)
		}
		if got := text(receive(r.result(call, result)).Message); got != result.Text {
			t.Fatalf("result %d: %q", i, got)
		}
		messages = append(messages, resp.Message(), resultOf(call, result))
		said += len(resp.Text) + len(call.Arguments) + len(result.Text)
	}
	if sent > 2*said {
		t.Errorf("%d bytes were sent of %d that were said", sent, said)
	}
	// A long history is sent as far as it fits, and what is said later has its own number.
	for _, m := range [][]llm.Message{make([]llm.Message, 6000), make([]llm.Message, 20)} {
		for i := range m {
			m[i] = llm.Message{Role: llm.RoleUser, Text: fmt.Sprint(i, strings.Repeat("<", 3_000_000/len(m)))}
		}
		r := NewRecording("")
		e := r.request(&llm.Request{Messages: m})
		raw, err := json.Marshal(e)
		if err != nil || len(raw) > 10<<20 || len(e.Parts) == 0 || len(e.Parts) > 4000 || len(e.Conversation) != 1 || int(e.Conversation[0].To) != len(m)-1 {
			t.Errorf("of %d messages %d are sent in %d bytes (%v)", len(m), len(e.Parts), len(raw), err)
		}
		if next := r.answer(&llm.Response{Text: "more"}); int(next.First) != len(m) || len(next.Parts) != 1 || int(*next.Message) != len(m) {
			t.Errorf("after %d messages: %+v", len(m), next)
		}
	}
	if NewRecording(v1alpha1.RecordingOff).request(&llm.Request{}) != nil {
		t.Error("a recording that is off records")
	}
}
