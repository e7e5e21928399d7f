// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"os"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// TestFigures prints what long runs cost a page, beside the aims. CONSOLE_SIZES are the numbers of events, and CONSOLE_SPANS
// is the number of spans of a trace. Counts are checked; times are printed only.
//
//	CONSOLE_SIZES=100000,1000000 CONSOLE_SPANS=10000 go test ./test/console -run TestFigures -v -timeout 1h
func TestFigures(t *testing.T) {
	t.Parallel()
	tools(t)
	f := fill(t)
	sizes := cmp.Or(os.Getenv("CONSOLE_SIZES"), "5000")
	for size := range strings.SplitSeq(sizes, ",") {
		n, err := strconv.Atoi(size)
		if err != nil || n < 1000 {
			t.Fatalf("CONSOLE_SIZES: %q: must be numbers from 1000, with commas between them", size)
		}
		f.task("run" + size)
		f.append("run"+size, 0, n)
	}
	spans, err := strconv.Atoi(cmp.Or(os.Getenv("CONSOLE_SPANS"), "500"))
	if err != nil {
		t.Fatalf("CONSOLE_SPANS: %v", err)
	}
	f.task("spans")
	f.spans("spans", spans)
	f.drive("figures.mjs", 1, "TOKEN="+f.token("ann", "platform-viewer"), "SIZES="+sizes, "SPANS="+strconv.Itoa(spans))
}

// task makes a task that nothing runs.
func (f *filled) task(name string) {
	f.t.Helper()
	task := &v1alpha1.Task{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.TaskSpec{Type: v1alpha1.TaskTypeContainer, Command: []string{"true"}},
	}
	made, err := f.api.CoreV1alpha1().Tasks("team").Create(f.t.Context(), task, metav1.CreateOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	f.tasks[name] = made
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
			f.post(task, events...)
			events = nil
		}
	}
}
