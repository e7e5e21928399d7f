// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// IsConflict reports whether a Txn was refused because another writer was faster than one of its staged updates. The
// caller may stage and commit them again.
func IsConflict(err error) bool { return errors.Is(err, errConflict) }

// Stage prepares an update of the object at key of a Store that is committed together with other changes. mutate changes
// a copy of the stored object; its error ends the update. The part is nil if nothing changes. If another writer is
// faster, the Txn is refused with an error that IsConflict recognises.
func Stage(ctx context.Context, in storage.Interface, key string, mutate func(runtime.Object) error) (engine.Part, error) {
	s, ok := in.(*Store)
	if !ok {
		return nil, fmt.Errorf("%T stages no updates", in)
	}
	k, err := s.key(key, false)
	if err != nil {
		return nil, err
	}
	like, err := conversion.EnforcePtr(s.newFunc())
	if err != nil {
		return nil, err
	}
	r := &reader{s: s, key: k, like: like}
	st, err := r.read(ctx)
	if err != nil {
		return nil, err
	}
	if err := mutate(st.obj); err != nil {
		return nil, err
	}
	if err := versioner.PrepareObjectForStorage(st.obj); err != nil {
		return nil, err
	}
	plain, err := encode(s.codec, st.obj)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(plain, st.plain) {
		return nil, nil //nolint:nilnil // nothing to write
	}
	if err := tooLarge(plain, st.plain); err != nil {
		return nil, err
	}
	stored, err := s.transform(ctx, k, plain)
	if err != nil {
		return nil, err
	}
	w := &write{topic: s.topic, key: k, expect: st.rev, data: stored, decode: s.decoder(plain)}
	if w.index, err = indexed(s, w, st.plain, plain, st.obj); err != nil {
		return nil, err
	}
	return w, nil
}

// StageNew prepares a new object that is committed together with other changes, as Create does alone: ttl is in seconds, 0 for none. If
// the key exists by then, the Txn is refused with an error that IsConflict recognises.
func StageNew(ctx context.Context, in storage.Interface, key string, obj runtime.Object, ttl uint64) (engine.Part, error) {
	s, ok := in.(*Store)
	if !ok {
		return nil, fmt.Errorf("%T stages nothing", in)
	}
	w, _, err := s.creation(ctx, key, obj, ttl)
	return w, err
}
