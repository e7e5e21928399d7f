// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"encoding/json"
	"math"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// maxID is the length of an id in bytes; what is longer is none.
const maxID = 512

// content are the members of an event's structured payload.
type content map[string]json.RawMessage

// contentOf is nil for a payload that is no object.
func contentOf(e *v1alpha1.ExecutionEvent) content {
	if e.Content == nil || !bytes.HasPrefix(e.Content.Raw, []byte("{")) {
		return nil
	}
	var c content
	if json.Unmarshal(e.Content.Raw, &c) != nil {
		return nil
	}
	return c
}

// id is what correlates the events of one request or call, empty for nothing.
func (c content) id() string {
	for _, key := range [...]string{"modelRequestID", "modelRequestId", "model_request_id", "requestID", "requestId", "request_id", "id"} {
		if id := c.label(key); id != "" && len(id) <= maxID {
			return id
		}
	}
	return ""
}

// label is a member that is text or a number, as text.
func (c content) label(key string) string {
	var n json.Number
	if s := c.text(key); s != "" {
		return s
	}
	if json.Unmarshal(c[key], &n) != nil {
		return ""
	}
	return n.String()
}

// text is the first of the members that is text and not empty.
func (c content) text(keys ...string) string {
	for _, key := range keys {
		var s string
		if raw, ok := c[key]; ok && json.Unmarshal(raw, &s) == nil && s != "" {
			return s
		}
	}
	return ""
}

// child is the name of a task that a tool made, also inside of its result.
func (c content) child() string {
	keys := [...]string{"childTask", "childTaskName", "taskName", "task_name", "task", "name"}
	if name := c.text(keys[:]...); name != "" {
		return name
	}
	var result content
	if raw, ok := c["result"]; !ok || json.Unmarshal(raw, &result) != nil {
		return ""
	}
	return result.text(keys[:]...)
}

// number is the first of the members that is a whole number from 0 on.
func (c content) number(keys ...string) *int64 {
	for _, key := range keys {
		var f float64
		raw, ok := c[key]
		if !ok || bytes.Equal(raw, []byte("null")) || json.Unmarshal(raw, &f) != nil {
			continue
		}
		if f >= 0 && f <= 1<<53 && f == math.Trunc(f) {
			n := int64(f)
			return &n
		}
	}
	return nil
}

// count is a number, 0 if there is none.
func (c content) count(key string) int64 {
	if n := c.number(key); n != nil {
		return *n
	}
	return 0
}
