// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// Index derives further rows from the objects of a resource. The rows are written in the commit of the object, so they
// match the objects also after a crash. An object that cannot be decoded any more leaves its rows when it is deleted;
// a reader of the rows must therefore check that the object exists.
type Index interface {
	// Change returns what to write when the object old is replaced by now. Either is nil if there is none. The result
	// may be nil. It runs before the commit, and the func that it returns runs in it, once.
	Change(old, now runtime.Object) func(engine.Batch) error
}

// indexed returns what the resource's index writes when the object in old is replaced by that in now; nil for no
// object. The commit is conditional on old, so the rows cannot be those of another version.
func indexed(s *Store, old, now []byte) (func(engine.Batch) error, error) {
	if s.index == nil {
		return nil, nil //nolint:nilnil // nothing to write
	}
	objects := [2]runtime.Object{}
	for i, plain := range [][]byte{old, now} {
		if plain == nil {
			continue
		}
		objects[i] = s.newFunc()
		if _, _, err := s.codec.Decode(plain, nil, objects[i]); err != nil {
			return nil, err
		}
	}
	return s.index.Change(objects[0], objects[1]), nil
}
