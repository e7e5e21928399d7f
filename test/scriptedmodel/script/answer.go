// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package script

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"text/template"
)

// pieceSize is how much text or arguments one chunk carries, in bytes.
const pieceSize = 16

// protocol is how answers look on the wire.
type protocol interface {
	// whole is the answer of a request that did not ask for a stream.
	whole(o *rendered, req *Request) object
	// events are those of a stream, each with its frame.
	events(o *rendered, req *Request) [][]byte
	// errorBody is the body of a refusal, and errorEvent the same inside a stream.
	errorBody(f *Fault) []byte
	errorEvent(f *Fault) []byte
}

// answer plays a turn.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, req *Request, t *Turn) {
	f := t.Fault
	switch {
	case f != nil && f.Status != 0 && !f.InBand:
		writeError(w, f, req.protocol)
		return
	case f != nil && f.NotAStream:
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html><body>Please log in</body></html>"))
		return
	}
	reply, err := t.render(req)
	if err != nil {
		s.refuse(w, *req, http.StatusInternalServerError, "bad_script", err.Error())
		return
	}
	s.issue(reply.thinking)
	if !req.Stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(encode(req.protocol.whole(reply, req)))
		return
	}
	s.stream(w, r, f, req.protocol, req.protocol.events(reply, req))
}

// stream sends the events and applies the fault.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, f *Fault, p protocol, events [][]byte) {
	w.Header().Set("Content-Type", "text/event-stream")
	rc := http.NewResponseController(w)
	budget := -1
	switch {
	case f != nil && f.CutAfterBytes != nil:
		budget = *f.CutAfterBytes
	case f != nil && f.CutInToolCall:
		budget = insideCall(events)
	}
	for i, event := range events {
		if d := f.delay(); d > 0 {
			select {
			case <-s.clock.After(d):
			case <-r.Context().Done():
				return
			}
		}
		if i == 1 && f != nil {
			switch {
			case f.Stall:
				_ = rc.Flush()
				<-r.Context().Done()
				return
			case f.InBand:
				event = p.errorEvent(f)
			case f.Garbage:
				event = []byte("event: content_block_delta\ndata: {\"choices\":[{\"delta\":\n\n")
			}
		}
		if budget >= 0 && len(event) > budget {
			_, _ = w.Write(event[:budget])
			_ = rc.Flush()
			if f.Reset {
				// The server closes the connection without ending the body.
				panic(http.ErrAbortHandler)
			}
			return
		}
		budget -= min(len(event), max(budget, 0))
		_, _ = w.Write(event)
		_ = rc.Flush()
	}
}

// insideCall is the number of bytes up to the middle of the first event that carries arguments.
func insideCall(events [][]byte) int {
	n := 0
	for _, e := range events {
		if bytes.Contains(e, []byte("input_json_delta")) || bytes.Contains(e, []byte(`{"function":{"arguments":`)) {
			return n + len(e)/2
		}
		n += len(e)
	}
	return n / 2
}

// rendered is a reply whose templates are filled in.
type rendered struct {
	text     string
	calls    []renderedCall
	stop     string
	usage    *Usage
	thinking []Thinking
}

type renderedCall struct{ id, name, arguments string }

func (t *Turn) render(req *Request) (*rendered, error) {
	data := req.data()
	var text bytes.Buffer
	if err := t.Reply.text.Execute(&text, data); err != nil {
		return nil, err
	}
	out := &rendered{text: text.String(), stop: t.Reply.Stop, thinking: t.Reply.Thinking}
	for i, c := range t.Reply.ToolCalls {
		call := renderedCall{id: c.ID, name: c.Name, arguments: c.RawArguments}
		if call.id == "" {
			call.id = fmt.Sprintf("call_%d_%d", req.Turn(), i+1)
		}
		if call.arguments == "" {
			filled, err := fill(c.Arguments, data)
			if err != nil {
				return nil, err
			}
			call.arguments = string(filled)
		}
		out.calls = append(out.calls, call)
	}
	if out.stop == "" {
		out.stop = "stop"
		if len(out.calls) > 0 {
			out.stop = "tool_calls"
		}
	}
	if !t.Reply.NoUsage {
		out.usage = t.Reply.Usage
		if out.usage == nil {
			out.usage = countUsage(req, out)
		}
	}
	return out, nil
}

// fill runs every string of an argument object through the template engine.
func fill(raw json.RawMessage, data Data) ([]byte, error) {
	if len(raw) == 0 {
		return []byte("{}"), nil
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, err
	}
	v, err := fillValue(v, data)
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

func fillValue(v any, data Data) (any, error) {
	var err error
	switch v := v.(type) {
	case string:
		if !strings.Contains(v, "{{") {
			return v, nil
		}
		t, err := template.New("argument").Option("missingkey=error").Parse(v)
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		err = t.Execute(&out, data)
		return out.String(), err
	case map[string]any:
		for k := range v {
			if v[k], err = fillValue(v[k], data); err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range v {
			if v[i], err = fillValue(v[i], data); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// countUsage reports one token for each four bytes, which is near enough to
// look right and exact enough to be checked.
func countUsage(req *Request, out *rendered) *Usage {
	in, produced := 0, len(out.text)
	for _, m := range req.Messages {
		in += len(m.Text())
	}
	for _, c := range out.calls {
		produced += len(c.name) + len(c.arguments)
	}
	return &Usage{Input: int64(in/4 + 1), Output: int64(produced/4 + 1)}
}
