// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"errors"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine"
)

// source walks the entries of one index range.
type source struct {
	it    engine.Iter
	parse func(k, v []byte) (posting, error)
	cur   posting
	ok    bool
}

// scan merges sources in the order of (namespace, revision). The namespace is set only in walks over all
// namespaces. A scan sees the store as it was when its sources were opened.
type scan struct {
	*shared
	sources []*source
	data    engine.Iter // over all events, for entries without their record
	id      *identity   // of the last event's stream
	err     error
	// backward walks from the ends of the sources to their beginnings. It is set before the first source is added.
	backward bool
}

func newScan(s *shared) *scan { return &scan{shared: s} }

// add opens [lo, hi) as a source.
func (s *scan) add(lo, hi []byte, parse func(k, v []byte) (posting, error)) {
	if s.err != nil {
		return
	}
	it, err := s.engine.NewIter(lo, hi)
	if err != nil {
		s.err = err
		return
	}
	src := &source{it: it, parse: parse}
	s.sources = append(s.sources, src)
	if s.backward {
		s.settle(src, it.Last())
		return
	}
	s.settle(src, it.First())
}

// settle parses the entry that a source was moved to.
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
		if src.ok && (best == nil || before(&src.cur, &best.cur) != s.backward) {
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

func (s *scan) advance(src *source) {
	if s.backward {
		s.settle(src, src.it.Prev())
		return
	}
	s.settle(src, src.it.Next())
}

// skipNamespace moves every source in a walk over all namespaces to after ns.
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
		return nil, errors.New("scan without data")
	}
	k := dataKey(p.no, p.seq)
	if !s.data.SeekGE(k) || string(s.data.Key()) != string(k) {
		return nil, errors.Join(&CorruptError{k, ErrNotFound}, s.data.Error())
	}
	return s.data.Value(), s.data.Error()
}

// openData gives the scan access to records. It must be called when the sources are opened, before the
// floor is checked.
func (s *scan) openData() {
	if s.err == nil {
		s.data, s.err = s.engine.NewIter([]byte(spaceData), after([]byte(spaceData)))
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
func (s *scan) stream(no uint64, f *filter, from, last int64) {
	if f.seq != 0 {
		from, last = max(from, f.seq), min(last, f.seq)
	}
	if from > last {
		return
	}
	for _, fc := range f.facets() {
		if fc == facetAll {
			s.add(dataKey(no, from), dataKey(no, last+1), parseData)
			continue
		}
		s.add(facetKey(no, fc, from), facetKey(no, fc, last+1), parseFacet)
	}
}

// session adds the events of a session from a cursor on.
func (s *scan) session(ns, session string, from int64) {
	s.add(sessionKey(ns, session, from), after(sessionPrefix(ns, session)), parseSession)
}

// namespace adds the events of a namespace from a revision on.
func (s *scan) namespace(f *filter, from uint64) {
	for _, fc := range f.facets() {
		s.add(namespaceKey(fc, f.ns, from), after(namespacePrefix(fc, f.ns)), parseNamespace(false))
	}
}

// namespaces adds the events of all namespaces, by namespace, from a place on.
func (s *scan) namespaces(f *filter, ns string, from uint64) {
	for _, fc := range f.facets() {
		lo := []byte{spaceNamespace[0], spaceNamespace[1], fc}
		hi := after(lo)
		if ns != "" {
			lo = namespaceKey(fc, ns, from)
		}
		s.add(lo, hi, parseNamespace(true))
	}
}

// revisions adds all events from a revision on.
func (s *scan) revisions(from uint64) {
	s.add(revisionKey(from), after([]byte(spaceRevision)), parseRevision)
}

// pick returns the event of an entry if it is selected in the state at rev. If rev is 0, deletions are
// ignored.
func (s *scan) pick(f *filter, p *posting, rev uint64) (*v1alpha1.ExecutionEvent, error) {
	if !f.takesCodes(p) || s.goneAt(p, rev) {
		return nil, nil
	}
	return s.object(f, p)
}

// object returns the event of an entry if it is selected.
func (s *scan) object(f *filter, p *posting) (*v1alpha1.ExecutionEvent, error) {
	if !f.takesCodes(p) {
		return nil, nil
	}
	if s.id == nil || s.id.no != p.no {
		id, err := s.identity(p.no)
		if err != nil {
			return nil, err
		}
		s.id = id
	}
	id := s.id
	if !f.takesStream(id) {
		return nil, nil
	}
	raw, err := s.record(p)
	if err != nil {
		return nil, err
	}
	e, _, err := id.decode(p.seq, raw)
	if err != nil || !f.takesEvent(e) {
		return nil, err
	}
	return e, nil
}

// streams adds the events of the streams that a task's name had in the state at rev.
func (s *scan) streams(f *filter, task string, rev uint64, from place) error {
	streams, err := s.streamsSince(f.ns, task, rev, rev)
	if err != nil {
		return err
	}
	for _, v := range streams {
		first, err := s.seqAfter(v.no, v.last, from.Revision)
		if err != nil {
			return err
		}
		s.stream(v.no, f, max(first, s.oldestAt(v.no, rev)), v.last)
	}
	return nil
}

// openList opens the sources of a list. It returns the stream if the list is exactly the rest of that
// stream.
func (s *scan) openList(f *filter, rev uint64, from place) (*view, error) {
	switch {
	case f.none:
		return nil, nil
	case f.ns == "":
		s.namespaces(f, from.Namespace, from.Revision)
		return nil, s.err
	case f.task != "":
		streams, err := s.streamsSince(f.ns, f.task, rev, rev)
		if err != nil {
			return nil, err
		}
		for _, v := range streams {
			first, err := s.seqAfter(v.no, v.last, from.Revision)
			if err != nil {
				return nil, err
			}
			s.stream(v.no, f, max(first, s.oldestAt(v.no, rev)), v.last)
		}
		if len(streams) == 1 && f.session == "" && f.match == nil && f.seq == 0 && f.facets()[0] == facetAll {
			return &streams[0], s.err
		}
		return nil, s.err
	case f.root != "":
		s.add(treeKey(f.ns, f.root, from.Revision), after(treePrefix(f.ns, f.root)), parseTree)
		return nil, errors.Join(s.err, s.streams(f, f.root, rev, from))
	case f.session != "":
		first, err := s.cursorAfter(f.ns, f.session, from.Revision)
		if err != nil {
			return nil, err
		}
		s.session(f.ns, f.session, first)
		return nil, s.err
	}
	s.namespace(f, from.Revision)
	return nil, s.err
}
