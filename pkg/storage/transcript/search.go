// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/fulltext"
	"github.com/platform-ai/platform/pkg/storage/owned"
)

// IndexLetter is the letter of the index of messages; see package fulltext.
const IndexLetter = 't'

// catchPage is how many messages are indexed, or removed from the index, at a time.
const catchPage = 200

// Session identifies a session and where it is.
type Session struct {
	Namespace, Name string
	UID             types.UID
}

func (s Session) group() string { return s.Name + "/" + string(s.UID) }

// indexed says which messages of a session are in the index.
type indexed struct {
	session Session
	upto    int64
}

func indexedKey(uid types.UID) []byte { return space.Key(uid, kindIndexed) }

// indexed reads what is indexed of a session; nil if nothing is.
func (s *Store) indexed(uid types.UID) (*indexed, error) {
	key := indexedKey(uid)
	v, ok, err := s.engine.Get(key)
	if err != nil || !ok {
		return nil, err
	}
	if len(v) < 8 {
		return nil, &CorruptError{key}
	}
	namespace, name, ok := bytes.Cut(v[8:], []byte{0})
	if !ok {
		return nil, &CorruptError{key}
	}
	return &indexed{Session{Namespace: string(namespace), Name: string(name), UID: uid}, int64(binary.BigEndian.Uint64(v))}, nil
}

// indexes returns what an append continues to index. It is nil if there is no index, or if earlier messages are not in
// it yet: Catch then indexes the new ones, too.
func (s *Store) indexes(to Session, h head) (*indexed, error) {
	if s.index == nil || to.Namespace == "" || to.Name == "" {
		return nil, nil //nolint:nilnil // nothing is indexed
	}
	if h.last == 0 {
		return &indexed{session: to}, nil
	}
	have, err := s.indexed(to.UID)
	if err != nil || have == nil || have.upto < h.last {
		return nil, err
	}
	return have, nil
}

// rows returns the rows of a message.
func (x *indexed) rows(index *fulltext.Index, m *v1alpha1.SessionMessage) fulltext.Rows {
	return index.Rows(&fulltext.Document{
		Space: x.session.Namespace, Group: x.session.group(), Name: strconv.FormatInt(m.Order, 10), Rank: uint64(m.Order), Text: m.Content,
	})
}

// add indexes the next message. A nil receiver indexes nothing, here and in the methods below.
func (x *indexed) add(b engine.Batch, index *fulltext.Index, m *v1alpha1.SessionMessage) error {
	if x == nil {
		return nil
	}
	x.upto = m.Order
	return fulltext.Replace(b, fulltext.Rows{}, x.rows(index, m))
}

// remove removes a message from the index.
func (x *indexed) remove(b engine.Batch, index *fulltext.Index, m *v1alpha1.SessionMessage) error {
	if x == nil {
		return nil
	}
	return fulltext.Replace(b, x.rows(index, m), fulltext.Rows{})
}

func (x *indexed) save(b engine.Batch) error {
	if x == nil {
		return nil
	}
	v := binary.BigEndian.AppendUint64(nil, uint64(x.upto))
	v = append(append(append(v, x.session.Namespace...), 0), x.session.Name...)
	return b.Set(indexedKey(x.session.UID), v)
}

// Catch indexes the messages of a session that are not in the index, because they were stored before there was one. It
// holds up appends to the session for one page at a time.
func (s *Store) Catch(ctx context.Context, of Session) error {
	if s.index == nil || owned.Bad(string(of.UID)) {
		return nil
	}
	for {
		more, err := s.catchSome(ctx, of)
		if err != nil || !more {
			return err
		}
	}
}

func (s *Store) catchSome(ctx context.Context, of Session) (more bool, err error) {
	l := s.lock(of.UID)
	l.Lock()
	defer l.Unlock()
	h, err := s.head(of.UID)
	if err != nil {
		return false, err
	}
	x, err := s.indexed(of.UID)
	if err != nil {
		return false, err
	}
	if x == nil {
		x = &indexed{session: of}
	}
	if x.upto >= h.last {
		return false, nil
	}
	return true, s.write(ctx, engine.Upkeep, func(b engine.Batch) error {
		n := 0
		err := s.each(of.UID, x.upto+1, func(m *v1alpha1.SessionMessage) (bool, error) {
			n++
			return n < catchPage, x.add(b, s.index, m)
		})
		if n < catchPage {
			x.upto = h.last
		}
		return errors.Join(err, x.save(b))
	})
}

// each calls f with the messages from an order on, until f returns false.
func (s *Store) each(uid types.UID, from int64, f func(*v1alpha1.SessionMessage) (bool, error)) (err error) {
	start := messageKey(uid, from)
	it, err := s.engine.NewIter(start, owned.After(space.Key(uid, kindMessage)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		m, err := decode(it.Key(), it.Value())
		if err != nil {
			return err
		}
		if more, err := f(&m); err != nil || !more {
			return err
		}
	}
	return it.Error()
}

// unindex removes the messages of a session from the index, a page at a time. A crash in between leaves the transcript,
// so it is deleted again.
func (s *Store) unindex(ctx context.Context, uid types.UID) error {
	if s.index == nil {
		return nil
	}
	x, err := s.indexed(uid)
	if err != nil || x == nil {
		return err
	}
	for from, done := int64(0), false; !done; {
		err := s.write(ctx, engine.Free, func(b engine.Batch) error {
			n := 0
			err := s.each(uid, from, func(m *v1alpha1.SessionMessage) (bool, error) {
				n++
				from = m.Order + 1
				return n < catchPage, x.remove(b, s.index, m)
			})
			done = n < catchPage
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Match is a message that was found.
type Match struct {
	Session Session
	Message v1alpha1.SessionMessage
	Score   float64
}

// Search calls f with the messages of a namespace that have any word of the text, the best first, until f returns
// false. of names the sessions to search; nil means all of the namespace.
func (s *Store) Search(_ context.Context, namespace string, of []Session, text string, f func(Match) (bool, error)) error {
	if s.index == nil {
		return nil
	}
	q := fulltext.Query{Space: namespace, Text: text}
	if of != nil {
		q.Groups = []string{}
	}
	for _, session := range of {
		q.Groups = append(q.Groups, session.group())
	}
	hits, err := s.index.Search(q)
	if err != nil {
		return fmt.Errorf("search: %w", err)
	}
	for _, h := range hits {
		name, uid, ok := strings.Cut(h.Group, "/")
		order, err := strconv.ParseInt(h.Name, 10, 64)
		if !ok || err != nil {
			return fmt.Errorf("search: malformed row of group %q", h.Group)
		}
		m, ok, err := s.message(types.UID(uid), order)
		if err != nil {
			return err
		}
		if !ok {
			continue // removed since
		}
		if more, err := f(Match{Session{Namespace: namespace, Name: name, UID: types.UID(uid)}, m, h.Score}); err != nil || !more {
			return err
		}
	}
	return nil
}

// message reads one message.
func (s *Store) message(uid types.UID, order int64) (m v1alpha1.SessionMessage, ok bool, err error) {
	if owned.Bad(string(uid)) {
		return m, false, nil
	}
	l := s.lock(uid)
	l.RLock()
	defer l.RUnlock()
	key := messageKey(uid, order)
	v, ok, err := s.engine.Get(key)
	if err != nil || !ok {
		return m, false, err
	}
	m, err = decode(key, slices.Clone(v))
	return m, err == nil, err
}
