// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package fulltext

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"slices"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/owned"
)

// Bounds of a search.
const (
	// maxAsked is the number of different words of a query that count.
	maxAsked = 64
	// rowsRead is how many rows a search by words reads.
	rowsRead = 4096
	// marksRead is how many rows of each mark a search reads, and of the words beside them.
	marksRead = 1 << 16
	// groupsRead is in how many groups a search that names none looks.
	groupsRead = 1 << 12
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
}

// Hit is a document that was found.
type Hit struct {
	Group, Name string
	Rank        uint64
	Score       float64
}

// Search returns the best documents first, and the newer first among equals.
func (x *Index) Search(q Query) ([]Hit, error) {
	s := search{index: x, query: &q, found: make(map[uint64]int, rowsRead), docs: make([]candidate, 0, rowsRead)}
	if err := s.run(); err != nil {
		return nil, err
	}
	slices.SortFunc(s.hits, func(a, b Hit) int {
		if c := cmp.Compare(b.Score, a.Score); c != 0 {
			return c
		}
		if c := cmp.Compare(b.Rank, a.Rank); c != 0 {
			return c
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return s.hits[:min(len(s.hits), MaxHits)], nil
}

// search is one Search.
type search struct {
	index *Index
	query *Query
	seed  maphash.Seed
	found map[uint64]int // place in docs, by the hash of the tail
	docs  []candidate
	tails []byte // of all docs
	hits  []Hit
}

// candidate is a document that has all marks seen so far, or any word.
type candidate struct {
	from, to int // of its tail in tails
	marks    int
	score    float64
}

func (s *search) run() error {
	s.seed = maphash.MakeSeed()
	for i, m := range s.query.Marks {
		_, err := s.scan(termMark+m, marksRead, func(p posting) {
			if c := s.candidate(p, i == 0); c != nil && c.marks == i {
				c.marks++
			}
		})
		if err != nil {
			return err
		}
	}
	text := asked(s.query.Text, maxAsked)
	if err := s.score(text); err != nil {
		return err
	}
	for i := range s.docs {
		c := &s.docs[i]
		if c.marks < len(s.query.Marks) || len(text) > 0 && c.score == 0 {
			continue
		}
		group, rest, _ := bytes.Cut(s.tails[c.from:c.to], []byte{0})
		s.hits = append(s.hits, Hit{
			Group: string(group), Name: string(rest[rankLen:]), Rank: ^binary.BigEndian.Uint64(rest), Score: c.score,
		})
	}
	return nil
}

// score adds the scores of the words. Without words, and without marks that select documents, all are candidates.
func (s *search) score(text []string) error {
	marked := len(s.query.Marks) > 0
	if len(text) == 0 {
		if marked {
			return nil
		}
		_, err := s.scan(termAll, rowsRead, func(p posting) { s.candidate(p, true) })
		return err
	}
	size, err := s.index.size(s.query.Space)
	if err != nil {
		return err
	}
	each := rowsRead / len(text)
	if marked {
		each = marksRead
	}
	type part struct {
		doc   int
		value float64
	}
	var parts []part
	for _, w := range text {
		parts = parts[:0]
		cut, err := s.scan(termWord+w, each, func(p posting) {
			i := s.place(p, !marked)
			if i < 0 {
				return
			}
			count := float64(p.count)
			norm := saturation * (1 - lengthWeight + lengthWeight*float64(p.length)/typicalLength)
			parts = append(parts, part{i, count * (saturation + 1) / (count + norm)})
		})
		if err != nil {
			return err
		}
		weight := weight(size, int64(len(parts)), cut)
		for _, p := range parts {
			s.docs[p.doc].score += weight * p.value
		}
	}
	return nil
}

// weight is the inverse document frequency of a word. If not all its rows were read, the word counts as one that half
// of the documents have.
func weight(size, have int64, cut bool) float64 {
	if cut {
		have = max(have, size/2)
	}
	size = max(size, have)
	return math.Log(1 + (float64(size-have)+0.5)/(float64(have)+0.5))
}

// candidate returns the document of a row, which it adds if add is set; nil if there is none.
func (s *search) candidate(p posting, add bool) *candidate {
	i := s.place(p, add)
	if i < 0 {
		return nil
	}
	return &s.docs[i]
}

// place returns the place of the document of a row in docs, or -1.
func (s *search) place(p posting, add bool) int {
	h := maphash.Bytes(s.seed, p.tail)
	i, ok := s.found[h]
	if ok {
		return i
	}
	if !add {
		return -1
	}
	i = len(s.docs)
	s.found[h] = i
	s.docs = append(s.docs, candidate{from: len(s.tails), to: len(s.tails) + len(p.tail)})
	s.tails = append(s.tails, p.tail...)
	return i
}

// scan calls f with the newest rows of a term, at most limit in each group. cut reports that there are more.
func (s *search) scan(term string, limit int, f func(posting)) (cut bool, err error) {
	prefix := s.index.prefix(s.query.Space, term)
	it, err := s.index.engine.NewIter(prefix, owned.After(prefix))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	if s.query.Groups != nil {
		for _, group := range s.query.Groups {
			start := append(append(bytes.Clone(prefix), clean(group)...), 0)
			if it.SeekGE(start) {
				more, err := readGroup(it, prefix, start, limit, f)
				if err != nil {
					return false, err
				}
				cut = cut || more
			}
		}
		return cut, it.Error()
	}
	for n, ok := 0, it.First(); ok && n < groupsRead; n++ {
		group, _, _ := bytes.Cut(it.Key()[len(prefix):], []byte{0})
		start := append(append(bytes.Clone(prefix), group...), 0)
		more, err := readGroup(it, prefix, start, limit, f)
		if err != nil {
			return false, err
		}
		if ok = it.Valid(); more {
			cut, ok = true, it.SeekGE(owned.After(start))
		}
	}
	return cut, it.Error()
}

// readGroup calls f with the rows from the current one on that start with start, at most limit. more reports that there
// are more.
func readGroup(it engine.Iter, prefix, start []byte, limit int, f func(posting)) (more bool, err error) {
	for n := 0; it.Valid() && bytes.HasPrefix(it.Key(), start); n++ {
		if n == limit {
			return true, nil
		}
		p, _, ok := parse(prefix, it.Key(), it.Value())
		if !ok {
			return false, errors.Join(fmt.Errorf("fulltext: malformed row at %q", it.Key()), it.Error())
		}
		f(p)
		it.Next()
	}
	return false, it.Error()
}
