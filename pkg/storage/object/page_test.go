// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

// TestPageBytes: a page of large objects ends early, the pages together have every object once, and each says how many remain.
// A list without a limit has all of them.
func TestPageBytes(t *testing.T) {
	const objects, size, most = 10, 4 << 10, 3
	for name, cache := range map[string]int64{"decoded": 0, "from the engine": -1} {
		for _, selector := range []string{"", "x"} {
			t.Run(fmt.Sprintf("%s, selector %q", name, selector), func(t *testing.T) {
				h := open(t, func(s *setup) { s.db.ObjectCacheBytes, s.db.PageBytes = cache, most*(size+1<<10) })
				for i := range objects {
					p := pod(fmt.Sprint("p", i))
					p.Labels = map[string]string{"x": "1"}
					p.Annotations = map[string]string{"value": bigValue(size)}
					if err := h.Create(testContext(t), podKey(p.Name), p, nil, 0); err != nil {
						t.Fatal(err)
					}
				}
				opts := storage.ListOptions{Recursive: true, Predicate: storage.Everything}
				opts.Predicate.GetAttrs = podAttrs
				if selector != "" {
					opts.Predicate.Label = labels.SelectorFromSet(labels.Set{selector: "1"})
				}
				list := func() *example.PodList {
					t.Helper()
					var l example.PodList
					if err := h.GetList(testContext(t), "/pods/", opts, &l); err != nil {
						t.Fatal(err)
					}
					return &l
				}
				if l := list(); len(l.Items) != objects || l.Continue != "" {
					t.Fatalf("%d objects without a limit, and token %q", len(l.Items), l.Continue)
				}
				opts.Predicate.Limit = 8
				for seen := 0; seen < objects; {
					l := list()
					want := min(most, objects-seen)
					for i, p := range l.Items {
						if p.Name != fmt.Sprint("p", seen+i) {
							t.Fatalf("object %d is %s", seen+i, p.Name)
						}
					}
					seen += len(l.Items)
					switch {
					case len(l.Items) != want:
						t.Fatalf("a page of %d objects, want %d", len(l.Items), want)
					case (l.Continue == "") != (seen == objects):
						t.Fatalf("token %q after %d objects", l.Continue, seen)
					case selector == "" && l.Continue != "" && (l.RemainingItemCount == nil || *l.RemainingItemCount != int64(objects-seen)):
						t.Fatalf("%v remain after %d objects", l.RemainingItemCount, seen)
					}
					opts.Predicate.Continue = l.Continue
				}
			})
		}
	}
}
