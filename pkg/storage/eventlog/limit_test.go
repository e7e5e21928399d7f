// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
	"github.com/platform-ai/platform/pkg/storage/quota"
)

// The total of a namespace is the sum of its live streams, including those that are written concurrently,
// trimmed, deleted or replaced, and after the log is opened again.
func TestNamespaceTotal(t *testing.T) {
	const most = 1 << 20
	dir, ctx := t.TempDir(), t.Context()
	opened := func(f func(l *eventlog.Log)) {
		t.Helper()
		e, err := local.Open(ctx, local.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		l, err := eventlog.Open(ctx, e, eventlog.Options{Limits: eventlog.Limits{NamespaceBytes: most}})
		if err != nil {
			t.Fatal(err)
		}
		f(l)
		if err := errors.Join(l.Close(), e.Close()); err != nil {
			t.Fatal(err)
		}
	}
	stream := func(i int) eventlog.Stream {
		return eventlog.Stream{Namespace: "a", Task: fmt.Sprint("t", i), UID: types.UID(fmt.Sprint("u", i))}
	}
	long := of("ModelMessage")
	long.Summary = strings.Repeat("word ", 100)
	// used asks for more than there is in one append; its refusal leaves a note the first time, which is part of the total.
	asks := eventlog.Stream{Namespace: "a", Task: "asks", UID: "asks"}
	events := make([]*v1alpha1.ExecutionEvent, 3000)
	for i := range events {
		events[i] = of("ModelMessage")
	}
	used := func(l *eventlog.Log) int64 {
		t.Helper()
		_, err := l.Append(ctx, asks, events)
		limit, ok := errors.AsType[*quota.LimitError](err)
		if !ok || limit.Of != "namespace a" || limit.Limit != "bytes of events" || limit.Most != most || !errors.Is(err, quota.ErrLimit) {
			t.Fatalf("asked for too much: %v", err)
		}
		return limit.Used
	}
	var base, each, all int64
	opened(func(l *eventlog.Log) {
		used(l)
		base = used(l)
		if h, err := l.Head(ctx, asks); err != nil || h.LatestSeq != 1 {
			t.Errorf("%+v, %v: want one note", h, err)
		}
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for range 10 {
					if _, err := l.Append(ctx, stream(i), []*v1alpha1.ExecutionEvent{long}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		all = used(l)
		if each = (all - base) / 8; each < 10*900 || (all-base)%8 != 0 {
			t.Errorf("%d bytes at first, %d after", base, all)
		}
	})
	opened(func(l *eventlog.Log) {
		if got := used(l); got != all {
			t.Errorf("%d bytes after opening, %d before", got, all)
		}
		if err := errors.Join(l.DeleteStream(ctx, stream(0)), l.DeleteStream(ctx, stream(0)), l.Trim(ctx, stream(1), 6)); err != nil {
			t.Fatal(err)
		}
		if got, want := used(l), all-each-each/2; got != want {
			t.Errorf("%d bytes after a deletion and a trim, want %d", got, want)
		}
		again := stream(2)
		again.UID = "again"
		if _, err := l.Append(ctx, again, []*v1alpha1.ExecutionEvent{long}); err != nil {
			t.Fatal(err)
		}
		if got, want := used(l), all-each-each/2-each*9/10; got != want {
			t.Errorf("%d bytes after a stream was replaced, want %d", got, want)
		}
		for i := range 8 {
			if err := errors.Join(l.DeleteStream(ctx, stream(i)), l.DeleteStream(ctx, again)); err != nil {
				t.Fatal(err)
			}
		}
	})
	opened(func(l *eventlog.Log) {
		if got := used(l); got != base {
			t.Errorf("%d bytes in the end, want %d", got, base)
		}
		if _, err := l.Append(ctx, eventlog.Stream{Namespace: "b", Task: "x", UID: "x"}, events[:1000]); err != nil {
			t.Errorf("another namespace: %v", err)
		}
	})
}
