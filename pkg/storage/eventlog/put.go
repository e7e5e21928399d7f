// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"encoding/binary"
	"errors"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// recorder writes records and keeps the first error.
type recorder struct {
	batch engine.Batch
	err   error

	// What follows is used again for each record, since a batch copies what it gets.

	key   []byte
	short [facetValueLen]byte     // value of the event's entries in the stream
	long  [sessionPointerLen]byte // value of its entry in the session; without the revision, of all others
}

func (r *recorder) set(k, v []byte) { r.err = errors.Join(r.err, r.batch.Set(k, v)) }

func (r *recorder) setNumber(k []byte, n uint64) { r.set(k, binary.BigEndian.AppendUint64(nil, n)) }

// event writes an event and its index entries.
func (r *recorder) event(id *identity, session string, p *pending, h header) {
	k := dataKey(id.no, p.seq)
	bk, bv, finish := r.batch.SetDeferred(len(k), headerLen+len(p.payload))
	copy(bk, k)
	h.put(bv)
	copy(bv[headerLen:], p.payload)
	r.err = errors.Join(r.err, finish())

	facets := [...]facet{h.typ, facetSeverity + h.sev}
	putFacet(r.short[:], h.rev, h.typ, h.sev)
	for _, f := range facets {
		r.key = binary.BigEndian.AppendUint64(append(r.key[:0], spaceFacet...), id.no)
		r.key = binary.BigEndian.AppendUint64(append(r.key, f), uint64(p.seq))
		r.set(r.key, r.short[:])
	}
	binary.BigEndian.PutUint64(r.long[:], h.rev)
	pointer := r.long[8:]
	putPointer(pointer, id.no, p.seq, h.typ, h.sev)
	r.key = binary.BigEndian.AppendUint64(append(r.key[:0], spaceRevision...), h.rev)
	r.set(r.key, pointer)
	for _, f := range [...]facet{facetAll, facets[0], facets[1]} {
		r.key = append(append(append(r.key[:0], spaceNamespace...), f), id.ns...)
		r.key = binary.BigEndian.AppendUint64(append(r.key, 0), h.rev)
		r.set(r.key, pointer)
	}
	if id.root != "" {
		r.set(treeKey(id.ns, id.root, h.rev), pointer)
	}
	if h.cursor != 0 {
		r.set(sessionKey(id.ns, session, h.cursor), r.long[:])
	}
	if d := p.event.DedupKey; d != "" {
		r.setNumber(dedupKey(id.no, d), uint64(p.seq))
	}
}
