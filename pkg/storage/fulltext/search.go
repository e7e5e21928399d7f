// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package fulltext

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"math"
	"slices"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/owned"
)

// Bounds of a search. They hold for all its words and groups together, so its cost grows neither with the number of
// documents nor with the length of the query.
const (
	// maxAsked is the number of different terms of a query that count, and maxProbed among how many they are chosen.
	maxAsked, maxProbed = 64, 512
	// rowsRead is how many rows a search reads by its words, apart from the first ones of each word and group.
	rowsRead = 2048
	// rowsMarked is how many rows a search with marks reads: of its marks, and once more of its words.
	rowsMarked = 1 << 16
	// firstRows is how many rows of each word are read at first, divided among the groups, and moreRows how many at a
	// time after that.
	firstRows, leastRows, moreRows = 48, 4, 256
	// groupsRead is in how many groups a search that names none looks, divided among its words, and leastGroups how many
	// those are for each word at least.
	groupsRead, leastGroups = 4096, 64
	// MaxHits is how many documents a search finds at most.
	MaxHits = 2000
)

// Parameters of BM25. A typical length instead of the average keeps writes independent of each other.
const (
	saturation    = 1.2
	lengthWeight  = 0.75
	typicalLength = 64
)

// Query is what to find.
type Query struct {
	Space string
	// Groups are the groups to search; nil for all.
	Groups []string
	// Text: documents with any of its words are found. If it has no words, all documents match equally.
	Text string
	// Marks must all be on a document.
	Marks []string
	// Limit is how many documents to find; 0 stands for MaxHits, which is also the highest.
	Limit int
}

// Hit is a document that was found.
type Hit struct {
	Group, Name string
	Rank        uint64
	Score       float64
}

// Search returns the best documents first, and the newer first among equals.
func (x *Index) Search(q Query) (hits []Hit, err error) {
	prefix := append(append([]byte{byte(keyspace), x.letter}, clean(q.Space)...), 0)
	it, err := x.engine.NewIter(prefix, owned.After(prefix))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	s := &search{
		index: x, query: &q, it: it, seed: maphash.MakeSeed(),
		found: map[uint64]int32{}, docs: make([]candidate, 0, rowsRead), groups: map[string]int32{},
	}
	for _, g := range q.Groups {
		s.wanted = append(s.wanted, clean(g))
	}
	slices.Sort(s.wanted)
	s.wanted = slices.Compact(s.wanted)
	if err := s.run(); err != nil {
		return nil, err
	}
	return s.best(), it.Error()
}

// search is one Search.
type search struct {
	index  *Index
	query  *Query
	wanted []string // the groups of the query, in the order of their keys
	words  bool     // the query has words
	lone   bool     // only the rows of one term are read, so each row is a document of its own
	it     engine.Iter
	seed   maphash.Seed
	found  map[uint64]int32 // place in docs, by the hash of group and tail
	docs   []candidate
	tails  []byte           // of all docs
	groups map[string]int32 // place in names
	names  []group
}

// group is a group in which rows were read.
type group struct {
	name           string
	known          bool // the ranks are known
	newest, oldest uint64
}

// candidate is a document that has all marks seen so far, or any word.
type candidate struct {
	from, to int32 // of its tail in tails
	group    int32
	marks    int32
	score    float64
}

func (s *search) run() error {
	for i, m := range s.query.Marks {
		l := &lists{search: s, budget: rowsMarked, take: func(p posting) {
			if at := s.place(p, i == 0); at >= 0 && int(s.docs[at].marks) == i {
				s.docs[at].marks++
			}
		}}
		if err := l.read([]string{termMark + m}); err != nil {
			return err
		}
	}
	text, marked := asked(s.query.Text), len(s.query.Marks) > 0
	s.words, s.lone = len(text) > 0, len(text) == 0 && !marked || len(text) == 1 && len(text[0].terms) == 1 && !marked
	switch {
	case s.words:
		return s.score(text, marked)
	case marked:
		return nil
	}
	l := &lists{search: s, budget: rowsRead, take: func(p posting) { s.place(p, true) }}
	return l.read([]string{termAll})
}

// part is what a term contributes to the score of a document, before the weight of the term.
type part struct {
	doc   int32
	term  int32
	value float64
}

// score adds the scores of the words. Without marks, their documents are the candidates.
func (s *search) score(text []wanted, marked bool) error {
	size, err := s.index.size(s.it, s.query.Space)
	if err != nil {
		return err
	}
	if text, err = s.stored(text); err != nil {
		return err
	}
	text, terms := few(text, maxAsked)
	keys := make([]string, len(terms))
	for i, t := range terms {
		keys[i] = termWord + t
	}
	parts := make([]part, 0, rowsRead)
	l := &lists{search: s, budget: rowsRead, take: func(p posting) {
		at := s.place(p, !marked)
		if at < 0 {
			return
		}
		count := float64(p.count)
		norm := saturation * (1 - lengthWeight + lengthWeight*float64(p.length)/typicalLength)
		parts = append(parts, part{at, p.term, count * (saturation + 1) / (count + norm)})
	}}
	if marked {
		l.budget = rowsMarked
	}
	if err := l.read(keys); err != nil {
		return err
	}
	weights := make([]float64, len(terms))
	for i, have := range l.frequencies(len(terms), float64(size)) {
		all := max(float64(size), have)
		weights[i] = math.Log(1 + (all-have+0.5)/(have+0.5))
	}
	s.add(text, terms, weights, parts)
	return nil
}

// stored leaves out the words of a long query that no document of the space has, so that those count of which something can be
// found.
func (s *search) stored(text []wanted) ([]wanted, error) {
	if _, terms := few(text, maxAsked+1); len(terms) <= maxAsked {
		return text, nil
	}
	text, terms := few(text, maxProbed)
	has := make(map[string]bool, len(terms))
	for _, t := range terms {
		prefix := s.index.prefix(s.query.Space, termWord+t)
		has[t] = s.it.SeekGE(prefix) && bytes.HasPrefix(s.it.Key(), prefix)
	}
	text = slices.DeleteFunc(text, func(w wanted) bool { return slices.ContainsFunc(w.terms, func(t string) bool { return !has[t] }) })
	return text, s.it.Error()
}

// add adds to the score of each document what the words contribute that it has: of all terms of a word, the one that counts most.
func (s *search) add(text []wanted, terms []string, weights []float64, parts []part) {
	of := make([][]int32, len(terms)) // the words of each term
	for i, w := range text {
		for _, t := range w.terms {
			at, _ := slices.BinarySearch(terms, t)
			of[at] = append(of[at], int32(i))
		}
	}
	type key struct{ doc, word int32 }
	type partly struct {
		terms int
		best  float64
	}
	have := map[key]partly{}
	for _, p := range parts {
		for _, i := range of[p.term] {
			w := &text[i]
			value := w.weight * weights[p.term] * p.value
			if len(w.terms) == 1 {
				s.docs[p.doc].score += value
				continue
			}
			k := key{p.doc, i}
			so := have[k]
			if so = (partly{so.terms + 1, max(so.best, value)}); so.terms == len(w.terms) {
				s.docs[p.doc].score += so.best
			}
			have[k] = so
		}
	}
}

// place returns the place of the document of a row in docs, or -1 if it is not there and add is not set.
func (s *search) place(p posting, add bool) int32 {
	i := int32(len(s.docs))
	if !s.lone {
		const spread = 0x9E3779B97F4A7C15 // 2^64 divided by the golden ratio
		key := maphash.Bytes(s.seed, p.tail) ^ uint64(p.group)*spread
		if have, ok := s.found[key]; ok {
			return have
		}
		if !add {
			return -1
		}
		s.found[key] = i
	}
	s.docs = append(s.docs, candidate{from: int32(len(s.tails)), to: int32(len(s.tails) + len(p.tail)), group: p.group})
	s.tails = append(s.tails, p.tail...)
	return i
}

// best returns the documents that match, the best first.
func (s *search) best() []Hit {
	limit := MaxHits
	if s.query.Limit > 0 {
		limit = min(limit, s.query.Limit)
	}
	order := func(a, b candidate) int {
		if c := cmp.Compare(b.score, a.score); c != 0 {
			return c
		}
		return bytes.Compare(s.tails[a.from:a.to], s.tails[b.from:b.to]) // newer first, then by name
	}
	// Whenever twice as many are collected as are wanted, the worse half goes, so not all have to be sorted.
	matching := make([]candidate, 0, 2*limit)
	var worst *candidate
	for _, c := range s.docs {
		if int(c.marks) < len(s.query.Marks) || s.words && c.score == 0 || worst != nil && order(c, *worst) > 0 {
			continue
		}
		if matching = append(matching, c); len(matching) == 2*limit {
			slices.SortFunc(matching, order)
			matching = matching[:limit]
			worst = new(matching[limit-1])
		}
	}
	slices.SortFunc(matching, order)
	hits := make([]Hit, min(limit, len(matching)))
	for i := range hits {
		c := &matching[i]
		tail := s.tails[c.from:c.to]
		hits[i] = Hit{Group: s.names[c.group].name, Name: string(tail[rankLen:]), Rank: ^binary.BigEndian.Uint64(tail), Score: c.score}
	}
	return hits
}
