// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package fulltext

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/platform-ai/platform/pkg/storage/owned"
)

// lists reads the rows of terms: some of each first, and then the rest of the rarest ones, while the budget lasts. So a
// word that few documents have is found in all of them, and a word that most documents have, which says little, in
// the newest only.
type lists struct {
	*search
	budget int
	take   func(posting)
	all    []list
}

// list is the rows of a term in a group.
type list struct {
	term, group int32
	start       []byte // of its keys
	resume      []byte // the key of the next row; nil if all are read
	rows        int
	last        uint64 // rank of the last row that was read
}

// read calls take with rows of the terms, which are in the order of their keys.
func (l *lists) read(terms []string) error {
	for i, term := range terms {
		if err := l.begin(int32(i), l.index.prefix(l.query.Space, term), len(terms)); err != nil {
			return err
		}
	}
	for l.budget > 0 {
		next, err := l.rarest()
		if err != nil || next == nil {
			return err
		}
		l.it.SeekGE(next.resume)
		before := next.rows
		if err := l.some(next, min(l.budget, moreRows)); err != nil {
			return err
		}
		l.budget -= next.rows - before
	}
	return l.it.Error()
}

// begin reads the first rows of a term, of how many terms there are.
func (l *lists) begin(term int32, prefix []byte, of int) error {
	if l.query.Groups != nil {
		return l.beginIn(term, prefix)
	}
	most := max(groupsRead/of, leastGroups)
	for n, ok := 0, l.it.SeekGE(prefix); ok && n < most && bytes.HasPrefix(l.it.Key(), prefix); n++ {
		name, _, _ := bytes.Cut(l.it.Key()[len(prefix):], []byte{0})
		read, err := l.first(term, prefix, string(name), firstRows/leastRows)
		if err != nil {
			return err
		}
		if ok = l.it.Valid(); read.resume != nil {
			ok = l.it.SeekGE(owned.After(read.start))
		}
	}
	return l.it.Error()
}

// beginIn is begin in the groups of the query. Groups in which the term is not cost nothing beyond the first seek.
func (l *lists) beginIn(term int32, prefix []byte) error {
	if len(l.wanted) == 0 || !l.it.SeekGE(prefix) || !bytes.HasPrefix(l.it.Key(), prefix) {
		return l.it.Error()
	}
	for _, name := range l.wanted {
		start := append(append(bytes.Clone(prefix), name...), 0)
		if bytes.Compare(l.it.Key(), start) < 0 && !l.it.SeekGE(start) {
			break
		}
		if bytes.HasPrefix(l.it.Key(), start) {
			if _, err := l.first(term, prefix, name, max(firstRows/len(l.wanted), leastRows)); err != nil {
				return err
			}
			if !l.it.Valid() {
				break
			}
		}
		if !bytes.HasPrefix(l.it.Key(), prefix) {
			break
		}
	}
	return l.it.Error()
}

// first reads the first rows of a term in a group, from the current row on.
func (l *lists) first(term int32, prefix []byte, name string, most int) (*list, error) {
	at, ok := l.groups[name]
	if !ok {
		at = int32(len(l.names))
		l.groups[name], l.names = at, append(l.names, group{name: name})
	}
	l.all = append(l.all, list{term: term, group: at, start: append(append(bytes.Clone(prefix), name...), 0)})
	read := &l.all[len(l.all)-1]
	return read, l.some(read, most)
}

// some reads further rows of a list, from the current one on.
func (l *lists) some(read *list, most int) error {
	read.resume = nil
	for n := 0; l.it.Valid() && bytes.HasPrefix(l.it.Key(), read.start); n++ {
		key := l.it.Key()
		if n == most {
			read.resume = bytes.Clone(key)
			return nil
		}
		p, ok := parse(key[len(read.start):], l.it.Value())
		if !ok {
			return fmt.Errorf("malformed row of the index of texts at %q", key)
		}
		p.term, p.group = read.term, read.group
		read.rows, read.last = read.rows+1, p.rank()
		l.take(p)
		l.it.Next()
	}
	return l.it.Error()
}

// rarest returns the list that has further rows, and probably the fewest; nil if all rows were read.
func (l *lists) rarest() (*list, error) {
	var best *list
	fewest := 0.0
	for i := range l.all {
		read := &l.all[i]
		if read.resume == nil {
			continue
		}
		if err := l.span(read.group); err != nil {
			return nil, err
		}
		if n := l.length(read); best == nil || n < fewest || n == fewest && read.rows < best.rows {
			best, fewest = read, n
		}
	}
	return best, nil
}

// length estimates how many rows a list has: as if they were as dense among the older documents of the group as among
// those that were read.
func (l *lists) length(read *list) float64 {
	if read.resume == nil {
		return float64(read.rows)
	}
	g := &l.names[read.group]
	if !g.known || g.newest <= g.oldest || read.last > g.newest || read.last < g.oldest {
		return unknownLength * float64(read.rows)
	}
	return max(float64(read.rows+1), float64(read.rows)*float64(g.newest-g.oldest+1)/float64(g.newest-read.last+1))
}

// unknownLength is how many times as many rows a list is taken to have as were read, if nothing is known.
const unknownLength = 64

// span reads the ranks of the newest and the oldest document of a group, if the query names its groups.
func (l *lists) span(at int32) error {
	g := &l.names[at]
	if g.known || l.query.Groups == nil {
		return nil
	}
	g.known = true
	start := append(append(l.index.prefix(l.query.Space, termAll), g.name...), 0)
	rank := func(there bool) uint64 {
		if !there || !bytes.HasPrefix(l.it.Key(), start) || len(l.it.Key()) < len(start)+rankLen {
			return 0
		}
		return ^binary.BigEndian.Uint64(l.it.Key()[len(start):])
	}
	g.newest, g.oldest = rank(l.it.SeekGE(start)), rank(l.it.SeekLT(owned.After(start)))
	return l.it.Error()
}

// frequencies estimates how many documents have each term, at most size unless more were read.
func (l *lists) frequencies(terms int, size float64) []float64 {
	have, read := make([]float64, terms), make([]float64, terms)
	for i := range l.all {
		have[l.all[i].term] += l.length(&l.all[i])
		read[l.all[i].term] += float64(l.all[i].rows)
	}
	for i := range have {
		have[i] = max(min(have[i], size), read[i])
	}
	return have
}

// clean makes a text a part of a key.
func clean(s string) string { return strings.ReplaceAll(s, "\x00", " ") }

// posting is one row of a list.
type posting struct {
	tail          []byte // ^rank name; valid until the next row
	term, group   int32
	count, length uint64
}

const rankLen = 8

func (p *posting) rank() uint64 { return ^binary.BigEndian.Uint64(p.tail) }

// parse reads a row, whose key ends with tail.
func parse(tail, value []byte) (p posting, ok bool) {
	var a, b int
	p.tail = tail
	p.count, a = binary.Uvarint(value)
	if a > 0 {
		p.length, b = binary.Uvarint(value[a:])
	}
	return p, len(tail) >= rankLen && b > 0
}
