// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package fulltext_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/pkg/storage/fulltext"
)

func open(t testing.TB) (engine.Engine, *fulltext.Index) {
	t.Helper()
	e, err := local.Open(t.Context(), local.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e, fulltext.New(e, 't')
}

func replace(t testing.TB, e engine.Engine, x *fulltext.Index, old, now *fulltext.Document) {
	t.Helper()
	b, err := e.NewBatch()
	if err != nil {
		t.Fatal(err)
	}
	if err := fulltext.Replace(b, x.Rows(old), x.Rows(now)); err != nil {
		t.Fatal(err)
	}
	if err := e.Apply(b, engine.NoSync); err != nil {
		t.Fatal(err)
	}
}

func find(t testing.TB, x *fulltext.Index, q fulltext.Query) string {
	t.Helper()
	if q.Space == "" {
		q.Space = "ns"
	}
	hits, err := x.Search(q)
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(hits))
	for i, h := range hits {
		names[i] = h.Name
	}
	return strings.Join(names, " ")
}

// Words are found in any script, whatever their case, accents, width and number.
func TestWords(t *testing.T) {
	e, x := open(t)
	for i, text := range []string{
		"Deployments go through ArgoCD", "Die Straße nach Öhringen", "東京の天気は晴れです", "서울특별시에서 만나요", "Привет, Мир", "ภาษาไทยง่าย", "use retry_count=3 in config-v2.yaml",
		"ＦＵＬＬ　ｗｉｄｔｈ", "naïve café", "中", "مرحبا بالعالم",
	} {
		replace(t, e, x, nil, &fulltext.Document{Space: "ns", Name: fmt.Sprint(i), Rank: uint64(i), Text: text})
	}
	for query, want := range map[string]string{
		"deployment": "0", "ARGOCD": "0", "straße": "1", "ohringen": "1", "天気": "2", "東京": "2", "서울": "3", "мир": "4", "ไทย": "5", "retry": "6", "count": "6", "v2 yaml": "6",
		"full width": "7", "cafe": "8", "NAIVE": "8", "中": "9", "العالم": "", "بالعالم": "10", "absent": "", "晴": "2",
	} {
		if got := find(t, x, fulltext.Query{Text: query}); got != want {
			t.Errorf("%s: found %q, want %q", query, got, want)
		}
	}
}

// The rarer word counts more, then the more frequent one, then the shorter text, then the newer.
func TestRanking(t *testing.T) {
	e, x := open(t)
	for i, text := range []string{
		"the build is slow", "the build uses bazel", "the the the build", "bazel bazel bazel", "the", "a long text about the build that says much else about many other things of the house and never comes to an end",
	} {
		replace(t, e, x, nil, &fulltext.Document{Space: "ns", Name: fmt.Sprint(i), Rank: uint64(i), Text: text})
	}
	for query, want := range map[string]string{"the bazel": "1 3 2 5 4 0", "": "5 4 3 2 1 0", "...": "5 4 3 2 1 0"} {
		if got := find(t, x, fulltext.Query{Text: query}); got != want {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
}

// A search keeps to its space, its groups and its marks, and a changed or removed document leaves no row.
func TestScope(t *testing.T) {
	e, x := open(t)
	docs := map[string]*fulltext.Document{}
	put := func(name string, d *fulltext.Document) {
		if d != nil {
			d.Name = name
		}
		replace(t, e, x, docs[name], d)
		docs[name] = d
	}
	put("a", &fulltext.Document{Space: "ns", Group: "x", Text: "word", Marks: []string{"red", "big"}})
	put("b", &fulltext.Document{Space: "ns", Group: "xy", Text: "word", Marks: []string{"red"}, Rank: 1})
	put("c", &fulltext.Document{Space: "ns2", Group: "x", Text: "word"})
	put("d", &fulltext.Document{Space: "ns", Group: "", Text: "word", Marks: []string{"big"}, Rank: 2})
	check := func(q fulltext.Query, want string) {
		t.Helper()
		if got := find(t, x, q); got != want {
			t.Errorf("%+v: %q, want %q", q, got, want)
		}
	}
	check(fulltext.Query{Text: "word"}, "d b a")
	check(fulltext.Query{Text: "word", Groups: []string{"x"}}, "a")
	check(fulltext.Query{Text: "word", Groups: []string{"x", "", "z"}}, "d a")
	check(fulltext.Query{Text: "word", Groups: []string{}}, "")
	check(fulltext.Query{Marks: []string{"red"}}, "b a")
	check(fulltext.Query{Marks: []string{"red", "big"}}, "a")
	check(fulltext.Query{Marks: []string{"red", "none"}, Text: "word"}, "")
	check(fulltext.Query{Space: "n"}, "")
	put("a", &fulltext.Document{Space: "ns", Group: "z", Text: "other"})
	check(fulltext.Query{Text: "word"}, "d b")
	check(fulltext.Query{Text: "other", Groups: []string{"z"}}, "a")
	for name := range docs {
		put(name, nil)
	}
	it, err := e.NewIter([]byte("i"), []byte("j"))
	if err != nil {
		t.Fatal(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		t.Errorf("row %q is left", it.Key())
	}
	if err := it.Close(); err != nil {
		t.Error(err)
	}
}

// BenchmarkSearch measures searches among 100,000 documents of one group, by queries of one rare, one common, and many
// words, and reports the slowest of a hundred.
func BenchmarkSearch(b *testing.B) {
	e, x := open(b)
	const documents = 100_000
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.1, 4, 50_000)
	sentence := func(n int) string {
		var s strings.Builder
		for range n {
			fmt.Fprintf(&s, "w%d ", zipf.Uint64())
		}
		return s.String()
	}
	for i := 0; i < documents; {
		batch, err := e.NewBatch()
		if err != nil {
			b.Fatal(err)
		}
		for range 500 {
			if err := fulltext.Replace(batch, fulltext.Rows{}, x.Rows(&fulltext.Document{Space: "ns", Name: fmt.Sprintf("mem-%d", i), Rank: uint64(i), Text: sentence(40)})); err != nil {
				b.Fatal(err)
			}
			i++
		}
		if err := e.Apply(batch, engine.NoSync); err != nil {
			b.Fatal(err)
		}
	}
	for name, words := range map[string]func() string{
		"rare":   func() string { return fmt.Sprintf("w%d", 20_000+random.IntN(20_000)) },
		"common": func() string { return "w0" },
		"prompt": func() string { return sentence(40) },
	} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				began := time.Now()
				if _, err := x.Search(fulltext.Query{Space: "ns", Groups: []string{""}, Text: words()}); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
		})
	}
}
