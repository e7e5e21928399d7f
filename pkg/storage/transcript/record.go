// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/owned"
)

const space owned.Space = 't'

const (
	kindHead    = 'h'
	kindID      = 'i'
	kindMessage = 'm'
	kindIndexed = 'x'

	digestLen = 16
	headLen   = 5 * 8
	entryLen  = 2*8 + digestLen
)

func headKey(uid types.UID) []byte { return space.Key(uid, kindHead) }

func idKey(uid types.UID, id string) []byte { return append(space.Key(uid, kindID), id...) }

func messageKey(uid types.UID, order int64) []byte {
	return binary.BigEndian.AppendUint64(space.Key(uid, kindMessage), uint64(order))
}

// head is the state of a transcript; see the package comment.
type head struct {
	last, kept, bytes, first, oldest int64
}

func (h head) info() Info { return Info{Messages: h.kept, Bytes: h.bytes, Last: h.last} }

func (h head) encode() []byte {
	b := make([]byte, 0, headLen)
	for _, n := range [...]int64{h.last, h.kept, h.bytes, h.first, h.oldest} {
		b = binary.BigEndian.AppendUint64(b, uint64(n))
	}
	return b
}

// head reads the head of a transcript. A missing head means an empty transcript.
func (s *Store) head(uid types.UID) (head, error) {
	key := headKey(uid)
	v, ok, err := s.engine.Get(key)
	if err != nil || !ok {
		return head{oldest: 1}, err
	}
	if len(v) != headLen {
		return head{oldest: 1}, &CorruptError{key}
	}
	var n [5]int64
	for i := range n {
		n[i] = int64(binary.BigEndian.Uint64(v[8*i:]))
	}
	h := head{last: n[0], kept: n[1], bytes: n[2], first: n[3], oldest: n[4]}
	if h.oldest < 1 || h.kept < 0 || h.kept > h.last || h.first > h.last || h.oldest > h.last+1 {
		return head{oldest: 1}, &CorruptError{key}
	}
	return h, nil
}

// entry is the stored information about a message id.
type entry struct {
	order  int64
	ts     int64 // Unix seconds
	digest [digestLen]byte
}

func (e entry) encode() []byte {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, entryLen), uint64(e.order))
	return append(binary.BigEndian.AppendUint64(b, uint64(e.ts)), e.digest[:]...)
}

// entry reads the entry of an id; ok is false when there is none.
func (s *Store) entry(uid types.UID, id string) (e entry, ok bool, err error) {
	key := idKey(uid, id)
	v, ok, err := s.engine.Get(key)
	if err != nil || !ok {
		return e, false, err
	}
	if len(v) != entryLen {
		return e, false, &CorruptError{key}
	}
	e.order, e.ts = int64(binary.BigEndian.Uint64(v)), int64(binary.BigEndian.Uint64(v[8:]))
	copy(e.digest[:], v[16:])
	return e, true, nil
}

// digest identifies the content of a message: messages with the same id must have the same digest.
func digest(m *v1alpha1.SessionMessage) (d [digestLen]byte, err error) {
	c := *m
	c.ID, c.Order, c.Timestamp = "", 0, metav1.Time{}
	b, err := json.Marshal(c)
	if err != nil {
		return d, fmt.Errorf("encode message: %w", err)
	}
	sum := sha256.Sum256(b)
	copy(d[:], sum[:])
	return d, nil
}

// encode makes the record of a message: its fields as JSON, a line end, which the JSON does not contain,
// and its content unchanged. Most of a message is its content, and decoding that as JSON would be
// expensive.
func encode(m *v1alpha1.SessionMessage) ([]byte, error) {
	c := *m
	c.Content, c.Order = "", 0 // the key holds the order
	b, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	return append(append(b, '\n'), m.Content...), nil
}

func decode(key, value []byte) (m v1alpha1.SessionMessage, err error) {
	about, content, ok := bytes.Cut(value, []byte{'\n'})
	if !ok || len(key) < 8 || json.Unmarshal(about, &m) != nil {
		return m, &CorruptError{bytes.Clone(key)}
	}
	m.Content = string(content)
	m.Order = int64(binary.BigEndian.Uint64(key[len(key)-8:]))
	m.Timestamp = metav1.Time{Time: m.Timestamp.UTC()}
	return m, nil
}

// seconds is the precision of ts in the API.
func seconds(unix int64) metav1.Time { return metav1.Time{Time: time.Unix(unix, 0).UTC()} }
