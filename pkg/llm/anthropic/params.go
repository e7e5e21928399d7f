// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/platform-ai/platform/pkg/llm"
	"github.com/platform-ai/platform/pkg/tool"
)

// params turns a request into the protocol's, without the hints that the model lacks.
func (c *Client) params(req llm.Request, lacks map[string]bool) request {
	p := request{Model: req.Model, MaxTokens: defaultMaxTokens, StopSequences: req.Stop, OutputConfig: output(req, lacks), Stream: true}
	if req.MaxTokens > 0 {
		p.MaxTokens = req.MaxTokens
	}
	if req.Temperature != nil {
		p.Temperature = req.Temperature
	} else if req.TopP != nil && !lacks[hintTopP] { // newer models refuse both
		p.TopP = req.TopP
	}
	p.System, p.Messages = c.conversation(req)
	for _, t := range req.Tools {
		t.Strict = t.Strict && !lacks[hintStrict]
		p.Tools = append(p.Tools, toolParam(t))
	}
	if len(req.Tools) > 0 {
		p.ToolChoice = choice(req.Choice)
	}
	if len(req.Tools) == 0 {
		// A conversation with calls is refused unless their tools are defined.
		p.Tools = calledTools(req.Messages)
		if len(p.Tools) > 0 {
			p.ToolChoice = choice(llm.ToolChoice{Mode: llm.ChoiceNone})
		}
	}
	if !c.noCaching.Load() {
		cache(&p)
	}
	return p
}

// calledTools returns a definition for each tool that the conversation contains calls of.
func calledTools(messages []llm.Message) []*sentTool {
	var tools []*sentTool
	known := map[string]bool{}
	for _, m := range messages {
		for _, call := range m.ToolCalls {
			if !known[call.Name] {
				known[call.Name] = true
				tools = append(tools, toolParam(tool.Definition{Name: call.Name}))
			}
		}
	}
	return tools
}

func toolParam(t tool.Definition) *sentTool {
	schema := json.RawMessage(`{"type":"object"}`)
	if len(t.Parameters) > 0 {
		schema = t.Typed()
	}
	return &sentTool{InputSchema: schema, Name: t.Name, Description: t.Description, Strict: t.Strict}
}

// conversation returns the system text and the messages. Messages of one side that follow each other become one, with
// the results of calls first, as the protocol demands. Unless they are sent verbatim, the first one is one of the user.
func (c *Client) conversation(req llm.Request) ([]*sentText, []message) {
	var system []*sentText
	var out []message
	add := func(role string, blocks ...sent) {
		if len(blocks) == 0 && (!req.Verbatim || len(out) == 0 && role == roleAssistant) {
			return
		}
		if len(out) == 0 && role == roleAssistant && !req.Verbatim {
			out = append(out, message{Role: roleUser, Content: []sent{newText("[platform notice] The beginning of the conversation is left out.")}})
		}
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, blocks...)
			return
		}
		out = append(out, message{Role: role, Content: blocks})
	}
	w := writer{origin: c.origin(req.Model), verbatim: req.Verbatim}
	as := toolID
	if req.Verbatim {
		as = func(id string) string { return id }
	}
	for _, m := range llm.DistinctIDs(req.Messages, as) {
		switch {
		case m.Role == llm.RoleSystem:
			if w.says(m.Text) {
				system = append(system, newText(m.Text))
			}
		case m.Role == llm.RoleTool:
			add(roleUser, w.toolResult(m))
		case m.Role == llm.RoleAssistant:
			add(roleAssistant, w.assistant(m)...)
		case len(m.Content) > 0:
			add(roleUser, w.user(m)...)
		case w.says(m.Text):
			add(roleUser, newText(m.Text))
		default:
			add(roleUser)
		}
	}
	for i := range out {
		if len(out[i].Content) == 0 {
			out[i].Content = []sent{newText(emptyMessage)}
		}
	}
	return system, out
}

// emptyMessage takes the place of a message that is empty, which the protocol refuses. It keeps the turns around it apart.
const emptyMessage = "[platform notice] This message is empty."

// blank reports whether the protocol refuses a text for being empty.
func blank(s string) bool { return strings.TrimSpace(s) == "" }

// writer writes the messages of a request.
type writer struct {
	origin   string
	verbatim bool
}

// says reports whether a text is sent.
func (w writer) says(s string) bool { return s != "" && (w.verbatim || !blank(s)) }

func (w writer) toolResult(m llm.Message) sent {
	block := &sentResult{ToolUseID: m.ToolCallID, IsError: m.Failed, Type: "tool_result"}
	if len(m.Content) > 0 {
		block.Content = w.user(m)
	} else if w.says(m.Text) {
		block.Content = []sent{newText(m.Text)}
	}
	return block
}

// assistant returns an answer as it was written, if this endpoint and model wrote it. Otherwise it returns its text
// and its calls.
func (w writer) assistant(m llm.Message) []sent {
	if m.Opaque != nil && m.Opaque.Origin == w.origin {
		var raw []json.RawMessage
		if json.Unmarshal(m.Opaque.Data, &raw) == nil {
			var blocks []sent
			calls := 0
			for _, b := range raw {
				if calls < len(m.ToolCalls) && isCall(b) {
					b = renamed(b, m.ToolCalls[calls].ID)
					calls++
				}
				blocks = append(blocks, verbatim{b})
			}
			return blocks
		}
	}
	var blocks []sent
	if text := m.Text; w.says(text) {
		if !w.verbatim {
			text = strings.TrimRight(text, " \t\r\n") // the protocol refuses them at the end of a conversation
		}
		blocks = append(blocks, newText(text))
	}
	for _, call := range m.ToolCalls {
		blocks = append(blocks, &sentCall{ID: call.ID, Input: input(call.Arguments), Name: call.Name, Type: blockToolUse})
	}
	return blocks
}

// isCall reports whether a block of an answer is a call of a tool.
func isCall(block json.RawMessage) bool {
	var b struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(block, &b) == nil && b.Type == blockToolUse
}

// renamed returns a call with another id, and the same bytes if it has that id.
func renamed(call json.RawMessage, id string) json.RawMessage {
	var b toolUseBlock
	if json.Unmarshal(call, &b) != nil || b.ID == id {
		return call
	}
	b.ID = id
	raw, err := json.Marshal(b)
	if err != nil { // it was JSON before
		return call
	}
	return raw
}

// input returns what the model wrote if it is a JSON object. Anything else is replaced, because the server would
// refuse the whole conversation for it, and the tool result already tells the model what was wrong.
func input(arguments string) json.RawMessage {
	raw := bytes.TrimSpace([]byte(arguments))
	if json.Valid(raw) && bytes.HasPrefix(raw, []byte("{")) {
		return raw
	}
	return json.RawMessage("{}")
}

// toolID replaces characters that the protocol does not allow in the id of a call, which another vendor may have
// made.
func toolID(id string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, id)
}

// cache marks the end of the tools and the system text, which all requests of a run share, and the end of the
// conversation, which the next request continues. The server caches what comes before a mark.
func cache(p *request) {
	switch {
	case len(p.System) > 0:
		p.System[len(p.System)-1].mark()
	case len(p.Tools) > 0:
		p.Tools[len(p.Tools)-1].mark()
	}
	if n := len(p.Messages); n > 0 {
		content := p.Messages[n-1].Content
		content[len(content)-1].mark()
	}
}
