// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
)

// TestFigures prints what long runs cost a page, beside the aims. CONSOLE_SIZES are the numbers of events, and CONSOLE_SPANS
// is the number of spans of a trace. CONSOLE_RUNS is how many pages are opened for the median of a time. Counts are checked;
// times are printed only. Without CONSOLE_SIZES it is skipped: make figures runs it.
//
//	CONSOLE_SIZES=100000,1000000 CONSOLE_SPANS=10000 CONSOLE_RUNS=5 go test ./test/console -run TestFigures -v -timeout 1h
func TestFigures(t *testing.T) {
	t.Parallel()
	sizes := os.Getenv("CONSOLE_SIZES")
	if sizes == "" {
		t.Skip("CONSOLE_SIZES is not set")
	}
	kit.Needs(t, kit.NPM, kit.Browser)
	f := fill(t)
	for size := range strings.SplitSeq(sizes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil || n < 1000 {
			t.Fatalf("CONSOLE_SIZES: %q: must be numbers from 1000, with commas between them", size)
		}
		f.Task("run" + size)
		f.Append("run"+size, 0, n)
	}
	spans, err := strconv.Atoi(cmp.Or(os.Getenv("CONSOLE_SPANS"), "500"))
	if err != nil {
		t.Fatalf("CONSOLE_SPANS: %v", err)
	}
	f.Task("spans")
	f.spans("spans", spans)
	f.drive("figures.mjs", 1, "TOKEN="+f.token("ann", "platform-viewer"), "SIZES="+sizes, "SPANS="+strconv.Itoa(spans), "RUNS="+cmp.Or(os.Getenv("CONSOLE_RUNS"), "1"))
}

// spans appends the events of n tool calls.
func (f *filled) spans(task string, n int) {
	f.t.Helper()
	var events []v1alpha1.ExecutionEvent
	for i := range n {
		id := "call-" + strconv.Itoa(i)
		events = append(events,
			v1alpha1.ExecutionEvent{Type: v1alpha1.EventToolCallStarted, ToolName: "file_read", ToolCallID: id, Summary: "read a file"},
			v1alpha1.ExecutionEvent{Type: v1alpha1.EventToolCallCompleted, ToolName: "file_read", ToolCallID: id, Summary: "the file was read"})
		if len(events) == 2000 || i == n-1 {
			f.Post(task, events...)
			events = nil
		}
	}
}
