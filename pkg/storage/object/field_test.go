// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

// TestRows: the rows of an indexed field are walked in the order of values, within bounds, and counted without reading objects. A new object that
// is staged is committed with the rest of its commit, or not at all.
func TestRows(t *testing.T) {
	t.Parallel()
	const field = "spec.nodeName"
	h := open(t, func(s *setup) {
		s.config.Fields = storage.IndexerFuncs{field: func(obj runtime.Object) string { return obj.(*example.Pod).Spec.NodeName }}
	})
	ctx := context.Background()
	pod := func(name, node string) *example.Pod {
		return &example.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "u"}, Spec: example.PodSpec{NodeName: node}}
	}
	stage := func(name, node string) engine.Part {
		t.Helper()
		p, err := StageNew(ctx, h.Store, "/pods/ns/"+name, pod(name, node), 0)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for i, node := range []string{"b", "a", "", "a", "ab", "c"} {
		if err := h.engine.Commit(engine.Join(engine.Grow, stage(fmt.Sprint("p", i), node))); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.engine.Commit(engine.Join(engine.Grow, stage("new", "a"), stage("p0", "a"))); !IsConflict(err) {
		t.Errorf("a commit with an object that exists: %v", err)
	}
	walk := func(from, to string, most int) (got []string) {
		t.Helper()
		err := Scan(ctx, h.Store, field, from, to, func(value string, obj runtime.Object) (bool, error) {
			got = append(got, value+" "+obj.(*example.Pod).Name)
			return len(got) < most, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for _, c := range []struct {
		from, to string
		most     int
		want     []string
	}{
		{"", "z", 9, []string{"a p1", "a p3", "ab p4", "b p0", "c p5"}},
		{"", "z", 2, []string{"a p1", "a p3"}},
		{"ab", "c", 9, []string{"ab p4", "b p0"}},
		{"d", "z", 9, nil},
	} {
		if got := walk(c.from, c.to, c.most); !slices.Equal(got, c.want) {
			t.Errorf("from %q to %q: %q, not %q", c.from, c.to, got, c.want)
		}
	}
	from, to := Only("a")
	for limit, want := range map[int]int{0: 0, 1: 1, 9: 2} {
		if n, err := Count(h.Store, field, from, to, limit); n != want || err != nil {
			t.Errorf("at most %d: %d, %v", limit, n, err)
		}
	}
	if found, err := UpTo(ctx, h.Store, field, "ab", 9); len(found) != 3 || err != nil {
		t.Errorf("up to ab: %d, %v", len(found), err)
	}
	if _, err := Count(h.Store, "other", "", "z", 1); err == nil {
		t.Error("a field without an index is counted")
	}
}

// TestWatchOfField: a watch that selects by an indexed field begins with the objects that have its value, and reads no others.
func TestWatchOfField(t *testing.T) {
	t.Parallel()
	const field = "spec.nodeName"
	h := open(t, func(s *setup) {
		s.config.Fields = storage.IndexerFuncs{field: func(obj runtime.Object) string { return obj.(*example.Pod).Spec.NodeName }}
		s.db.ObjectCacheBytes = -1
	})
	ctx := testContext(t)
	for i := range 20 {
		p := pod(fmt.Sprintf("p%02d", i))
		p.Spec.NodeName = []string{"a", "b", "", "c", "d"}[i%5]
		if err := h.Create(ctx, podKey(p.Name), p, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	h.reads(t, 0, 0)
	w, err := h.Watch(ctx, "/pods/", storage.ListOptions{
		ResourceVersion: "0", Recursive: true, Predicate: storage.SelectionPredicate{
			Label: labels.Everything(), Field: fields.OneTermEqualSelector(field, "b"), GetAttrs: podAttrs,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for _, want := range []string{"p01", "p06", "p11", "p16"} {
		if e := <-w.ResultChan(); e.Type != watch.Added || nameOf(t, e.Object) != want {
			t.Errorf("%s %s, not %s", e.Type, nameOf(t, e.Object), want)
		}
	}
	h.reads(t, 0, 4)
}

func nameOf(t *testing.T, obj runtime.Object) string {
	t.Helper()
	if shared, ok := obj.(runtime.CacheableObject); ok {
		obj = shared.GetObject()
	}
	o, err := meta.Accessor(obj)
	if err != nil {
		t.Fatal(err)
	}
	return o.GetName()
}

// TestTimesThatCannotBeRead: an object that could not be read again is not stored, and a text that only looks like a time is.
func TestTimesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	h := open(t)
	ctx := testContext(t)
	east, west := time.FixedZone("", 3600), time.FixedZone("", -3600)
	for name, at := range map[string]time.Time{"late": time.Date(9999, 12, 31, 23, 59, 59, 0, west), "early": time.Date(0, 1, 1, 0, 0, 0, 0, east)} {
		p := pod(name)
		p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m", Operation: metav1.ManagedFieldsOperationUpdate, Time: &metav1.Time{Time: at}}}
		if err := h.Create(ctx, podKey(name), p, nil, 0); !apierrors.IsBadRequest(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := pod("text")
	p.Annotations = map[string]string{"a": "10000-", "b": "-0001-"}
	if err := h.Create(ctx, podKey("text"), p, nil, 0); err != nil {
		t.Error(err)
	}
	err := h.GuaranteedUpdate(ctx, podKey("text"), &example.Pod{}, false, nil, storage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
		obj.(*example.Pod).CreationTimestamp = metav1.NewTime(time.Date(9999, 12, 31, 23, 59, 59, 0, west))
		return obj, nil
	}), nil)
	if !apierrors.IsBadRequest(err) {
		t.Errorf("an update: %v", err)
	}
	var list example.PodList
	if err := h.GetList(ctx, "/pods/", storage.ListOptions{Recursive: true, Predicate: storage.Everything}, &list); err != nil || len(list.Items) != 1 {
		t.Errorf("%d objects, %v", len(list.Items), err)
	}
}
