// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/btree"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// Rows of indexed fields: for each object, field and value, in the commit of the object. A list that selects by the value of an indexed
// field walks the rows of that value instead of all objects, and finds the same objects.
//
// The rows are those of the newest state, be it published or not, and a list is of one revision. So a row only says where to look: the
// object at the list's revision decides. What changed after that revision may have lost its row, so a list also looks at each key of
// the changelog after it. For a first page these are the few changes that are being committed.
//
// An empty value has no row, so a list by it walks all objects. Objects that were stored before their field was indexed have no rows
// either: a kind has its indexed fields from the beginning.

// fieldRow appends the key of a row. key is an object's key, or where a range begins.
func (s *Store) fieldRow(field, value, key string) []byte {
	k := make([]byte, 0, len(key)+len(field)+len(value)+3)
	k = append(append(k, spaceField), s.topic.prefix...)
	k = append(append(k, field...), 0)
	k = append(append(k, value...), 0)
	return append(k, strings.TrimPrefix(key, s.topic.prefix)...)
}

// rowed reports whether a value has rows.
func rowed(value string) bool { return value != "" && !strings.ContainsRune(value, 0) }

// fieldChanges returns what the indexed fields write when the object was becomes is, either of which may be nil.
func (s *Store) fieldChanges(key string, was, is runtime.Object) func(engine.Batch) error {
	type change struct {
		row []byte
		set bool
	}
	var changes []change
	value := func(of storage.IndexerFunc, obj runtime.Object) string {
		if obj == nil {
			return ""
		}
		return of(obj)
	}
	for field, of := range s.fields {
		before, after := value(of, was), value(of, is)
		if before == after {
			continue
		}
		if rowed(before) {
			changes = append(changes, change{s.fieldRow(field, before, key), false})
		}
		if rowed(after) {
			changes = append(changes, change{s.fieldRow(field, after, key), true})
		}
	}
	if changes == nil {
		return nil
	}
	return func(b engine.Batch) error {
		for _, c := range changes {
			err := error(nil)
			if c.set {
				err = b.Set(c.row, nil)
			} else {
				err = b.Delete(c.row)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// byField returns the indexed field, and its value, by which a predicate selects.
func (s *Store) byField(pred *storage.SelectionPredicate) (field, value string, ok bool) {
	if pred.Field == nil {
		return "", "", false
	}
	for field = range s.fields {
		if value, ok = pred.Field.RequiresExactMatch(field); ok && rowed(value) {
			return field, value, true
		}
	}
	return "", "", false
}

// span is a part of a state: the keys of [start, end) at a revision.
type span struct {
	s          *Store
	tree       *btree.BTreeG[*entry]
	rev        uint64
	start, end string
}

// walkField calls visit with the entries of a span that may have a value, in the order of keys, until it returns false.
func (of span) walkField(field, value string, visit func(*entry) bool) (err error) {
	s := of.s
	lower, upper := s.fieldRow(field, value, of.start), upperBound(s.fieldRow(field, value, ""))
	if strings.HasPrefix(of.end, s.topic.prefix) {
		upper = s.fieldRow(field, value, of.end)
	}
	it, err := s.db.engine.NewIter(lower, upper)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	changed, err := s.topic.changedAfter(of.rev, of.start, of.end) // after the rows, so that it lacks no change that they have
	if err != nil {
		return err
	}
	skip := len(s.fieldRow(field, value, ""))
	for there := it.First(); there || len(changed) > 0; {
		key := ""
		if there {
			key = s.topic.prefix + string(it.Key()[skip:])
		}
		if len(changed) > 0 && (!there || changed[0] <= key) {
			if changed[0] == key {
				there = it.Next()
			}
			key, changed = changed[0], changed[1:]
		} else {
			there = it.Next()
		}
		if en, ok := of.tree.Get(&entry{key: key}); ok && !visit(en) {
			return nil
		}
	}
	return it.Error()
}

// changedAfter returns the keys of [start, end) that changed after a revision, in order, whether or not the change is published.
func (t *topic) changedAfter(rev uint64, start, end string) (keys []string, err error) {
	it, err := t.db.engine.NewIter(changeKey(rev+1), []byte{spaceChange + 1})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		c, err := parseChange(it.Key(), it.Value())
		if err != nil {
			return nil, err
		}
		if c.key >= start && c.key < end {
			keys = append(keys, c.key)
		}
	}
	// Check after reading: history that is not refused now was complete when it was read.
	if rev < t.db.compacted.Load() {
		return nil, ErrCompacted
	}
	slices.Sort(keys)
	return slices.Compact(keys), it.Error()
}

// UpTo returns the objects whose value of an indexed field is not empty and at most max, in the order of values, at most limit. It
// reads the newest state, in the cost of what it returns, and is for the server itself.
func UpTo(ctx context.Context, in storage.Interface, field, upTo string, limit int) (found []runtime.Object, err error) {
	if limit <= 0 {
		return nil, nil
	}
	_, to := Only(upTo)
	err = Scan(ctx, in, field, "", to, func(_ string, obj runtime.Object) (bool, error) {
		found = append(found, obj)
		return len(found) < limit, nil
	})
	return found, err
}

// Scan calls f with the objects whose value of an indexed field is not empty, at least from and below to, in the order of values and then
// of keys, until it returns false. It reads the newest state, which may change meanwhile, in the cost of what it calls f with, and is for the
// server itself. The objects are copies.
func Scan(ctx context.Context, in storage.Interface, field, from, to string, f func(value string, obj runtime.Object) (more bool, err error)) error {
	s, err := indexing(in, field)
	if err != nil {
		return err
	}
	return rows(s, field, from, to, func(value, key string) (bool, error) {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		en := s.topic.get(key)
		if en == nil {
			return true, nil
		}
		obj, err := s.objectOf(ctx, en)
		switch {
		case errors.Is(err, ErrCompacted) || err == nil && s.fields[field](obj) != value: // changed meanwhile
			return true, nil
		case err != nil:
			return false, err
		}
		return f(value, obj)
	})
}

// Count returns how many values of an indexed field are at least from and below to, in the newest state, published or not, and at most
// limit. It reads no object, and is for the server itself.
func Count(in storage.Interface, field, from, to string, limit int) (n int, err error) {
	s, err := indexing(in, field)
	if err != nil || limit <= 0 {
		return 0, err
	}
	err = rows(s, field, from, to, func(string, string) (bool, error) {
		n++
		return n < limit, nil
	})
	return n, err
}

// Only returns the bounds within which there is one value alone.
func Only(value string) (from, to string) { return value, value + "\x01" }

// indexing returns the store of an interface, which must index a field.
func indexing(in storage.Interface, field string) (*Store, error) {
	s, ok := in.(*Store)
	if !ok || s.fields[field] == nil {
		return nil, fmt.Errorf("%T has no index of the field %q", in, field)
	}
	return s, nil
}

// rows calls f with the rows of a field whose values are at least from and below to, until it returns false.
func rows(s *Store, field, from, to string, f func(value, key string) (more bool, err error)) (err error) {
	begin := s.fieldRow(field, "", "")
	begin = begin[:len(begin)-1] // before the value
	bound := func(value string) []byte { return append(bytes.Clone(begin), value...) }
	it, err := s.db.engine.NewIter(bound(from), bound(to))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for there := it.First(); there; there = it.Next() {
		value, key, _ := bytes.Cut(it.Key()[len(begin):], []byte{0})
		if more, err := f(string(value), s.topic.prefix+string(key)); err != nil || !more {
			return err
		}
	}
	return it.Error()
}

// objectOf returns a copy of the object of an entry.
func (s *Store) objectOf(ctx context.Context, en *entry) (runtime.Object, error) {
	if d := en.decodedObject(); d != nil {
		return d.obj.DeepCopyObject(), nil
	}
	stored, err := s.topic.value(en)
	if err != nil {
		return nil, err
	}
	return s.decode(ctx, en.key, stored, en.rev)
}
