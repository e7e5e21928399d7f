// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
)

// counted is a log whose streams are counted.
type counted struct {
	*Log
	t     testing.TB
	e     engine.Engine
	clock *clocktesting.FakeClock
	s     Stream
}

func newCounted(t testing.TB) *counted {
	c := &counted{t: t, clock: clocktesting.NewFakeClock(time.Unix(1000, 0)), s: Stream{Namespace: "n", Task: "a", UID: "a"}}
	var err error
	if c.e, err = local.Open(t.Context(), local.Options{Dir: "data", FS: localtest.NewDisk().FS()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.e.Close() })
	c.open()
	return c
}

func (c *counted) open() {
	l, err := Open(context.Background(), c.e, Options{Clock: c.clock, PurgeInterval: -1})
	if err != nil {
		c.t.Fatal(err)
	}
	c.Log = l
	c.t.Cleanup(func() { _ = l.Close() })
}

// fill appends n events in batches, every tenth a failed call; step passes after each batch.
func (c *counted) fill(n, batch int, step time.Duration) {
	for done := 0; done < n; done += batch {
		var events []*v1alpha1.ExecutionEvent
		for i := done; i < min(done+batch, n); i++ {
			e := &v1alpha1.ExecutionEvent{Type: v1alpha1.EventToolCallStarted, Severity: v1alpha1.SeverityInfo, Summary: fmt.Sprint("call ", i)}
			if i%10 == 9 {
				e.Type, e.Severity = v1alpha1.EventToolCallFailed, v1alpha1.SeverityError
			}
			events = append(events, e)
		}
		if _, err := c.Append(context.Background(), c.s, events); err != nil {
			c.t.Fatal(err)
		}
		c.clock.Step(step)
	}
}

// forget makes the stream one that an older version wrote.
func (c *counted) forget() {
	no, _, err := c.Writer.number(uidKey(c.s.UID))
	if err != nil {
		c.t.Fatal(err)
	}
	id, st, _, err := c.Writer.stored(no)
	if err != nil {
		c.t.Fatal(err)
	}
	head := encodeHead(&id, &st)
	older := head[:len(head)-1-len(binary.AppendUvarint(nil, uint64(st.counted)))-len(st.counts)]
	b, err := c.e.NewBatch()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := b.Set(headKey(no), older); err != nil {
		c.t.Fatal(err)
	}
	if err := b.DeleteRange(markPrefix(no), after(markPrefix(no))); err != nil {
		c.t.Fatal(err)
	}
	if err := c.e.Apply(b, engine.Sync); err != nil {
		c.t.Fatal(err)
	}
	_ = c.Close()
	c.open()
}

func (c *counted) want(total, failed int64, buckets int) *Counts {
	c.t.Helper()
	got, err := c.Count(context.Background(), c.s, nil, buckets)
	if err != nil {
		c.t.Fatal(err)
	}
	types := map[v1alpha1.EventType]int64{v1alpha1.EventToolCallStarted: total - failed, v1alpha1.EventToolCallFailed: failed}
	sum, errs, seq := int64(0), int64(0), int64(0)
	for _, b := range got.Buckets {
		if b.Seq <= seq || !b.From.Before(b.To) {
			c.t.Errorf("bucket %+v follows seq %d", b, seq)
		}
		sum, errs, seq = sum+b.Total, errs+b.Severities[v1alpha1.SeverityError], b.Seq
	}
	if got.Total != total || !maps.Equal(got.Types, types) || got.Severities[v1alpha1.SeverityError] != failed || buckets > 0 && (sum != total || errs != failed) {
		c.t.Errorf("%d events with %d failures in %d buckets: %+v", total, failed, buckets, got)
	}
	return got
}

// Counts are right after appends of any size, after trims and purges, and for a stream that was not counted at first.
func TestCounts(t *testing.T) {
	c := newCounted(t)
	c.fill(1000, 70, time.Second)
	if got := c.want(1000, 100, 10); got.Approximate || len(got.Buckets) != 10 {
		t.Errorf("%d buckets, approximate %v", len(got.Buckets), got.Approximate)
	}
	c.forget()
	c.want(1000, 100, 10)
	c.fill(400, 7, time.Second)
	c.want(1400, 140, 10)
	c.forget()
	c.fill(1000, 999, time.Second)
	for _, before := range []int64{100, 257, 1401, 1500, 2399} {
		if err := c.Trim(context.Background(), c.s, before); err != nil {
			t.Fatal(err)
		}
		kept := 2400 - before + 1
		c.want(kept, 240-(before-1)/10, 10)
		c.clock.Step(10 * time.Minute)
		if _, err := c.Purge(context.Background()); err != nil {
			t.Fatal(err)
		}
		c.want(kept, 240-(before-1)/10, 10)
	}
	one, err := c.Count(context.Background(), c.s, []v1alpha1.EventType{v1alpha1.EventToolCallFailed}, 3)
	if err != nil || one.Total != 1 || len(one.Buckets) != 1 || one.Buckets[0].Seq == 0 {
		t.Errorf("of one type: %+v %v", one, err)
	}
	no, _, err := c.Writer.number(uidKey(c.s.UID))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.DeleteStream(context.Background(), c.s); err != nil {
		t.Fatal(err)
	}
	c.clock.Step(10 * time.Minute)
	if _, err := c.Purge(context.Background()); err != nil {
		t.Fatal(err)
	}
	it, err := c.e.NewIter(markPrefix(no), after(markPrefix(no)))
	if err != nil {
		t.Fatal(err)
	}
	if it.First() {
		t.Error("marks of a purged stream are left")
	}
	_ = it.Close()
}

// Buckets are those that reading every event gives, also where much time passes within a few events.
func TestBucketsOfPauses(t *testing.T) {
	c := newCounted(t)
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		c.fill(1+r.IntN(40), 1+r.IntN(7), time.Duration(r.IntN(20))*time.Millisecond)
		if r.IntN(10) == 0 {
			c.clock.Step(time.Duration(r.IntN(100)) * time.Second)
		}
	}
	page, err := c.TaskSpan(context.Background(), c.s, Span{Limit: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for _, buckets := range []int{1, 2, 7, 200, 500} {
		got, err := c.Count(context.Background(), c.s, nil, buckets)
		if err != nil || got.Approximate {
			t.Fatal(err, got.Approximate)
		}
		next := 0
		for _, b := range got.Buckets {
			want := Bucket{From: b.From, To: b.To, Seq: int64(next + 1), Types: map[v1alpha1.EventType]int64{}, Severities: map[v1alpha1.EventSeverity]int64{}}
			for ; next < len(page.Events) && page.Events[next].CreatedAt.Time.Before(b.To); next++ {
				want.Total++
				want.Types[page.Events[next].Type]++
				want.Severities[page.Events[next].Severity]++
			}
			if !reflect.DeepEqual(b, want) {
				t.Fatalf("of %d buckets: %+v, want %+v", buckets, b, want)
			}
		}
		if next != len(page.Events) {
			t.Errorf("%d buckets have %d of %d events", buckets, next, len(page.Events))
		}
	}
}

// The counts of a session are those that reading its timeline gives, whatever became of its streams.
func TestSessionCounts(t *testing.T) {
	c := newCounted(t)
	r := rand.New(rand.NewPCG(5, 6))
	a, b, d := Stream{Namespace: "n", Task: "a", UID: "a", Session: "s"}, Stream{Namespace: "n", Task: "b", UID: "b", Session: "s"}, Stream{Namespace: "n", Task: "d", UID: "d", Session: "s"}
	elsewhere := a // events of one stream in two sessions
	elsewhere.Session = "other"
	fill := func(rounds int, streams ...Stream) {
		for range rounds {
			c.s = streams[r.IntN(len(streams))]
			n := 1 + r.IntN(40)
			if r.IntN(12) == 0 {
				n = 300 + r.IntN(900)
			}
			c.fill(n, 1+r.IntN(50), time.Duration(r.IntN(300))*time.Millisecond)
		}
	}
	fill(60, a, b, d, elsewhere)
	fill(4, b)
	c.wantSession("as they were stored")
	c.s = d
	c.forget()
	fill(20, a, d)
	c.wantSession("with a stream of an older version")
	trim := func(s Stream, before int64) {
		if err := c.Trim(context.Background(), s, before); err != nil {
			t.Fatal(err)
		}
	}
	purge := func() {
		c.clock.Step(10 * time.Minute)
		if _, err := c.Purge(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	trim(a, 257)
	trim(d, 300)
	c.wantSession("trimmed")
	purge()
	c.wantSession("trimmed and purged")
	trim(a, 401)
	purge()
	if err := c.DeleteStream(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	c.wantSession("without a deleted stream")
	purge()
	fill(10, a, d)
	c.wantSession("without a purged stream")
	if got, err := c.SessionCount(context.Background(), "n", "nobody", nil, 10); err != nil || got.Total != 0 || got.Types == nil || got.Buckets != nil {
		t.Errorf("of no session: %+v %v", got, err)
	}
}

// wantSession compares the counts of session s with its events.
func (c *counted) wantSession(when string) {
	c.t.Helper()
	page, err := c.SessionPage(context.Background(), "n", "s", 0, 1<<20, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	zero := func() Bucket {
		return Bucket{Types: map[v1alpha1.EventType]int64{}, Severities: map[v1alpha1.EventSeverity]int64{}}
	}
	add := func(b *Bucket, e *v1alpha1.ExecutionEvent) {
		b.Total++
		b.Types[e.Type]++
		b.Severities[e.Severity]++
	}
	all := zero()
	for _, e := range page.Events {
		add(&all, e)
	}
	for _, buckets := range []int{0, 1, 7, 200, 500} {
		got, err := c.SessionCount(context.Background(), "n", "s", nil, buckets)
		if err != nil {
			c.t.Fatalf("%s: %v", when, err)
		}
		sum := Bucket{Total: got.Total, Types: got.Types, Severities: got.Severities}
		if !reflect.DeepEqual(sum, all) || got.Head != (Head{LatestSeq: page.Latest, Oldest: page.Events[0].Seq}) {
			c.t.Fatalf("%s: %+v of %+v, want %+v of %d to %d", when, sum, got.Head, all, page.Events[0].Seq, page.Latest)
		}
		next := 0
		for _, b := range got.Buckets {
			want := zero()
			want.From, want.To, want.Seq = b.From, b.To, page.Events[next].Seq
			for ; next < len(page.Events) && page.Events[next].CreatedAt.Time.Before(b.To); next++ {
				add(&want, page.Events[next])
			}
			if !reflect.DeepEqual(b, want) {
				c.t.Fatalf("%s: of %d buckets: %+v, want %+v", when, buckets, b, want)
			}
		}
		if buckets > 0 && next != len(page.Events) {
			c.t.Errorf("%s: %d buckets have %d of %d events", when, buckets, next, len(page.Events))
		}
	}
}
