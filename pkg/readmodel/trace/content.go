// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// maxID is the maximum length of an id in bytes. Longer values are ignored.
const maxID = 512

// content holds the members of an event's structured payload. A fold looks at a few short members of each
// event, so they are found without decoding the rest, which would be most of the cost of a trace.
type content []member

// contentOf returns the members of the payload of e, or nil if the payload is not an object.
func contentOf(e *v1alpha1.ExecutionEvent) content {
	if e.Content == nil {
		return nil
	}
	return membersOf(e.Content.Raw)
}

// get returns the value of a member, or nil if there is none.
func (c content) get(name string) []byte {
	for i := range c {
		if string(c[i].name) == name {
			return c[i].value
		}
	}
	return nil
}

// id returns the id that correlates the events of one request or call, empty if there is none.
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

// text returns the first of the members that is a non-empty text.
func (c content) text(names ...string) string {
	for _, name := range names {
		var s string
		if v := c.get(name); at(v, 0, '"') && json.Unmarshal(v, &s) == nil && s != "" {
			return s
		}
	}
	return ""
}

// child returns the name of a task that a tool created. It looks in the tool's result too.
func (c content) child() string {
	names := [...]string{"childTask", "childTaskName", "taskName", "task_name", "task", "name"}
	if name := c.text(names[:]...); name != "" {
		return name
	}
	return membersOf(c.get("result")).text(names[:]...)
}

// number returns the first of the members that is a non-negative integer.
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

// count returns the number in a member, 0 if there is none.
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
