// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/platform-ai/platform/pkg/jsonsize"
	"github.com/platform-ai/platform/pkg/tool"
)

// maxDepth is how deeply the values of a message may be nested. The SDK's decoder takes quadratic time for deep ones.
const maxDepth = 64

// exchange is one request of the SDK and what the server sends for it.
type exchange struct {
	wire    *wire
	request *http.Request
	// id is that of the request; empty for a notification.
	id json.RawMessage
	// session is what the answer says about the session; empty if it says nothing.
	session string
}

// incoming is what a message of the server is: a request or notification with a method, or else an answer.
type incoming struct {
	ID     json.RawMessage `json:"id"`
	Method *string         `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// take reads a text of the server, which is a message or, by version 2025-03-26, a list of messages. It returns the answer to
// the request, written anew for the SDK, or nothing. It answers the requests of the server in the text; notifications and
// what is no message are left out.
func (x *exchange) take(raw []byte) ([]byte, error) {
	raw = bytes.TrimSpace(raw)
	if !json.Valid(raw) {
		return nil, nil
	}
	var size jsonsize.Counter
	if size.Add(raw); size.Depth > maxDepth {
		return nil, x.wire.fail(tool.Errorf(tool.TypeLimitReached, "the server of %s answers with values that are nested more than %d deep", x.wire.server.name, maxDepth))
	}
	messages := []json.RawMessage{raw}
	if raw[0] == '[' {
		if err := json.Unmarshal(raw, &messages); err != nil {
			return nil, err
		}
	}
	var answer []byte
	for _, one := range messages {
		var m incoming
		if json.Unmarshal(one, &m) != nil {
			continue
		}
		var err error
		switch {
		case m.Method != nil:
			err = x.reply(m.ID, *m.Method)
		case answer == nil && x.answeredBy(&m):
			answer, err = x.verbatim(&m)
		}
		if err != nil {
			return nil, err
		}
	}
	return answer, nil
}

// answeredBy reports whether a message is the answer to the request. Some servers make a text of its number. An error without
// an id is about a request that the server could not read, which can only be this one.
func (x *exchange) answeredBy(m *incoming) bool {
	switch id := strings.Trim(string(m.ID), `"`); {
	case len(x.id) == 0 || absent(m.Result) && absent(m.Error):
		return false
	case absent(m.ID):
		return !absent(m.Error)
	default:
		return id == string(x.id)
	}
}

func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// verbatim returns an answer for the SDK. Its parts of any shape, which are content, structured content and the schemas of tools,
// are texts with the JSON in them. The SDK would decode them with rounded numbers, and refuse the whole answer for one part
// that it does not know.
func (x *exchange) verbatim(m *incoming) ([]byte, error) {
	answer := map[string]json.RawMessage{"jsonrpc": json.RawMessage(`"2.0"`), "id": x.id}
	if !absent(m.Error) {
		answer["error"] = wellFormed(m.Error)
		return json.Marshal(answer)
	}
	answer["result"] = m.Result
	var result map[string]json.RawMessage
	if json.Unmarshal(m.Result, &result) != nil {
		return json.Marshal(answer) // the SDK refuses it
	}
	err := errors.Join(asText(result, "structuredContent", "%s"), asText(result, "content", `[{"type":"text","text":%s}]`), bare(result))
	if err != nil {
		return nil, err
	}
	if answer["result"], err = json.Marshal(result); err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}

// asText replaces a member with a text of its JSON, in the form in which the SDK takes it.
func asText(object map[string]json.RawMessage, name, form string) error {
	value := object[name]
	if absent(value) {
		return nil
	}
	text, err := json.Marshal(string(value))
	object[name] = json.RawMessage(strings.Replace(form, "%s", string(text), 1))
	return err
}

// bare leaves of the tools in a result what is read of them: names and schemas.
func bare(result map[string]json.RawMessage) error {
	var tools []map[string]json.RawMessage
	if json.Unmarshal(result["tools"], &tools) != nil || tools == nil {
		return nil //nolint:nilerr // no list of tools
	}
	kept := []map[string]json.RawMessage{}
	for _, t := range tools {
		if t == nil {
			continue
		}
		one := map[string]json.RawMessage{"name": t["name"]}
		if schema, ok := t["inputSchema"]; ok {
			one["inputSchema"] = schema
		}
		if err := asText(one, "inputSchema", "%s"); err != nil {
			return err
		}
		kept = append(kept, one)
	}
	var err error
	result["tools"], err = json.Marshal(kept)
	return err
}

// wellFormed returns an error as the protocol has them. Of another shape, its text is the message.
func wellFormed(raw json.RawMessage) json.RawMessage {
	var e jsonrpc.Error
	if json.Unmarshal(raw, &e) == nil {
		return raw
	}
	e = jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: string(raw)}
	_ = json.Unmarshal(raw, &e.Message) // if it is a text
	out, err := json.Marshal(&e)
	if err != nil {
		return nil
	}
	return out
}

// errorText returns the text of an answer that is an error.
func errorText(answer []byte) string {
	var m struct{ Error *jsonrpc.Error }
	if json.Unmarshal(answer, &m) != nil || m.Error == nil {
		return ""
	}
	return textOf(m.Error)
}

// textOf returns what an error says, with its details.
func textOf(e *jsonrpc.Error) string {
	if absent(e.Data) {
		return e.Message
	}
	details := string(e.Data)
	_ = json.Unmarshal(e.Data, &details) // if it is a text
	if details == e.Message {
		return e.Message
	}
	return e.Message + ": " + details
}

// fromText returns the JSON of a part that verbatim has made a text; nothing if there was none.
func fromText(part any) json.RawMessage {
	text, _ := part.(string)
	return json.RawMessage(text)
}
