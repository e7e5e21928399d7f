// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/llm"
)

// seeds are bodies with members that this server does not know: thinking with signatures, parallel calls, images.
var seeds = []string{
	`{"model":"m","max_tokens":16,"stream":true,"messages":[{"role":"user","content":"h\u00e9"}],"future":{"z":1,"a":1e2,"b":[ ]}}`,
	`{"model":"p/m","max_tokens":64,"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"s=="},{"type":"redacted_thinking","data":"AA=="},` +
		`{"type":"tool_use","id":"1","name":"a","input":{"x":1.50}},{"type":"tool_use","id":"2","name":"b","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"r","is_error":true},` +
		`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]}],"thinking":{"type":"enabled","budget_tokens":1024}}`,
	`{ "model" : "m", "stream_options":null,"stream":true,"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"a","arguments":"{\"x\":1}"}},` +
		`{"id":"2","type":"function","function":{"name":"b","arguments":""}}]},{"role":"tool","tool_call_id":"1","content":"r"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}]}`,
	`{"model":"m","store":false,"input":[{"type":"reasoning","encrypted_content":"AA==","summary":[]}],"include":["reasoning.encrypted_content"]}`,
	`{"messages":[1],"stream":true,"stream_options":{"include_usage":false,"x":[1.0]}}`,
	`{"model":"m","messages":[{"role":"user","content":"a","content":"b"}]}`, `{"model":"m","Messages":[1],"messages":[{"role":"user","content":"a"}]}`,
	`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"a","text":"b"}]}]}`,
	`{"model":"m","model":"n","messages":[1]}`, `{"model":1}`, `{"messages":[1]}x`, `[]`, ``, "{\"\\u006dodel\":\"m\",\"messages\":[1]}",
}

// conversations are bodies that can be translated: of both protocols.
var conversations = []string{
	`{"messages":[{"role":"user","content":"weather?"},{"role":"assistant","content":"I look.","tool_calls":[{"id":"1","type":"function","function":{"name":"a","arguments":"{}"}},` +
		`{"id":"2","type":"function","function":{"name":"b","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"one"},{"role":"tool","tool_call_id":"2","content":"two"}]}`,
	`{"model":"m","max_tokens":9,"messages":[{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"1","name":"a","input":{}},{"type":"tool_use","id":"2","name":"b","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"one"},{"type":"tool_result","tool_use_id":"2","content":"two"},{"type":"text","text":"go on"}]}]}`,
	`{"model":"m","stop":["x","\n"],"messages":[{"role":"developer","content":"be brief"},{"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]},` +
		`{"role":"assistant","content":"three","tool_calls":[{"id":"1","type":"function","function":{"name":"a","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"four"},{"role":"user","content":"five"}],"tools":[]}`,
	`{"model":"m","max_tokens":9,"system":[{"type":"text","text":"be brief"}],"metadata":{"user_id":"u"},"messages":[{"role":"user","content":"one"},` +
		`{"role":"assistant","content":[{"type":"text","text":"two"},{"type":"tool_use","id":"1","name":"a","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"r"},{"type":"text","text":"three"}]}]}`,
	`{"model":"m","max_tokens":9,"system":[{"type":"text","text":"be brief","cache_control":{"type":"ephemeral"}}],"stop_sequences":["x"],"messages":[{"role":"user","content":"one"},` +
		`{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"two"},{"type":"tool_use","id":"1","name":"a","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"r"},{"type":"text","text":"three"}]}]}`,
	`{"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":{"properties":{}}}}],"tool_choice":"required","parallel_tool_calls":false,"reasoning_effort":"low","messages":[{"role":"user","content":[{"type":"text","text":"one"},` +
		`{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]},{"role":"assistant","content":"two","refusal":null,"annotations":[],"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"},"cache_control":{}}]},` +
		`{"role":"tool","name":"f","tool_call_id":"1","content":[{"type":"text","text":"three"},{"type":"image_url","image_url":{"url":"https://example.com/a"}}]},{"role":"developer","content":"four"},{"role":"user","name":"u","content":"five"}]}`,
	`{"model":"m","max_tokens":9,"thinking":{"type":"adaptive"},"output_config":{"effort":"high"},"tools":[{"name":"f","input_schema":{}},{"type":"bash_20250124","name":"bash"}],"messages":[{"role":"user","content":[{"type":"text","text":"one"},` +
		`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]},{"role":"system","content":"two"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"1","name":"f","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","is_error":true,"content":[{"type":"text","text":"three"},{"type":"image","source":{"type":"url","url":"https://example.com/a"}}]},{"type":"text","text":"four"}]}]}`,
}

// responses are bodies that can be translated, with and without the tools of the server.
var responses = []string{
	`{"store":false,"input":"one","instructions":"be brief","temperature":0.5,"max_output_tokens":16,"tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object"},"strict":false},{"type":"function","name":"g"}]}`,
	`{"model":"m","store":false,"input":[{"role":"developer","content":"be brief"},{"type":"message","role":"user","content":[{"type":"input_text","text":"one"},{"type":"input_text","text":"two"}]},` +
		`{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"three","annotations":[],"logprobs":[]}]},{"type":"function_call","id":"fc_1","call_id":"1","name":"a","arguments":"{}"},` +
		`{"type":"function_call","call_id":"2","name":"b","arguments":"{\"n\":9007199254740993}"},{"type":"function_call_output","call_id":"1","output":"four"},{"type":"function_call_output","call_id":"2","output":[{"type":"input_text","text":"five"}]},{"role":"user","content":"six"}]}`,
	`{"store":false,"input":[{"role":"user","content":"one"},{"type":"function_call","call_id":"1","name":"a","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"two"}],"text":{"format":{"type":"text"}},"tool_choice":"auto","previous_response_id":null}`,
	`{"prompt_cache_key":"k","reasoning":{"effort":"low","summary":"auto"},"tools":[{"type":"namespace","name":"n__","description":"d","tools":[{"type":"function","name":"f"}]},{"type":"web_search"}],"input":[{"role":"developer","content":"one"},` +
		`{"role":"user","content":[{"type":"input_text","text":"two"},{"type":"input_image","image_url":"data:image/png;base64,AA=="}]},{"type":"reasoning","summary":[],"encrypted_content":"AA=="},` +
		`{"type":"function_call","call_id":"1","namespace":"n__","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":[{"type":"input_text","text":"three"}]},{"role":"developer","content":"four"},{"role":"user","content":"five"}]}`,
}

// others are bodies that the other protocol cannot carry, or only if nobody touches them: numbers of schemas, ids, white space.
var others = []string{
	`{"max_tokens":32,"temperature":0.25,"stop":"x","tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{"n":{"maximum":9007199254740993,"z":1,"a":1e400}}}}},` +
		`{"type":"function","function":{"name":"g"}}],"messages":[{"role":"system","content":"one"},{"role":"system","content":"two"},{"role":"user","content":" a\n"},` +
		`{"role":"assistant","content":"b \n"},{"role":"assistant","content":"c\t","tool_calls":[{"id":"x.y","type":"function","function":{"name":"f","arguments":"{\"n\":9007199254740993}"}}]},` +
		`{"role":"tool","tool_call_id":"x.y","content":"\n"}]}`,
	`{"model":"m","max_tokens":9,"temperature":1,"stop_sequences":["x"," "],"system":"be brief","tools":[{"name":"f","description":"d","input_schema":{"type":"object","properties":{"n":{"maximum":9007199254740993,"z":1,"a":1e400}}}},` +
		`{"name":"g","input_schema":true}],"messages":[{"role":"assistant","content":"hello "},{"role":"user","content":[{"type":"text","text":" "},{"type":"text","text":"b"}]}]}`,
	`{"messages":[{"role":"assistant","content":"hello"},{"role":"user","content":"a"}]}`, `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b "}]}`,
	`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"\n","tool_calls":[{"id":"1","type":"function","function":{"name":"a","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"\n"}]}`,
	`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b\n\n","tool_calls":[{"id":"1.2","type":"function","function":{"name":"a","arguments":"{}"}},` +
		`{"id":"1_2","type":"function","function":{"name":"a","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1.2","content":"x"},{"role":"tool","tool_call_id":"1_2","content":"y"}]}`,
	`{"messages":[{"role":"user","content":"a\ud800"}]}`, `{"messages":[{"role":"user","content":"\ud83d\ude00 \\ud800"}]}`,
}

// FuzzPass: what a Provider of the same protocol gets differs from what the client sent in the model's name and the report of
// usage alone, byte for byte, or the request is refused.
func FuzzPass(f *testing.F) {
	for _, s := range seeds {
		for i := range 4 {
			f.Add(byte(i), s, "other")
		}
	}
	ops := []operation{opChat, opResponses, opMessages, opCount}
	f.Fuzz(func(t *testing.T, which byte, body, model string) {
		checkPass(t, ops[int(which)%len(ops)], body, model)
	})
}

// checkPass checks one body, and returns 1 if it is passed on.
func checkPass(t *testing.T, op operation, body, model string) int {
	t.Helper()
	in, err := read(op, []byte(body))
	if err != nil {
		if p, ok := asProblem(err); !ok || p.code != 400 {
			t.Fatalf("refused with %v", err)
		}
		return 0
	}
	stores := op == opResponses && in.get("store") == nil // the vendor's default is to store
	same, err := in.forModel(in.model, changes{})
	if err != nil || string(same) != body && !stores {
		t.Fatalf("the body changed although nothing had to: %s, %v", same, err)
	}
	out, err := in.forModel(model, changes{usage: true})
	if err != nil {
		return 0
	}
	sent, got := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if json.Unmarshal([]byte(body), &sent) != nil || json.Unmarshal(out, &got) != nil {
		t.Fatalf("not JSON any more: %s", out)
	}
	var name string
	if in.model != model {
		valid, err := json.Marshal(model)
		if err != nil {
			t.Fatal(err)
		}
		if json.Unmarshal(valid, &model) != nil || json.Unmarshal(got["model"], &name) != nil || name != model {
			t.Fatalf("model %q became %q", model, name)
		}
	}
	delete(sent, "model")
	delete(got, "model")
	if in.hidesUsage() {
		delete(sent, "stream_options")
		delete(got, "stream_options")
	}
	if stores {
		if string(got["store"]) != "false" {
			t.Fatalf("the vendor is to store %s", got["store"])
		}
		delete(sent, "store")
		delete(got, "store")
	}
	for name, value := range sent {
		if !bytes.Equal(value, got[name]) {
			t.Fatalf("member %q became %s", name, got[name])
		}
	}
	if len(sent) != len(got) {
		t.Fatalf("%d members became %d", len(sent), len(got))
	}
	return 1
}

// FuzzTranslate: what a client says to a Provider of the other protocol is what its vendor gets: the system text, each text,
// call and result, the tools with their schemas, and the settings; nothing more. Otherwise the request is refused, and the
// vendor gets none.
func FuzzTranslate(f *testing.F) {
	for _, s := range slices.Concat(seeds, conversations, responses, others) {
		for i := range translatable {
			f.Add(byte(i), s)
		}
	}
	to := newLoops(f)
	f.Fuzz(func(t *testing.T, which byte, body string) {
		checkTranslate(t, to, translatable[int(which)%len(translatable)], body)
	})
}

// translatable are the operations that Providers of the other protocol and the tools of the server can serve.
var translatable = []operation{opChat, opResponses, opMessages}

// newLoops returns a loop for each operation, whose Provider has the other protocol.
func newLoops(t testing.TB) map[operation]*loop {
	t.Helper()
	return map[operation]*loop{
		opChat: newLoop(t, opChat, v1alpha1.ProviderAnthropic), opResponses: newLoop(t, opResponses, v1alpha1.ProviderAnthropic), opMessages: newLoop(t, opMessages, v1alpha1.ProviderOpenAI),
	}
}

// checkTranslate checks one body, and returns 1 if it is translated.
func checkTranslate(t *testing.T, to map[operation]*loop, op operation, body string) int {
	t.Helper()
	answer, got := to[op].post(t, body)
	if answer.Code == http.StatusBadRequest && len(got) == 0 {
		var e struct {
			Error struct{ Type, Message string }
		}
		if json.Unmarshal(answer.Body.Bytes(), &e) != nil || e.Error.Type != "invalid_request_error" || e.Error.Message == "" {
			t.Fatalf("refused with %s", answer.Body)
		}
		return 0
	}
	if answer.Code != http.StatusOK || len(got) != 1 {
		t.Fatalf("%d %s, after %d requests to the vendor", answer.Code, answer.Body, len(got))
	}
	var want, has carried
	if op != opMessages {
		gets(t, got[0], "model", "messages", "system", "tools", "tool_choice", "temperature", "top_p", "output_config", "max_tokens", "stop_sequences", "stream")
		read := carriedByChat
		if op == opResponses {
			read = carriedByResponses
		}
		want, has = read(t, []byte(body)), carriedByMessages(t, got[0])
		want.limit = cmp.Or(want.limit, has.limit) // the protocol requires one
		if len(want.tools) == 0 {
			has.tools = nil // they are there only because the conversation has calls of them
		}
	} else {
		gets(t, got[0], "model", "messages", "tools", "tool_choice", "parallel_tool_calls", "response_format", "reasoning_effort", "temperature", "top_p", "max_tokens", "stream", "stream_options")
		want, has = carriedByMessages(t, []byte(body)), carriedByChat(t, got[0])
		want.stops = "" // they end the text here
	}
	if !reflect.DeepEqual(want, has) {
		t.Fatalf("%s\nbecame %s\nwhich says %+v\nnot %+v", body, got[0], has, want)
	}
	return 1
}

// FuzzConversation: what a model with the server's tools reads has every text of the client's conversation that does not
// belong to the client's own tools, and no text twice. Otherwise the request is refused.
func FuzzConversation(f *testing.F) {
	for _, s := range slices.Concat(seeds, conversations, responses) {
		for i := range translatable {
			f.Add(byte(i), s)
		}
	}
	f.Fuzz(func(t *testing.T, which byte, body string) {
		checkConversation(t, translatable[int(which)%len(translatable)], body)
	})
}

// checkConversation checks one body, and returns 1 if a model with the server's tools gets it.
func checkConversation(t *testing.T, op operation, body string) int {
	t.Helper()
	in, err := read(op, []byte(body))
	if err != nil {
		return 0
	}
	to := map[operation]llm.Protocol{opChat: llm.ProtocolAnthropic, opResponses: llm.ProtocolAnthropic, opMessages: llm.ProtocolOpenAI}
	req, err := in.conversation(to[op])
	if err != nil {
		if p, ok := asProblem(err); !ok || p.code != 400 {
			t.Fatalf("refused with %v", err)
		}
		return 0
	}
	var carried strings.Builder
	for _, m := range req.Messages {
		carried.WriteString(m.Text + "\x00")
		if len(m.ToolCalls) > 0 || m.ToolCallID != "" {
			t.Fatalf("a call of the client's tools is left: %+v", m)
		}
	}
	rest := carried.String()
	for _, text := range spoken(t, op, body) {
		_, after, found := strings.Cut(rest, text)
		if !found && !strings.Contains(carried.String(), text) {
			t.Fatalf("%q was dropped from %s", text, body)
		}
		rest = after
	}
	return 1
}

// spoken returns the texts of the system, the user and the assistant.
func spoken(t *testing.T, op operation, body string) (all []string) {
	var c struct {
		System       any              `json:"system"`
		Messages     []map[string]any `json:"messages"`
		Instructions any              `json:"instructions"`
		Input        json.RawMessage  `json:"input"`
	}
	if json.Unmarshal([]byte(body), &c) != nil {
		t.Fatal("a body that is not JSON was read")
	}
	add := func(content any) {
		switch v := content.(type) {
		case string:
			all = append(all, v)
		case []any:
			for _, b := range v {
				if block, ok := b.(map[string]any); ok && slices.Contains([]any{"text", "input_text", "output_text"}, block["type"]) {
					text, _ := block["text"].(string)
					all = append(all, text)
				}
			}
		}
	}
	if op == opResponses {
		var text string
		c.System, c.Messages = c.Instructions, nil
		if json.Unmarshal(c.Input, &text) != nil && json.Unmarshal(c.Input, &c.Messages) != nil {
			t.Fatal("an input that is neither a text nor items was read")
		}
		add(text)
	}
	add(c.System)
	for _, m := range c.Messages {
		if !slices.Contains([]any{"tool", "function"}, m["role"]) && !slices.Contains([]any{"function_call", "function_call_output"}, m["type"]) {
			add(m["content"])
		}
	}
	return slices.DeleteFunc(all, func(s string) bool { return strings.TrimSpace(s) == "" })
}

// FuzzStop: however a text is cut into pieces, what is shown of it is what comes before the first sequence.
func FuzzStop(f *testing.F) {
	f.Add("one two three", "tw", " thr", uint8(2))
	f.Add("aaab", "aab", "ab", uint8(1))
	f.Fuzz(func(t *testing.T, text, one, two string, step uint8) {
		if one == "" || two == "" {
			return
		}
		want := text
		for end := range len(text) + 1 { // the first sequence that is complete; of two, the longer one
			before, found := strings.CutSuffix(text[:end], one)
			other, also := strings.CutSuffix(text[:end], two)
			if also && (!found || len(other) < len(before)) {
				before, found = other, true
			}
			if found {
				want = before
				break
			}
		}
		s, got := stopper{sequences: []string{one, two}}, ""
		for at := 0; at < len(text); at += int(step) + 1 {
			got += s.add(text[at:min(at+int(step)+1, len(text))])
		}
		if got += s.rest(); got != want {
			t.Fatalf("%q before %q or %q is %q, want %q", text, one, two, got, want)
		}
	})
}

// FuzzStream: however a stream is cut into pieces, its client gets the same bytes, and a client that did not ask for usage
// gets all but the report of it.
func FuzzStream(f *testing.F) {
	f.Add("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":null}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":1}}\n\ndata: [DONE]\n\n", uint8(3))
	f.Add("event: message_start\r\ndata: {\"message\":{\"usage\":{\"input_tokens\":5}}}\r\n\r\n: c\n\nevent: x\ndata: {\"usage\":{\"output_tokens\":7}}", uint8(1))
	f.Fuzz(func(t *testing.T, body string, step uint8) {
		for _, op := range []operation{opChat, opResponses, opMessages} {
			for _, hide := range []bool{false, true} {
				pass := func(step int) ([]byte, tally) {
					s, tl := &events{}, &tally{op: op}
					r := &reporter{tally: tl, hide: hide && op == opChat}
					var out []byte
					for at := 0; ; at += step {
						end := min(at+step, len(body))
						out = append(out, s.next([]byte(body[at:end]), end == len(body), r.event)...)
						if end == len(body) {
							return out, *tl
						}
					}
				}
				whole, one := pass(len(body) + 1)
				parts, two := pass(int(step) + 1)
				if !bytes.Equal(whole, parts) || !reflect.DeepEqual(one, two) {
					t.Fatalf("%q\nin pieces of %d: %q", whole, int(step)+1, parts)
				}
				if (!hide || op != opChat) && string(whole) != body {
					t.Fatalf("%q became %q", body, whole)
				}
			}
		}
	})
}
