// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"errors"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// Index derives further rows from the objects of a resource. The rows are written in the commit of the object, so they match
// the objects even after a crash. An object that cannot be decoded any more leaves its rows when it is deleted;
// a reader of the rows must therefore check that the object exists.
type Index interface {
	// Change returns what to write when the object old is replaced by now. Either is nil if there is none. The result
	// may be nil. It runs before the commit, and the func that it returns runs in it, once. Neither object may be changed
	// or kept.
	Change(old, now runtime.Object) func(engine.Batch) error
}

// indexed returns what the resource's index and its indexed fields write when the object of w is replaced: old is its stored form and now the
// new one, nil for no object. will is the new one decoded, where the caller has it, otherwise nil. The
// commit is conditional on old, so the rows cannot be those of another version.
func indexed(s *Store, w *write, old, now []byte, will runtime.Object) (func(engine.Batch) error, error) {
	if s.index == nil && len(s.fields) == 0 {
		return nil, nil //nolint:nilnil // nothing to write
	}
	var was runtime.Object
	if en := s.topic.get(w.key); en != nil && en.rev == w.expect {
		if d := en.obj.Load(); d != nil {
			was = d.obj
		}
	}
	var err error
	if was, err = s.decoded(old, was); err != nil {
		return nil, err
	}
	if will, err = s.decoded(now, will); err != nil {
		return nil, err
	}
	fields := s.fieldChanges(w.key, was, will)
	if s.index == nil {
		return fields, nil
	}
	more := s.index.Change(was, will)
	if fields == nil || more == nil {
		if more == nil {
			more = fields
		}
		return more, nil
	}
	return func(b engine.Batch) error { return errors.Join(fields(b), more(b)) }, nil
}

// decoded returns obj if it is of the store's type, and otherwise decodes its stored form.
func (s *Store) decoded(plain []byte, obj runtime.Object) (runtime.Object, error) {
	if plain == nil {
		return nil, nil //nolint:nilnil // no object
	}
	out := s.newFunc()
	if obj != nil && reflect.TypeOf(obj) == reflect.TypeOf(out) {
		return obj, nil
	}
	_, _, err := s.codec.Decode(plain, nil, out)
	return out, err
}
