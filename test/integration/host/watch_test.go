// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// next returns the next event, in words.
func next(t *testing.T, w watch.Interface) (watch.Event, string) {
	t.Helper()
	select {
	case e, ok := <-w.ResultChan():
		if !ok {
			t.Fatal("the watch ended")
		}
		u, is := e.Object.(*unstructured.Unstructured)
		if !is {
			t.Fatalf("%s %T: %v", e.Type, e.Object, apierrors.FromObject(e.Object))
		}
		return e, fmt.Sprintf("%s %s %v", e.Type, u.GetName(), at(u, "spec.systemPrompt.inline"))
	case <-t.Context().Done():
		t.Fatal("the test ended before the next event")
	}
	return watch.Event{}, ""
}

// Point 2: a watch that resumes from a resourceVersion gets exactly what came after it, also from a restarted server.
func TestWatchResumesExactly(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	ctx, c, ok := t.Context(), s.In(t, standalone.Agents), kit.Must[*unstructured.Unstructured](t)
	var versions, want []string
	for i := range 20 {
		name := fmt.Sprintf("a%02d", i)
		versions = append(versions, ok(c.Create(ctx, agent(name, "x"), metav1.CreateOptions{})).GetResourceVersion())
		want = append(want, "ADDED "+name+" x")
	}
	ok(c.Patch(ctx, "a03", types.MergePatchType, []byte(`{"spec":{"systemPrompt":{"inline":"y"}}}`), metav1.PatchOptions{}))
	if err := c.Delete(ctx, "a04", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	want = append(want, "MODIFIED a03 y", "DELETED a04 x")
	check := func(when string) {
		c := s.In(t, standalone.Agents)
		for _, from := range []int{0, 7, 19} {
			w, err := c.Watch(ctx, metav1.ListOptions{ResourceVersion: versions[from]})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for range want[from+1:] {
				_, text := next(t, w)
				got = append(got, text)
			}
			w.Stop()
			if d := cmp.Diff(want[from+1:], got); d != "" {
				t.Errorf("%s, from %d (-want +got):\n%s", when, from, d)
			}
		}
	}
	check("same server")
	s.Restart(t)
	check("after a restart")
	_, err := s.In(t, standalone.Agents).List(ctx, metav1.ListOptions{ResourceVersion: "1000000000"})
	if !apierrors.IsTimeout(err) || !strings.Contains(err.Error(), "Too large resource version") {
		t.Errorf("list from the future: %v", err)
	}
}

// Point 4: a watch with initial events gets each object once, then one bookmark that marks their end, and no second one.
func TestInitialEventsEndOnce(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t, standalone.ManyBookmarks)
	ctx, c, ok := t.Context(), s.In(t, standalone.Agents), kit.Must[*unstructured.Unstructured](t)
	for _, name := range []string{"a", "b", "c"} {
		ok(c.Create(ctx, agent(name, "x"), metav1.CreateOptions{}))
	}
	w, err := c.Watch(ctx, metav1.ListOptions{
		SendInitialEvents: new(true), AllowWatchBookmarks: true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	var got []string
	ends, later := 0, 0
	for later < 3 { // bookmarks after the last change
		e := <-w.ResultChan()
		u, is := e.Object.(*unstructured.Unstructured)
		if !is {
			t.Fatalf("%s %v", e.Type, e.Object)
		}
		if e.Type != watch.Bookmark {
			got = append(got, string(e.Type)+" "+u.GetName())
			continue
		}
		if len(got) == 4 {
			later++
		}
		if u.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			if ends++; ends == 1 {
				ok(c.Create(ctx, agent("d", "x"), metav1.CreateOptions{}))
			}
		}
	}
	if d := cmp.Diff([]string{"ADDED a", "ADDED b", "ADDED c", "ADDED d"}, got); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	if ends != 1 {
		t.Errorf("%d bookmarks ended the initial events", ends)
	}
}

// Point 5: DELETED carries the last state of the object, with the revision of the deletion, also when the object stops
// matching the watch's selector.
func TestDeletedCarriesTheLastObject(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	ctx, c, ok := t.Context(), s.In(t, standalone.Agents), kit.Must[*unstructured.Unstructured](t)
	a := agent("a", "first")
	a.SetLabels(map[string]string{"team": "red"})
	created := ok(c.Create(ctx, a, metav1.CreateOptions{}))
	from := metav1.ListOptions{ResourceVersion: created.GetResourceVersion()}
	all, err := c.Watch(ctx, from)
	if err != nil {
		t.Fatal(err)
	}
	defer all.Stop()
	from.LabelSelector = "team=red"
	red, err := c.Watch(ctx, from)
	if err != nil {
		t.Fatal(err)
	}
	defer red.Stop()
	updated := ok(c.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"team":"blue"}},"spec":{"systemPrompt":{"inline":"last"}}}`), metav1.PatchOptions{}))
	if err := c.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, got := next(t, red); got != "DELETED a first" {
		t.Errorf("object that left the selector: %s", got)
	}
	if _, got := next(t, all); got != "MODIFIED a last" {
		t.Errorf("update: %s", got)
	}
	e, got := next(t, all)
	last := e.Object.(*unstructured.Unstructured)
	if got != "DELETED a last" || last.GetUID() != created.GetUID() || len(last.GetManagedFields()) == 0 {
		t.Errorf("delete: %s %v", got, last.Object)
	}
	if last.GetResourceVersion() <= updated.GetResourceVersion() && len(last.GetResourceVersion()) == len(updated.GetResourceVersion()) {
		t.Errorf("revision of the delete %s, of the last write %s", last.GetResourceVersion(), updated.GetResourceVersion())
	}
}

// Point 1: a watcher that does not read loses nothing: it gets every change in order, or its watch ends with an error
// and resuming gives the rest.
func TestSlowWatcherMissesNothing(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	s := standalone.Start(t)
	ctx, c, ok := t.Context(), s.In(t, standalone.Agents), kit.Must[*unstructured.Unstructured](t)
	first := ok(c.Create(ctx, agent("a", strings.Repeat("x", 64<<10)), metav1.CreateOptions{}))
	w, err := c.Watch(ctx, metav1.ListOptions{ResourceVersion: first.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	const writes = 200 // of 64 KiB: more than the connection buffers
	for i := range writes {
		ok(c.Patch(ctx, "a", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"n":"%d"}}}`, i), metav1.PatchOptions{}))
	}
	version := first.GetResourceVersion()
	for n := 0; n < writes; {
		e, open := <-w.ResultChan()
		u, is := e.Object.(*unstructured.Unstructured)
		if !open || !is {
			if w, err = c.Watch(ctx, metav1.ListOptions{ResourceVersion: version}); err != nil {
				t.Fatalf("resume after %d: %v", n, err)
			}
			continue
		}
		if got := u.GetAnnotations()["n"]; got != fmt.Sprint(n) {
			t.Fatalf("change %s arrived, want %d", got, n)
		}
		version = u.GetResourceVersion()
		n++
	}
	w.Stop()
}
