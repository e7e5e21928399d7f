// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/llm"
)

// FuzzForModel: whatever a client sends is refused, or the vendor gets it with nothing but the model's name changed.
func FuzzForModel(f *testing.F) {
	for _, seed := range []string{
		`{"model":"a/b","messages":[{"role":"user","content":"x"}]}`,
		"{ \"messages\" : [ {\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"\\ud83d\\ude00\",\"signature\":\"c2ln\"}]} ] ,\n\"max_tokens\":1e2}",
		`{"messages":[{"tool_calls":[{"id":"1","function":{"arguments":"{\"a\":1}"}},{"id":"2"}]}],"n":1,"stream":true,"model":""}`,
		`{"messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}],"stream":true,"stream_options":{"x":1},"model":null}`,
		`{"Model":"x","MODEL":"y","messages":[1],"model":"z"}`, `{}`, `[]`, `{"model":"a","model":"b","messages":[1]}`, `{"messages":[1]} {}`,
		`{"messages":[1],"max_tokens":123456789012345678901234567890}`, `{"messages":[1],"stream":false,"":1,"\u006dodel":"q"}`,
	} {
		f.Add([]byte(seed), "m")
	}
	f.Add([]byte(`{"messages":[1]}`), "m\xe9\xd8m") // each byte that is no UTF-8 is replaced
	f.Fuzz(func(t *testing.T, data []byte, model string) {
		for _, op := range []operation{opChat, opResponses, opMessages, opCount} {
			in, err := read(op, data)
			if err != nil {
				p, ok := asProblem(err)
				if !ok || p.code != 400 {
					t.Fatalf("%s: %q: %v, which is no invalid request", op, data, err)
				}
				continue
			}
			for _, usage := range []bool{false, true} {
				out, err := in.forModel(model, changes{usage: usage})
				if err != nil {
					continue
				}
				check(t, in, out, model, usage)
			}
		}
	})
}

func check(t *testing.T, in *incoming, out []byte, model string, usage bool) {
	t.Helper()
	got, err := parse(out)
	if err != nil {
		t.Fatalf("%q became %q: %v", in.data, out, err)
	}
	var name string
	if err := got.decode("model", &name); err != nil || name != string([]rune(model)) {
		t.Fatalf("%q became %q, whose model is %q", in.data, out, name)
	}
	for _, m := range in.members {
		if m.name == "model" || m.name == "stream_options" && usage {
			continue
		}
		i := got.index(m.name)
		if i < 0 || !bytes.Equal(in.data[m.start:m.end], out[got.members[i].start:got.members[i].end]) {
			t.Fatalf("%q became %q: member %q changed", in.data, out, m.name)
		}
	}
	if in.model == model && !usage && !bytes.Equal(in.data, out) {
		t.Fatalf("%q became %q, although nothing had to change", in.data, out)
	}
}

func TestRemove(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`{"a":1,"usage":null,"b":2}`:     `{"a":1,"b":2}`,
		`{ "usage" : null , "b":2}`:      `{"b":2}`,
		`{"a":[1, 2] , "usage" : null }`: `{"a":[1, 2] }`,
		`{"usage":null}`:                 `{}`,
		`{"a":1}`:                        `{"a":1}`,
	} {
		o, err := parse([]byte(data))
		if err != nil {
			t.Fatal(err)
		}
		o.remove("usage")
		if got := string(o.bytes()); got != want {
			t.Errorf("%s: %s, want %s", data, got, want)
		}
	}
}

// A stream is the same however it arrives, and keeps each of its bytes.
func TestEvents(t *testing.T) {
	t.Parallel()
	const stream = ": hi\n\nevent: a\r\ndata: {\"usage\":1}\r\n\r\ndata: b\ndata: c\n\n\n\ndata: [DONE]\n\nrest"
	for size := 1; size <= len(stream); size++ {
		var out []byte
		var data []string
		s := &events{}
		keep := func(e []byte) []byte {
			if d := dataOf(e); d != nil {
				data = append(data, string(d))
			}
			return e
		}
		for at := 0; at < len(stream); at += size {
			end := min(at+size, len(stream))
			out = append(out, s.next([]byte(stream[at:end]), end == len(stream), keep)...)
		}
		if string(out) != stream {
			t.Fatalf("in parts of %d bytes: %q", size, out)
		}
		if want := []string{`{"usage":1}`, "b\nc", "[DONE]"}; !reflect.DeepEqual(data, want) {
			t.Fatalf("in parts of %d bytes: %q, want %q", size, data, want)
		}
	}
	long := "data: " + strings.Repeat("x", maxEvent+1) + "\n\n"
	s, all := &events{}, ""
	for chunk := range strings.SplitAfterSeq(long, strings.Repeat("x", 1<<16)) {
		all += string(s.next([]byte(chunk), false, func([]byte) []byte { return nil }))
	}
	if all != long || len(s.held) != 0 {
		t.Error("an event that is too long is not passed on as it is")
	}
}

// However a request is extended, wherever, it is refused by the translation: nothing of it can get lost.
func TestTranslationDropsNothing(t *testing.T) {
	t.Parallel()
	for op, document := range map[operation]string{
		opChat: `{"model":"m","max_tokens":16,"temperature":0.5,"stream":true,"stream_options":{"include_usage":true},"response_format":{"type":"text"},
			"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":null}}],
			"messages":[{"role":"developer","content":"s"},{"role":"user","content":[{"type":"text","text":"t"}]},
			{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"r"}]}`,
		opMessages: `{"model":"m","max_tokens":16,"temperature":0.5,"stream":true,"system":[{"type":"text","text":"s"}],"tool_choice":{"type":"auto"},"output_config":{"effort":"low"},
			"tools":[{"name":"f","description":"d","input_schema":{}}],
			"messages":[{"role":"user","content":"t"},{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"1","name":"f","input":null}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"r"}]}]}]}`,
	} {
		to := llm.ProtocolAnthropic
		if op == opMessages {
			to = llm.ProtocolOpenAI
		}
		document = strings.Replace(document, `"input":null`, `"input":{}`, 1)
		in, err := read(op, []byte(document))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := in.translate(to); err != nil {
			t.Fatalf("%s: the document itself: %v", op, err)
		}
		places := 0
		for i, b := range []byte(document) {
			inString := strings.Count(document[:i], `"`)%2 == 1 // the documents have no quotes in strings
			if b != '{' || inString || strings.HasPrefix(document[i:], "{}") {
				continue
			}
			places++
			extended := document[:i+1] + `"zz_future":1,` + document[i+1:]
			in, err := read(op, []byte(extended))
			if err == nil {
				_, err = in.translate(to)
			}
			if p, ok := asProblem(err); !ok || p.code != 400 {
				t.Errorf("%s: not refused: %v: %s", op, err, extended)
			}
		}
		if places < 8 {
			t.Errorf("%s: only %d places were tried", op, places)
		}
		var all map[string]any
		if json.Unmarshal([]byte(document), &all) != nil {
			t.Errorf("%s: the document is not JSON", op)
		}
	}
}
