// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bytes"
	"encoding/json"
)

// maxEvent is how long one event may be before it is passed on without being read, in bytes.
const maxEvent = 4 << 20

// events splits a stream into server-sent events.
type events struct {
	held []byte // the begin of the next event
	// long is set while an event that is too long is passed on.
	long bool
}

// next takes what arrived and returns what is to be sent: the complete events, without those for which keep returns
// nil. At the end, what is left is sent as it is.
func (s *events) next(arrived []byte, end bool, keep func(event []byte) []byte) []byte {
	s.held = append(s.held, arrived...)
	var out []byte
	for {
		i := boundary(s.held)
		if i < 0 {
			break
		}
		if s.long {
			out = append(out, s.held[:i]...)
			s.long = false
		} else {
			out = append(out, keep(s.held[:i])...)
		}
		s.held = s.held[i:]
	}
	if end || s.long || len(s.held) > maxEvent {
		s.long = !end
		out = append(out, s.held...)
		s.held = nil
	}
	if len(s.held) == 0 {
		s.held = nil // the array may be large
	}
	return out
}

// boundary returns where the first event ends: after an empty line. -1 if no event is complete.
func boundary(b []byte) int {
	at := 0
	for {
		i := bytes.IndexByte(b[at:], '\n')
		if i < 0 {
			return -1
		}
		at += i + 1
		rest := b[at:]
		switch {
		case bytes.HasPrefix(rest, []byte("\n")):
			return at + 1
		case bytes.HasPrefix(rest, []byte("\r\n")):
			return at + 2
		}
	}
}

// dataOf returns the data of an event; nil if it has none.
func dataOf(event []byte) []byte {
	var data []byte
	for line := range bytes.SplitSeq(event, []byte("\n")) {
		value, ok := bytes.CutPrefix(line, []byte("data:"))
		if !ok {
			continue
		}
		value = bytes.TrimSuffix(bytes.TrimPrefix(value, []byte(" ")), []byte("\r"))
		if data != nil {
			data = append(data, '\n')
		}
		data = append(data, value...)
	}
	return data
}

// reporter reads the usage in events.
type reporter struct {
	tally *tally
	// hide removes what the vendor was asked to add for a client that did not ask for usage.
	hide bool
	sum  anthropicUsage
}

// event reads an event and returns what the client gets of it.
func (r *reporter) event(event []byte) []byte {
	if !bytes.Contains(event, []byte(`"usage"`)) {
		return event
	}
	data := dataOf(event)
	switch r.tally.op {
	case opChat:
		return r.chunk(event, data)
	case opResponses:
		var e struct {
			Response struct {
				Usage json.RawMessage `json:"usage"`
			} `json:"response"`
		}
		if json.Unmarshal(data, &e) == nil {
			r.tally.openAI(e.Response.Usage)
		}
	case opMessages:
		var e struct {
			Usage   json.RawMessage `json:"usage"`
			Message struct {
				Usage json.RawMessage `json:"usage"`
			} `json:"message"`
		}
		if json.Unmarshal(data, &e) == nil {
			r.tally.anthropic(e.Message.Usage, &r.sum)
			r.tally.anthropic(e.Usage, &r.sum)
		}
	case opCount, opModels:
	}
	return event
}

// chunk reads the usage of a chunk of a chat completion. The chunk that has nothing else, and a usage of null, exist
// only because the vendor was asked.
func (r *reporter) chunk(event, data []byte) []byte {
	o, err := parse(data)
	if err != nil || o.index("usage") < 0 {
		return event
	}
	usage := o.get("usage")
	r.tally.openAI(usage)
	if !r.hide {
		return event
	}
	var choices []json.RawMessage
	if raw := o.get("choices"); raw != nil && json.Unmarshal(raw, &choices) == nil && len(choices) == 0 && usage != nil {
		return nil
	}
	if usage == nil && bytes.Contains(event, data) { // one line of data, which is what all vendors send
		o.remove("usage")
		return bytes.Replace(event, data, o.bytes(), 1)
	}
	return event
}
