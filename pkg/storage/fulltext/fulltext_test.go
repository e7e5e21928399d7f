// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package fulltext_test

import (
	"fmt"
	"strings"
	"testing"

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

// Of the words of a long query, the rarest are found in all their documents, also in the oldest, and common ones do not
// take their place.
func TestRareWordsFirst(t *testing.T) {
	e, x := open(t)
	const documents, some = 4000, 900
	common := "a b c d e f g h i j "
	fill(t, e, x, documents, func(i int) *fulltext.Document {
		text := common
		if i < some {
			text += "seldom"
		}
		return &fulltext.Document{Space: "ns", Group: strings.Repeat("g", i%2), Name: fmt.Sprint(i), Rank: uint64(i), Text: text}
	})
	hits, err := x.Search(fulltext.Query{Space: "ns", Groups: []string{"", "g", "none"}, Text: common + "seldom", Limit: some})
	if err != nil {
		t.Fatal(err)
	}
	if len(hits) != some {
		t.Fatalf("%d hits, want %d", len(hits), some)
	}
	for _, h := range hits {
		if h.Rank >= some {
			t.Fatalf("document %d is among the best %d", h.Rank, some)
		}
	}
}

// steps counts the moves of iterators.
type steps struct {
	engine.Engine
	n int
}

type counted struct {
	engine.Iter
	s *steps
}

func (s *steps) NewIter(lower, upper []byte) (engine.Iter, error) {
	it, err := s.Engine.NewIter(lower, upper)
	return counted{it, s}, err
}
func (c counted) Next() bool           { c.s.n++; return c.Iter.Next() }
func (c counted) SeekGE(k []byte) bool { c.s.n++; return c.Iter.SeekGE(k) }

// A search is bounded, however many words, groups and marks it has and however many documents have them.
func TestBounds(t *testing.T) {
	e, _ := open(t)
	s := &steps{Engine: e}
	x := fulltext.New(s, 't')
	var text strings.Builder
	for i := range 80 {
		fmt.Fprintf(&text, "word%d ", i)
	}
	const groups = 300
	fill(t, e, x, 3000, func(i int) *fulltext.Document {
		return &fulltext.Document{Space: "ns", Group: fmt.Sprint(i % groups), Name: fmt.Sprint(i), Rank: uint64(i), Text: text.String(), Marks: []string{"red"}}
	})
	for name, c := range map[string]struct {
		q    fulltext.Query
		most int
	}{
		"a group":       {fulltext.Query{Groups: []string{"7"}, Text: text.String()}, 5000},
		"all groups":    {fulltext.Query{Text: text.String()}, 64*64*14 + 5000},
		"with a mark":   {fulltext.Query{Text: text.String(), Marks: []string{"red"}}, 64*64*14 + 2<<16 + 5000},
		"without words": {fulltext.Query{}, 12000},
	} {
		c.q.Space, s.n = "ns", 0
		hits, err := x.Search(c.q)
		if err != nil {
			t.Fatal(err)
		}
		if s.n > c.most || len(hits) == 0 {
			t.Errorf("%s: %d steps for %d hits, at most %d are allowed", name, s.n, len(hits), c.most)
		}
	}
}

// fill stores documents, many at a time.
func fill(t testing.TB, e engine.Engine, x *fulltext.Index, documents int, doc func(i int) *fulltext.Document) {
	t.Helper()
	const each = 2000
	for i := 0; i < documents; {
		batch, err := e.NewBatch()
		if err != nil {
			t.Fatal(err)
		}
		for range min(each, documents-i) {
			if err := fulltext.Replace(batch, fulltext.Rows{}, x.Rows(doc(i))); err != nil {
				t.Fatal(err)
			}
			i++
		}
		if err := e.Apply(batch, engine.NoSync); err != nil {
			t.Fatal(err)
		}
	}
}
