// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

func seqs(p *eventlog.StreamPage) []int64 {
	out := []int64{}
	for _, e := range p.Events {
		out = append(out, e.Seq)
	}
	return out
}

// Text is found in any letter case, in texts and in content, forward and backward, in streams and timelines.
func TestSearch(t *testing.T) {
	l := open(t, localtest.NewDisk(), eventlog.Options{})
	s := eventlog.Stream{Namespace: "n", Task: "a", UID: "a", Session: "s"}
	var events []*v1alpha1.ExecutionEvent
	for _, e := range []v1alpha1.ExecutionEvent{
		{Summary: "Reads the File"},
		{ContentText: "ÄRGER über 5 < 6"},
		{ToolName: "file_read"},
		{Content: &apiextensionsv1.JSON{Raw: []byte(`{"path":"C:\\Files\\x","note":"a \u003c b"}`)}},
		{Summary: "nothing", DedupKey: "file"},
	} {
		e.Type, e.Severity = "ToolCallStarted", "info"
		events = append(events, &e)
	}
	must[[]*v1alpha1.ExecutionEvent](t)(l.Append(context.Background(), s, events))
	for text, want := range map[string][]int64{
		"file": {4, 3, 1}, "FILE": {4, 3, 1}, "ärger": {2}, "5 < 6": {2}, `c:\files`: {4}, "a < b": {4}, "file ": {}, "the file": {1}, "absent": {},
	} {
		for _, backward := range []bool{true, false} {
			want := append([]int64{}, want...)
			if !backward {
				for i, j := 0, len(want)-1; i < j; i, j = i+1, j-1 {
					want[i], want[j] = want[j], want[i]
				}
			}
			span := eventlog.Span{Backward: backward, Text: text}
			p := must[*eventlog.StreamPage](t)(l.TaskSpan(context.Background(), s, span))
			if d := cmp.Diff(want, seqs(p)); d != "" || p.Prev != 0 {
				t.Errorf("%q in the stream, backward %v: %s", text, backward, d)
			}
			p = must[*eventlog.StreamPage](t)(l.SessionSpan(context.Background(), "n", "s", span))
			if d := cmp.Diff(want, seqs(p)); d != "" {
				t.Errorf("%q in the session, backward %v: %s", text, backward, d)
			}
		}
	}
	stream := eventlog.Span{Backward: true, Types: []v1alpha1.EventType{"Nonsense"}}
	if _, err := l.TaskSpan(context.Background(), s, stream); err == nil {
		t.Error("an unknown type is accepted")
	}
	if err := l.DeleteStream(context.Background(), s); err != nil {
		t.Fatal(err)
	}
	if _, err := l.TaskSpan(context.Background(), s, eventlog.Span{Backward: true}); !errors.Is(err, eventlog.ErrDeleted) {
		t.Errorf("a deleted stream: %v", err)
	}
}

// A search without a match ends after a bounded part of the stream, and goes on from there until it has seen all.
func TestSearchIsBounded(t *testing.T) {
	l := open(t, localtest.NewDisk(), eventlog.Options{})
	s := eventlog.Stream{Namespace: "n", Task: "a", UID: "a", Session: "s"}
	batch := make([]*v1alpha1.ExecutionEvent, 500)
	for i := range 90 {
		for j := range batch {
			batch[j] = of("ToolCallStarted")
			batch[j].Summary = fmt.Sprintf("call %d", i*len(batch)+j)
		}
		must[[]*v1alpha1.ExecutionEvent](t)(l.Append(context.Background(), s, batch))
	}
	for _, session := range []bool{false, true} {
		read := func(span eventlog.Span) *eventlog.StreamPage {
			if session {
				return must[*eventlog.StreamPage](t)(l.SessionSpan(context.Background(), "n", "s", span))
			}
			return must[*eventlog.StreamPage](t)(l.TaskSpan(context.Background(), s, span))
		}
		var found []int64
		pages := 0
		for before := int64(0); ; pages++ {
			p := read(eventlog.Span{Backward: true, Before: before, Text: "CALL 7"})
			found = append(found, seqs(p)...)
			if before = p.Prev; before == 0 {
				break
			}
		}
		if len(found) != 1111 || found[len(found)-1] != 8 {
			t.Errorf("session %v: %d events, the first is %d", session, len(found), found[len(found)-1])
		}
		pages = 1
		for p := read(eventlog.Span{Backward: true, Text: "absent"}); p.Prev != 0; pages++ {
			p = read(eventlog.Span{Backward: true, Before: p.Prev, Text: "absent"})
		}
		if pages != 3 {
			t.Errorf("session %v: a search of 45,000 events took %d pages, want 3", session, pages)
		}
		if p := read(eventlog.Span{Text: "absent"}); p.Next != 20_000 || len(p.Events) != 0 {
			t.Errorf("session %v: forward, the first page ends at %d", session, p.Next)
		}
	}
}
