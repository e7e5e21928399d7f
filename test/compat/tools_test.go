// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	platform "github.com/platform-ai/platform/pkg/server"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
	"github.com/platform-ai/platform/test/scriptedmodel/script"
)

// onTools starts a server whose Providers "openai" and "claude" are served by a script.
func onTools(t *testing.T, turns string, configure ...func(*standalone.Options)) (*server, *vendor) {
	t.Helper()
	parsed, err := script.Parse([]byte(turns))
	if err != nil {
		t.Fatal(err)
	}
	v := newVendor(t, script.New(parsed, io.Discard).ServeHTTP)
	s := start(t, configure...)
	s.namespace("team")
	s.provider("team", "openai", v1alpha1.ProviderOpenAI, v.URL+"/v1", "m")
	s.provider("team", "claude", v1alpha1.ProviderAnthropic, v.URL, "m")
	return s, v
}

// api is one of the APIs: its path, and a conversation in it that has a tool of the client. The header asks for the tools of the
// server in spite of it.
type api struct{ path, model, conversation, tools, header string }

// apis are all APIs, each with a Provider of its own protocol and of the other one.
func apis() map[string]api {
	const chat = `[{"role":"system","content":"Be brief."},{"role":"user","content":"weather?"},{"role":"assistant","content":"I look.","tool_calls":[{"id":"1","type":"function",` +
		`"function":{"name":"weather","arguments":"{}"}}]},{"role":"tool","tool_call_id":"1","content":"secret sun"},{"role":"user","content":"And now"},{"role":"user","content":"%s"}]`
	const message = `[{"role":"user","content":"weather?"},{"role":"assistant","content":[{"type":"text","text":"I look."},` +
		`{"type":"tool_use","id":"1","name":"weather","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"secret sun"}]},` +
		`{"role":"user","content":"And now"},{"role":"user","content":"%s"}],"system":"Be brief.","max_tokens":1000`
	const response = `[{"role":"user","content":"weather?"},{"role":"assistant","content":[{"type":"output_text","text":"I look.","annotations":[]}]},` +
		`{"type":"function_call","call_id":"1","name":"weather","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"secret sun"},` +
		`{"role":"user","content":"And now"},{"role":"user","content":[{"type":"input_text","text":"%s"}]}],"instructions":"Be brief.","store":false`
	const responseTools = `[{"type":"function","name":"weather","parameters":{"type":"object"}}]`
	const chatTools, messageTools = `[{"type":"function","function":{"name":"weather"}}]`, `[{"name":"weather","input_schema":{"type":"object"}}]`
	return map[string]api{
		"chat":                      {"/openai/v1/chat/completions", "openai/m", chat, chatTools, "enabled"},
		"chat, other protocol":      {"/openai/v1/chat/completions", "claude/m", chat, chatTools, "enabled"},
		"messages":                  {"/anthropic/v1/messages", "claude/m", message, messageTools, "enabled"},
		"messages, other protocol":  {"/anthropic/v1/messages", "openai/m", message, messageTools, "enabled"},
		"responses":                 {"/openai/v1/responses", "openai/m", response, responseTools, "enabled"},
		"responses, other protocol": {"/openai/v1/responses", "claude/m", response, responseTools, "enabled"},
	}
}

func (a api) body(stream bool, prompt string) string {
	choice, member := `"auto"`, "messages"
	switch {
	case strings.HasSuffix(a.path, "messages"):
		choice = `{"type":"auto"}`
	case strings.HasSuffix(a.path, "responses"):
		member = "input"
	}
	return fmt.Sprintf(`{"model":%q,"stream":%v,"tools":%s,"tool_choice":%s,%q:%s}`, a.model, stream, a.tools, choice, member, fmt.Sprintf(a.conversation, prompt))
}

// said returns the text of an answer in any form, streamed or not.
func said(t *testing.T, body string) string {
	t.Helper()
	type answer struct {
		Choices []struct {
			Message, Delta struct{ Content string }
		}
		Content []struct{ Text string }
		Delta   json.RawMessage
		Type    string
		Output  []struct{ Content []struct{ Text string } }
	}
	text := ""
	add := func(raw string) {
		var a answer
		if raw == "[DONE]" {
			return
		}
		if err := json.Unmarshal([]byte(raw), &a); err != nil {
			t.Fatalf("%v: %s", err, raw)
		}
		for _, c := range a.Choices {
			text += c.Message.Content + c.Delta.Content
		}
		for _, c := range a.Content {
			text += c.Text
		}
		for _, o := range a.Output {
			for _, c := range o.Content {
				text += c.Text
			}
		}
		var delta struct{ Text string }
		switch {
		case a.Type == "content_block_delta" && json.Unmarshal(a.Delta, &delta) != nil, a.Type == "response.output_text.delta" && json.Unmarshal(a.Delta, &delta.Text) != nil:
			t.Fatal(raw)
		}
		text += delta.Text
	}
	if strings.HasPrefix(body, "{") {
		add(body)
		return text
	}
	for line := range strings.SplitSeq(body, "\n") {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			add(data)
		}
	}
	return text
}

const working = `
turns:
- match: {contains: refused, lastRole: user, offered: [create_container_task]}
  reply: {text: I try., toolCalls: [{name: create_agent, arguments: {name: a, systemPrompt: x}}]}
- match: {contains: count, lastRole: user, offered: [create_container_task, create_ai_task, create_agent, list_agents, list_tasks]}
  reply: {text: I begin., toolCalls: [{name: create_container_task, arguments: {name: count, command: [wc]}}], usage: {input: 10, output: 2}}
- match: {lastRole: tool}
  reply: {text: "[goal: reached]\nIt is done: {{ .Results }}", usage: {input: 30, output: 4}}
`

// A model gets the server's tools in place of the client's if the header asks for them, and they act with the caller's rights.
func TestServerTools(t *testing.T) {
	t.Parallel()
	s, v := onTools(t, working)
	token := s.Token(t, "team", "client", "chat-tasks")
	for name, a := range apis() {
		for _, stream := range []bool{false, true} {
			got := s.post(a.path, a.body(stream, "count"), "Authorization", "Bearer "+token, "X-Platform-Tools", a.header)
			if got.Code != http.StatusOK || got.Header.Get("X-Platform-Tools") != "enabled" {
				t.Fatalf("%s: %d %v %s", name, got.Code, got.Header, got.Body)
			}
			text := said(t, got.Body)
			if !strings.Contains(text, "It is done") || !strings.Contains(text, "proxy-") || strings.Contains(text, "goal") {
				t.Errorf("%s: said %q", name, text)
			}
			if shown := strings.HasPrefix(text, "I begin.") && strings.Contains(text, "(create_container_task: {"); shown != stream {
				t.Errorf("%s: said %q, progress is for streams", name, text)
			}
			if usage := strings.Contains(got.Body, `"output_tokens":6`) || strings.Contains(got.Body, `"completion_tokens":6`); !usage && (!stream || !strings.Contains(a.path, "chat")) {
				t.Errorf("%s: usage of both requests is missing: %s", name, got.Body)
			}
			last, _ := v.last()
			for _, absent := range []string{"weather\"", "secret sun"} {
				if strings.Contains(last.body, absent) {
					t.Errorf("%s: the vendor got %q: %s", name, absent, last.body)
				}
			}
			coordinator, client := strings.Index(last.body, "You coordinate work"), strings.Index(last.body, "Be brief.")
			if coordinator < 0 || client < coordinator || !strings.Contains(last.body, `And now\n\ncount`) {
				t.Errorf("%s: the vendor got %s", name, last.body)
			}
		}
	}
	tasks, err := s.admin.Tasks("team").List(t.Context(), metav1.ListOptions{LabelSelector: v1alpha1.LabelCreatedBy + "=" + v1alpha1.CreatedByOrchestrator})
	if err != nil || len(tasks.Items) != 2*len(apis()) {
		t.Errorf("%d tasks, %v", len(tasks.Items), err)
	}
	for _, task := range tasks.Items {
		if !strings.HasPrefix(task.Name, "proxy-") || !strings.HasSuffix(task.Name, "-count") {
			t.Errorf("task %s", task.Name)
		}
	}
}

// Sequences of the client end the text of an answer, in each form, and messages name the one that did.
func TestServerToolsStop(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	s, v := onTools(t, `{turns: [{match: {contains: count}, reply: {text: "[goal: reached]\nOne two three four."}}]}`)
	token := s.Token(t, "team", "client", "chat-tasks")
	for name, a := range apis() {
		if strings.HasSuffix(a.path, "responses") { // it has no sequences
			continue
		}
		for _, stream := range []bool{false, true} {
			member := `"stop":["three","zebra"]`
			if strings.Contains(a.path, "messages") {
				member = `"stop_sequences":["three","zebra"]`
			}
			body := `{` + member + `,` + a.body(stream, "count")[1:]
			got := s.post(a.path, body, "Authorization", "Bearer "+token, "X-Platform-Tools", a.header)
			if text := said(t, got.Body); got.Code != http.StatusOK || text != "One two " {
				t.Errorf("%s: %d %q %s", name, got.Code, text, got.Body)
			}
			ends := strings.Contains(got.Body, `"finish_reason":"stop"`)
			if strings.Contains(a.path, "messages") {
				ends = strings.Contains(got.Body, `"stop_reason":"stop_sequence"`) && strings.Contains(got.Body, `"stop_sequence":"three"`)
			}
			if last, _ := v.last(); !ends || strings.Contains(last.body, "zebra") {
				t.Errorf("%s: %s", name, got.Body)
			}
		}
		wrong := s.post(a.path, `{"`+map[bool]string{true: "stop_sequences", false: "stop"}[strings.Contains(a.path, "messages")]+`":[""],`+a.body(false, "count")[1:], "Authorization", "Bearer "+token, "X-Platform-Tools", a.header)
		if wrong.Code != http.StatusBadRequest {
			t.Errorf("%s: an empty sequence: %d %s", name, wrong.Code, wrong.Body)
		}
	}
}

// A client that asks for JSON gets nothing else, however many tools are called before it: the vendor gets the form as the client
// wrote it, and no mark is asked for. The messages protocol has schemas alone.
func TestServerToolsFormat(t *testing.T) {
	t.Parallel()
	s, v := onTools(t, `
turns:
- match: {contains: count, lastRole: user}
  reply: {text: I begin., toolCalls: [{name: list_tasks, arguments: {}}]}
- match: {lastRole: tool}
  reply: {text: '{"done":true}'}
`)
	token := s.Token(t, "team", "client", "chat-tasks")
	for _, format := range []string{
		`{"type":"json_object"}`, `{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":{"type":"object","properties":{"n":{"maximum":9007199254740993}}}}}`,
	} {
		for _, stream := range []bool{false, true} {
			a := apis()["chat"]
			_, before := v.last()
			got := s.post(a.path, `{"response_format":`+format+`,`+a.body(stream, "count")[1:], "Authorization", "Bearer "+token, "X-Platform-Tools", a.header)
			last, after := v.last()
			if got.Code != http.StatusOK || said(t, got.Body) != `{"done":true}` || after-before != 2 {
				t.Errorf("%s, stream %v: after %d requests to the vendor %d %s", format, stream, after-before, got.Code, got.Body)
			}
			if !strings.Contains(last.body, `"response_format":`+format) || !strings.Contains(last.body, "It must be JSON") || strings.Contains(last.body, "[goal:") {
				t.Errorf("%s, stream %v: the vendor got %s", format, stream, last.body)
			}
			a = apis()["chat, other protocol"]
			for _, tools := range []string{"", "disabled"} {
				got = s.post(a.path, `{"response_format":`+format+`,"model":"claude/m","messages":[{"role":"user","content":"count"}]}`, "Authorization", "Bearer "+token, "X-Platform-Tools", tools)
				last, n := v.last()
				carried := got.Code == http.StatusOK && n > after && strings.Contains(last.body, `"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"n":{"maximum":9007199254740993}}}}}`)
				refused := got.Code == http.StatusBadRequest && n == after && strings.Contains(got.Body, `"param":"response_format"`)
				if schema := strings.Contains(format, "schema"); carried != schema || refused == schema {
					t.Errorf("%s, tools %q: %d %s; the vendor got %s", format, tools, got.Code, got.Body, last.body)
				}
				after = n
			}
		}
	}
}

// A response states the form of its answer in another member, and the vendor of chat completions gets it in its own.
func TestServerToolsFormatOfResponses(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	s, v := onTools(t, `{turns: [{match: {contains: count}, reply: {text: '{"done":true}'}}]}`)
	token := s.Token(t, "team", "client", "chat-tasks")
	for format, want := range map[string]string{
		`{"type":"json_object"}`: `{"type":"json_object"}`,
		`{"type":"json_schema","name":"answer","strict":true,"schema":{"properties":{"n":{"maximum":9007199254740993}}}}`: `{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":{"properties":{"n":{"maximum":9007199254740993}}}}}`,
	} {
		a := apis()["responses"]
		got := s.post(a.path, `{"text":{"format":`+format+`},`+a.body(false, "count")[1:], "Authorization", "Bearer "+token, "X-Platform-Tools", a.header)
		last, asked := v.last()
		if got.Code != http.StatusOK || said(t, got.Body) != `{"done":true}` || !strings.Contains(last.body, `"response_format":`+want) || !strings.Contains(got.Body, `"text":{"format":`+format) {
			t.Errorf("%s: the vendor got %s; %d %s", format, last.body, got.Code, got.Body)
		}
		a = apis()["responses, other protocol"]
		got = s.post(a.path, `{"text":{"format":`+format+`},`+a.body(false, "count")[1:], "Authorization", "Bearer "+token, "X-Platform-Tools", a.header)
		last, n := v.last()
		carried := got.Code == http.StatusOK && strings.Contains(last.body, `"output_config":{"format":{"type":"json_schema","schema":{"properties":{"n":{"maximum":9007199254740993}}}}}`)
		refused := got.Code == http.StatusBadRequest && n == asked && strings.Contains(got.Body, `"param":"text"`)
		if schema := strings.Contains(format, "schema"); carried != schema || refused == schema {
			t.Errorf("%s: %d %s; the vendor got %s", format, got.Code, got.Body, last.body)
		}
	}
}

// A vendor that does not stream can be used with the server's tools, too.
func TestServerToolsWithoutStreams(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	s, v := onTools(t, `{turns: [{match: {}, reply: {text: y}}]}`)
	token := s.Token(t, "team", "client", "chat-tasks")
	for name, a := range apis() {
		v.answer = says(http.StatusOK, jsonKind, strings.Replace(chatAnswer, "Hello\\u0020there", "[goal: reached] Hello\\u0020there", 1))
		if strings.HasPrefix(a.model, "claude") {
			v.answer = says(http.StatusOK, jsonKind, strings.Replace(messageAnswer, "Hello there", "[goal: reached] Hello there", 1))
		}
		for _, stream := range []bool{false, true} {
			got := s.post(a.path, a.body(stream, "x"), "Authorization", "Bearer "+token, "X-Platform-Tools", a.header)
			if text := said(t, got.Body); got.Code != http.StatusOK || text != "Hello there." {
				t.Errorf("%s, stream %v: %d %q %s", name, stream, got.Code, text, got.Body)
			}
		}
	}
}

// Members that the APIs document as ignored are ignored with the server's tools, and so are hints; what changes the answer and cannot
// be carried is refused.
func TestServerToolsMembers(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	s, v := onTools(t, `{turns: [{match: {contains: count}, reply: {text: "[goal: reached] Done."}}]}`)
	token := s.Token(t, "team", "client", "chat-tasks")
	type members map[string]int
	const user = `{"role":"user","content":"count"}`
	chat := members{
		`"top_p":0.5`: 200, `"frequency_penalty":1`: 200, `"presence_penalty":1`: 200, `"user":"zebra"`: 200, `"parallel_tool_calls":false`: 200,
		`"functions":[{"name":"zebra"}]`: 200, `"function_call":"none"`: 200, `"store":false`: 200, `"temperature":1`: 200,
		`"reasoning_effort":"high"`: 200, `"seed":1`: 400, `"service_tier":"flex"`: 200, `"store":true`: 400, `"metadata":{"a":"b"}`: 200, `"top_k":4`: 400,
		`"thinking":{"type":"enabled"}`: 400, `"response_format":{"type":"json_object"}`: 200, `"response_format":{"type":"text"}`: 200, `"response_format":{"type":"xml"}`: 400, `"logprobs":true`: 400, `"future":1`: 400,
		`"messages":[{"role":"user","content":"count","name":"bob"}]`:                                                                 200,
		`"messages":[` + user + `,{"role":"assistant","content":"I.","reasoning_content":"hm"},` + user + `]`:                         200,
		`"messages":[{"role":"user","content":[{"type":"text","text":"count","cache_control":{"type":"ephemeral"}}]}]`:                200,
		`"messages":[{"role":"user","content":[{"type":"text","text":"count"},{"type":"image_url","image_url":{"url":"data:,"}}]}]`:   400,
		`"messages":[` + user + `,{"role":"function","name":"f","content":"zebra"},{"role":"user","content":"go on with the count"}]`: 200,
	}
	message := members{
		`"top_p":0.5`: 200, `"top_k":4`: 200, `"metadata":{"user_id":"zebra"}`: 200, `"thinking":{"type":"enabled","budget_tokens":1024}`: 200, `"temperature":1`: 200,
		`"service_tier":"auto"`: 200, `"user":"x"`: 400, `"frequency_penalty":1`: 400, `"container":{"skills":[]}`: 400, `"mcp_servers":[{"name":"m"}]`: 400, `"future":1`: 400,
		`"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}]`:                                                                     200,
		`"messages":[{"role":"user","content":[{"type":"text","text":"count","cache_control":{"type":"ephemeral"}}]}]`:                                           200,
		`"messages":[` + user + `,{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"I."}]},` + user + `]`: 200,
		`"messages":[` + user + `,{"role":"assistant","content":[{"type":"redacted_thinking","data":"AA=="},{"type":"text","text":"I."}]},` + user + `]`:         200,
		`"messages":[` + user + `,{"role":"assistant","content":[{"type":"server_tool_use","id":"1","name":"web_search","input":{}}]},` + user + `]`:             400,
	}
	response := members{
		`"tools":[{"type":"web_search","name":"zebra"}]`: 200, `"tool_choice":{"type":"function","name":"zebra"}`: 200, `"max_tool_calls":1`: 200, `"include":["reasoning.encrypted_content"]`: 200,
		`"top_p":0.5`: 200, `"user":"zebra"`: 200, `"temperature":1`: 200, `"instructions":"Be brief."`: 200, `"text":{"format":{"type":"text"},"verbosity":"medium"}`: 200, `"previous_response_id":null`: 200, `"truncation":"disabled"`: 200,
		`"input":[` + user + `,{"type":"function_call","call_id":"1","name":"zebra","arguments":"{}"},{"type":"function_call_output","call_id":"1","output":"zebra"},{"role":"user","content":"go on with the count"}]`: 200,
		`"reasoning":{"effort":"high"}`: 200, `"text":{"verbosity":"low"}`: 200, `"text":{"format":{"type":"grammar"}}`: 400, `"truncation":"auto"`: 200, `"metadata":{"a":"b"}`: 200, `"service_tier":"flex"`: 200, `"prompt":{"id":"p"}`: 400,
		`"stop":["x"]`: 400, `"messages":[]`: 400, `"future":1`: 400, `"top_logprobs":1`: 400, `"prompt_cache_key":"k"`: 200,
		`"input":[` + user + `,{"type":"reasoning","summary":[],"encrypted_content":"AA=="},` + user + `]`:                                                200,
		`"input":[{"role":"user","content":[{"type":"input_text","text":"count"},{"type":"input_image","image_url":"data:,"}]}]`:                          400,
		`"input":[` + user + `,{"role":"assistant","content":[{"type":"output_text","text":"I.","annotations":[{"type":"url_citation"}]}]},` + user + `]`: 200,
		`"input":[` + user + `,{"role":"assistant","status":"incomplete","content":"I."},` + user + `]`:                                                   400,
		`"input":[` + user + `,{"role":"system","content":"x"},` + user + `]`:                                                                             200,
	}
	for path, all := range map[string]members{"/openai/v1/chat/completions": chat, "/anthropic/v1/messages": message, "/openai/v1/responses": response} {
		model := map[bool]string{true: "openai/m", false: "claude/m"}[strings.Contains(path, "openai")]
		for member, want := range all {
			limit, conversation, tools := `"max_tokens":100`, "messages", "enabled"
			if strings.HasSuffix(path, "responses") {
				limit, conversation = `"max_output_tokens":100`, "input"
			}
			body := fmt.Sprintf(`{"model":%q,%s,%s`, model, limit, member)
			if !strings.HasPrefix(member, `"`+conversation+`"`) {
				body += `,"` + conversation + `":[` + user + `]`
			}
			_, before := v.last()
			got := s.post(path, body+"}", "Authorization", "Bearer "+token, "X-Platform-Tools", tools)
			last, after := v.last()
			if got.Code != want || want == 200 && (said(t, got.Body) != "Done." || strings.Contains(last.body, "zebra")) || want == 400 && after != before {
				t.Errorf("%s: %s: %d %s, want %d", path, member, got.Code, got.Body, want)
			}
			if want == 400 && (strings.Contains(got.Body, "another protocol") || !strings.Contains(got.Body, "X-Platform-Tools")) {
				t.Errorf("%s: %s: %s", path, member, got.Body)
			}
		}
	}
}

// A permission that the caller lacks is data for the model.
func TestServerToolsDenied(t *testing.T) {
	t.Parallel()
	s, _ := onTools(t, working)
	token := s.Token(t, "team", "client", "chat")
	for name, a := range apis() {
		for _, prompt := range []string{"count", "refused"} {
			got := s.post(a.path, a.body(false, prompt), "Authorization", "Bearer "+token, "X-Platform-Tools", a.header)
			if text := said(t, got.Body); got.Code != http.StatusOK || !strings.Contains(text, "permission_denied") {
				t.Errorf("%s: %d %s", name, got.Code, got.Body)
			}
		}
	}
	for _, list := range []func() (int, error){
		func() (int, error) {
			l, err := s.admin.Tasks("team").List(t.Context(), metav1.ListOptions{})
			return len(l.Items), err
		},
		func() (int, error) {
			l, err := s.admin.Agents("team").List(t.Context(), metav1.ListOptions{})
			return len(l.Items), err
		},
	} {
		if n, err := list(); n != 0 || err != nil {
			t.Errorf("%d objects were created, %v", n, err)
		}
	}
}

// A model whose answer has no mark is told to go on three times; one that only calls tools sums up without tools at the
// limit of iterations.
func TestServerToolsLimits(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	s, v := onTools(t, `
turns:
- match: {contains: premature}
  reply: {text: "Nearly."}
- match: {contains: mark of the goal}
  reply: {text: "Still nearly."}
- match: {noTools: true}
  reply: {text: "I did what I could."}
- match: {}
  reply: {toolCalls: [{name: list_tasks, arguments: {}}]}
`, func(o *standalone.Options) { o.Chat.MaxIterations = 6 })
	token := s.Token(t, "team", "client", "chat-tasks")
	for name, a := range apis() {
		for prompt, want := range map[string]struct {
			requests int
			text     string
		}{"premature": {4, "Still nearly."}, "loop": {4, "I did what I could."}} {
			_, before := v.last()
			got := s.post(a.path, a.body(false, prompt), "Authorization", "Bearer "+token, "X-Platform-Tools", a.header)
			_, after := v.last()
			if text := said(t, got.Body); got.Code != http.StatusOK || text != want.text || after-before != want.requests {
				t.Errorf("%s, %s: %d requests, %d %s", name, prompt, after-before, got.Code, got.Body)
			}
		}
	}
}

// A request that takes too long is answered with 200 and a fixed text.
func TestServerToolsTime(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	s, v := onTools(t, `{turns: [{match: {contains: x}, reply: {text: y}}]}`, func(o *standalone.Options) { o.Chat.MaxDuration = 300 * time.Millisecond })
	released := make(chan struct{})
	v.answer = func(http.ResponseWriter, *http.Request) { <-released }
	t.Cleanup(func() { close(released) })
	token := s.Token(t, "team", "client", "chat-tasks")
	for name, a := range apis() {
		for _, stream := range []bool{false, true} {
			got := s.post(a.path, a.body(stream, "x"), "Authorization", "Bearer "+token, "X-Platform-Tools", a.header)
			if text := said(t, got.Body); got.Code != http.StatusOK || !strings.HasPrefix(text, "I had to stop here") {
				t.Errorf("%s: %d %s", name, got.Code, got.Body)
			}
		}
	}
}

// A model that does nothing but look at tasks is not asked again before one of them has changed.
func TestServerToolsPoll(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	s, v := onTools(t, `
turns:
- match: {contains: wait}
  reply: {toolCalls: [{name: wait_for_task, arguments: {name: slow, timeout: 1}}, {name: check_task_progress, arguments: {name: slow}}]}
- match: {lastRole: tool}
  reply: {text: "[goal: blocked] It is gone."}
`)
	token := s.Token(t, "team", "client", "chat-tasks")
	tasks := s.admin.Tasks("team")
	slow := &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Name: "slow"}, Spec: v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}}}
	if _, err := tasks.Create(t.Context(), slow, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.RESTURL+"/openai/v1/chat/completions", strings.NewReader(apis()["chat"].body(true, "wait")))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("X-Platform-Tools", "enabled")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	in, beats, all := bufio.NewScanner(resp.Body), 0, ""
	for in.Scan() {
		all += in.Text() + "\n"
		if in.Text() != ": waiting" {
			continue
		}
		if beats++; beats == 2 {
			if _, n := v.last(); n != 1 {
				t.Errorf("the model was asked %d times while the task waited", n)
			}
			if err := tasks.Delete(context.Background(), "slow", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if text := said(t, all); !strings.HasSuffix(text, "It is gone.") || beats < 2 {
		t.Errorf("said %q after %d beats", text, beats)
	}
}

// A client with tools of its own, which many cannot say in a header, has its request passed on: its tools reach the vendor, and no
// task is made. A server may be told to give such requests its own tools, as the header does.
func TestClientTools(t *testing.T) {
	t.Parallel()
	for drop, want := range map[string]string{platform.ClientToolsPass: "disabled", platform.ClientToolsDrop: "enabled"} {
		s, v := onTools(t, working, func(o *standalone.Options) { o.CompatClientTools = drop })
		parsed, err := script.Parse([]byte(`{turns: [{match: {offered: [weather]}, reply: {text: Sunny.}}, {match: {offered: [create_container_task]}, reply: {text: "[goal: reached] Sunny."}}]}`))
		if err != nil {
			t.Fatal(err)
		}
		v.answer = script.New(parsed, io.Discard).ServeHTTP
		token := s.Token(t, "team", "client", "chat-tasks")
		for name, a := range apis() {
			got := s.post(a.path, a.body(false, "count"), "Authorization", "Bearer "+token, "X-Platform-Tools", "")
			last, _ := v.last()
			wants := want
			if strings.HasSuffix(a.path, "responses") {
				wants = "disabled"
			}
			if got.Code != http.StatusOK || got.Header.Get("X-Platform-Tools") != wants || said(t, got.Body) != "Sunny." || strings.Contains(last.body, "secret sun") != (wants == "disabled") {
				t.Errorf("%s, %s: %d %v %s; the vendor got %s", name, drop, got.Code, got.Header, got.Body, last.body)
			}
		}
	}
}

// With chats switched off, requests are passed on, and a client that insists on tools is refused.
func TestServerToolsOff(t *testing.T) {
	t.Parallel()
	s, v := onTools(t, `{turns: [{match: {}, reply: {text: "Hello."}}]}`, func(o *standalone.Options) { o.Chat.Enabled = false })
	token := s.Token(t, "team", "client", "chat-tasks")
	body := `{"model":"openai/m","messages":[{"role":"user","content":"h"}]}`
	got := s.post("/openai/v1/chat/completions", body, "Authorization", "Bearer "+token, "X-Platform-Tools", "")
	last, _ := v.last()
	if got.Code != http.StatusOK || said(t, got.Body) != "Hello." || got.Header.Get("X-Platform-Tools") != "disabled" || strings.Contains(last.body, "coordinate") {
		t.Errorf("%d %s", got.Code, got.Body)
	}
	got = s.post("/openai/v1/chat/completions", body, "Authorization", "Bearer "+token, "X-Platform-Tools", "enabled")
	if got.Code != http.StatusForbidden || !strings.Contains(got.Body, "switched off") {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}
