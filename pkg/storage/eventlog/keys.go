// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"bytes"
	"encoding/binary"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Keyspaces; FORMAT.md describes them. Numbers are big-endian so that keys sort by
// them; a name within a key ends with a zero byte, which no name contains.
const (
	spaceBytes     = "eb" // eb ns                         bytes of the events of a namespace
	spaceSession   = "ec" // ec ns 0 session 0 cursor      an event of a session
	spaceData      = "ed" // ed no seq                     the event
	spaceFacet     = "ef" // ef no facet seq               events of a stream by type and severity
	spaceMark      = "ea" // ea no seq                     counts of a stream up to an event
	spaceDeleted   = "eg" // eg rev                        removed events that are not yet purged
	spaceHead      = "eh" // eh no                         a stream
	spaceNamespace = "ei" // ei facet ns 0 rev             events of a namespace, all and by type and severity
	spaceDedup     = "ek" // ek no key                     sequence by de-duplication key
	spaceFloor     = "em" // em                            the floor
	spaceName      = "en" // en ns 0 task                  the live stream of a task name
	spaceRevision  = "er" // er rev                        every event by revision
	spaceSkip      = "ej" // ej no seq                     seqs of a stream that were left out, up to seq
	spaceTree      = "et" // et ns 0 root 0 rev            events of the tasks below a root
	spaceUID       = "eu" // eu uid                        stream number by task UID
	spaceMoved     = "ew" // ew ns 0 session               base at which the cursor of a session left some out
	spaceCursor    = "ex" // ex ns 0 session               last cursor of a session
)

func key(space string, size int) []byte {
	return append(make([]byte, 0, len(space)+size), space...)
}

func bytesKey(ns string) []byte { return append(key(spaceBytes, len(ns)), ns...) }

func headKey(no uint64) []byte { return binary.BigEndian.AppendUint64(key(spaceHead, 8), no) }

func uidKey(uid types.UID) []byte { return append(key(spaceUID, len(uid)), uid...) }

func nameKey(ns, task string) []byte {
	k := append(key(spaceName, len(ns)+len(task)+1), ns...)
	return append(append(k, 0), task...)
}

func dataPrefix(no uint64) []byte { return binary.BigEndian.AppendUint64(key(spaceData, 16), no) }

func dataKey(no uint64, seq int64) []byte {
	return binary.BigEndian.AppendUint64(dataPrefix(no), uint64(seq))
}

func facetStream(no uint64) []byte { return binary.BigEndian.AppendUint64(key(spaceFacet, 17), no) }

func facetPrefix(no uint64, f facet) []byte { return append(facetStream(no), f) }

func facetKey(no uint64, f facet, seq int64) []byte {
	return binary.BigEndian.AppendUint64(facetPrefix(no, f), uint64(seq))
}

func namespacePrefix(f facet, ns string) []byte {
	k := append(append(key(spaceNamespace, len(ns)+10), f), ns...)
	return append(k, 0)
}

func namespaceKey(f facet, ns string, rev uint64) []byte {
	return binary.BigEndian.AppendUint64(namespacePrefix(f, ns), rev)
}

func revisionKey(rev uint64) []byte { return binary.BigEndian.AppendUint64(key(spaceRevision, 8), rev) }

func sessionPrefix(ns, session string) []byte {
	k := append(key(spaceSession, len(ns)+len(session)+10), ns...)
	k = append(append(k, 0), session...)
	return append(k, 0)
}

func sessionKey(ns, session string, cursor int64) []byte {
	return binary.BigEndian.AppendUint64(sessionPrefix(ns, session), uint64(cursor))
}

func treePrefix(ns, root string) []byte {
	k := append(key(spaceTree, len(ns)+len(root)+10), ns...)
	k = append(append(k, 0), root...)
	return append(k, 0)
}

func treeKey(ns, root string, rev uint64) []byte {
	return binary.BigEndian.AppendUint64(treePrefix(ns, root), rev)
}

func cursorKey(ns, session string) []byte {
	k := append(key(spaceCursor, len(ns)+len(session)+1), ns...)
	return append(append(k, 0), session...)
}

func dedupPrefix(no uint64) []byte { return binary.BigEndian.AppendUint64(key(spaceDedup, 8), no) }

func dedupKey(no uint64, dedup string) []byte { return append(dedupPrefix(no), dedup...) }

func deletedKey(rev uint64) []byte { return binary.BigEndian.AppendUint64(key(spaceDeleted, 8), rev) }

// after returns the first key after all keys that start with prefix.
func after(prefix []byte) []byte {
	k := bytes.Clone(prefix)
	for i := len(k) - 1; i >= 0; i-- {
		if k[i]++; k[i] != 0 {
			return k[:i+1]
		}
	}
	return nil
}

// posting is an index entry: one event and the fields that filters need.
type posting struct {
	rev, no  uint64
	seq      int64
	cursor   int64  // of a session index
	ns       string // of an index over all namespaces
	typ, sev uint8
	raw      []byte // the record, if the index holds it; valid until its source moves
}

// parseData parses an entry of the events of a stream.
func parseData(k, v []byte) (posting, error) {
	if len(k) != len(spaceData)+16 {
		return posting{}, &CorruptError{bytes.Clone(k), errKey}
	}
	h, err := parseHeader(v)
	if err != nil {
		return posting{}, &CorruptError{bytes.Clone(k), err}
	}
	return posting{
		rev: h.rev, no: binary.BigEndian.Uint64(k[2:]), seq: int64(binary.BigEndian.Uint64(k[10:])),
		typ: h.typ, sev: h.sev, raw: v,
	}, nil
}

// The value of a facet entry is rev, type, severity.
const facetValueLen = 10

func putFacet(v []byte, rev uint64, typ, sev uint8) {
	binary.BigEndian.PutUint64(v, rev)
	v[8], v[9] = typ, sev
}

func parseFacet(k, v []byte) (posting, error) {
	if len(k) != len(spaceFacet)+17 || len(v) != facetValueLen {
		return posting{}, &CorruptError{bytes.Clone(k), errKey}
	}
	return posting{
		no: binary.BigEndian.Uint64(k[2:]), seq: int64(binary.BigEndian.Uint64(k[11:])),
		rev: binary.BigEndian.Uint64(v), typ: v[8], sev: v[9],
	}, nil
}

// The value of an entry by namespace or revision is no, seq, type, severity; in
// a session index the revision comes before.
const (
	pointerLen        = 18
	sessionPointerLen = 26
)

func putPointer(v []byte, no uint64, seq int64, typ, sev uint8) {
	binary.BigEndian.PutUint64(v, no)
	binary.BigEndian.PutUint64(v[8:], uint64(seq))
	v[16], v[17] = typ, sev
}

func parsePointer(k, v []byte) (posting, error) {
	if len(v) != pointerLen {
		return posting{}, &CorruptError{bytes.Clone(k), errShort}
	}
	return posting{
		no: binary.BigEndian.Uint64(v), seq: int64(binary.BigEndian.Uint64(v[8:])), typ: v[16], sev: v[17],
	}, nil
}

// parseNamespace returns a parser for entries of a namespace. With withNamespace the parser also copies the
// namespace out of the key, for walks over all namespaces.
func parseNamespace(withNamespace bool) func(k, v []byte) (posting, error) {
	return func(k, v []byte) (posting, error) {
		n := len(k) - 9
		if n < len(spaceNamespace)+1 || k[n] != 0 {
			return posting{}, &CorruptError{bytes.Clone(k), errKey}
		}
		p, err := parsePointer(k, v)
		p.rev = binary.BigEndian.Uint64(k[n+1:])
		if withNamespace {
			p.ns = string(k[len(spaceNamespace)+1 : n])
		}
		return p, err
	}
}

func parseRevision(k, v []byte) (posting, error) {
	if len(k) != len(spaceRevision)+8 {
		return posting{}, &CorruptError{bytes.Clone(k), errKey}
	}
	p, err := parsePointer(k, v)
	p.rev = binary.BigEndian.Uint64(k[2:])
	return p, err
}

func parseTree(k, v []byte) (posting, error) {
	if len(k) < len(spaceTree)+10 {
		return posting{}, &CorruptError{bytes.Clone(k), errKey}
	}
	p, err := parsePointer(k, v)
	p.rev = binary.BigEndian.Uint64(k[len(k)-8:])
	return p, err
}

func parseSession(k, v []byte) (posting, error) {
	if len(k) < len(spaceSession)+10 || len(v) != sessionPointerLen {
		return posting{}, &CorruptError{bytes.Clone(k), errKey}
	}
	p, err := parsePointer(k, v[8:])
	p.rev = binary.BigEndian.Uint64(v)
	p.cursor = int64(binary.BigEndian.Uint64(k[len(k)-8:]))
	return p, err
}

// validName reports whether s can be a part of a key.
func validName(s string) bool { return strings.IndexByte(s, 0) < 0 && len(s) <= 512 }
