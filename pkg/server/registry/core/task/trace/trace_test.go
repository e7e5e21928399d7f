// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/platform-ai/platform/pkg/readmodel/trace"
)

func TestHeldRows(t *testing.T) {
	h := newHeldRows()
	h.max = 30
	h.add(trace.Errors, "1")
	h.add(trace.Errors, "2")
	h.add(trace.ToolCalls, strings.Repeat("x", 10))
	if got := h.groups[trace.Errors].String(); got != `"1","2"` || h.size != 19 {
		t.Errorf("%s, %d bytes", got, h.size)
	}
	h.add(trace.ToolCalls, strings.Repeat("x", 10)) // too many: the longest group is dropped
	h.add(trace.ToolCalls, "y")
	h.add(trace.Errors, "3")
	if d := cmp.Diff(map[trace.Group]bool{trace.ToolCalls: true}, h.dropped); d != "" || h.size != 11 {
		t.Errorf("%d bytes, dropped:\n%s", h.size, d)
	}
	if got := string(h.take(trace.Errors)); got != `"1","2","3"` || h.size != 0 || h.take(trace.ToolCalls) != nil {
		t.Errorf("%s, %d bytes left", got, h.size)
	}
	h.add(trace.Errors, func() {}) // what cannot be encoded
	if !h.over(trace.Errors) {
		t.Error("a row that was not held is not known to be missing")
	}
}
