// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

// oneList is the Room of a test: it notes what was taken and kept, or refuses.
type oneList struct {
	taken, kept, each int64
	err               error
}

func (r *oneList) Take(_ context.Context, n int64) error { r.taken = n; return r.err }
func (r *oneList) Keep(n int64)                          { r.kept = n }
func (r *oneList) Each() int64                           { return r.each }

// TestRoom: a list asks for room before it reads anything, for as much as it may have, and gives back what it does not use. Small
// lists and pages ask for none.
func TestRoom(t *testing.T) {
	const objects, size, big = 500, 1 << 10, 4 << 10
	item := int64(reflect.TypeFor[example.Pod]().Size())
	for name, cache := range map[string]int64{"decoded": 0, "from the engine": -1} {
		t.Run(name, func(t *testing.T) {
			h := open(t, func(s *setup) { s.db.ObjectCacheBytes = cache })
			for i := range objects {
				p := pod(fmt.Sprint("p", i))
				p.Labels = map[string]string{"odd": fmt.Sprint(i % 2)}
				p.Annotations = map[string]string{"value": bigValue(size)}
				if err := h.Create(testContext(t), podKey(p.Name), p, nil, 0); err != nil {
					t.Fatal(err)
				}
			}
			list := func(room *oneList, opts storage.SelectionPredicate) (int, error) {
				var l example.PodList
				opts.GetAttrs = podAttrs
				err := h.GetList(WithRoom(testContext(t), room), "/pods/", storage.ListOptions{Recursive: true, Predicate: opts}, &l)
				return len(l.Items), err
			}
			least := objects * (item + big)
			if cache < 0 {
				least += objects * decodedSize * size
			}
			whole := &oneList{each: big}
			if n, err := list(whole, storage.Everything); n != objects || err != nil || whole.taken < least || whole.kept != whole.taken {
				t.Errorf("%d objects, %v: %d bytes taken and %d kept, want at least %d", n, err, whole.taken, whole.kept, least)
			}
			selected := &oneList{each: big}
			odd := storage.Everything
			odd.Label = labels.SelectorFromSet(labels.Set{"odd": "1"})
			if n, err := list(selected, odd); n != objects/2 || err != nil || selected.taken != whole.taken || selected.kept > whole.taken/2+big {
				t.Errorf("%d selected, %v: %d bytes taken and %d kept, want half of %d", n, err, selected.taken, selected.kept, whole.taken)
			}
			full := &oneList{each: big, err: errors.New("full")}
			if n, err := list(full, storage.Everything); n != 0 || !errors.Is(err, full.err) {
				t.Errorf("%d objects without room, %v", n, err)
			}
			page := &oneList{each: big}
			few := storage.Everything
			few.Limit = 10
			if n, err := list(page, few); n != 10 || err != nil || page.taken != 0 {
				t.Errorf("a page of %d, %v: %d bytes taken", n, err, page.taken)
			}
		})
	}
}
