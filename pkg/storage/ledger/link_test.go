// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/usage"
)

func (s *store) putLink(l usage.Link) error {
	return s.ChangeLink(s.t.Context(), l.Namespace, l.ID, func(usage.View, *usage.Link) (*usage.Link, error) { return &l, nil })
}

// unmerged returns the IDs of the links of a repository that are not merged, in their order.
func (s *store) unmerged(at time.Time) (ids []string) {
	s.t.Helper()
	for l, err := range s.view(at).Unmerged("o/r") {
		if err != nil {
			s.t.Fatal(err)
		}
		ids = append(ids, l.ID)
	}
	return ids
}

// TestUnmerged: links are looked at again in the order of their last observations until they are merged, and a view shows each as it was
// at its time, however often it was observed since.
func TestUnmerged(t *testing.T) {
	s := open(t)
	put := func(id string, change func(*usage.Link)) {
		t.Helper()
		l := usage.Link{ID: id, Namespace: "ns", TaskUID: "uid-t", Repository: "o/r", Number: 1, State: usage.PROpen, ObservedAt: s.clock.Now()}
		if change != nil {
			change(&l)
		}
		if err := s.putLink(l); err != nil {
			t.Fatal(err)
		}
		s.clock.Step(time.Second)
	}
	for _, id := range []string{"a", "b", "c"} {
		put(id, nil)
	}
	put("d", func(l *usage.Link) { l.Repository = "o/other" })
	put("e", func(l *usage.Link) { l.State = usage.PRMerged })
	before := s.clock.Now()
	s.clock.Step(time.Second)
	for range 20 {
		put("a", nil)
	}
	put("b", func(l *usage.Link) { l.State = usage.PRMerged })
	put("c", func(l *usage.Link) { l.State = usage.PRUnknown })
	for _, restart := range []bool{false, true} {
		if restart {
			s.restart(false)
		}
		if got := s.unmerged(s.clock.Now()); !slices.Equal(got, []string{"a", "c"}) {
			t.Errorf("%v", got)
		}
		if n := s.rows("ud"); n != 3 {
			t.Errorf("%d rows for 3 links that are not merged", n)
		}
	}
	for _, id := range []string{"a", "b", "c"} {
		l, err := s.view(before).Link(id)
		if err != nil || l.State != usage.PROpen || l.RecordedAt.After(before) {
			t.Errorf("%s was %+v, %v", id, l, err)
		}
	}
	n := 0
	for l, err := range s.view(before).Links("") {
		if n++; err != nil || l.RecordedAt.After(before) {
			t.Errorf("%+v, %v", l, err)
		}
	}
	if n != 5 {
		t.Errorf("%d links were known", n)
	}
	if l, err := s.view(before).Link("none"); l != nil || err != nil {
		t.Errorf("%+v, %v", l, err)
	}
}

// BenchmarkUnmerged reads the links that are to be looked at next, of a repository with 10,000.
func BenchmarkUnmerged(b *testing.B) {
	s := open(b)
	for i := range 10_000 {
		l := usage.Link{
			ID: fmt.Sprintf("%032d", i), Namespace: "ns", TaskUID: fmt.Sprint("uid-", i%100), Repository: "o/r", Number: int64(i + 1), State: usage.PROpen,
			URL: "https://git.example/o/r/pull/" + fmt.Sprint(i), HeadSHA: fmt.Sprintf("%040d", i), ObservedAt: noon.Add(time.Duration(i) * time.Millisecond),
		}
		if err := s.putLink(l); err != nil {
			b.Fatal(err)
		}
	}
	s.clock.Step(time.Hour)
	read := func(b *testing.B, all func(v usage.View) int, want int) {
		b.Helper()
		b.ReportAllocs()
		for b.Loop() {
			if n := all(s.view(s.clock.Now())); n != want {
				b.Fatal(n)
			}
		}
	}
	b.Run("due", func(b *testing.B) {
		read(b, func(v usage.View) (n int) {
			for _, err := range v.Unmerged("o/r") {
				if n++; n == 200 || err != nil {
					break
				}
			}
			return n
		}, 200)
	})
	b.Run("all", func(b *testing.B) {
		read(b, func(v usage.View) (n int) {
			for _, err := range v.Links("") {
				if err == nil {
					n++
				}
			}
			return n
		}, 10_000)
	})
}
