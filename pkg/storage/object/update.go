// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"context"
	"errors"
	"reflect"

	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// Create writes a new object.
func (s *Store) Create(ctx context.Context, key string, obj, out runtime.Object, ttl uint64) error {
	w, plain, err := s.creation(ctx, key, obj, ttl)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := w.commit(); errors.Is(err, errConflict) {
		return storage.NewKeyExistsError(w.key, 0)
	} else if err != nil {
		return err
	}
	if out == nil {
		return nil
	}
	return s.written(w, plain, out)
}

// creation returns the write of a new object, and the object as it is encoded.
func (s *Store) creation(ctx context.Context, key string, obj runtime.Object, ttl uint64) (w *write, plain []byte, err error) {
	k, err := s.key(key, false)
	if err != nil {
		return nil, nil, err
	}
	if rv, err := versioner.ObjectResourceVersion(obj); err == nil && rv != 0 {
		return nil, nil, storage.ErrResourceVersionSetOnCreate
	}
	if err := versioner.PrepareObjectForStorage(obj); err != nil {
		return nil, nil, err
	}
	if plain, err = encode(s.codec, obj); err != nil {
		return nil, nil, err
	}
	if err := tooLarge(plain, nil); err != nil {
		return nil, nil, err
	}
	stored, err := s.transform(ctx, k, plain)
	if err != nil {
		return nil, nil, err
	}
	w = &write{topic: s.topic, key: k, data: stored, expiry: s.db.expiryOf(ttl), decode: s.decoder(plain)}
	w.index, err = indexed(s, w, nil, plain, obj)
	return w, plain, err
}

// decoder returns a function that decodes the bytes about to be written, or nil if decoded objects are not
// kept. The object is decoded once for the caller, the index and all watches. If decoding fails, written
// reports the error.
func (s *Store) decoder(plain []byte) func() runtime.Object {
	if !s.topic.cachesObjects() {
		return nil
	}
	return func() runtime.Object {
		obj := s.newFunc()
		if _, _, err := s.codec.Decode(plain, nil, obj); err != nil {
			return nil
		}
		return obj
	}
}

// written sets out to the object that w wrote.
func (s *Store) written(w *write, plain []byte, out runtime.Object) error {
	if w.obj != nil && copyObject(w.obj, out) {
		return nil
	}
	return s.decodeInto(plain, out, w.rev)
}

// state is what a conditional write starts from.
type state struct {
	obj     runtime.Object
	plain   []byte
	rev     uint64
	stale   bool // the transformer wants the data written again
	current bool // read from the store, not suggested by the caller
}

// reader reads the state of a key for a conditional write.
type reader struct {
	s              *Store
	key            string
	like           reflect.Value // of the object's type
	ignoreNotFound bool
	unreadable     bool // require that the object cannot be read, and return a state without it
}

func (r *reader) read(ctx context.Context) (*state, error) {
	st := &state{current: true, obj: r.empty()}
	en, stored, err := r.s.load(r.key)
	if err != nil {
		return nil, err
	}
	if en == nil {
		if !r.ignoreNotFound {
			return nil, storage.NewKeyNotFoundError(r.key, 0)
		}
		return st, runtime.SetZeroValue(st.obj)
	}
	st.rev = en.rev
	if st.plain, st.stale, err = r.s.untransform(ctx, r.key, stored); err != nil {
		err = storage.NewInternalError(err)
	} else if d := en.decodedObject(); d == nil || r.unreadable || !copyObject(d.obj, st.obj) {
		err = r.s.decodeInto(st.plain, st.obj, en.rev)
	}
	switch {
	case err == nil && r.unreadable:
		return nil, storage.NewInvalidObjError(r.key, "unsafe deletion is not allowed because the object is decodable from storage")
	case err != nil && r.unreadable:
		st.obj = nil
		return st, nil
	}
	return st, err
}

func (r *reader) empty() runtime.Object {
	if u, ok := reflect.TypeAssert[runtime.Unstructured](r.like.Addr()); ok {
		return u.NewEmptyInstance()
	}
	obj, _ := reflect.TypeAssert[runtime.Object](reflect.New(r.like.Type()))
	return obj
}

// suggested is the state that the caller believes to be current.
func (s *Store) suggested(obj runtime.Object) (*state, error) {
	rv, err := versioner.ObjectResourceVersion(obj)
	if err != nil {
		return nil, err
	}
	if err := versioner.PrepareObjectForStorage(obj); err != nil {
		return nil, err
	}
	plain, err := encode(s.codec, obj)
	if err != nil {
		return nil, err
	}
	return &state{obj: obj, plain: plain, rev: rv}, versioner.UpdateObject(obj, rv)
}

// begin reads the state to start from, or takes the suggestion.
func (r *reader) begin(ctx context.Context, suggestion runtime.Object) (*state, error) {
	if suggestion != nil && !r.unreadable {
		return r.s.suggested(suggestion)
	}
	return r.read(ctx)
}

// again is called after a check of st failed. It returns the state to retry with, or reason if there is
// none. If st was suggested by the caller, the failure is final only when the stored revision is the
// suggested one.
func (r *reader) again(ctx context.Context, st *state, reason error) (*state, error) {
	if st.current {
		return nil, reason
	}
	next, err := r.read(ctx)
	if err != nil {
		return nil, err
	}
	if next.rev == st.rev {
		return nil, reason
	}
	return next, nil
}

// GuaranteedUpdate updates or creates the object at key, and retries when other writers were faster.
// Unchanged data is not written.
func (s *Store) GuaranteedUpdate(ctx context.Context, key string, dest runtime.Object, ignoreNotFound bool, pre *storage.Preconditions, try storage.UpdateFunc, cached runtime.Object) error {
	k, err := s.key(key, false)
	if err != nil {
		return err
	}
	like, err := conversion.EnforcePtr(dest)
	if err != nil {
		return err
	}
	r := &reader{s: s, key: k, like: like, ignoreNotFound: ignoreNotFound}
	st, err := r.begin(ctx, cached)
	for err == nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		var done bool
		if st, done, err = s.tryUpdate(ctx, r, st, dest, pre, try); done {
			return err
		}
	}
	return err
}

// tryUpdate makes one attempt. If the update is not done, it returns the state for the next attempt.
func (s *Store) tryUpdate(ctx context.Context, r *reader, st *state, dest runtime.Object, pre *storage.Preconditions, try storage.UpdateFunc) (next *state, done bool, err error) {
	before := departureOf(st.obj) // try may change the object
	updated, ttl, err := s.apply(r.key, st, pre, try)
	if err != nil {
		next, err = r.again(ctx, st, err)
		return next, false, err
	}
	plain, err := encode(s.codec, updated)
	if err != nil {
		return nil, true, err
	}
	if !st.stale && bytes.Equal(plain, st.plain) {
		if !st.current { // decide on the stored state, not on the suggested one
			if st, err = r.read(ctx); err != nil {
				return nil, true, err
			}
			if !bytes.Equal(plain, st.plain) {
				return st, false, nil
			}
		}
		if !st.stale {
			return nil, true, s.decodeInto(st.plain, dest, st.rev)
		}
	}
	if err := tooLarge(plain, st.plain); err != nil {
		return nil, true, err
	}
	stored, err := s.transform(ctx, r.key, plain)
	if err != nil {
		return nil, true, err
	}
	w := &write{topic: s.topic, key: r.key, expect: st.rev, data: stored, expiry: s.db.expiryOf(ttl), decode: s.decoder(plain)}
	w.departs = discards(ctx) || before.proceeds(departureOf(updated))
	if w.index, err = indexed(s, w, st.plain, plain, updated); err != nil {
		return nil, true, err
	}
	switch err := w.commit(); {
	case errors.Is(err, errConflict):
		next, err = r.read(ctx)
		return next, false, err
	case err != nil:
		return nil, true, err
	}
	return nil, true, s.written(w, plain, dest)
}

// apply checks and changes the object. A time to live of nil means none.
func (s *Store) apply(key string, st *state, pre *storage.Preconditions, try storage.UpdateFunc) (runtime.Object, uint64, error) {
	if err := pre.Check(key, st.obj); err != nil {
		return nil, 0, err
	}
	out, ttl, err := try(st.obj, storage.ResponseMeta{ResourceVersion: st.rev})
	if err != nil {
		return nil, 0, err
	}
	if err := versioner.PrepareObjectForStorage(out); err != nil {
		return nil, 0, err
	}
	if ttl == nil {
		return out, 0, nil
	}
	return out, *ttl, nil
}

// Delete removes the object at key and sets out to its last state, with the revision of the delete.
func (s *Store) Delete(ctx context.Context, key string, out runtime.Object, pre *storage.Preconditions, validate storage.ValidateObjectFunc, cached runtime.Object, opts storage.DeleteOptions) error {
	k, err := s.key(key, false)
	if err != nil {
		return err
	}
	like, err := conversion.EnforcePtr(out)
	if err != nil {
		return err
	}
	r := &reader{s: s, key: k, like: like, unreadable: opts.ExpectTransformOrDecodeError && unsafeDeletionAllowed()}
	st, err := r.begin(ctx, cached)
	for err == nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		if reason := checkDelete(ctx, k, st, pre, validate); reason != nil {
			st, err = r.again(ctx, st, reason)
			continue
		}
		w := &write{topic: s.topic, key: k, expect: st.rev}
		if !r.unreadable {
			if w.index, err = indexed(s, w, st.plain, nil, nil); err != nil {
				return err
			}
		}
		err = w.commit()
		if errors.Is(err, errConflict) {
			st, err = r.read(ctx)
			continue
		}
		if err != nil || r.unreadable {
			return err
		}
		return s.decodeInto(st.plain, out, w.rev)
	}
	return err
}

func checkDelete(ctx context.Context, key string, st *state, pre *storage.Preconditions, validate storage.ValidateObjectFunc) error {
	if pre != nil {
		if err := pre.Check(key, st.obj); err != nil {
			return err
		}
	}
	return validate(ctx, st.obj)
}
