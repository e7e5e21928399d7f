// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog_test

import (
	"bytes"
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// lossy is a log whose disk can be damaged between two lives.
type lossy struct {
	*eventlog.Log
	t    *testing.T
	disk *localtest.Disk
	e    *local.Engine
}

func (l *lossy) open() {
	o := local.Options{Dir: localtest.Dir, FS: l.disk.FS(), Mark: "store.mark"}
	e, err := local.Open(l.t.Context(), o)
	if lost, is := errors.AsType[*local.LossError](err); is { // as an operator does
		o.AcceptLoss = []string{lost.Losses[0].Name}
		e, err = local.Open(l.t.Context(), o)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	l.e = e
	l.Log, err = eventlog.Open(context.Background(), e, eventlog.Options{PurgeInterval: -1, CachedStreams: 2, Limits: eventlog.Limits{TaskEvents: 100}})
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lossy) close() {
	if err := errors.Join(l.Close(), l.e.Close()); err != nil {
		l.t.Error(err)
	}
}

// lose ends the life of the store, of which the last record of the log becomes unreadable.
func (l *lossy) lose() {
	l.t.Helper()
	killed := l.disk.Crash(100, 0)
	l.close()
	l.disk = killed
	files, err := killed.FS().List(localtest.Dir)
	if err != nil {
		l.t.Fatal(err)
	}
	file := path.Join(localtest.Dir, slices.Max(slices.DeleteFunc(files, func(f string) bool { return !strings.HasSuffix(f, ".log") })))
	content, err := killed.Read(file)
	if err != nil {
		l.t.Fatal(err)
	}
	content = bytes.TrimRight(content, "\x00")
	content[len(content)-1] ^= 1
	if err := killed.Write(file, content); err != nil {
		l.t.Fatal(err)
	}
	l.open()
}

func (l *lossy) append(s eventlog.Stream, n int) (last *v1alpha1.ExecutionEvent) {
	l.t.Helper()
	for range n {
		last = must[[]*v1alpha1.ExecutionEvent](l.t)(l.Append(l.t.Context(), s, []*v1alpha1.ExecutionEvent{{Type: "ToolCallStarted", Severity: "info"}}))[0]
	}
	return last
}

// A store that was opened without its last events gives none of their seqs and cursors again. Readers that know them, and all others, get a gap.
func TestNumbersOfLostEvents(t *testing.T) {
	const skip, cursors = 1 << 20, 2 << 20
	l := &lossy{t: t, disk: localtest.NewDisk()}
	l.open()
	defer func() { l.close() }()
	s := eventlog.Stream{Namespace: "n", Task: "a", UID: "a", Session: "s"}
	idle := eventlog.Stream{Namespace: "n", Task: "idle", UID: "i"}
	l.append(idle, 1)
	l.append(s, 5) // the last one is lost
	l.lose()

	ahead := must[*eventlog.Tail](t)(l.TailTask(s, 5, nil)) // knows it
	defer func() { ahead.Close() }()
	typed := must[*eventlog.Tail](t)(l.TailTask(s, 5, []v1alpha1.EventType{"TaskStarted"}))
	defer typed.Close()
	timeline := must[*eventlog.Tail](t)(l.TailSession("n", "s", 5, nil))
	defer timeline.Close()
	if p, err := ahead.Next(t.Context()); err != nil || len(p.Events)+len(p.Gaps) > 0 || p.Latest != 4 {
		t.Fatalf("%+v, %v", p, err)
	}
	first := int64(4 + skip + 1)
	if e := l.append(s, 1); e.Seq != first {
		t.Errorf("the next event is %d", e.Seq)
	}
	l.append(s, 9)
	if e := l.append(eventlog.Stream{Namespace: "n", Task: "new", UID: "new", Session: "t"}, 1); e.Seq != 1 {
		t.Errorf("a new stream begins with %d", e.Seq)
	}
	for tail, want := range map[*eventlog.Tail][]eventlog.Gap{ahead: {{From: 6, To: first - 1}}, typed: {{From: 6, To: first - 1}}, timeline: {{From: 6, To: 4 + cursors}}} {
		p, err := tail.Next(t.Context())
		if err != nil || cmp.Diff(want, p.Gaps) != "" {
			t.Errorf("gaps %v, want %v: %v", p.Gaps, want, err)
		}
		if tail != typed && len(p.Events) != 10 {
			t.Errorf("%d events", len(p.Events))
		}
	}
	lost := []eventlog.Gap{{From: 5, To: first - 1}}
	for _, reopen := range []bool{false, true} {
		if reopen { // what was left out is left out once
			ahead.Close()
			l.close()
			l.open()
			ahead = must[*eventlog.Tail](t)(l.TailTask(s, 5, nil))
		}
		p := must[*eventlog.StreamPage](t)(l.TaskSpan(t.Context(), s, eventlog.Span{After: 2, Limit: 2}))
		if d := cmp.Diff([]int64{3, 4}, seqs(p)); d != "" || cmp.Diff(lost, p.Gaps) != "" || p.Next != first-1 {
			t.Errorf("%v, gaps %v, next %d", seqs(p), p.Gaps, p.Next)
		}
		p = must[*eventlog.StreamPage](t)(l.TaskSpan(t.Context(), s, eventlog.Span{Backward: true, Before: first + 1}))
		if d := cmp.Diff([]int64{first, 4, 3, 2, 1}, seqs(p)); d != "" || cmp.Diff(lost, p.Gaps) != "" {
			t.Errorf("backward %v, gaps %v", seqs(p), p.Gaps)
		}
		p = must[*eventlog.StreamPage](t)(l.TaskSpan(t.Context(), s, eventlog.Span{Backward: true, Before: first + 1, Limit: 1}))
		if cmp.Diff(lost, p.Gaps) != "" || p.Prev != 5 {
			t.Errorf("a page backward, gaps %v, prev %d", p.Gaps, p.Prev)
		}
		for _, buckets := range []int{0, 7} {
			c := must[*eventlog.Counts](t)(l.Count(t.Context(), s, nil, buckets))
			session := must[*eventlog.Counts](t)(l.SessionCount(t.Context(), "n", "s", nil, buckets))
			if c.Total != 14 || session.Total != 14 {
				t.Errorf("counted %d and %d", c.Total, session.Total)
			}
		}
	}
	if e := l.append(s, 1); e.Seq != first+10 {
		t.Errorf("after another start: %d", e.Seq)
	}
	l.append(s, 50)
	if _, err := l.Append(t.Context(), s, slices.Repeat([]*v1alpha1.ExecutionEvent{{Type: "ToolCallStarted", Severity: "info"}}, 36)); err == nil {
		t.Error("more events than the limit")
	}
	l.append(s, 34) // the refusal is an event, too

	w := must[watch.Interface](t)(l.Watch(t.Context(), eventlog.Query{Namespace: "n", Task: "a"}, 0, eventlog.WatchOptions{}))
	defer w.Stop()
	if err := l.Trim(t.Context(), s, 1000); err != nil { // among those that were left out
		t.Fatal(err)
	}
	p := must[*eventlog.StreamPage](t)(l.TaskSpan(t.Context(), s, eventlog.Span{Limit: 1}))
	if d := cmp.Diff([]int64{first}, seqs(p)); d != "" || p.Head.Oldest != first || cmp.Diff([]eventlog.Gap{{From: 1, To: first - 1}}, p.Gaps) != "" {
		t.Errorf("trimmed: %v, gaps %v, oldest %d", seqs(p), p.Gaps, p.Head.Oldest)
	}
	if c := must[*eventlog.Counts](t)(l.Count(t.Context(), s, nil, 3)); c.Total != 96 {
		t.Errorf("trimmed: counted %d", c.Total)
	}
	if err := l.DeleteStream(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	for deleted := 0; deleted < 100; {
		e, ok := <-w.ResultChan()
		if !ok || e.Type == watch.Error {
			t.Fatalf("watched %v after %d deletions", e, deleted)
		}
		if e.Type == watch.Deleted {
			deleted++
		}
	}
	if e := l.append(idle, 1); e.Seq != 1+skip+1 {
		t.Errorf("the idle stream goes on with %d", e.Seq)
	}
}
