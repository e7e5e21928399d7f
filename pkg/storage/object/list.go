// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// checkContext is how many objects a list reads between checks of its context.
const checkContext = 64

// list is one list request.
type list struct {
	s      *Store
	opts   storage.ListOptions
	pred   *storage.SelectionPredicate
	all    bool // no selector
	prefix string
	start  string // key of the first object of this page
	end    string
	paging bool // a later page
	snap   *snapshot
	rev    uint64

	items   reflect.Value // slice
	n       int           // items in it
	bytes   int64         // stored size of the items
	total   int64         // keys from start on, if there is no selector
	lastKey string
	more    bool
	bad     unreadable
	values  valueReader
	room    Room // nil if the list needs none
}

// GetList reads the objects below key, or the object at key, at one revision.
func (s *Store) GetList(ctx context.Context, key string, opts storage.ListOptions, listObj runtime.Object) (err error) {
	prefix, err := s.key(key, opts.Recursive)
	if err != nil {
		return err
	}
	items, err := itemsOf(listObj)
	if err != nil {
		return err
	}
	want, start, err := storage.ValidateListOptions(prefix, versioner, opts)
	if err != nil {
		return err
	}
	s.topic.metrics.lists.Inc()
	l := &list{
		s: s, opts: opts, pred: &opts.Predicate, all: opts.Predicate.Empty(),
		prefix: prefix, start: start, end: prefix + "\x00", paging: start != "",
		items: items, n: items.Len(), bad: unreadable{resource: s.groupResource}, values: valueReader{t: s.topic},
	}
	if !l.paging {
		l.start = prefix
	}
	if opts.Recursive {
		l.end = string(upperBound([]byte(prefix)))
	}
	defer func() {
		if closed := l.values.close(); err == nil {
			err = closed
		}
	}()
	if err := l.open(uint64(want)); err != nil {
		return err
	}
	if err := l.enter(ctx); err != nil {
		return err
	}
	defer l.settle()
	if err := l.read(ctx); errors.Is(err, ErrCompacted) {
		return expiredList(l.paging, l.start, l.prefix)
	} else if err != nil {
		return err
	}
	if err := l.bad.err(); err != nil {
		return err
	}
	return l.finish(listObj)
}

func itemsOf(listObj runtime.Object) (reflect.Value, error) {
	ptr, err := meta.GetItemsPtr(listObj)
	if err != nil {
		return reflect.Value{}, err
	}
	items, err := conversion.EnforcePtr(ptr)
	if err != nil {
		return reflect.Value{}, err
	}
	if items.Kind() != reflect.Slice {
		return reflect.Value{}, fmt.Errorf("items of %T are not a slice", listObj)
	}
	return items, nil
}

// open finds the state that the list requests; want 0 is the newest.
func (l *list) open(want uint64) error {
	t := l.s.topic
	if want == 0 {
		l.snap, l.rev = t.current()
		if l.paging {
			return nil
		}
		return l.s.minimum(l.opts.ResourceVersion, l.rev)
	}
	if now := l.s.db.Revision(); want > now {
		return storage.NewTooLargeResourceVersionError(want, now, 0)
	}
	if want < l.s.db.CompactRevision() {
		return expiredList(l.paging, l.start, l.prefix)
	}
	snap, err := t.at(want)
	if errors.Is(err, ErrCompacted) {
		return expiredList(l.paging, l.start, l.prefix)
	}
	l.snap, l.rev = snap, want
	return err
}

// read fills items.
func (l *list) read(ctx context.Context) error {
	size := l.reserve()
	if l.all && l.opts.Recursive && l.n == 0 && l.shares() && l.s.topic.cachesObjects() {
		err := l.copyDecoded(ctx, size)
		if err == nil {
			l.more = l.total > int64(l.n)
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		l.n, l.bytes = 0, 0
		l.items.SetLen(0) // something is unreadable or gone; the path below finds out what
		l.lastKey = ""
	}
	var err error
	i := 0
	visit := func(en *entry) bool {
		if l.pred.Limit > 0 && (int64(l.n) >= l.pred.Limit || !l.fits(en)) {
			l.more = true
			return false
		}
		if i++; i%checkContext == 0 && ctx.Err() != nil {
			err = storage.NewTimeoutError(en.key, "request did not complete within requested timeout")
			return false
		}
		l.lastKey = en.key
		err = l.add(ctx, en)
		return err == nil
	}
	if field, value, ok := l.byField(); ok {
		walked := span{l.s, l.snap.tree, l.rev, l.start, l.end}.walkField(field, value, visit)
		return errors.Join(walked, err)
	}
	l.snap.tree.AscendRange(&entry{key: l.start}, &entry{key: l.end}, visit)
	return err
}

// byField returns the indexed field by which the list selects, and its value.
func (l *list) byField() (field, value string, ok bool) {
	if !l.opts.Recursive {
		return "", "", false
	}
	return l.s.byField(l.pred)
}

// reserve allocates the items of the page if its size is known, and returns the size.
func (l *list) reserve() (size int) {
	if l.all {
		if l.opts.Recursive {
			l.total = l.snap.count(l.s.topic, l.prefix, l.start, l.end)
		}
		size = int(l.total)
		if l.pred.Limit > 0 {
			size = int(min(l.pred.Limit, l.total))
		}
	}
	if l.items.IsNil() || size > l.items.Cap() && l.n == 0 {
		l.items.Set(reflect.MakeSlice(l.items.Type(), 0, size))
	}
	return size
}

// shares reports whether decoded objects can be used as items.
func (l *list) shares() bool { return l.s.objectType == l.items.Type().Elem() }

// fits reports whether the object of an entry belongs to a page that was asked for. A page has as many objects as its client wants
// or fewer, if they are large: what is decoded and encoded for one request is limited. It has at least one.
func (l *list) fits(en *entry) bool {
	return l.n == 0 || l.bytes+int64(en.size) <= l.s.db.opts.PageBytes
}

// copyDecoded fills items with shallow copies of decoded objects, as the watch cache does. The values that
// they point to are shared, and by the watch cache's contract read-only.
func (l *list) copyDecoded(ctx context.Context, size int) (err error) {
	full := false
	l.items.SetLen(size)
	// The count bounds the walk. Comparing each key with the end would touch memory
	// that the walk does not otherwise need.
	l.snap.tree.AscendGreaterOrEqual(&entry{key: l.start}, func(en *entry) bool {
		if full = l.n == size || l.pred.Limit > 0 && !l.fits(en); full {
			return false
		}
		if l.n%checkContext == checkContext-1 && ctx.Err() != nil {
			err = storage.NewTimeoutError(en.key, "request did not complete within requested timeout")
			return false
		}
		var obj runtime.Object
		if obj, _, err = l.s.object(ctx, en, &l.values); err != nil {
			return false
		}
		l.items.Index(l.n).Set(reflect.ValueOf(obj).Elem())
		l.n, l.lastKey = l.n+1, en.key
		l.bytes += int64(en.size)
		return true
	})
	if err == nil && l.n != size && !full {
		err = fmt.Errorf("found %d objects of %d", l.n, size)
	}
	l.items.SetLen(l.n)
	return err
}

// object returns the object of an entry. If it is shared, the caller must not change it.
func (s *Store) object(ctx context.Context, en *entry, r *valueReader) (obj runtime.Object, shared bool, err error) {
	if d := en.decodedObject(); d != nil {
		return d.obj, true, nil
	}
	stored, err := r.value(en)
	if err != nil {
		return nil, false, err
	}
	if obj, err = s.decode(ctx, en.key, stored, en.rev); err != nil {
		return nil, false, err
	}
	if s.topic.cachesObjects() {
		s.topic.remember(en, obj)
		return obj, true, nil
	}
	return obj, false, nil
}

// add appends the entry's object if the selector selects it. It decodes in place.
func (l *list) add(ctx context.Context, en *entry) error {
	if d := en.decodedObject(); d != nil && l.shares() {
		if l.matches(d.obj) {
			l.grow().Set(reflect.ValueOf(d.obj).Elem())
			l.n++
			l.bytes += int64(en.size)
		}
		return nil
	}
	stored, err := l.values.value(en)
	if err != nil {
		return err
	}
	plain, _, err := l.s.untransform(ctx, en.key, stored)
	if err != nil {
		return l.bad.add(en.key, storage.NewInternalError(fmt.Errorf("unable to transform key %q: %w", en.key, err)))
	}
	item := l.grow()
	obj, ok := reflect.TypeAssert[runtime.Object](item.Addr())
	if !ok {
		return fmt.Errorf("%s is not an object", item.Type())
	}
	err = l.s.decodeInto(plain, obj, en.rev)
	if err == nil && l.matches(obj) {
		l.n++
		l.bytes += int64(en.size)
		return nil
	}
	item.SetZero()
	l.items.SetLen(l.n)
	if err != nil {
		return l.bad.add(en.key, err)
	}
	return nil
}

func (l *list) matches(obj runtime.Object) bool {
	if l.all {
		return true
	}
	ok, err := l.pred.Matches(obj)
	return ok && err == nil
}

// grow appends an empty item and returns it.
func (l *list) grow() reflect.Value {
	if l.items.Cap() == l.n {
		l.items.Grow(max(l.n, 16))
	}
	l.items.SetLen(l.n + 1)
	return l.items.Index(l.n)
}

// finish sets the list's revision and the token of its next page.
func (l *list) finish(listObj runtime.Object) error {
	token, remaining, err := storage.PrepareContinueToken(l.lastKey, l.prefix, int64(l.rev), l.total, l.more, l.opts)
	if err != nil {
		return err
	}
	if token != "" {
		l.s.topic.retain(l.snap)
	}
	if remaining != nil { // the page may have fewer items than its limit
		*remaining = l.total - int64(l.n)
	}
	if remaining != nil {
		l.snap.remember(pageStart{l.prefix, l.lastKey + "\x00"}, *remaining)
	}
	l.pred.SetShardInfoOnList(listObj)
	return versioner.UpdateList(listObj, l.rev, token, remaining)
}
