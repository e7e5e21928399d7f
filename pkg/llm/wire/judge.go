// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Answer describes the answers of an API, by which what arrives with a success status is told from what is no answer: a page of a
// proxy, an error, null, nothing, or JSON of something else.
type Answer struct {
	// Name is what people call it.
	Name string
	// Member is a member that each whole answer has: a list, unless Number is set. With Filled the list is never empty.
	Member         string
	Filled, Number bool
	// Event is a member that each event of a stream has.
	Event string
}

// NoAnswerError says what came in place of an answer.
type NoAnswerError struct {
	// What it is, and Said what its vendor says of an error; empty for nothing. Said may have the key.
	What, Said string
}

// Error says what came, without what the vendor says.
func (e *NoAnswerError) Error() string { return "it is no answer but " + e.What }

// Sent says what came in place of an answer, with what its vendor says of it but for the key. err is what Answer returns.
func Sent(err error, k Key) string {
	no, ok := errors.AsType[*NoAnswerError](err)
	if !ok {
		return "no answer"
	}
	return strings.TrimSuffix(no.What+": "+k.Scrub(no.Said), ": ")
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// Whole returns a *NoAnswerError if the body of a response is no whole answer.
func (a Answer) Whole(body []byte) error {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, byteOrderMark))
	var all map[string]json.RawMessage
	switch {
	case len(body) == 0:
		return &NoAnswerError{What: "nothing"}
	case body[0] == '<':
		return &NoAnswerError{What: "a page for people, perhaps of a proxy; check baseURL"}
	case !json.Valid(body):
		return &NoAnswerError{What: "text that is not JSON"}
	case body[0] != '{' || json.Unmarshal(body, &all) != nil:
		return &NoAnswerError{What: "JSON that is not an object"}
	}
	return a.Object(func(name string) json.RawMessage { return all[name] })
}

// Object is Whole for an object of valid JSON, whose members get returns.
func (a Answer) Object(get func(name string) json.RawMessage) error {
	value := get(a.Member)
	switch {
	case a.Number && len(value) > 0 && (value[0] == '-' || value[0] >= '0' && value[0] <= '9'):
		return nil
	case !a.Number && len(value) > 0 && value[0] == '[':
		if !a.Filled || bytes.TrimLeft(value[1:], " \t\r\n")[0] != ']' {
			return nil
		}
	}
	if failure := get("error"); !isNull(failure) {
		return &NoAnswerError{What: "an error", Said: said(failure)}
	}
	return &NoAnswerError{What: fmt.Sprintf("JSON without %s of %s", a.Member, a.Name)}
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// said returns the text of an error, which is a text itself or an object with one.
func said(failure json.RawMessage) string {
	var text string
	var of struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(failure, &text) == nil {
		return text
	}
	_ = json.Unmarshal(failure, &of) // then it says nothing that is known
	return of.Message
}

// First judges the data of an event with which a stream may begin. It returns a *NoAnswerError if no answer begins so, and reports
// false for what says nothing of the answer, such as a ping.
func (a Answer) First(data []byte) (says bool, err error) {
	data = bytes.TrimSpace(data)
	var all map[string]json.RawMessage
	switch {
	case len(data) == 0:
		return false, nil
	case string(data) == "[DONE]":
		return true, &NoAnswerError{What: "the end of one"}
	case data[0] != '{' || json.Unmarshal(data, &all) != nil:
		return true, &NoAnswerError{What: "a stream of something else than JSON objects"}
	}
	kind := string(all["type"])
	switch value := all[a.Event]; {
	case kind == `"ping"`:
		return false, nil
	case kind == `"error"`, kind == `"response.failed"`, isNull(value) && !isNull(all["error"]):
		return true, &NoAnswerError{What: "an error", Said: said(failureIn(all))}
	case isNull(value):
		return true, &NoAnswerError{What: fmt.Sprintf("a stream of JSON without %s of %s", a.Event, a.Name)}
	}
	return true, nil
}

// failureIn returns the error of an event: a member of it or of its response, or the event itself.
func failureIn(event map[string]json.RawMessage) json.RawMessage {
	if e := event["error"]; !isNull(e) {
		return e
	}
	var r struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(event["response"], &r) == nil && !isNull(r.Error) {
		return r.Error
	}
	if m := event["message"]; !isNull(m) {
		return m
	}
	return json.RawMessage(`""`)
}

// SaysStream reports whether the header of a response calls its body an event stream.
func SaysStream(h http.Header) bool {
	return strings.HasPrefix(h.Get("Content-Type"), "text/event-stream")
}

// AsStream has decoders read a response as an event stream, which its body was found to be: a header that says so, and the body from
// its begin. The response's own body stays the caller's to close.
func AsStream(resp *http.Response, body io.Reader) {
	resp.Body, resp.Header = io.NopCloser(body), http.Header{"Content-Type": {"text/event-stream"}}
}

// maxBlank is how much white space may come before an answer, in bytes. Nearly all have less than fewBlank, so that looking costs
// little memory.
const fewBlank, maxBlank = 64, 4 << 10

// IsStream reports whether a body is an event stream, by how it begins: servers and proxies do not always say so in the header. It
// returns a reader of the whole body. An empty body is no stream.
func IsStream(body io.Reader) (io.Reader, bool) {
	r := bufio.NewReaderSize(body, fewBlank)
	for n := 1; n <= maxBlank; n++ {
		if n > r.Size() {
			r = bufio.NewReaderSize(r, maxBlank)
		}
		begin, err := r.Peek(n)
		if err != nil {
			return r, false
		}
		switch begin[n-1] {
		case ' ', '\t', '\r', '\n', byteOrderMark[0], byteOrderMark[1], byteOrderMark[2]:
		case ':', 'd', 'e', 'i', 'r': // a comment, data, event, id, retry
			return r, true
		default:
			return r, false
		}
	}
	return r, false
}
