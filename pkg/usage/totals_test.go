// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"errors"
	"testing"
)

func counted(id string, counts ...int64) *Observation {
	o := &Observation{ID: id, Scope: ScopeCall, Source: SourceProvider, Status: StatusCompleted, Complete: true}
	for i, c := range []**int64{&o.InputTokens, &o.OutputTokens, &o.CachedInputTokens, &o.CacheWriteInputTokens} {
		if i < len(counts) && counts[i] >= 0 {
			*c = &counts[i]
		}
	}
	o.Complete = o.Reported()
	return o
}

func is(t *testing.T, name string, got *int64, want int64) {
	t.Helper()
	switch {
	case got == nil && want >= 0:
		t.Errorf("%s is not reported, want %d", name, want)
	case got != nil && *got != want:
		t.Errorf("%s is %d, want %d (-1: not reported)", name, *got, want)
	}
}

// TestTotals: -1 stands for not reported.
func TestTotals(t *testing.T) {
	for name, c := range map[string]struct {
		of                          []*Observation
		in, out, cached, write, all int64
		reported, partial, missing  int64
		completeness                Completeness
	}{
		"nothing":     {nil, -1, -1, -1, -1, -1, 0, 0, 0, Complete},
		"zero":        {[]*Observation{counted("a", 0, 0)}, 0, 0, 0, 0, 0, 1, 0, 0, Complete},
		"one":         {[]*Observation{counted("a", 10, 5, 3, 2)}, 10, 5, 3, 2, 15, 1, 0, 0, Complete},
		"no caches":   {[]*Observation{counted("a", 10, 5)}, 10, 5, -1, -1, 15, 1, 0, 0, Complete},
		"some caches": {[]*Observation{counted("a", 10, 5, 3, 2), counted("b", 1, 1)}, 11, 6, -1, -1, 17, 2, 0, 0, Complete},
		"refused one": {[]*Observation{counted("a", 10, 5, 3, 2), counted("b", 0, 0)}, 10, 5, 3, 2, 15, 2, 0, 0, Complete},
		"only a gap":  {[]*Observation{counted("a")}, -1, -1, -1, -1, -1, 0, 0, 1, Unavailable},
		"with a gap":  {[]*Observation{counted("a"), counted("b", 4, 4, 0, 0)}, 4, 4, 0, 0, 8, 1, 0, 1, Partial},
		"half":        {[]*Observation{counted("a", 7, -1)}, 7, -1, -1, -1, 7, 0, 1, 0, Partial},
		"shared":      {[]*Observation{counted("a", 10, 5, 1, 1), counted("a", 10, 5, 1, 1)}, 10, 5, 1, 1, 15, 1, 0, 0, Complete},
	} {
		t.Run(name, func(t *testing.T) {
			var sum Totals
			for _, o := range c.of {
				if err := sum.Add(o); err != nil {
					t.Fatal(err)
				}
			}
			is(t, "input", sum.InputTokens, c.in)
			is(t, "output", sum.OutputTokens, c.out)
			is(t, "cached", sum.CachedInputTokens, c.cached)
			is(t, "cache write", sum.CacheWriteInputTokens, c.write)
			is(t, "total", sum.TotalTokens, c.all)
			if got := [3]int64{sum.ReportedMeasurements, sum.PartialMeasurements, sum.MissingMeasurements}; got != [3]int64{c.reported, c.partial, c.missing} {
				t.Errorf("reported, partial, missing are %v, want %v", got, [3]int64{c.reported, c.partial, c.missing})
			}
			if got := sum.Completeness(); got != c.completeness {
				t.Errorf("completeness is %s, want %s", got, c.completeness)
			}
		})
	}
}

// TestTooLarge: sums are exact or refused.
func TestTooLarge(t *testing.T) {
	var sum Totals
	if err := sum.Add(counted("a", MaxTokens-1, 1)); err != nil {
		t.Fatal(err)
	}
	is(t, "total", sum.TotalTokens, MaxTokens)
	if err := sum.Add(counted("b", 0, 1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("one token more gives %v, want %v", err, ErrTooLarge)
	}
}
