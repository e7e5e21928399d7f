// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/platform-ai/platform/pkg/llm"
)

// toServerTools takes the place of toOtherProtocol in what the client is told.
const toServerTools = "cannot be used with the tools of this server; leave it out, or set the header " + headerTools + " to " + toolsDisabled

// fields is a JSON object whose members are filtered.
type fields = map[string]json.RawMessage

// ignored returns the members of a request that the loop with the server's tools does not read: the client's own tools, and
// what each API documents as accepted and ignored. Every other member that the loop cannot use is refused.
func ignored(op operation) []string {
	switch op {
	case opMessages:
		return []string{"tools", "tool_choice", "top_p", "top_k", "metadata", "thinking"}
	case opResponses:
		return []string{"tools", "tool_choice", "parallel_tool_calls", "max_tool_calls", "include", "top_p", "user"}
	}
	return []string{"tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "top_p", "frequency_penalty", "presence_penalty", "user"}
}

// conversation returns the request as the loop with the server's tools reads it: without the client's own tools, their calls
// and results, and without what is ignored. Messages of one role that follow each other become one. The protocol is that of a
// Provider that is to be asked.
func (in *incoming) conversation(to llm.Protocol) (*translated, error) {
	body := fields{}
	if err := json.Unmarshal(in.data, &body); err != nil {
		return nil, invalid("", "the body must be a JSON object")
	}
	for _, name := range ignored(in.op) {
		delete(body, name)
	}
	name := in.op.conversation()
	var err error
	if body[name], err = in.reduced(name, body[name]); err != nil {
		return nil, err
	}
	data, err := json.Marshal(body)
	if err != nil {
		return nil, invalid("", "%v", err)
	}
	reread, err := read(in.op, data)
	if err != nil {
		return nil, err
	}
	t, err := reread.translate(to)
	if p, ok := asProblem(err); ok {
		p.message = strings.Replace(p.message, toOtherProtocol, toServerTools, 1)
		return nil, p
	}
	if err != nil {
		return nil, err
	}
	t.Messages = merged(t.prompt(), t.Messages)
	return t, nil
}

// reduced returns the member with the conversation, without what belongs to the client's tools.
func (in *incoming) reduced(name string, raw json.RawMessage) (json.RawMessage, error) {
	spoken := stripped
	if in.op == opResponses {
		if bytes.HasPrefix(raw, []byte(`"`)) {
			return raw, nil
		}
		spoken = spokenItem
	}
	var messages []fields
	if wrong, err := kjson.UnmarshalStrict(raw, &messages); err != nil || len(wrong) > 0 {
		return nil, invalid(name, "%s: must be a list of objects without members that occur twice", name)
	}
	kept := slices.DeleteFunc(messages, func(m fields) bool { return !spoken(m) })
	if n := len(kept); n == 0 || string(kept[n-1]["role"]) != `"user"` {
		return nil, invalid(name, "%s: without the messages of tools, the conversation must end with one of the user; to use tools of your own, set the header %s to %q", name, headerTools, toolsDisabled)
	}
	out, err := json.Marshal(kept)
	if err != nil {
		return nil, invalid(name, "%s: %v", name, err)
	}
	return out, nil
}

// spokenItem reports whether an item of a response is none of the client's tools.
func spokenItem(item fields) bool {
	kind := string(item["type"])
	return kind != `"function_call"` && kind != `"function_call_output"`
}

// stripped removes what belongs to the client's tools from a message, and reports whether anything is left.
func stripped(m fields) bool {
	var role string
	_ = json.Unmarshal(m["role"], &role) // a wrong role is refused later
	delete(m, "tool_calls")
	delete(m, "function_call")
	if role == "tool" || role == "function" {
		return false
	}
	if null(m["content"]) {
		return role != "assistant" && role != "user"
	}
	m["content"] = plain(m["content"])
	return role != "assistant" && role != "user" || !slices.Contains([]string{"[]", `""`}, string(m["content"]))
}

// plain returns content without calls of the client's tools and their results.
func plain(content json.RawMessage) json.RawMessage {
	var blocks []fields
	if wrong, err := kjson.UnmarshalStrict(content, &blocks); err != nil || len(wrong) > 0 {
		return content // a text; anything else is refused later
	}
	kept := blocks[:0]
	for _, b := range blocks {
		var kind string
		_ = json.Unmarshal(b["type"], &kind) // a block without a type is refused later
		if isOfTool(kind) {
			continue
		}
		kept = append(kept, b)
	}
	out, err := json.Marshal(kept)
	if err != nil {
		return content
	}
	return out
}

// merged puts the instructions of the server first, and joins messages of one role.
func merged(prompt string, list []llm.Message) []llm.Message {
	out := []llm.Message{{Role: llm.RoleSystem, Text: prompt}}
	for _, m := range list {
		last := &out[len(out)-1]
		if silent(&m) {
			continue
		}
		if last.Role == m.Role {
			join(last, &m)
			continue
		}
		out = append(out, m)
	}
	return out
}

// join adds a message to another one of the same role.
func join(to, m *llm.Message) {
	if len(to.Content)+len(m.Content) > 0 {
		to.Content = slices.Concat(pieces(to), pieces(m))
	}
	to.Text = strings.TrimPrefix(to.Text+"\n\n"+m.Text, "\n\n")
}

// pieces returns the texts and images of a message.
func pieces(m *llm.Message) []llm.Content {
	if len(m.Content) > 0 {
		return m.Content
	}
	return []llm.Content{{Text: m.Text}}
}
