// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fulltext finds texts by their words. Its rows are written in the batch of what they index, so an index always matches
// its content, even after a crash. It has no model: it ranks by BM25.
//
// A document is in a space, which is never crossed, and in a group of that space. A search names the groups that it
// reads, or reads all. Groups are part of the keys, so a search does not see, and does not wait for, the documents of
// groups that it does not name. Besides words a document has marks, which a search can require.
//
// Keys, in the keyspace of an index:
//
//	i index space 0 term 0 group 0 ^rank(8) name  ->  uvarint count, uvarint length
//
// index is the letter of the index. term is "w" and a word, "m" and a mark, or "a", which every document has. Documents
// with a higher rank are newer and sort first. count is how often the document has the word, and length is its number
// of words.
//
// A search reads a bounded number of rows, so its cost does not grow with the number of documents. It reads some rows of
// each word, the newest first, and spends the rest on the words that are rarest by the ranks of those. Of a word that
// very many documents have, only the newest documents are found, and in a search that reads all groups only those in some groups.
// The constants in search.go are these bounds.
//
// Texts in scripts without spaces are indexed by pairs of letters, and by single ones. What a query makes of them is decided when it
// is asked (query.go), so all stored rows serve it: it divides its text into probable words, each of which is a set of pairs that a
// document must all have. There is no dictionary: those for Chinese, Japanese and Thai take tens of megabytes of memory, and a word
// that they lack, such as a name, would not be found.
//
// A change of the rule that makes rows of texts needs an index with another letter.
package fulltext

import (
	"bytes"
	"encoding/binary"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/owned"
)

const keyspace owned.Space = 'i'

// Kinds of terms.
const (
	termWord = "w"
	termMark = "m"
	termAll  = "a"
)

// Limits of a document.
const (
	maxTerms = 1024
	maxText  = 64 << 10 // bytes
)

// Index is one index of an engine. All methods may be called concurrently.
type Index struct {
	engine engine.Engine
	letter byte
	sizes  sync.Map // *atomic.Int64 by space: the number of documents, for the ranking
}

// New returns the index with a letter.
func New(e engine.Engine, letter byte) *Index { return &Index{engine: e, letter: letter} }

// Document is what is indexed.
type Document struct {
	// Space and Group are where it is, and Name identifies it there.
	Space, Group, Name string
	// Rank is higher for newer documents. It must not change while the document is indexed.
	Rank uint64
	// Text is what it is found by: its first 64 KiB, and at most 1024 different words.
	Text string
	// Marks are exact values that a search can require.
	Marks []string
}

// Rows are the rows of a document.
type Rows struct {
	index *Index
	space string
	rows  map[string]string
}

// Rows returns the rows of a document; those of nil are none.
func (x *Index) Rows(d *Document) Rows {
	if d == nil {
		return Rows{}
	}
	text := d.Text
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "")
	}
	counts, n := words(text, maxTerms)
	r := Rows{index: x, space: clean(d.Space), rows: make(map[string]string, len(counts)+len(d.Marks)+1)}
	var tail []byte
	tail = append(append(tail, clean(d.Group)...), 0)
	tail = append(binary.BigEndian.AppendUint64(tail, ^d.Rank), d.Name...)
	add := func(term string, count int) {
		value := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(count)), uint64(n))
		r.rows[string(append(x.prefix(d.Space, term), tail...))] = string(value)
	}
	add(termAll, 1)
	for w, count := range counts {
		add(termWord+w, count)
	}
	for _, m := range d.Marks {
		add(termMark+m, 1)
	}
	return r
}

// Replace writes the rows of the new version of a document to b, and removes those of the old one that it lacks. Either
// may be empty. Rows that stay the same are not written.
func Replace(b engine.Batch, old, now Rows) error {
	for k := range old.rows {
		if _, stays := now.rows[k]; !stays {
			if err := b.Delete([]byte(k)); err != nil {
				return err
			}
		}
	}
	for k, v := range now.rows {
		if was, has := old.rows[k]; has && was == v {
			continue
		}
		if err := b.Set([]byte(k), []byte(v)); err != nil {
			return err
		}
	}
	switch {
	case old.rows == nil && now.rows != nil:
		now.index.count(now.space, 1)
	case old.rows != nil && now.rows == nil:
		old.index.count(old.space, -1)
	}
	return nil
}

// Same reports whether two versions of a document have the same rows.
func Same(a, b Rows) bool { return maps.Equal(a.rows, b.rows) }

// count corrects the number of documents of a space, if it is known. It may drift from the true number when writes
// fail, which only matters to the ranking.
func (x *Index) count(space string, by int64) {
	if n, ok := x.sizes.Load(space); ok {
		n.(*atomic.Int64).Add(by)
	}
}

// prefix returns the start of the keys of a term.
func (x *Index) prefix(space, term string) []byte {
	k := make([]byte, 0, len(space)+len(term)+96)
	k = append(k, byte(keyspace), x.letter)
	k = append(append(k, clean(space)...), 0)
	return append(append(k, clean(term)...), 0)
}

// Clear adds the removal of all documents of a space to b.
func (x *Index) Clear(b engine.Batch, space string) error {
	prefix := append(append([]byte{byte(keyspace), x.letter}, clean(space)...), 0)
	x.sizes.Delete(space)
	return b.DeleteRange(prefix, owned.After(prefix))
}

// size returns the number of documents of a space, which it counts the first time, up to maxCounted.
func (x *Index) size(it engine.Iter, space string) (int64, error) {
	space = clean(space)
	if n, ok := x.sizes.Load(space); ok {
		return n.(*atomic.Int64).Load(), nil
	}
	prefix, n := x.prefix(space, termAll), new(atomic.Int64)
	for ok := it.SeekGE(prefix); ok && n.Load() < maxCounted && bytes.HasPrefix(it.Key(), prefix); ok = it.Next() {
		n.Add(1)
	}
	if err := it.Error(); err != nil {
		return 0, err
	}
	known, _ := x.sizes.LoadOrStore(space, n)
	return known.(*atomic.Int64).Load(), nil
}

// maxCounted bounds the first count of a space, so that a search after a start takes milliseconds. The ranking takes
// words that more documents have as equally common.
const maxCounted = 1 << 15
