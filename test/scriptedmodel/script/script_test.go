// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

func TestScriptsLoad(t *testing.T) {
	files, err := filepath.Glob("../scripts/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if _, err := Load(f); err != nil {
			t.Error(err)
		}
	}
}

func TestBadScripts(t *testing.T) {
	for _, s := range []string{
		"", "turns: []", "turns: [{replay: {}}]", "turns: [{match: {regexp: '('}}]", "turns: [{reply: {text: '{{'}}]", "turns: [{reply: {toolCalls: [{}]}}]",
	} {
		if _, err := Parse([]byte(s)); err == nil {
			t.Errorf("accepted: %s", s)
		}
	}
}

// post sends a body to the model and returns status and answer.
func post(t *testing.T, s *Server, key, body string) (int, string) {
	t.Helper()
	srv := httptest.NewServer(s)
	defer srv.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(raw)
}

func newServer(t *testing.T, text string) *Server {
	t.Helper()
	s, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return New(s, t.Output())
}

// TestRefusesWhatVendorsRefuse: requests that break the protocol are refused.
func TestRefusesWhatVendorsRefuse(t *testing.T) {
	call := `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	tests := map[string]struct {
		messages, more string
		want           string
	}{
		"fine":               {`{"role":"user","content":"x"},` + call + `,{"role":"tool","tool_call_id":"a","content":"r"}`, "", ""},
		"content parts":      {`{"role":"user","content":[{"type":"text","text":"x"}]}`, "", ""},
		"no messages":        {``, "", "must not be empty"},
		"unknown field":      {`{"role":"user","content":"x"}`, `,"top_q":1`, "unknown field"},
		"unknown role":       {`{"role":"robot","content":"x"}`, "", "role"},
		"empty content":      {`{"role":"user","content":""}`, "", "content is empty"},
		"unanswered call":    {call, "", "no result"},
		"user after call":    {call + `,{"role":"user","content":"x"}`, "", "no result"},
		"result for nothing": {`{"role":"user","content":"x"},{"role":"tool","tool_call_id":"z","content":"r"}`, "", "answers no open call"},
		"answered twice":     {call + strings.Repeat(`,{"role":"tool","tool_call_id":"a","content":"r"}`, 2), "", "answers no open call"},
		"bad arguments":      {strings.Replace(call, `"{}"`, `"{"`, 1), "", "not JSON"},
		"options, no stream": {`{"role":"user","content":"x"}`, `,"stream_options":{"include_usage":true}`, "stream_options"},
		"bad tool name":      {`{"role":"user","content":"x"}`, `,"tools":[{"type":"function","function":{"name":"a b"}}]`, "not valid"},
		"bad schema":         {`{"role":"user","content":"x"}`, `,"tools":[{"type":"function","function":{"name":"a","parameters":{"type":"array"}}}]`, "type object"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, "turns: [{reply: {text: hi}}]")
			status, body := post(t, s, "k", `{"model":"m","messages":[`+tt.messages+`]`+tt.more+`}`)
			if tt.want == "" {
				if status != http.StatusOK || len(s.Refused()) != 0 {
					t.Errorf("%d %s", status, body)
				}
				return
			}
			if status != http.StatusBadRequest || !strings.Contains(body, tt.want) || len(s.Refused()) != 1 {
				t.Errorf("%d %s", status, body)
			}
		})
	}
}

func TestKeys(t *testing.T) {
	ask := `{"model":"m","messages":[{"role":"user","content":"x"}]}`
	for script, want := range map[string]map[string]int{
		"turns: [{reply: {text: hi}}]":               {"": 401, "any": 200},
		"{apiKey: one, turns: [{reply: {text: h}}]}": {"": 401, "any": 401, "one": 200},
	} {
		for key, status := range want {
			if got, body := post(t, newServer(t, script), key, ask); got != status {
				t.Errorf("%s with %q: %d %s", script, key, got, body)
			}
		}
	}
}

// TestUnforeseen: a request that the script has no answer for is refused and logged; the answer is never guessed.
func TestUnforeseen(t *testing.T) {
	var log bytes.Buffer
	parsed, err := Parse([]byte("turns: [{match: {contains: hello}, times: 1, reply: {text: hi}}]"))
	if err != nil {
		t.Fatal(err)
	}
	s := New(parsed, &log)
	ask := `{"model":"m","messages":[{"role":"user","content":"hello"}]}`
	if status, _ := post(t, s, "k", ask); status != http.StatusOK {
		t.Errorf("got %d", status)
	}
	if status, body := post(t, s, "k", ask); status != http.StatusInternalServerError || !strings.Contains(body, "no answer number 1") || !strings.Contains(log.String(), "REFUSED") {
		t.Errorf("%d %s\n%s", status, body, log.String())
	}
}

func TestWholeAnswer(t *testing.T) {
	s := newServer(t, `turns: [{reply: {text: hi, toolCalls: [{name: f, arguments: {a: "{{ .LastWord }}"}}], usage: {input: 3, output: 4}}}]`)
	_, body := post(t, s, "k", `{"model":"m","messages":[{"role":"user","content":"go there"}]}`)
	var got struct {
		Choices []struct {
			Message      Message
			FinishReason string `json:"finish_reason"`
		}
		Usage struct {
			TotalTokens int `json:"total_tokens"`
		}
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	m := got.Choices[0].Message
	if m.Text() != "hi" || m.ToolCalls[0].Function.Arguments != `{"a":"there"}` || got.Choices[0].FinishReason != "tool_calls" || got.Usage.TotalTokens != 7 {
		t.Errorf("got %s", body)
	}
}
