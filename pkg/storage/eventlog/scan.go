// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"encoding/binary"
	"errors"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// source walks the entries of one index range.
type source struct {
	it    *engine.Iter
	parse func(k, v []byte) (posting, error)
	cur   posting
	ok    bool
}

// scan merges sources in the order of (namespace, revision); the namespace is
// set only by walks over all of them. It sees the store as it was when its
// sources were opened.
type scan struct {
	sources []*source
	data    *engine.Iter // over all events, for those that come without their record
	id      *identity    // of the last event's stream
	err     error
}

// add opens [lo, hi) as a source.
func (s *scan) add(l *Log, lo, hi []byte, parse func(k, v []byte) (posting, error)) {
	if s.err != nil {
		return
	}
	it, err := l.engine.NewIter(lo, hi)
	if err != nil {
		s.err = err
		return
	}
	src := &source{it: it, parse: parse}
	s.sources = append(s.sources, src)
	s.settle(src, it.First())
}

// settle reads the entry that a source was moved to.
func (s *scan) settle(src *source, moved bool) {
	src.ok = false
	if !moved {
		s.fail(src.it.Error())
		return
	}
	p, err := src.parse(src.it.Key(), src.it.Value())
	if err != nil {
		s.fail(errors.Join(err, src.it.Error()))
		return
	}
	src.cur, src.ok = p, true
}

func (s *scan) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// next returns the source with the next entry, or nil at the end or after an
// error. The caller moves it with advance or skipNamespace.
func (s *scan) next() *source {
	if s.err != nil {
		return nil
	}
	var best *source
	for _, src := range s.sources {
		if src.ok && (best == nil || before(&src.cur, &best.cur)) {
			best = src
		}
	}
	return best
}

func before(a, b *posting) bool {
	if a.ns != b.ns {
		return a.ns < b.ns
	}
	return a.rev < b.rev
}

func (s *scan) advance(src *source) { s.settle(src, src.it.Next()) }

// skipNamespace moves every source in a walk over all namespaces behind ns.
func (s *scan) skipNamespace(ns string) {
	for _, src := range s.sources {
		if src.ok && src.cur.ns == ns {
			k := namespacePrefix(src.it.Key()[len(spaceNamespace)], ns)
			k[len(k)-1] = 1
			s.settle(src, src.it.SeekGE(k))
		}
	}
}

// record returns the record of an entry. It is valid until the source moves or
// the next call.
func (s *scan) record(p *posting) ([]byte, error) {
	if p.raw != nil {
		return p.raw, nil
	}
	if s.data == nil {
		return nil, errors.New("eventlog: scan without data")
	}
	k := dataKey(p.no, p.seq)
	if !s.data.SeekGE(k) || string(s.data.Key()) != string(k) {
		return nil, errors.Join(&CorruptError{k, ErrNotFound}, s.data.Error())
	}
	return s.data.Value(), s.data.Error()
}

// openData gives the scan access to records. It belongs with the sources,
// before the floor is checked.
func (s *scan) openData(l *Log) {
	if s.err == nil {
		s.data, s.err = l.engine.NewIter([]byte(spaceData), after([]byte(spaceData)))
	}
}

// close ends all sources and returns the first error met.
func (s *scan) close() error {
	err := s.err
	for _, src := range s.sources {
		err = errors.Join(err, src.it.Close())
	}
	if s.data != nil {
		err = errors.Join(err, s.data.Close())
	}
	return err
}

// stream adds the events of stream no from seq to last.
func (s *scan) stream(l *Log, no uint64, f *filter, from, last int64) {
	if f.seq != 0 {
		from, last = max(from, f.seq), min(last, f.seq)
	}
	if from > last {
		return
	}
	for _, fc := range f.facets() {
		if fc == facetAll {
			s.add(l, dataKey(no, from), dataKey(no, last+1), parseData)
			continue
		}
		s.add(l, facetKey(no, fc, from), facetKey(no, fc, last+1), parseFacet)
	}
}

// session adds the events of a session from a cursor on.
func (s *scan) session(l *Log, ns, session string, from int64) {
	s.add(l, sessionKey(ns, session, from), after(sessionPrefix(ns, session)), parseSession)
}

// namespace adds the events of a namespace from a revision on.
func (s *scan) namespace(l *Log, f *filter, from uint64) {
	for _, fc := range f.facets() {
		s.add(l, namespaceKey(fc, f.ns, from), after(namespacePrefix(fc, f.ns)), parseNamespace(false))
	}
}

// namespaces adds the events of all namespaces, by namespace, from a place on.
func (s *scan) namespaces(l *Log, f *filter, ns string, from uint64) {
	for _, fc := range f.facets() {
		lo := []byte{spaceNamespace[0], spaceNamespace[1], fc}
		hi := after(lo)
		if ns != "" {
			lo = namespaceKey(fc, ns, from)
		}
		s.add(l, lo, hi, parseNamespace(true))
	}
}

// revisions adds all events from a revision on.
func (s *scan) revisions(l *Log, from uint64) {
	s.add(l, revisionKey(from), after([]byte(spaceRevision)), parseRevision)
}

// seqAfter returns the first seq of stream no, up to last+1, whose revision is
// at least rev. Revisions grow with seq, so it halves the range.
func (l *Log) seqAfter(no uint64, last int64, rev uint64) (int64, error) {
	if rev <= no {
		return 1, nil
	}
	it, err := l.engine.NewIter(dataPrefix(no), after(dataPrefix(no)))
	if err != nil {
		return 0, err
	}
	lo, hi := int64(1), last+1
	for lo < hi && err == nil {
		mid := lo + (hi-lo)/2
		var p posting
		if !it.SeekGE(dataKey(no, mid)) {
			hi = mid
			continue
		}
		if p, err = parseData(it.Key(), it.Value()); err == nil {
			if p.rev >= rev {
				hi = mid
			} else {
				lo = p.seq + 1
			}
		}
	}
	return lo, errors.Join(err, it.Close())
}

// cursorAfter returns the first cursor of a session whose revision is at least
// rev. There are holes where streams were purged.
func (l *Log) cursorAfter(ns, session string, rev uint64) (int64, error) {
	prefix := sessionPrefix(ns, session)
	it, err := l.engine.NewIter(prefix, after(prefix))
	if err != nil || rev == 0 {
		if it != nil {
			err = errors.Join(err, it.Close())
		}
		return 1, err
	}
	lo, hi := int64(1), int64(1)
	if it.Last() {
		hi = int64(binary.BigEndian.Uint64(it.Key()[len(prefix):])) + 1
	}
	for lo < hi && err == nil {
		mid := lo + (hi-lo)/2
		if !it.SeekGE(sessionKey(ns, session, mid)) {
			hi = mid
			continue
		}
		var p posting
		if p, err = parseSession(it.Key(), it.Value()); err == nil {
			if p.rev >= rev {
				hi = mid
			} else {
				lo = p.cursor + 1
			}
		}
	}
	return lo, errors.Join(err, it.Close())
}
