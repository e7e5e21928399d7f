// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// maxID is the length of an id in bytes; what is longer is none.
const maxID = 512

// content are the members of an event's structured payload. A fold looks at a
// few short ones of each event, so they are found without decoding the rest:
// that is most of what a trace costs.
type content []member

// member is a name, without its quotes, and the JSON of its value.
type member struct{ name, value []byte }

// maxMembers is how many members are looked at.
const maxMembers = 64

// contentOf is nil for a payload that is no object.
func contentOf(e *v1alpha1.ExecutionEvent) content {
	if e.Content == nil {
		return nil
	}
	return membersOf(e.Content.Raw)
}

// membersOf takes an object apart. What is not JSON gives the members before it.
func membersOf(raw []byte) content {
	i := space(raw, 0)
	if !at(raw, i, '{') {
		return nil
	}
	c := make(content, 0, 8)
	for len(c) < maxMembers {
		i = space(raw, i+1)
		end := textEnd(raw, i)
		if end < 0 {
			break
		}
		name := raw[i+1 : end-1]
		if i = space(raw, end); !at(raw, i, ':') {
			break
		}
		i = space(raw, i+1)
		if end = valueEnd(raw, i); end <= i {
			break
		}
		c = append(c, member{name, raw[i:end]})
		if i = space(raw, end); !at(raw, i, ',') {
			break
		}
	}
	return c
}

func at(raw []byte, i int, c byte) bool { return i < len(raw) && raw[i] == c }

func space(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\n' || raw[i] == '\t' || raw[i] == '\r') {
		i++
	}
	return i
}

// textEnd is the index behind the text that begins at i, or -1.
func textEnd(raw []byte, i int) int {
	if !at(raw, i, '"') {
		return -1
	}
	for j := i + 1; ; {
		n := bytes.IndexByte(raw[j:], '"')
		if n < 0 {
			return -1
		}
		j += n + 1
		escapes := 0
		for k := j - 2; k > i && raw[k] == '\\'; k-- {
			escapes++
		}
		if escapes%2 == 0 {
			return j
		}
	}
}

// valueEnd is the index behind the value that begins at i, or -1.
func valueEnd(raw []byte, i int) int {
	depth := 0
	for i < len(raw) {
		switch raw[i] {
		case '"':
			if i = textEnd(raw, i); i < 0 {
				return -1
			}
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return -1
}

// get is the value of a member, nil if there is none.
func (c content) get(name string) []byte {
	for i := range c {
		if string(c[i].name) == name {
			return c[i].value
		}
	}
	return nil
}

// id is what correlates the events of one request or call, empty for nothing.
func (c content) id() string {
	for _, name := range [...]string{"modelRequestID", "modelRequestId", "model_request_id", "requestID", "requestId", "request_id", "id"} {
		id := c.text(name)
		if _, ok := number(c.get(name)); id == "" && ok {
			id = string(c.get(name))
		}
		if id != "" && len(id) <= maxID {
			return id
		}
	}
	return ""
}

// text is the first of the members that is text and not empty.
func (c content) text(names ...string) string {
	for _, name := range names {
		var s string
		if v := c.get(name); at(v, 0, '"') && json.Unmarshal(v, &s) == nil && s != "" {
			return s
		}
	}
	return ""
}

// child is the name of a task that a tool made, also inside of its result.
func (c content) child() string {
	names := [...]string{"childTask", "childTaskName", "taskName", "task_name", "task", "name"}
	if name := c.text(names[:]...); name != "" {
		return name
	}
	return membersOf(c.get("result")).text(names[:]...)
}

// number is the first of the members that is a whole number from 0 on.
func (c content) number(names ...string) *int64 {
	for _, name := range names {
		f, ok := number(c.get(name))
		if ok && f >= 0 && f <= 1<<53 && f == math.Trunc(f) {
			n := int64(f)
			return &n
		}
	}
	return nil
}

// count is a number, 0 if there is none.
func (c content) count(name string) int64 {
	if n := c.number(name); n != nil {
		return *n
	}
	return 0
}

func number(v []byte) (float64, bool) {
	if len(v) == 0 || v[0] != '-' && (v[0] < '0' || v[0] > '9') {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v), 64)
	return f, err == nil
}
