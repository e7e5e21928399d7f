// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/platform-ai/platform/pkg/llm/transcribe"
)

// maxEvent is how long one event may be before it is passed on without being read, in bytes.
const maxEvent = 4 << 20

// events splits a stream into server-sent events.
type events struct {
	held []byte // the begin of the next event
	// long is set while an event that is too long is passed on, and skipped once there was one.
	long, skipped bool
	// rest is how many bytes of an event without an end were sent at the end of the stream.
	rest int
}

// next takes what arrived and returns what is to be sent: the complete events, without those for which keep returns
// nil. At the end, what is left is read, too, and sent as it is.
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
	if end && !s.long && len(s.held) > 0 {
		keep(s.held)
		s.rest = len(s.held)
	}
	if end || s.long || len(s.held) > maxEvent {
		s.long = !end
		s.skipped = s.skipped || s.long
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

// reporter reads the usage in events, and whether the answer has ended.
type reporter struct {
	tally *tally
	// hide removes what the vendor was asked to add for a client that did not ask for usage.
	hide bool
	// created is the response that the vendor has created, and last its last event.
	created json.RawMessage
	last    []byte
	// heard hears what the answer says; nil if nobody wants to know.
	heard *transcribe.Stream
}

// telling are the texts of which events have one that are read. All others are content.
var telling = map[operation][]string{
	opChat:      {`"usage"`, `"finish_reason"`, `"error"`, "[DONE]"},
	opResponses: {`"usage"`, `"response.created"`, `"response.completed"`, `"response.incomplete"`, `"response.failed"`, `"error"`},
	opMessages:  {`"usage"`, `"message_delta"`, `"message_stop"`, `"error"`},
}

// event reads an event and returns what the client gets of it.
func (r *reporter) event(event []byte) []byte {
	if bytes.HasSuffix(event, []byte("\n")) { // it is whole
		r.last = event
	}
	if r.heard != nil {
		r.heard.Event(dataOf(event))
	}
	if !slices.ContainsFunc(telling[r.tally.op], func(s string) bool { return bytes.Contains(event, []byte(s)) }) {
		return event
	}
	data := dataOf(event)
	switch r.tally.op {
	case opChat:
		return r.chunk(event, data)
	case opResponses:
		r.response(data)
	case opMessages:
		r.message(data)
	case opCount, opModels:
	}
	return event
}

// kindError is the type of an event that says that the vendor failed.
const kindError = "error"

// response reads an event of a response.
func (r *reporter) response(data []byte) {
	var e struct {
		Type     string          `json:"type"`
		Response json.RawMessage `json:"response"`
	}
	if json.Unmarshal(data, &e) != nil {
		return
	}
	switch e.Type {
	case "response.created":
		r.created = e.Response
	case "response.completed", "response.incomplete":
		r.tally.count.Complete()
	case eventFailed:
		r.tally.count.Complete()
		r.tally.failed = true
	case kindError:
		r.tally.failed = true
	}
	var of struct {
		Usage json.RawMessage `json:"usage"`
	}
	if json.Unmarshal(e.Response, &of) == nil {
		r.tally.openAI(of.Usage)
	}
}

// message reads an event of a message.
func (r *reporter) message(data []byte) {
	var e struct {
		Type  string `json:"type"`
		Delta struct {
			StopReason string `json:"stop_reason"`
		} `json:"delta"`
		Usage   json.RawMessage `json:"usage"`
		Message struct {
			Usage json.RawMessage `json:"usage"`
		} `json:"message"`
	}
	if json.Unmarshal(data, &e) != nil {
		return
	}
	switch {
	case e.Type == "message_stop":
		r.tally.count.Complete()
	case e.Type == kindError:
		r.tally.failed = true
	case e.Delta.StopReason != "":
		r.tally.count.Ended()
	}
	r.tally.anthropic(e.Message.Usage, true)
	r.tally.anthropic(e.Usage, false)
}

// running reports whether a chunk does not say why its answer ended, without reading all of it.
func running(data []byte) bool {
	_, rest, found := bytes.Cut(data, []byte(`"finish_reason"`))
	return !found || bytes.HasPrefix(bytes.TrimLeft(rest, ": "), []byte("null"))
}

// chunk reads the end and the usage of a chunk of a chat completion. The chunk that has nothing but a usage, and a usage of
// null, exist only because the vendor was asked.
func (r *reporter) chunk(event, data []byte) []byte {
	if string(bytes.TrimSpace(data)) == "[DONE]" {
		r.tally.count.Complete()
		return event
	}
	if running(data) && !bytes.Contains(data, []byte(`"usage"`)) && !bytes.Contains(data, []byte(`"error"`)) {
		return event
	}
	o, err := parse(data)
	if err != nil {
		return event
	}
	r.tally.failed = r.tally.failed || o.get("error") != nil
	var choices []struct {
		FinishReason string `json:"finish_reason"`
	}
	known := json.Unmarshal(o.get("choices"), &choices) == nil
	if len(choices) > 0 && choices[0].FinishReason != "" { // one is asked for
		r.tally.count.Ended()
	}
	if o.index("usage") < 0 {
		return event
	}
	usage := o.get("usage")
	r.tally.openAI(usage)
	if !r.hide {
		return event
	}
	if known && len(choices) == 0 && usage != nil {
		return nil
	}
	if usage == nil && bytes.Contains(event, data) { // one line of data, which is what all vendors send
		o.remove("usage")
		return bytes.Replace(event, data, o.bytes(), 1)
	}
	return event
}
