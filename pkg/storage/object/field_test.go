// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
