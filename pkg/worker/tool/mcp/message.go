// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/platform-ai/platform/pkg/jsonsize"
	"github.com/platform-ai/platform/pkg/worker/tool"
)

// maxDepth is how deeply the values of a message may be nested. The SDK's decoder takes quadratic time for deep ones.
const maxDepth = 64

// message returns the answer in a text of the server: compact JSON, or nothing if the text is no JSON or is not an
// answer. Requests and notifications of the server are left out, because none is supported.
func (w *wire) message(raw []byte) ([]byte, error) {
	if !json.Valid(raw) {
		return nil, nil
	}
	var size jsonsize.Counter
	if size.Add(raw); size.Depth > maxDepth {
		return nil, w.fail(tool.Errorf(tool.TypeLimitReached, "the server of %s answers with values that are nested more than %d deep", w.server.name, maxDepth))
	}
	var m struct {
		Method *json.RawMessage `json:"method"`
	}
	if json.Unmarshal(raw, &m) != nil || m.Method != nil {
		return nil, nil //nolint:nilerr,nilnil // dropped
	}
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		return nil, err
	}
	return verbatim(out.Bytes())
}

// verbatim returns an answer whose parts of any shape, which are the structured content and the schemas of tools, are texts with the
// JSON in them. The SDK would decode them with rounded numbers.
func verbatim(raw []byte) ([]byte, error) {
	var answer, result map[string]json.RawMessage
	if json.Unmarshal(raw, &answer) != nil || json.Unmarshal(answer["result"], &result) != nil {
		return raw, nil //nolint:nilerr // an error, or what the SDK refuses
	}
	changed, err := asText(result, "structuredContent")
	var tools []map[string]json.RawMessage
	if json.Unmarshal(result["tools"], &tools) == nil {
		for _, t := range tools {
			this, failed := asText(t, "inputSchema")
			changed, err = changed || this, errors.Join(err, failed)
		}
	}
	if err != nil || !changed {
		return raw, err
	}
	if len(tools) > 0 {
		if result["tools"], err = json.Marshal(tools); err != nil {
			return nil, err
		}
	}
	if answer["result"], err = json.Marshal(result); err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}

// asText replaces a member with a text of its JSON.
func asText(object map[string]json.RawMessage, name string) (changed bool, err error) {
	if value := object[name]; len(value) > 0 && string(value) != "null" {
		object[name], err = json.Marshal(string(value))
		changed = true
	}
	return changed, err
}

// fromText returns the JSON of a part that verbatim has made a text; nothing if there was none.
func fromText(part any) json.RawMessage {
	text, _ := part.(string)
	return json.RawMessage(text)
}

// events reads a stream of server-sent events and writes it anew: one event for each answer. What the SDK parses is
// therefore exactly what was checked.
type events struct {
	from  *limited
	wire  *wire
	lines *bufio.Reader
	out   bytes.Buffer
	err   error
}

func (e *events) Read(p []byte) (int, error) {
	if e.lines == nil {
		e.lines = bufio.NewReader(e.from)
	}
	for e.out.Len() == 0 && e.err == nil {
		e.err = e.next()
	}
	if e.out.Len() > 0 {
		return e.out.Read(p)
	}
	return 0, e.err
}

// next reads one event.
func (e *events) next() error {
	var data []string
	name := ""
	for {
		line, err := e.lines.ReadString('\n')
		if err != nil && (!errors.Is(err, io.EOF) || line == "") {
			if errors.Is(err, io.EOF) && len(data) > 0 {
				// A stream may end without the empty line.
				return errors.Join(e.write(name, data), io.EOF)
			}
			return err
		}
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			return e.write(name, data)
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "data":
			data = append(data, value)
		case "event":
			name = value
		}
	}
}

func (e *events) write(name string, data []string) error {
	if name != "" && name != "message" {
		return nil
	}
	message, err := e.wire.message([]byte(strings.Join(data, "\n")))
	if err != nil || message == nil {
		return err
	}
	e.out.WriteString("data: ")
	e.out.Write(message)
	e.out.WriteString("\n\n")
	return nil
}

// Close ends the request.
func (e *events) Close() error { return e.from.Close() }
