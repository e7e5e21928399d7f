// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"encoding/binary"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// tally counts events by type and by severity. Its index is a facet.
type tally [facetSeverity + uint8(len(severityNames))]int64

func (t *tally) count(typ, sev uint8, n int64) {
	t[typ] += n
	t[facetSeverity+sev] += n
}

// plus adds another tally n times.
func (t *tally) plus(other *tally, n int64) {
	for i := range t {
		t[i] += n * other[i]
	}
}

// total returns how many events of the types were counted.
func (t *tally) total(types codeSet) (n int64) {
	for code := range typeNames {
		if types.has(uint8(code)) {
			n += t[code]
		}
	}
	return n
}

// split returns the counts as clients see them, without zeros.
func (t *tally) split() (types map[v1alpha1.EventType]int64, severities map[v1alpha1.EventSeverity]int64) {
	types, severities = map[v1alpha1.EventType]int64{}, map[v1alpha1.EventSeverity]int64{}
	for code, name := range typeNames {
		if t[code] != 0 {
			types[name] = t[code]
		}
	}
	for code, name := range severityNames {
		if n := t[int(facetSeverity)+code]; n != 0 {
			severities[name] = n
		}
	}
	return types, severities
}

// append encodes the counts that are not 0: for each its facet and a number.
func (t *tally) append(b []byte) []byte {
	for f, n := range t {
		if n != 0 {
			b = binary.AppendUvarint(append(b, uint8(f)), uint64(n))
		}
	}
	return b
}

// parseTally decodes counts. Facets of a later version are skipped.
func parseTally[B []byte | string](b B) (t tally, err error) {
	for rest := []byte(b); len(rest) > 0; {
		f := rest[0]
		n, size := binary.Uvarint(rest[1:])
		if size <= 0 {
			return tally{}, errShort
		}
		if int(f) < len(t) {
			t[f] = int64(n)
		}
		rest = rest[1+size:]
	}
	return t, nil
}

// markEvery is how many events of a stream have one mark.
const markEvery = 256

// mark holds the counts of the events of a stream up to an event.
type mark struct {
	seq     int64
	created int64 // of the event, in microseconds since 1970
	counts  tally
}

const markFormat = 1

func encodeMark(created int64, counts *tally) []byte {
	return counts.append(binary.BigEndian.AppendUint64([]byte{markFormat}, uint64(created)))
}

// pointOf decodes a mark without its counts. It holds v.
func pointOf(k, v []byte) (point, error) {
	if len(k) != len(spaceMark)+16 || len(v) < 9 || v[0] != markFormat {
		return point{}, &CorruptError{append([]byte(nil), k...), errFormat}
	}
	return point{seq: int64(binary.BigEndian.Uint64(k[len(spaceMark)+8:])), created: int64(binary.BigEndian.Uint64(v[1:])), raw: v}, nil
}

func parseMark(k, v []byte) (m mark, err error) {
	p, err := pointOf(k, v)
	if err != nil {
		return mark{}, err
	}
	m.seq, m.created = p.seq, p.created
	m.counts, err = parseTally(v[9:])
	return m, err
}
