// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"maps"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/canonical"
)

// direction is a request and what its vendor gets. Members that all rows have are left out of both.
type direction struct {
	given, want string
	// left is what the answer says was left out.
	left string
	// refused is a part of the error of a request that is refused, and param the member that it names.
	refused, param string
}

// What all rows have unless they say otherwise.
const (
	hello     = `"messages":[{"role":"user","content":"a"}]`
	helloItem = `"input":"a"`
	toClaude  = `"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]`
)

// check sends a request and compares what its vendor got.
func (d *direction) check(t *testing.T, l *loop, given, want string) {
	t.Helper()
	answer, got := l.post(t, given)
	body := answer.Body.String()
	if d.refused != "" {
		if answer.Code != http.StatusBadRequest || len(got) > 0 || !strings.Contains(body, d.refused) || d.param != "" && !strings.Contains(body, `"param":"`+d.param+`"`) {
			t.Errorf("%s: %d %s, want %s %s", d.given, answer.Code, body, d.param, d.refused)
		}
		return
	}
	if answer.Code != http.StatusOK || len(got) != 1 {
		t.Errorf("%s: %d %s, after %d requests to the vendor", d.given, answer.Code, body, len(got))
		return
	}
	if left := answer.Header().Get(headerLeft); left != d.left {
		t.Errorf("%s: left out %q, want %q", d.given, left, d.left)
	}
	if a, b := plainly(t, string(got[0])), plainly(t, want); !reflect.DeepEqual(a, b) {
		t.Errorf("%s: the vendor got\n%s, want\n%s", d.given, got[0], want)
	}
}

// plainly decodes a request without what every request to a vendor has: the model, stream, the limit and the marks of caches.
func plainly(t *testing.T, body string) any {
	t.Helper()
	all, err := canonical.Decode([]byte(body))
	if err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	root, _ := all.(map[string]any)
	for _, name := range []string{"model", "stream", "stream_options", "max_tokens"} {
		delete(root, name)
	}
	return unmark(all)
}

func unmark(v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "cache_control")
		for name := range maps.Clone(v) {
			v[name] = unmark(v[name])
		}
	case []any:
		for i := range v {
			v[i] = unmark(v[i])
		}
	}
	return v
}

// with returns a body with the members, and with others whose names they lack.
func with(members string, others ...string) string {
	for _, one := range others {
		name, _, _ := strings.Cut(one, ":")
		if !strings.Contains(members, name+":") {
			members += "," + one
		}
	}
	return "{" + strings.Trim(members, ",") + "}"
}

const (
	png     = "data:image/png;base64,iVBORw0KGgo="
	pngPart = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}`
	webPart = `{"type":"image","source":{"type":"url","url":"https://example.com/a.png"}}`
)

// TestChatToAnthropic: what a vendor of messages gets of a chat completion.
func TestChatToAnthropic(t *testing.T) {
	t.Parallel()
	const (
		tool   = `"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}]`
		tools  = `"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g"}}]`
		gets   = `"tools":[{"name":"f","description":"d","input_schema":{"type":"object"}}]`
		both   = `"tools":[{"name":"f","input_schema":{"type":"object"}},{"name":"g","input_schema":{"type":"object"}}]`
		user   = `{"role":"user","content":"a"}`
		gotten = `{"role":"user","content":[{"type":"text","text":"a"}]}`
		schema = `{"type":"object","properties":{"n":{"maximum":9007199254740993}},"additionalProperties":false}`
		asked  = `{"id":"1","type":"function","function":{"name":"f","arguments":"{\"n\":9007199254740993}"}}`
		call   = `{"type":"tool_use","id":"1","name":"f","input":{"n":9007199254740993}}`
		empty  = `{"role":"assistant","content":[{"type":"text","text":"[platform notice] This message is empty."}]}`
	)
	l := newLoop(t, opChat, v1alpha1.ProviderAnthropic)
	for _, d := range []direction{
		// What is null, empty or the default is as if it were not there, also what nobody knows.
		{given: `"seed":null,"reasoning_effort":null,"tools":[],"stop":null,"metadata":{},"logit_bias":{},"n":1,"top_p":1,"frequency_penalty":0,"logprobs":false,"modalities":["text"],` +
			`"store":false,"tool_choice":"auto","parallel_tool_calls":true,"response_format":{"type":"text"},"function_call":null,"functions":[],"service_tier":null,"audio":null,"future":null`, left: "metadata"},
		// An answer of OpenAI comes back as it was.
		{
			given: `"messages":[` + user + `,{"role":"assistant","content":"b","refusal":null,"annotations":[],"audio":null,"function_call":null,"tool_calls":null},` + user + `]`,
			want:  `"messages":[` + gotten + `,{"role":"assistant","content":[{"type":"text","text":"b"}]},` + gotten + `]`,
		},
		// An answer as the OpenAI Agents SDK sends it back.
		{
			given: `"messages":[` + user + `,{"role":"assistant","content":[{"type":"text","text":"b","annotations":[]}]},` + user + `]`,
			want:  `"messages":[` + gotten + `,{"role":"assistant","content":[{"type":"text","text":"b"}]},` + gotten + `]`,
		},
		{
			given: `"messages":[` + user + `,{"role":"assistant","content":null,"refusal":"No.","reasoning_content":"hm"},` + user + `]`,
			want:  `"messages":[` + gotten + `,{"role":"assistant","content":[{"type":"text","text":"No."}]},` + gotten + `]`, left: "messages[].reasoning_content",
		},
		{
			given: `"messages":[` + user + `,{"role":"assistant","content":""},{"role":"assistant","content":[]},` + user + `]`,
			want:  `"messages":[` + gotten + `,` + empty + `,` + gotten + `]`,
		},
		{given: `"messages":[` + user + `,{"role":"assistant","content":null},` + user + `]`, want: `"messages":[` + gotten + `,` + empty + `,` + gotten + `]`},
		{
			given: `"messages":[` + user + `,{"role":"assistant","content":"b"},{"role":"user","content":[]}]`,
			want:  `"messages":[` + gotten + `,{"role":"assistant","content":[{"type":"text","text":"b"}]},{"role":"user","content":[{"type":"text","text":"[platform notice] This message is empty."}]}]`,
		},
		{given: `"messages":[` + user + `,{"role":"user","content":""},{"role":"assistant","content":[]}]`, want: `"messages":[` + gotten + `]`},
		{given: `"messages":[{"role":"user","content":[]}]`, refused: "nobody says anything", param: "messages"},
		{given: `"messages":[` + user + `,{"role":"user","content":" "}]`, refused: "nothing but white space", param: "messages"},
		// Hints are left out, with a word.
		{
			given: `"user":"u","metadata":{"a":"b"},"service_tier":"flex","prompt_cache_key":"k","frequency_penalty":1,"presence_penalty":1,"verbosity":"low","safety_identifier":"s"`,
			left:  "frequency_penalty, metadata, presence_penalty, prompt_cache_key, safety_identifier, service_tier, user, verbosity",
		},
		{
			given: `"messages":[{"role":"system","name":"s","content":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}]},{"role":"user","name":"bob","content":"a"},` +
				`{"role":"assistant","name":"amy","content":"b","tool_calls":[` + asked + `]},{"role":"tool","name":"f","tool_call_id":"1","content":"r"}],` + tool,
			want: `"system":[{"type":"text","text":"s"}],"messages":[` + gotten + `,{"role":"assistant","content":[{"type":"text","text":"b"},` + call + `]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"r"}]}]}],` + gets,
			left: "messages[].content[text].cache_control, messages[].name",
		},
		// Messages of the system are the system's text, wherever they are.
		{
			given: `"messages":[{"role":"system","content":"s"},` + user + `,{"role":"developer","content":"t"},{"role":"user","content":"c"}]`,
			want:  `"system":[{"type":"text","text":"s"},{"type":"text","text":"t"}],"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"c"}]}]`,
		},
		// What has an equivalent is translated.
		{given: `"top_p":0.5`, want: `"top_p":0.5`},
		{given: `"top_p":0.5,"temperature":0.25`, want: `"temperature":0.25`},
		{given: `"reasoning_effort":"minimal"`, want: `"output_config":{"effort":"low"}`},
		{given: `"reasoning_effort":"xhigh"`, want: `"output_config":{"effort":"high"}`},
		{given: tool + `,"tool_choice":"none"`, want: gets + `,"tool_choice":{"type":"none"}`},
		{given: tool + `,"tool_choice":"required"`, want: gets + `,"tool_choice":{"type":"any"}`},
		{given: tool + `,"tool_choice":{"type":"function","function":{"name":"f"}}`, want: gets + `,"tool_choice":{"type":"tool","name":"f"}`},
		{given: tools + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"g"}}]}}`, want: `"tools":[{"name":"g","input_schema":{"type":"object"}}],"tool_choice":{"type":"any"}`},
		{given: tools + `,"parallel_tool_calls":false`, want: both + `,"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`},
		{given: tool + `,"tool_choice":"required","parallel_tool_calls":false`, want: gets + `,"tool_choice":{"type":"any","disable_parallel_tool_use":true}`},
		{given: `"parallel_tool_calls":false,"tool_choice":"none"`, want: ``},
		{given: `"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":` + schema + `}}`, want: `"output_config":{"format":{"type":"json_schema","schema":` + schema + `}}`},
		{
			given: `"reasoning_effort":"high","response_format":{"type":"json_schema","json_schema":{"name":"n","schema":` + schema + `}}`,
			want:  `"output_config":{"effort":"high","format":{"type":"json_schema","schema":` + schema + `}}`,
		},
		{given: `"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":` + schema + `}}]`, want: `"tools":[{"name":"f","strict":true,"input_schema":` + schema + `}]`},
		{given: `"tools":[{"type":"function","function":{"name":"f","strict":false,"parameters":{}}}]`, want: `"tools":[{"name":"f","input_schema":{"type":"object"}}]`},
		{given: `"tools":[{"type":"function","function":{"name":"f","parameters":{"properties":{"n":{}}}}}]`, want: `"tools":[{"name":"f","input_schema":{"type":"object","properties":{"n":{}}}}]`},
		{given: `"stop":["x","\n"]`, want: `"stop_sequences":["x"]`},
		{given: `"stop":" "`, want: ``},
		{
			given: `"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"` + png + `","detail":"high"}},{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]}]`,
			want:  `"messages":[{"role":"user","content":[{"type":"text","text":"a"},` + pngPart + `,` + webPart + `]}]`, left: "messages[].content[image_url].image_url.detail",
		},
		{
			given: `"messages":[` + user + `,{"role":"assistant","tool_calls":[` + asked + `]},{"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"r"},{"type":"image_url","image_url":{"url":"` + png + `"}}]}],` + tool,
			want: `"messages":[` + gotten + `,{"role":"assistant","content":[` + call + `]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"r"},` + pngPart + `]}]}],` + gets,
		},
		// A vendor's own tools are left out, unless nothing else is there or they must be called.
		{given: `"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}},{"type":"custom","custom":{"name":"c"}}]`, want: gets, left: "tools[custom]"},
		{given: `"tools":[{"type":"custom","custom":{"name":"c"}}]`, refused: "tools[custom]", param: "tools"},
		{given: tool + `,"tool_choice":{"type":"function","function":{"name":"c"}}`, refused: "not among those that are carried", param: "tool_choice"},
		{given: `"tool_choice":"required"`, refused: "where none is left", param: "tool_choice"},
		// What changes the answer and has no equivalent is refused by name.
		{given: `"seed":7`, refused: `"seed `, param: "seed"},
		{given: `"logprobs":true`, refused: `"logprobs `, param: "logprobs"},
		{given: `"logit_bias":{"1":2}`, refused: `"logit_bias `, param: "logit_bias"},
		{given: `"response_format":{"type":"json_object"}`, refused: "response_format: this value", param: "response_format"},
		{given: `"modalities":["audio"]`, refused: `"modalities `, param: "modalities"},
		{given: `"functions":[{"name":"f"}]`, refused: `"functions `, param: "functions"},
		{given: `"store":true`, refused: `"store `, param: "store"},
		{given: `"reasoning_effort":"enormous"`, refused: "reasoning_effort: this value", param: "reasoning_effort"},
		{given: `"future":1`, refused: `"future `, param: "future"},
		{given: `"messages":[{"role":"user","content":"a","future":{}}]`, refused: `"messages[].future `, param: "messages"},
		{given: `"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}]`, refused: "messages[].content[input_audio] ", param: "messages"},
		{given: `"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,"}}]}]`, refused: "an image whose address", param: "messages"},
		{given: `"messages":[{"role":"user","content":"a","role":"user"}]`, refused: "occurs twice"},
	} {
		d.check(t, l, with(d.given, hello, `"model":"m"`), with(d.want, toClaude))
	}
}

// TestResponsesToAnthropic: what a vendor of messages gets of a response.
func TestResponsesToAnthropic(t *testing.T) {
	t.Parallel()
	const (
		tool  = `"tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object"}}]`
		gets  = `"tools":[{"name":"f","description":"d","input_schema":{"type":"object"}}]`
		user  = `{"role":"user","content":"a"}`
		given = `{"role":"user","content":[{"type":"text","text":"a"}]}`
	)
	l := newLoop(t, opResponses, v1alpha1.ProviderAnthropic)
	for _, d := range []direction{
		{given: `"store":null,"reasoning":null,"metadata":null,"tools":[],"include":[],"prompt":null,"text":null,"truncation":"disabled","background":false,"top_logprobs":0,"previous_response_id":null,"service_tier":null,"max_tool_calls":null`},
		{
			given: `"include":["reasoning.encrypted_content"],"prompt_cache_key":"k","client_metadata":{"a":"b"},"reasoning":{"summary":"auto"},"text":{"verbosity":"low"},"metadata":{"a":"b"},"service_tier":"auto","truncation":"auto","stream_options":{"include_obfuscation":false}`,
			left:  "client_metadata, include, metadata, prompt_cache_key, reasoning.summary, service_tier, stream_options, text.verbosity, truncation",
		},
		{given: `"reasoning":{"effort":"medium","summary":"auto"}`, want: `"output_config":{"effort":"medium"}`, left: "reasoning.summary"},
		{given: `"reasoning":{"effort":"none"}`, want: `"output_config":{"effort":"low"}`},
		{given: tool + `,"tool_choice":"required","parallel_tool_calls":false`, want: gets + `,"tool_choice":{"type":"any","disable_parallel_tool_use":true}`},
		{given: tool + `,"tool_choice":{"type":"function","name":"f"}`, want: gets + `,"tool_choice":{"type":"tool","name":"f"}`},
		{given: tool + `,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"}]}`, want: gets},
		{given: tool + `,"tool_choice":{"type":"web_search"}`, refused: "a tool of type web_search", param: "tool_choice"},
		{given: `"tools":[{"type":"function","name":"f","strict":true,"parameters":{"properties":{}}}]`, want: `"tools":[{"name":"f","strict":true,"input_schema":{"type":"object","properties":{}}}]`},
		{
			given: `"tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object"},"strict":false},{"type":"web_search","external_web_access":false},{"type":"image_generation"}]`,
			want:  gets, left: "tools[image_generation], tools[web_search]",
		},
		{given: `"tools":[{"type":"web_search"}]`, refused: "tools[web_search]", param: "tools"},
		// The tools of a namespace are tools, and their calls in the conversation have the same names.
		{
			given: `"tools":[{"type":"namespace","name":"mcp__files__","description":"d","tools":[{"type":"function","name":"read","parameters":{"type":"object"},"strict":false}]},{"type":"namespace","name":"agents","tools":[{"type":"function","name":"ask"}]}],` +
				`"input":[` + user + `,{"type":"function_call","id":"fc_1","call_id":"1","namespace":"mcp__files__","name":"read","arguments":"{}","status":"completed"},{"type":"function_call_output","call_id":"1","output":"r"}]`,
			want: `"tools":[{"name":"mcp__files__read","input_schema":{"type":"object"}},{"name":"agents__ask","input_schema":{"type":"object"}}],"messages":[` + given + `,` +
				`{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"mcp__files__read","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"r"}]}]}]`,
			left: "input[function_call].id, tools[namespace].description",
		},
		{given: `"text":{"format":{"type":"json_schema","name":"n","strict":true,"schema":{"type":"object"}},"verbosity":"medium"}`, want: `"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}`},
		{given: `"text":{"format":{"type":"json_object"}}`, refused: "text: this value", param: "text"},
		{
			given: `"input":[{"role":"developer","content":"s"},` + user + `,{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"AA=="},` +
				`{"type":"message","id":"msg_1","status":"completed","role":"assistant","phase":"final_answer","content":[{"type":"output_text","text":"b","annotations":[{"type":"url_citation"}],"logprobs":[]},{"type":"refusal","refusal":"No."}]},` +
				`{"role":"developer","content":"t"},` + user + `]`,
			want: `"system":[{"type":"text","text":"s"},{"type":"text","text":"t"}],"messages":[` + given + `,{"role":"assistant","content":[{"type":"text","text":"b\nNo."}]},` + given + `]`,
			left: "input[message].content[output_text].annotations, input[message].id, input[message].phase, input[reasoning]",
		},
		{
			given: `"input":[{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"` + png + `","detail":"auto"}]}]`,
			want:  `"messages":[{"role":"user","content":[{"type":"text","text":"a"},` + pngPart + `]}]`,
		},
		{
			given: `"input":[` + user + `,{"role":"assistant","content":[]},` + user + `,{"role":"assistant","content":""}]`,
			want:  `"messages":[` + given + `,{"role":"assistant","content":[{"type":"text","text":"[platform notice] This message is empty."}]},` + given + `]`,
		},
		{given: `"input":[{"role":"user","content":[]}]`, refused: "nobody says anything", param: "input"},
		{given: `"input":[{"role":"user","content":[{"type":"input_image","file_id":"f"}]}]`, refused: "input[].content[input_image].file_id ", param: "input"},
		{given: `"input":[{"type":"computer_call"}]`, refused: "input[computer_call] ", param: "input"},
		{given: `"top_logprobs":2`, refused: `"top_logprobs `, param: "top_logprobs"},
		{given: `"prompt":{"id":"p"}`, refused: `"prompt `, param: "prompt"},
		{given: `"future":1`, refused: `"future `, param: "future"},
	} {
		d.check(t, l, with(d.given, helloItem, `"model":"m"`), with(d.want, toClaude))
	}
}

// TestMessagesToOpenAI: what a vendor of chat completions gets of a message.
func TestMessagesToOpenAI(t *testing.T) {
	t.Parallel()
	const (
		tool   = `"tools":[{"name":"f","description":"d","input_schema":{"type":"object"}}]`
		gets   = `"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}]`
		user   = `{"role":"user","content":"a"}`
		call   = `{"type":"tool_use","id":"1","name":"f","input":{"n":9007199254740993}}`
		asked  = `{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"n\":9007199254740993}"}}]}`
		marked = `"cache_control":{"type":"ephemeral"}`
		schema = `{"type":"object","properties":{"n":{"maximum":9007199254740993}}}`
	)
	l := newLoop(t, opMessages, v1alpha1.ProviderOpenAI)
	for _, d := range []direction{
		{given: `"metadata":null,"thinking":null,"context_management":null,"tools":null,"tool_choice":{"type":"auto"},"top_p":1,"mcp_servers":[],"container":null,"service_tier":null,"stop_sequences":[],"future":null`},
		// What Claude Code sends.
		{
			given: `"metadata":{"user_id":"u"},"thinking":{"type":"adaptive"},"context_management":{"edits":[]},"output_config":{"effort":"xhigh"},"system":[{"type":"text","text":"s",` + marked + `},{"type":"text","text":"t"}],` +
				`"tools":[{"name":"f","description":"d","input_schema":{"type":"object"},` + marked + `,"eager_input_streaming":true}],"messages":[` + user + `,{"role":"system","content":"late"},` +
				`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},` + call + `]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","is_error":true,"content":"no such file",` + marked + `},{"type":"text","text":"b",` + marked + `}]}]`,
			want: `"reasoning_effort":"high",` + gets + `,"messages":[{"role":"system","content":"s\nt"},` + user + `,{"role":"system","content":"late"},` + asked +
				`,{"role":"tool","tool_call_id":"1","content":"[platform notice] The call failed.\nno such file"},{"role":"user","content":"b"}]`,
			left: "context_management, messages[].content[text].cache_control, messages[].content[thinking], messages[].content[tool_result].cache_control, metadata, system[text].cache_control, thinking, tools[].cache_control, tools[].eager_input_streaming",
		},
		{
			given: `"messages":[` + user + `,{"role":"assistant","content":[` + call + `]},{"role":"user","content":[{"type":"text","text":"b"},{"type":"tool_result","tool_use_id":"1","is_error":false,"content":[{"type":"text","text":"r"},` + pngPart + `]}]}]`,
			want: `"messages":[` + user + `,` + asked + `,{"role":"tool","tool_call_id":"1","content":"r\n[platform notice] The images of the result follow."},` +
				`{"role":"user","content":[{"type":"image_url","image_url":{"url":"` + png + `"}}]},{"role":"user","content":"b"}]`,
		},
		{
			given: `"messages":[{"role":"user","content":[{"type":"text","text":"a"},` + pngPart + `,` + webPart + `]}]`,
			want:  `"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"` + png + `"}},{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]}]`,
		},
		{
			given: `"messages":[` + user + `,{"role":"assistant","content":[{"type":"redacted_thinking","data":"AA=="}]},{"role":"assistant","content":[{"type":"text","text":"b","citations":null}]},` + user + `]`,
			want:  `"messages":[` + user + `,{"role":"assistant","content":""},{"role":"assistant","content":"b"},` + user + `]`, left: "messages[].content[redacted_thinking]",
		},
		// An empty message is one, however it is written.
		{
			given: `"messages":[` + user + `,{"role":"assistant","content":[]},` + user + `,{"role":"assistant","content":""},{"role":"user","content":[]},{"role":"user","content":""},{"role":"assistant","content":[]}]`,
			want:  `"messages":[` + user + `,{"role":"assistant","content":""},` + user + `,{"role":"assistant","content":""},{"role":"user","content":""},{"role":"user","content":""}]`,
		},
		{given: `"messages":[{"role":"user","content":[]}]`, refused: "nobody says anything"},
		{given: `"top_k":4,"service_tier":"auto","speed":"fast",` + marked, left: "cache_control, service_tier, speed, top_k"},
		{given: `"top_p":0.5,"temperature":0.25`, want: `"top_p":0.5,"temperature":0.25`},
		{given: tool + `,"tool_choice":{"type":"any"}`, want: gets + `,"tool_choice":"required"`},
		{given: tool + `,"tool_choice":{"type":"none"}`, want: gets + `,"tool_choice":"none"`},
		{given: tool + `,"tool_choice":{"type":"tool","name":"f"}`, want: gets + `,"tool_choice":{"type":"function","function":{"name":"f"}}`},
		{given: tool + `,"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`, want: gets + `,"parallel_tool_calls":false`},
		{given: tool + `,"tool_choice":{"type":"tool","name":"g"}`, refused: "not among those that are carried"},
		{given: `"tools":[{"type":"custom","name":"f","strict":true,"input_schema":{}}]`, want: `"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object"}}}]`},
		{given: `"output_config":{"format":{"type":"json_schema","schema":` + schema + `}}`, want: `"response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":` + schema + `}}`},
		{given: `"output_format":{"type":"json_schema","schema":` + schema + `}`, want: `"response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":` + schema + `}}`},
		{
			given: `"tools":[{"name":"f","description":"d","input_schema":{"type":"object"}},{"type":"web_search_20250305","name":"web_search","max_uses":3}]`, want: gets, left: "tools[web_search_20250305]",
		},
		{given: `"tools":[{"type":"web_search_20250305","name":"web_search"}]`, refused: "tools[web_search_20250305]"},
		{given: `"container":"c"`, refused: `"container: a container that was begun`},
		{given: `"container":{"skills":[]}`, refused: `"container `},
		{given: `"mcp_servers":[{"name":"m"}]`, refused: `"mcp_servers `},
		{given: `"thread":{"type":"create"}`, refused: `"error_code":"thread_unsupported_request"`},
		{given: `"thread":null`},
		{given: `"future":1`, refused: `"future `},
		{given: `"messages":[{"role":"user","content":[{"type":"document","source":{}}]}]`, refused: "messages[].content[document] "},
		{given: `"messages":[{"role":"user","content":[{"type":"image","source":{"type":"file","file_id":"f"}}]}]`, refused: "messages[].content[image].source.file_id "},
	} {
		d.check(t, l, with(d.given, hello, `"model":"m"`, `"max_tokens":9`), with(d.want, hello))
	}
}

// A call of a tool of a namespace comes back with its namespace, whole and in a stream.
func TestNamespaces(t *testing.T) {
	t.Parallel()
	l := newLoop(t, opResponses, v1alpha1.ProviderAnthropic)
	l.answer = stream(`{"type":"message_start","message":{"usage":{"input_tokens":3}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"1","name":"mcp__files__read","input":{}}}`, `{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":7}}`, `{"type":"message_stop"}`)
	for _, streamed := range []string{"false", "true"} {
		answer, _ := l.post(t, `{"model":"m","input":"a","stream":`+streamed+`,"tools":[{"type":"namespace","name":"mcp__files__","description":"d","tools":[{"type":"function","name":"read"}]}]}`)
		if body := answer.Body.String(); answer.Code != http.StatusOK || !strings.Contains(body, `"name":"read","namespace":"mcp__files__"`) || strings.Contains(body, "mcp__files__read") {
			t.Errorf("stream %s: %d %s", streamed, answer.Code, body)
		}
	}
}

// A sequence of nothing but white space ends the text of a chat completion here, because the vendor refuses it.
func TestBlankStop(t *testing.T) {
	t.Parallel()
	l := newLoop(t, opChat, v1alpha1.ProviderAnthropic)
	l.answer = stream(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"One\n"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ntwo"}}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}`, `{"type":"message_stop"}`)
	for _, streamed := range []string{"false", "true"} {
		answer, got := l.post(t, `{"model":"m","stop":["\n\n","x"],"stream":`+streamed+`,`+hello+`}`)
		if body := answer.Body.String(); answer.Code != http.StatusOK || strings.Contains(body, "two") || !strings.Contains(body, `"finish_reason":"stop"`) || !strings.Contains(string(got[0]), `"stop_sequences":["x"]`) {
			t.Errorf("stream %s: %d %s; the vendor got %s", streamed, answer.Code, body, got)
		}
	}
}
