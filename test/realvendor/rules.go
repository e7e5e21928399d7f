// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package realvendor

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// object is a JSON object of a request.
type object map[string]any

// only reports members that the vendor does not know, or that are null where it wants a value.
func (o object) only(where, members string) error {
	known := strings.Fields(members)
	for name := range o {
		if !slices.Contains(known, name) {
			return fmt.Errorf("unknown parameter: '%s%s'", where, name)
		}
	}
	return nil
}

// text returns a member that is a text.
func (o object) text(name string) string {
	s, _ := o[name].(string)
	return s
}

// in returns a member that is an object.
func (o object) in(name string) object {
	m, _ := o[name].(map[string]any)
	return m
}

// list returns a member that is a list of objects.
func (o object) list(name string) ([]object, error) {
	all, ok := o[name].([]any)
	if !ok && o[name] != nil {
		return nil, fmt.Errorf("'%s' must be a list", name)
	}
	out := make([]object, 0, len(all))
	for i, e := range all {
		m, ok := e.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("'%s[%d]' must be an object", name, i)
		}
		out = append(out, m)
	}
	return out, nil
}

// schema checks a JSON schema and returns its text. A strict one is one that the vendor holds the model to; all says whether it must
// require all members.
func schema(where string, v any, strict, all bool) (string, error) {
	m, ok := v.(map[string]any)
	if !ok || m["type"] != "object" {
		return "", fmt.Errorf("invalid schema for %s: schema must be of type 'object'", where)
	}
	if err := held(where, m, all); strict && err != nil {
		return "", err
	}
	raw, err := json.Marshal(m)
	return string(raw), err
}

// held checks the objects of a schema that the model is held to: they allow no members but those that they name.
func held(where string, m map[string]any, all bool) error {
	if m["type"] == "object" {
		if m["additionalProperties"] != false {
			return fmt.Errorf("invalid schema for %s: 'additionalProperties' is required to be supplied and to be false", where)
		}
		required, _ := m["required"].([]any)
		for name := range object(m).in("properties") {
			if all && !slices.Contains(required, any(name)) {
				return fmt.Errorf("invalid schema for %s: 'required' must have every key in properties, and lacks '%s'", where, name)
			}
		}
	}
	for _, v := range m {
		switch v := v.(type) {
		case map[string]any:
			if err := held(where, v, all); err != nil {
				return err
			}
		case []any:
			for _, e := range v {
				if e, ok := e.(map[string]any); ok {
					if err := held(where, e, all); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// parts returns the text of a content, which is a text or a list of parts; allowed has the members of each type of part.
func parts(where string, content any, allowed map[string]string) (string, error) {
	switch c := content.(type) {
	case nil:
		return "", nil
	case string:
		return c, nil
	case []any:
		var all strings.Builder
		for i, e := range c {
			m, ok := e.(map[string]any)
			if !ok {
				return "", fmt.Errorf("'%s[%d]' must be an object", where, i)
			}
			p := object(m)
			members, ok := allowed[p.text("type")]
			if !ok {
				return "", fmt.Errorf("invalid value '%s' of '%s[%d].type'", p.text("type"), where, i)
			}
			if err := p.only(fmt.Sprintf("%s[%d].", where, i), "type "+members); err != nil {
				return "", err
			}
			all.WriteString(p.text("text") + p.text("refusal"))
		}
		return all.String(), nil
	}
	return "", fmt.Errorf("'%s' must be a text or a list", where)
}

// The members of the vendors' requests, from the types of their own clients.
const (
	chatMembers = `messages model audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens metadata modalities
		moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_options prompt_cache_retention reasoning_effort response_format
		safety_identifier seed service_tier stop store stream stream_options temperature tool_choice tools top_logprobs top_p user verbosity web_search_options`
	responseMembers = `access_programs background background_options context_management conversation image include input instructions max_output_tokens
		max_tool_calls metadata model moderation parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention
		reasoning safety_identifier service_tier store stream stream_options temperature text tool_choice tools top_logprobs top_p truncation user client_metadata`
	messageMembers = `max_tokens messages model cache_control container diagnostics inference_geo metadata output_config service_tier speed stop_sequences
		stream system temperature thinking tool_choice tools top_k top_p`
)

// betas are the members of messages that need a beta: the beginning of what the header anthropic-beta must have.
var betas = map[string]string{
	"context_management": "context-management-", "output_format": "structured-outputs-", "mcp_servers": "mcp-client-", "thread": "message-threads-", "fallbacks": "",
}

// readChat reads a request of chat completions.
func readChat(o object, _ *http.Request) (*heard, error) {
	if err := o.only("", chatMembers); err != nil {
		return nil, err
	}
	h := &heard{model: o.text("model"), stream: o["stream"] == true, tools: map[string]string{}}
	if options, ok := o["stream_options"]; ok && options != nil {
		if err := o.in("stream_options").only("stream_options.", "include_usage include_obfuscation"); err != nil {
			return nil, err
		}
		if !h.stream {
			return nil, errors.New("the 'stream_options' parameter is only allowed when 'stream' is enabled")
		}
		h.usage = o.in("stream_options")["include_usage"] == true
	}
	tools, err := o.list("tools")
	if err != nil {
		return nil, err
	}
	for i, t := range tools {
		f, where := t.in("function"), fmt.Sprintf("tools[%d].", i)
		if err := errors.Join(t.only(where, "type function"), f.only(where+"function.", "name description parameters strict")); err != nil {
			return nil, err
		}
		if err := h.tool(f, "parameters"); err != nil {
			return nil, err
		}
	}
	format := o.in("response_format")
	h.form = format.text("type") == "json_schema"
	if inner := format.in("json_schema"); h.form {
		if err := inner.only("response_format.json_schema.", "name description schema strict"); err != nil {
			return nil, err
		}
		if _, err := schema("response_format", inner["schema"], inner["strict"] == true, true); err != nil {
			return nil, err
		}
	}
	messages, err := o.list("messages")
	if err != nil {
		return nil, err
	}
	text := map[string]string{"text": "text annotations", "refusal": "refusal", "image_url": "image_url", "file": "file"}
	for i, m := range messages {
		where := fmt.Sprintf("messages[%d].", i)
		said, err := parts(where+"content", m["content"], text)
		if err := errors.Join(err, m.only(where, "role content name tool_call_id tool_calls refusal annotations audio function_call")); err != nil {
			return nil, err
		}
		calls, err := m.list("tool_calls")
		if err != nil {
			return nil, err
		}
		switch role := m.text("role"); role {
		case "tool":
			h.said = append(h.said, line{"result", said, m.text("tool_call_id")})
		case "developer", "system":
			h.said = append(h.said, line{"system", said, ""})
		case "user":
			h.said = append(h.said, line{role, said, ""})
		case "assistant":
			if m["content"] == nil && len(calls) == 0 {
				return nil, fmt.Errorf("%scontent is required", where)
			}
			h.said = append(h.said, line{role, said, ""})
			for _, c := range calls {
				if err := errors.Join(c.only(where+"tool_calls[].", "id type function"), c.in("function").only(where+"tool_calls[].function.", "name arguments")); err != nil {
					return nil, err
				}
				if c["type"] != "function" {
					return nil, fmt.Errorf("%stool_calls[].type must be function", where)
				}
				h.said = append(h.said, line{"call", c.in("function").text("arguments"), c.text("id")})
			}
		default:
			return nil, fmt.Errorf("invalid value '%s' of '%srole'", role, where)
		}
	}
	return h, nil
}

// name is how a tool may be named.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// tool notes a tool whose schema is a member of t.
func (h *heard) tool(t object, member string) error {
	name := t.text("name")
	if !toolName.MatchString(name) || h.tools[name] != "" {
		return fmt.Errorf("the name %q of a tool is not valid or is there twice", name)
	}
	h.tools[name] = "{}"
	if t[member] == nil {
		return nil
	}
	text, err := schema("function '"+name+"'", t[member], t["strict"] == true, member == "parameters")
	h.tools[name] = text
	return err
}

// readResponse reads a request of responses.
func readResponse(o object, _ *http.Request) (*heard, error) {
	if err := o.only("", responseMembers); err != nil {
		return nil, err
	}
	if o["store"] != false {
		return nil, errors.New("'store' must be false: this organization keeps no data")
	}
	h := &heard{model: o.text("model"), stream: o["stream"] == true, tools: map[string]string{}}
	if text := o.text("instructions"); text != "" {
		h.said = append(h.said, line{"system", text, ""})
	}
	format := o.in("text").in("format")
	if h.form = format.text("type") == "json_schema"; h.form {
		if err := format.only("text.format.", "type name description schema strict"); err != nil {
			return nil, err
		}
		if _, err := schema("text.format", format["schema"], format["strict"] == true, true); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(o.in("text").only("text.", "format verbosity"), o.in("reasoning").only("reasoning.", "effort summary generate_summary context mode encrypted_content")); err != nil {
		return nil, err
	}
	tools, err := o.list("tools")
	if err != nil {
		return nil, err
	}
	for i, t := range tools {
		where := fmt.Sprintf("tools[%d].", i)
		switch kind := t.text("type"); kind {
		case "function":
			if err := errors.Join(t.only(where, "type name description parameters strict defer_loading allowed_callers async output_schema"), h.tool(t, "parameters")); err != nil {
				return nil, err
			}
		case "namespace":
			if err := t.only(where, "type name description tools"); err != nil {
				return nil, err
			}
		case "web_search", "custom", "local_shell", "tool_search", "image_generation", "apply_patch", "shell":
		default:
			return nil, fmt.Errorf("invalid value '%s' of '%stype'", kind, where)
		}
	}
	if text, ok := o["input"].(string); ok {
		h.said = append(h.said, line{"user", text, ""})
		return h, nil
	}
	items, err := o.list("input")
	if err != nil {
		return nil, err
	}
	for i, item := range items {
		if err := h.item(fmt.Sprintf("input[%d].", i), item); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// item adds an item of the input of responses.
func (h *heard) item(where string, m object) error {
	asked := map[string]string{"input_text": "text prompt_cache_breakpoint", "input_image": "image_url detail file_id", "input_file": "file_id filename file_data file_url"}
	given := map[string]string{"output_text": "text annotations logprobs", "refusal": "refusal"}
	switch kind := m.text("type"); kind {
	case "message", "":
		allowed, role := asked, m.text("role")
		if role == "assistant" {
			allowed = given
		}
		if role == "developer" {
			role = "system"
		}
		said, err := parts(where+"content", m["content"], allowed)
		if err := errors.Join(err, m.only(where, "type id role status content phase")); err != nil {
			return err
		}
		if !slices.Contains([]string{"user", "assistant", "system"}, role) {
			return fmt.Errorf("invalid value '%s' of '%srole'", role, where)
		}
		h.said = append(h.said, line{role, said, ""})
	case "function_call":
		h.said = append(h.said, line{"call", m.text("arguments"), m.text("call_id")})
		return m.only(where, "type id call_id name arguments status namespace")
	case "custom_tool_call":
		h.said = append(h.said, line{"call", m.text("input"), m.text("call_id")})
	case "function_call_output", "custom_tool_call_output":
		said, err := parts(where+"output", m["output"], asked)
		h.said = append(h.said, line{"result", said, m.text("call_id")})
		return errors.Join(err, m.only(where, "type id call_id output status"))
	case "reasoning":
		return errors.New("item 'reasoning' was not given by this vendor")
	case "additional_tools":
	default:
		return fmt.Errorf("invalid value '%s' of '%stype'", kind, where)
	}
	return nil
}

// The members of the blocks of messages.
var blocks = map[string]string{
	"text": "type text cache_control citations", "image": "type source cache_control", "document": "type source cache_control title context citations",
	"tool_use": "type id name input cache_control caller", "tool_result": "type tool_use_id content is_error cache_control",
	"thinking": "type thinking signature", "redacted_thinking": "type data",
}

// readMessages reads a request of messages.
func readMessages(o object, r *http.Request) (*heard, error) {
	members := []string{messageMembers}
	for name, beta := range betas {
		if strings.Contains(strings.Join(r.Header.Values("Anthropic-Beta"), ","), beta) {
			members = append(members, name)
		}
	}
	if err := o.only("", strings.Join(members, " ")); err != nil {
		return nil, err
	}
	if o["thread"] != nil {
		return nil, errThread
	}
	if r.Header.Get("Anthropic-Version") == "" {
		return nil, errors.New("anthropic-version: header is required")
	}
	if n, ok := o["max_tokens"].(float64); !ok || n < 1 {
		return nil, errors.New("max_tokens: Field required")
	}
	h := &heard{model: o.text("model"), stream: o["stream"] == true, tools: map[string]string{}}
	kind := o.in("thinking").text("type")
	h.thinking = kind == "enabled" || kind == "adaptive"
	config := o.in("output_config")
	if err := config.only("output_config.", "effort format task_budget"); err != nil {
		return nil, err
	}
	for _, format := range []object{config.in("format"), o.in("output_format")} {
		if format == nil {
			continue
		}
		h.form = true
		if _, err := schema("output_config.format", format["schema"], true, false); err != nil {
			return nil, err
		}
	}
	tools, err := o.list("tools")
	if err != nil {
		return nil, err
	}
	for i, t := range tools {
		if kind := t.text("type"); kind != "" && kind != "custom" {
			continue // a tool of the vendor
		}
		if err := t.only(fmt.Sprintf("tools.%d.", i), "type name description input_schema cache_control eager_input_streaming strict defer_loading allowed_callers input_examples"); err != nil {
			return nil, err
		}
		if t["input_schema"] == nil {
			return nil, fmt.Errorf("tools.%d.input_schema: Field required", i)
		}
		if err := h.tool(t, "input_schema"); err != nil {
			return nil, err
		}
	}
	system, err := parts("system", o["system"], map[string]string{"text": "text cache_control citations"})
	if err != nil {
		return nil, err
	}
	if system != "" {
		h.said = append(h.said, line{"system", system, ""})
	}
	messages, err := o.list("messages")
	if err != nil {
		return nil, err
	}
	for i, m := range messages {
		if err := h.message(fmt.Sprintf("messages.%d.", i), m); err != nil {
			return nil, err
		}
	}
	if len(messages) == 0 || messages[0].text("role") != "user" {
		return nil, errors.New("messages: first message must use the \"user\" role")
	}
	return h, marks(o)
}

// message adds a message of the messages.
func (h *heard) message(where string, m object) error {
	if err := m.only(where, "role content"); err != nil {
		return err
	}
	role := m.text("role")
	if !slices.Contains([]string{"user", "assistant", "system"}, role) {
		return fmt.Errorf("%srole: unexpected role %q", where, role)
	}
	if text, ok := m["content"].(string); ok {
		if strings.TrimSpace(text) == "" {
			return fmt.Errorf("%scontent: text content blocks must be non-empty", where)
		}
		h.said = append(h.said, line{role, text, ""})
		return nil
	}
	content, err := m.list("content")
	if err != nil {
		return err
	}
	for i, b := range content {
		if err := h.block(fmt.Sprintf("%scontent.%d.", where, i), role, b); err != nil {
			return err
		}
	}
	return nil
}

// block adds a block of a message.
func (h *heard) block(where, role string, b object) error {
	kind := b.text("type")
	members, ok := blocks[kind]
	if !ok {
		return fmt.Errorf("%stype: unexpected value %q", where, kind)
	}
	if err := b.only(where, members); err != nil {
		return err
	}
	if of := map[string]string{"tool_use": "assistant", "thinking": "assistant", "redacted_thinking": "assistant", "tool_result": "user", "image": "user", "document": "user"}[kind]; of != "" && of != role {
		return fmt.Errorf("%stype: %s is not of the role %q", where, kind, role)
	}
	switch kind {
	case "text":
		if strings.TrimSpace(b.text("text")) == "" {
			return fmt.Errorf("%stext: text content blocks must be non-empty", where)
		}
		h.said = append(h.said, line{role, b.text("text"), ""})
	case "thinking":
		if b.text("thinking") != thought.Text || b.text("signature") != thought.Signature {
			return fmt.Errorf("%ssignature: Invalid `signature` in `thinking` block", where)
		}
	case "tool_use":
		if b.in("input") == nil || !toolName.MatchString(b.text("id")) {
			return fmt.Errorf("%sinput: Input should be an object, and the id valid", where)
		}
		raw, err := json.Marshal(b["input"])
		h.said = append(h.said, line{"call", string(raw), b.text("id")})
		return err
	case "tool_result":
		said, err := parts(where+"content", b["content"], map[string]string{"text": "text cache_control citations", "image": "source cache_control"})
		h.said = append(h.said, line{"result", said, b.text("tool_use_id")})
		return err
	}
	return nil
}

// marks checks how many marks of the cache a request has.
func marks(o object) error {
	n := 0
	var count func(v any)
	count = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, e := range v {
				if name == "cache_control" && e != nil {
					n++
				}
				count(e)
			}
		case []any:
			for _, e := range v {
				count(e)
			}
		}
	}
	count(map[string]any(o))
	if n > 4 {
		return fmt.Errorf("a maximum of 4 blocks with cache_control may be provided. Found %d", n)
	}
	return nil
}
