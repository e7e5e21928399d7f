// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonsize_test

import (
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/jsonsize"
)

// A document has the same size wherever it is cut, and what is in texts does not count.
func TestCounter(t *testing.T) {
	for doc, want := range map[string]jsonsize.Counter{
		``:                             {},
		`1`:                            {},
		`[1,2,3]`:                      {Values: 3, Depth: 1},
		`{"a":{"b":[1,[2]]},"c":[]}`:   {Values: 7, Depth: 4},
		`["[[[[,,,", "\"[[,", "\\",1]`: {Values: 4, Depth: 1},
	} {
		for cut := range len(doc) + 1 {
			var c jsonsize.Counter
			c.Add([]byte(doc[:cut]))
			c.Add([]byte(doc[cut:]))
			if c.Values != want.Values || c.Depth != want.Depth {
				t.Errorf("%s cut at %d: %d values, %d deep, want %d and %d", doc, cut, c.Values, c.Depth, want.Values, want.Depth)
			}
		}
	}
}

func TestBounds(t *testing.T) {
	b := jsonsize.Bounds{Values: 4, Depth: 2}
	for doc, want := range map[string]string{
		`[1,2,3,4]`:              "",
		`[1,2,3,4,5]`:            "must have at most 4 values (members, entries and elements), nested at most 2 deep; it has 5, nested 1 deep",
		`[[1]]`:                  "",
		`[[[1]]]`:                "must have at most 4 values (members, entries and elements), nested at most 2 deep; it has 3, nested 3 deep",
		`["` + "[[[,,,,," + `"]`: "",
		strings.Repeat(" ", 100): "",
	} {
		got := ""
		if err := b.Check([]byte(doc)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", doc, got, want)
		}
	}
}

// BenchmarkCheck is what a write of an object of 5 KiB pays.
func BenchmarkCheck(b *testing.B) {
	doc := []byte(`{"metadata":{"labels":{` + strings.Repeat(`"platform.ai/some-label":"value",`, 60) + `"a":"b"}},"spec":{"prompt":"` + strings.Repeat("some text of a prompt ", 140) + `"}}`)
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		if err := jsonsize.Object.Check(doc); err != nil {
			b.Fatal(err)
		}
	}
}
