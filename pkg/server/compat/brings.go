// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"encoding/json"
	"slices"
)

// bringsTools reports whether a chat completion or a message has tools of the client's own, or calls and results of such tools
// in its conversation. What cannot be read as a conversation has none; it is refused later.
func (in *incoming) bringsTools() bool {
	if filled(in.get("tools")) || filled(in.get("functions")) {
		return true
	}
	var messages []fields
	if json.Unmarshal(in.get(in.op.conversation()), &messages) != nil {
		return false
	}
	return slices.ContainsFunc(messages, ofTools)
}

// ofTools reports whether a message has calls or results of the client's tools.
func ofTools(m fields) bool {
	var role string
	_ = json.Unmarshal(m["role"], &role) // a wrong role is refused later
	if role == "tool" || role == "function" || filled(m["tool_calls"]) || !null(m["function_call"]) {
		return true
	}
	var blocks []json.RawMessage
	_ = json.Unmarshal(m["content"], &blocks) // a text
	return slices.ContainsFunc(blocks, func(b json.RawMessage) bool { return isOfTool(kindOf(b)) })
}

// isOfTool reports whether a type of block is that of a call of a client's tool, or of its result.
func isOfTool(kind string) bool { return kind == "tool_use" || kind == "tool_result" }

// filled reports whether a member is more than an empty list.
func filled(raw json.RawMessage) bool {
	var list []json.RawMessage
	return !null(raw) && (json.Unmarshal(raw, &list) != nil || len(list) > 0)
}
