// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"strings"
	"time"

	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/tooldef"
)

// chatRequest is what of a chat completion another protocol can carry. Members that are json.RawMessage or pointers
// without a use are accepted only with the value that changes nothing.
type chatRequest struct {
	Model               string        `json:"model"`
	Messages            []chatMessage `json:"messages"`
	Tools               []chatTool    `json:"tools"`
	Temperature         *float64      `json:"temperature"`
	MaxTokens           *int64        `json:"max_tokens"`
	MaxCompletionTokens *int64        `json:"max_completion_tokens"`
	Stream              bool          `json:"stream"`
	StreamOptions       *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`

	N                 *int64          `json:"n"`
	TopP              *float64        `json:"top_p"`
	FrequencyPenalty  *float64        `json:"frequency_penalty"`
	PresencePenalty   *float64        `json:"presence_penalty"`
	ParallelToolCalls *bool           `json:"parallel_tool_calls"`
	Store             *bool           `json:"store"`
	Logprobs          *bool           `json:"logprobs"`
	ToolChoice        json.RawMessage `json:"tool_choice"`
	ResponseFormat    json.RawMessage `json:"response_format"`
	Stop              json.RawMessage `json:"stop"`
}

type chatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  []chatCall      `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
	Refusal    *string         `json:"refusal"`
}

type chatCall struct {
	Index    *int     `json:"index,omitempty"`
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function chatFunc `json:"function"`
}

type chatFunc struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type chatTool struct {
	Type     string       `json:"type"`
	Function toolFunction `json:"function"`
}

type toolFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
}

// definition returns the tool of a type. Others than functions, and strict ones, are those of the vendor.
func (f *toolFunction) definition(kind string) (tooldef.Definition, error) {
	d := tooldef.Definition{Name: f.Name, Description: f.Description}
	if kind != "function" || f.Strict != nil && *f.Strict {
		return d, untranslatable("tools", "tools of another type than function, and strict ones,")
	}
	if !null(f.Parameters) {
		if d.Parameters = f.Parameters; !isObject(d.Parameters) {
			return d, invalid("tools", "tools: the parameters of function %q must be a JSON object", d.Name)
		}
	}
	return d, nil
}

// null reports whether a member is missing or null.
func null(raw json.RawMessage) bool { return len(raw) == 0 || bytes.Equal(raw, []byte("null")) }

// unchanging refuses the members that would change the answer and cannot be carried.
func unchanging(members map[string]bool) error {
	for name, changes := range members {
		if changes {
			return untranslatable(name, "this value")
		}
	}
	return nil
}

// auto reports whether a choice of tools is left to the model.
func auto(choice json.RawMessage) bool { return null(choice) || bytes.Equal(choice, []byte(`"auto"`)) }

// unlike reports whether a value is set and not the one that changes nothing.
func unlike[T comparable](v *T, neutral T) bool { return v != nil && *v != neutral }

// fromChat reads a chat completion.
func fromChat(in *incoming) (*translated, error) {
	var c chatRequest
	if err := strict(in.data, &c); err != nil {
		return nil, err
	}
	if err := c.neutral(); err != nil {
		return nil, err
	}
	t := &translated{usage: in.usage}
	var err error
	if t.stops, err = c.stops(); err != nil {
		return nil, err
	}
	if t.Format, err = c.format(); err != nil {
		return nil, err
	}
	t.Temperature = c.Temperature
	for _, limit := range []*int64{c.MaxCompletionTokens, c.MaxTokens} {
		if limit != nil && t.MaxTokens == 0 {
			t.MaxTokens = *limit
		}
	}
	for _, tool := range c.Tools {
		d, err := tool.Function.definition(tool.Type)
		if err != nil {
			return nil, err
		}
		t.Tools = append(t.Tools, d)
	}
	for _, m := range c.Messages {
		message, err := m.message(len(t.Messages) > 0 && t.Messages[len(t.Messages)-1].Role != llm.RoleSystem)
		if err != nil {
			return nil, err
		}
		t.Messages = append(t.Messages, message)
	}
	return t, nil
}

// neutral refuses members that would change the answer and cannot be carried.
func (c *chatRequest) neutral() error {
	return unchanging(map[string]bool{
		"top_p": unlike(c.TopP, 1), "frequency_penalty": unlike(c.FrequencyPenalty, 0), "presence_penalty": unlike(c.PresencePenalty, 0),
		"parallel_tool_calls": unlike(c.ParallelToolCalls, true), "store": unlike(c.Store, false), "logprobs": unlike(c.Logprobs, false),
		"tool_choice": !auto(c.ToolChoice),
	})
}

// stops returns the sequences that end the answer.
func (c *chatRequest) stops() (list []string, err error) {
	var one string
	switch {
	case null(c.Stop):
	case json.Unmarshal(c.Stop, &one) == nil:
		list = []string{one}
	case json.Unmarshal(c.Stop, &list) != nil:
		return nil, invalid("stop", "stop: must be a text or a list of texts")
	}
	return list, checkStops("stop", list)
}

// format returns the form of the answer, as the client wrote it; nil for a text.
func (c *chatRequest) format() (json.RawMessage, error) {
	var f struct {
		Type       string          `json:"type"`
		JSONSchema json.RawMessage `json:"json_schema"`
	}
	if null(c.ResponseFormat) {
		return nil, nil
	}
	if err := strict(c.ResponseFormat, &f); err != nil {
		return nil, err
	}
	switch schema := !null(f.JSONSchema); {
	case f.Type == "text" && !schema:
		return nil, nil
	case f.Type == "json_object" && !schema, f.Type == "json_schema" && schema && isObject(f.JSONSchema):
		return c.ResponseFormat, nil
	}
	return nil, untranslatable("response_format", "another form than text, json_object, and json_schema with an object json_schema,")
}

// message reads a message. After is set if something other than a system message came before.
func (m *chatMessage) message(after bool) (llm.Message, error) {
	text, err := textOf(m.Content, "messages", "\n")
	if err != nil {
		return llm.Message{}, err
	}
	out := llm.Message{Text: text, ToolCallID: m.ToolCallID}
	for _, call := range m.ToolCalls {
		if call.Type != "function" || !isObject([]byte(call.Function.Arguments)) {
			return llm.Message{}, untranslatable("messages", "a tool call whose type is not function or whose arguments are not a JSON object")
		}
		out.ToolCalls = append(out.ToolCalls, llm.ToolCall{ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments})
	}
	blank := strings.TrimSpace(text) == ""
	roles := map[string]llm.Role{"system": llm.RoleSystem, "developer": llm.RoleSystem, "user": llm.RoleUser, "assistant": llm.RoleAssistant, "tool": llm.RoleTool}
	role, known := roles[m.Role]
	out.Role = role
	switch {
	case !known:
		return llm.Message{}, untranslatable("messages", "the role "+m.Role)
	case m.Refusal != nil:
		return llm.Message{}, untranslatable("messages", "a refusal")
	case role == llm.RoleSystem && after:
		return llm.Message{}, untranslatable("messages", "a system message after others")
	case blank && role != llm.RoleTool && len(out.ToolCalls) == 0:
		return llm.Message{}, untranslatable("messages", "a message without text")
	case len(out.ToolCalls) > 0 && role != llm.RoleAssistant, (out.ToolCallID != "") != (role == llm.RoleTool):
		return llm.Message{}, invalid("messages", "messages: tool_calls are for the assistant, and a message of a tool, and no other, has a tool_call_id")
	}
	return out, nil
}

// textOf returns a text, or the texts of parts that are nothing but texts.
func textOf(raw json.RawMessage, param, separator string) (string, error) {
	if null(raw) {
		return "", nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := strict(raw, &parts); err != nil {
		return "", untranslatable(param, "content that is not plain text")
	}
	var texts []string
	for _, p := range parts {
		if p.Type != "text" {
			return "", untranslatable(param, "content of type "+p.Type)
		}
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, separator), nil
}

// isObject reports whether a text is a JSON object.
func isObject(data []byte) bool {
	_, err := parse(data)
	return err == nil
}

// chatForm writes answers as chat completions.
type chatForm struct {
	id, model string
	created   int64
	usage     bool
}

func newChatForm(model string, now time.Time, usage bool) *chatForm {
	return &chatForm{id: "chatcmpl-" + rand.Text(), model: model, created: now.Unix(), usage: usage}
}

type chatUsage struct {
	PromptTokens        int64 `json:"prompt_tokens"`
	CompletionTokens    int64 `json:"completion_tokens"`
	TotalTokens         int64 `json:"total_tokens"`
	PromptTokensDetails *struct {
		CachedTokens int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details,omitempty"`
}

type chatChoice struct {
	Index        int          `json:"index"`
	Delta        *chatContent `json:"delta,omitempty"`
	Message      *chatContent `json:"message,omitempty"`
	Logprobs     *struct{}    `json:"logprobs"`
	FinishReason *string      `json:"finish_reason"`
}

type chatContent struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	ToolCalls []chatCall `json:"tool_calls,omitempty"`
}

type chatReply struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []chatChoice `json:"choices"`
	Usage   *chatUsage   `json:"usage,omitempty"`
}

// usageOf returns the usage if it is known.
func (*chatForm) usageOf(u llm.Usage) *chatUsage {
	if !u.Known() {
		return nil
	}
	out := &chatUsage{PromptTokens: *u.InputTokens, CompletionTokens: *u.OutputTokens, TotalTokens: *u.InputTokens + *u.OutputTokens}
	if n := u.CachedInputTokens; n != nil {
		out.PromptTokensDetails = &struct {
			CachedTokens int64 `json:"cached_tokens"`
		}{*n}
	}
	return out
}

func (f *chatForm) reply(object string, choices ...chatChoice) chatReply {
	return chatReply{ID: f.id, Object: object, Created: f.created, Model: f.model, Choices: append([]chatChoice{}, choices...)}
}

func (f *chatForm) chunk(delta chatContent, stop *string) []byte {
	return sse("", f.reply("chat.completion.chunk", chatChoice{Delta: &delta, FinishReason: stop}))
}

func (f *chatForm) begin() []byte {
	empty := ""
	return f.chunk(chatContent{Role: "assistant", Content: &empty}, nil)
}

func (f *chatForm) text(s string) []byte { return f.chunk(chatContent{Content: &s}, nil) }

func calls(list []llm.ToolCall, indexed bool) []chatCall {
	var out []chatCall
	for i, c := range list {
		call := chatCall{ID: c.ID, Type: "function", Function: chatFunc{c.Name, c.Arguments}}
		if indexed {
			call.Index = &i
		}
		out = append(out, call)
	}
	return out
}

func (f *chatForm) end(r *llm.Response, list []llm.ToolCall, stop string) []byte {
	var out []byte
	for _, c := range calls(list, true) {
		out = append(out, f.chunk(chatContent{ToolCalls: []chatCall{c}}, nil)...)
	}
	out = append(out, f.chunk(chatContent{}, &stop)...)
	if u := f.usageOf(r.Usage); f.usage && u != nil {
		last := f.reply("chat.completion.chunk")
		last.Usage = u
		out = append(out, sse("", last)...)
	}
	return append(out, "data: [DONE]\n\n"...)
}

func (f *chatForm) whole(r *llm.Response, stop string) ([]byte, error) {
	content := &chatContent{Role: "assistant", Content: &r.Text, ToolCalls: calls(r.ToolCalls, false)}
	if r.Text == "" && len(r.ToolCalls) > 0 {
		content.Content = nil
	}
	out := f.reply("chat.completion", chatChoice{Message: content, FinishReason: &stop})
	out.Usage = f.usageOf(r.Usage)
	return json.Marshal(out)
}

// check accepts all answers: arguments are a text, whatever is in it.
func (*chatForm) check(*llm.Response) error { return nil }

// stoppedBy does nothing, because chat completions do not name the sequence.
func (*chatForm) stoppedBy(string) {}

func (*chatForm) stop(r *llm.Response) (string, bool) {
	switch r.StopReason {
	case stopSequence:
		return string(llm.StopEnd), true
	case llm.StopEnd, llm.StopLength, llm.StopToolCalls, llm.StopFiltered:
		return string(r.StopReason), true
	}
	return "", false
}
