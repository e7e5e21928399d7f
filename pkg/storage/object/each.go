// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
)

// Each calls f with each object below key, in the order of keys, as of one revision, which it returns. Revision 0 is the
// newest state; others can be read for as long as lists of them can. Nothing is copied: objects that are kept decoded
// are shared, so f must not change them. An error of f ends the walk.
func Each(ctx context.Context, in storage.Interface, key string, revision uint64, f func(runtime.Object) error) (at uint64, err error) {
	s, ok := in.(*Store)
	if !ok {
		return 0, fmt.Errorf("%T cannot be walked", in)
	}
	prefix, err := s.key(key, true)
	if err != nil {
		return 0, err
	}
	s.topic.metrics.lists.Inc()
	l := &list{s: s, prefix: prefix, start: prefix, end: string(upperBound([]byte(prefix))), values: valueReader{t: s.topic}}
	if err := l.open(revision); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, l.values.close()) }()
	n := 0
	l.snap.tree.AscendRange(&entry{key: l.start}, &entry{key: l.end}, func(en *entry) bool {
		if n++; n%checkContext == 0 && ctx.Err() != nil {
			err = storage.NewTimeoutError(en.key, "request did not complete within requested timeout")
			return false
		}
		var obj runtime.Object
		if obj, _, err = s.object(ctx, en, &l.values); err == nil {
			err = f(obj)
		}
		return err == nil
	})
	if errors.Is(err, ErrCompacted) {
		return 0, expiredList(false, "", "")
	}
	return l.rev, err
}
