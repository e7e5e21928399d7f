// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/readmodel/trace"
)

// answer writes one JSON object piece by piece. The first failure is kept
// in err, and nothing is written after it.
type answer struct {
	out   *lateHeader
	w     *bufio.Writer
	err   error
	comma bool // the next key or row needs a comma before it
	// scratch is a buffer to encode an event in.
	scratch []byte
}

// answerBuffer is how much is buffered before a write, in bytes. A failure
// before the first write is still answered with a Status.
const answerBuffer = 64 << 10

func newAnswer(w http.ResponseWriter) *answer {
	out := &lateHeader{w: w}
	return &answer{out: out, w: bufio.NewWriterSize(out, answerBuffer)}
}

// lateHeader sets the header with the first bytes.
type lateHeader struct {
	w    http.ResponseWriter
	sent bool
}

func (h *lateHeader) Write(b []byte) (int, error) {
	if !h.sent {
		h.sent = true
		h.w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		h.w.WriteHeader(http.StatusOK)
	}
	return h.w.Write(b)
}

// sent reports whether any part of the answer has been sent to the client.
func (a *answer) sent() bool { return a.out.sent }

func (a *answer) flush() error { return a.w.Flush() }

func (a *answer) open() {
	a.text("{")
	a.field("kind", "TaskTrace")
	a.field("apiVersion", v1alpha1.SchemeGroupVersion.String())
}

func (a *answer) close() { a.text("}\n") }

// field writes a member of the object.
func (a *answer) field(key string, value any) {
	a.key(key)
	a.value(value)
}

// array begins a member that is a list; row and rows add elements to it.
func (a *answer) array(key string) {
	a.key(key)
	a.text("[")
	a.comma = false
}

func (a *answer) endArray() {
	a.text("]")
	a.comma = true
}

// row writes an element of a list.
func (a *answer) row(value any) {
	a.next()
	a.value(value)
}

// rows writes elements that are already encoded and joined by commas.
func (a *answer) rows(raw []byte) {
	if len(raw) > 0 {
		a.next()
		a.bytes(raw)
	}
}

// event writes an event as an element.
func (a *answer) event(e *v1alpha1.ExecutionEvent) {
	a.next()
	a.scratch = event.AppendRow(a.scratch[:0], e)
	a.bytes(a.scratch)
}

func (a *answer) key(key string) {
	a.next()
	a.text(`"` + key + `":`)
}

func (a *answer) value(v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		a.fail(err)
		return
	}
	a.bytes(raw)
}

// next writes a comma, except before the first element.
func (a *answer) next() {
	if a.comma {
		a.text(",")
	}
	a.comma = true
}

func (a *answer) text(s string) {
	if a.err == nil {
		_, a.err = a.w.WriteString(s)
	}
}

func (a *answer) bytes(b []byte) {
	if a.err == nil {
		_, a.err = a.w.Write(b)
	}
}

func (a *answer) fail(err error) {
	if a.err == nil {
		a.err = err
	}
}

// maxHeld bounds how much of the groups of a trace is held in memory while its
// timeline is written, in bytes of JSON. It is enough for about ten thousand
// events.
const maxHeld = 8 << 20

// heldRows holds rows as JSON. When they exceed maxHeld, those of the longest
// group are dropped, and no more are kept for that group.
type heldRows struct {
	groups  map[trace.Group]*bytes.Buffer
	dropped map[trace.Group]bool
	size    int
	max     int
}

func newHeldRows() *heldRows {
	return &heldRows{groups: map[trace.Group]*bytes.Buffer{}, dropped: map[trace.Group]bool{}, max: maxHeld}
}

// add implements trace.Emit.
func (h *heldRows) add(g trace.Group, row any) {
	if h.dropped[g] {
		return
	}
	raw, err := json.Marshal(row)
	if err != nil { // the second computation of the group meets it again
		h.drop(g)
		return
	}
	b := h.groups[g]
	if b == nil {
		b = &bytes.Buffer{}
		h.groups[g] = b
	}
	if b.Len() > 0 {
		b.WriteByte(',')
		h.size++
	}
	b.Write(raw)
	for h.size += len(raw); h.size > h.max; {
		h.drop(h.longest())
	}
}

func (h *heldRows) longest() (longest trace.Group) {
	most := -1
	for g, b := range h.groups {
		if b.Len() > most || b.Len() == most && g < longest {
			longest, most = g, b.Len()
		}
	}
	return longest
}

func (h *heldRows) drop(g trace.Group) {
	h.dropped[g] = true
	if b := h.groups[g]; b != nil {
		h.size -= b.Len()
		delete(h.groups, g)
	}
}

// over reports whether the rows of a group were dropped.
func (h *heldRows) over(g trace.Group) bool { return h.dropped[g] }

// take returns the rows of a group, joined by commas, and releases them.
func (h *heldRows) take(g trace.Group) []byte {
	b := h.groups[g]
	if b == nil {
		return nil
	}
	h.size -= b.Len()
	delete(h.groups, g)
	return b.Bytes()
}
