// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

var (
	widgetsGVR = widgetGV.WithResource("widgets")
	notesGVR   = widgetGV.WithResource("notes")
)

func widgetDefinition() *resource.Definition[*Widget] {
	return &resource.Definition[*Widget]{
		Unguarded: true,
		Resource:  widgetsGVR, Kind: "Widget", Singular: "widget", ShortNames: []string{"wd"}, Categories: []string{"kit"},
		Fields: []resource.Field[*Widget]{
			{Path: "spec.colour", Value: func(w *Widget) string { return w.Spec.Colour }},
			{Path: "status.phase", Value: func(w *Widget) string { return w.Status.Phase }},
		},
		Columns: []resource.Column[*Widget]{
			{Name: "Colour", Description: "the colour", Value: func(w *Widget) any { return w.Spec.Colour }},
			{Name: "Size", Type: "integer", Wide: true, Value: func(w *Widget) any { return w.Spec.Size }},
		},
		Shape: resource.Kept[*Widget]{
			Default: func(w *Widget) {
				if w.Spec.Colour == "" {
					w.Spec.Colour = "white"
				}
			},
			Validate: func(_ context.Context, w *Widget) field.ErrorList {
				if w.Spec.Colour == "black" && w.Spec.Size > 5 {
					return field.ErrorList{field.Invalid(field.NewPath("spec", "size"), w.Spec.Size, "a black widget is at most 5")}
				}
				return nil
			},
			Frozen: []resource.Frozen[*Widget]{{Path: field.NewPath("spec", "kind"), Value: func(w *Widget) any { return w.Spec.Kind }}},
		},
	}
}

func noteDefinition() *resource.Definition[*Note] {
	return &resource.Definition[*Note]{
		Unguarded: true,
		Resource:  notesGVR, Kind: "Note", Singular: "note", ClusterScoped: true,
		Shape: resource.Kept[*Note]{UnconditionalUpdate: true},
	}
}

func newObject(kind, name string, content map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}}}
	maps.Copy(u.Object, content)
	u.SetGroupVersionKind(widgetGV.WithKind(kind))
	return u
}

func client(t *testing.T, c *rest.Config, gvr schema.GroupVersionResource) dynamic.ResourceInterface {
	t.Helper()
	d, err := dynamic.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	if gvr == notesGVR {
		return d.Resource(gvr)
	}
	return d.Resource(gvr).Namespace("default")
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func str(u *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(u.Object, path...)
	return s
}

// Only a change of Spec increments the generation.
func TestGenerationFollowsSpecOnly(t *testing.T) {
	ctx, c := t.Context(), client(t, serve(t, widgetDefinition()), widgetsGVR)
	ok := must[*unstructured.Unstructured](t)
	w := ok(c.Create(ctx, newObject("Widget", "a", map[string]any{
		"spec": map[string]any{"size": int64(1)}, "status": map[string]any{"phase": "Forged"},
	}), metav1.CreateOptions{}))
	if w.GetGeneration() != 1 || str(w, "status", "phase") != "" || str(w, "spec", "colour") != "white" {
		t.Fatalf("created: generation %d, %v", w.GetGeneration(), w.Object)
	}
	steps := []struct {
		name, patch, sub string
		generation       int64
	}{
		{"label", `{"metadata":{"labels":{"a":"b"}}}`, "", 1},
		{"annotation", `{"metadata":{"annotations":{"a":"b"}}}`, "", 1},
		{"status", `{"status":{"phase":"Ready"},"spec":{"size":9},"metadata":{"labels":{"a":"z"}}}`, "status", 1},
		{"same spec", `{"spec":{"size":1}}`, "", 1},
		{"status by the main resource", `{"status":{"phase":"Forged"}}`, "", 1},
		{"generation itself", `{"metadata":{"generation":7}}`, "", 1},
		{"spec", `{"spec":{"size":2}}`, "", 2},
	}
	for _, s := range steps {
		var subs []string
		if s.sub != "" {
			subs = []string{s.sub}
		}
		w = ok(c.Patch(ctx, "a", types.MergePatchType, []byte(s.patch), metav1.PatchOptions{}, subs...))
		if w.GetGeneration() != s.generation {
			t.Errorf("after a patch of %s: generation %d, want %d", s.name, w.GetGeneration(), s.generation)
		}
	}
	size, _, _ := unstructured.NestedInt64(w.Object, "spec", "size")
	if str(w, "status", "phase") != "Ready" || w.GetLabels()["a"] != "b" || size != 2 {
		t.Errorf("at the end: %v", w.Object)
	}
}

// A write to the status adds the one finalizer that it may add, removes none, and adds none to an object that is being
// deleted.
func TestFinalizerThroughTheStatus(t *testing.T) {
	const may, other = "kit.test/may", "kit.test/other"
	d := widgetDefinition()
	kept := d.Shape.(resource.Kept[*Widget])
	kept.StatusFinalizer = may
	d.Shape = kept
	ctx, c := t.Context(), client(t, serve(t, d), widgetsGVR)
	ok := must[*unstructured.Unstructured](t)
	write := func(name, patch string, want ...string) {
		t.Helper()
		w := ok(c.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"))
		if d := cmp.Diff(want, w.GetFinalizers()); d != "" {
			t.Errorf("finalizers of %s after %s (-want +got):\n%s", name, patch, d)
		}
	}
	ok(c.Create(ctx, newObject("Widget", "a", nil), metav1.CreateOptions{}))
	write("a", `{"metadata":{"finalizers":["`+other+`"]},"status":{"phase":"1"}}`)
	write("a", `{"metadata":{"finalizers":["`+other+`","`+may+`"]},"status":{"phase":"2"}}`, may)
	write("a", `{"metadata":{"finalizers":null},"status":{"phase":"3"}}`, may)
	held := newObject("Widget", "held", nil)
	held.SetFinalizers([]string{other})
	ok(c.Create(ctx, held, metav1.CreateOptions{}))
	if err := c.Delete(ctx, "held", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	write("held", `{"metadata":{"finalizers":["`+other+`","`+may+`"]},"status":{"phase":"1"}}`, other)
}

func TestKindWithoutSpecHasNoGenerationAndNoStatus(t *testing.T) {
	ctx, cfg := t.Context(), serve(t, noteDefinition())
	c := client(t, cfg, notesGVR)
	ok := must[*unstructured.Unstructured](t)
	n := ok(c.Create(ctx, newObject("Note", "n", map[string]any{"text": "one"}), metav1.CreateOptions{}))
	n.Object["text"] = "two"
	n.SetResourceVersion("")
	n = ok(c.Update(ctx, n, metav1.UpdateOptions{}))
	if n.GetGeneration() != 0 || str(n, "text") != "two" {
		t.Errorf("updated without a resourceVersion: %v", n.Object)
	}
	if _, err := c.Get(ctx, "n", metav1.GetOptions{}, "status"); !apierrors.IsNotFound(err) {
		t.Errorf("notes/status: %v", err)
	}
}

// A selector on a field that is not selectable is refused.
func TestUnknownFieldSelectorIsRefused(t *testing.T) {
	ctx, c := t.Context(), client(t, serve(t, widgetDefinition()), widgetsGVR)
	for name, colour := range map[string]string{"a": "red", "b": "blue"} {
		if _, err := c.Create(ctx, newObject("Widget", name, map[string]any{"spec": map[string]any{"colour": colour}}), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	list, err := c.List(ctx, metav1.ListOptions{FieldSelector: "spec.colour=red"})
	if err != nil || len(list.Items) != 1 || list.Items[0].GetName() != "a" {
		t.Errorf("red widgets: %v, %v", list, err)
	}
	_, err = c.List(ctx, metav1.ListOptions{FieldSelector: "spec.size=1"})
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), `"spec.size" is not a known field selector of widgets: only metadata.name, metadata.namespace, spec.colour, status.phase`) {
		t.Errorf("selector on an unknown field: %v", err)
	}
	if _, err = c.Watch(ctx, metav1.ListOptions{FieldSelector: "nope=1"}); !apierrors.IsBadRequest(err) {
		t.Errorf("watch with an unknown selector: %v", err)
	}
}

func TestValidationTellsFieldAndRule(t *testing.T) {
	ctx, c := t.Context(), client(t, serve(t, widgetDefinition()), widgetsGVR)
	ok := must[*unstructured.Unstructured](t)
	create := func(name string, spec map[string]any) error {
		_, err := c.Create(ctx, newObject("Widget", name, map[string]any{"spec": spec}), metav1.CreateOptions{FieldValidation: "Strict"})
		return err
	}
	for _, tc := range []struct {
		err  error
		code int32
		want string
	}{
		{create("x", map[string]any{"size": int64(11)}), http.StatusUnprocessableEntity, `Widget.kit.test "x" is invalid: spec.size: Invalid value: 11: must be less than or equal to 10`},
		{create("x", map[string]any{"size": int64(6), "colour": "black"}), http.StatusUnprocessableEntity, "spec.size: Invalid value: 6: a black widget is at most 5"},
		{create("x", map[string]any{"sise": int64(6)}), http.StatusBadRequest, `strict decoding error: unknown field "spec.sise"`},
		{create("X", nil), http.StatusUnprocessableEntity, "metadata.name: Invalid value: \"X\": a lowercase RFC 1123 subdomain"},
	} {
		if tc.err == nil || !strings.Contains(tc.err.Error(), tc.want) || code(tc.err) != tc.code {
			t.Errorf("got %d %v\nwant %d %s", code(tc.err), tc.err, tc.code, tc.want)
		}
	}
	ok(c.Create(ctx, newObject("Widget", "a", map[string]any{"spec": map[string]any{"kind": "one"}}), metav1.CreateOptions{}))
	_, err := c.Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"kind":"two"}}`), metav1.PatchOptions{})
	want := `Widget.kit.test "a" is invalid: spec.kind: Invalid value: "two": field is immutable`
	if !apierrors.IsInvalid(err) || err.Error() != want {
		t.Errorf("frozen field: %v\nwant %s", err, want)
	}
	w := ok(c.Get(ctx, "a", metav1.GetOptions{}))
	w.SetResourceVersion("")
	if _, err := c.Update(ctx, w, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("update without a resourceVersion: %v", err)
	}
}

func code(err error) int32 {
	if s, ok := err.(apierrors.APIStatus); ok {
		return s.Status().Code
	}
	return 0
}

func TestApplyOwnsWhatItSet(t *testing.T) {
	ctx, c := t.Context(), client(t, serve(t, widgetDefinition()), widgetsGVR)
	ok := must[*unstructured.Unstructured](t)
	apply := func(manager, body string, sub ...string) (*unstructured.Unstructured, error) {
		return c.Patch(ctx, "a", types.ApplyPatchType, []byte(`{"apiVersion":"kit.test/v1","kind":"Widget","metadata":{"name":"a"},`+body+`}`),
			metav1.PatchOptions{FieldManager: manager}, sub...)
	}
	ok(apply("one", `"spec":{"size":1},"status":{"phase":"Forged"}`))
	_, err := apply("two", `"spec":{"size":2}`)
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "one"`) || !strings.Contains(err.Error(), ".spec.size") {
		t.Errorf("conflict: %v", err)
	}
	w := ok(apply("ctl", `"status":{"phase":"Ready"},"spec":{"size":3}`, "status"))
	got := map[string]string{}
	for _, m := range w.GetManagedFields() {
		got[m.Manager] = string(m.FieldsV1.Raw)
	}
	want := map[string]string{"one": `{"f:spec":{"f:size":{}}}`, "ctl": `{"f:status":{"f:phase":{}}}`}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("owners (-want +got):\n%s", d)
	}
	if _, err := apply("ctl", `"status":{"phase":"Ready"}`, "nosuch"); !apierrors.IsNotFound(err) {
		t.Errorf("unknown subresource: %v", err)
	}
}

func TestDryRunChangesNothing(t *testing.T) {
	ctx, c := t.Context(), client(t, serve(t, widgetDefinition()), widgetsGVR)
	dry := []string{metav1.DryRunAll}
	if _, err := c.Create(ctx, newObject("Widget", "a", nil), metav1.CreateOptions{DryRun: dry}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("after a dry run: %v", err)
	}
	must[*unstructured.Unstructured](t)(c.Create(ctx, newObject("Widget", "a", nil), metav1.CreateOptions{}))
	if err := c.Delete(ctx, "a", metav1.DeleteOptions{DryRun: dry}); err != nil {
		t.Fatal(err)
	}
	must[*unstructured.Unstructured](t)(c.Get(ctx, "a", metav1.GetOptions{}))
}

func TestAfterDeleteRunsOnceWhenTheObjectIsGone(t *testing.T) {
	gone := make(chan string, 10)
	d := widgetDefinition()
	kept := d.Shape.(resource.Kept[*Widget])
	kept.AfterDelete = func(_ context.Context, w *Widget) { gone <- w.Name }
	kept.Deleting = func(w *Widget) { w.Status.Phase = "Terminating" }
	d.Shape = kept
	ctx, c := t.Context(), client(t, serve(t, d), widgetsGVR)
	ok := must[*unstructured.Unstructured](t)
	w := newObject("Widget", "held", nil)
	w.SetFinalizers([]string{"kit.test/hold"})
	ok(c.Create(ctx, w, metav1.CreateOptions{}))
	ok(c.Create(ctx, newObject("Widget", "free", nil), metav1.CreateOptions{}))
	for _, name := range []string{"held", "free"} {
		if err := c.Delete(ctx, name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Delete(ctx, "held", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if w = ok(c.Get(ctx, "held", metav1.GetOptions{})); w.GetDeletionTimestamp() == nil || str(w, "status", "phase") != "Terminating" {
		t.Errorf("while it is deleted: %v", w.Object)
	}
	if err := c.Delete(ctx, "free", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	ok(c.Patch(ctx, "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}))
	close(gone)
	var names []string
	for n := range gone {
		names = append(names, n)
	}
	if d := cmp.Diff([]string{"free", "held"}, names); d != "" {
		t.Errorf("AfterDelete (-want +got):\n%s", d)
	}
}

func TestValidateDeleteHoldsForEveryDeletion(t *testing.T) {
	d := widgetDefinition()
	kept := d.Shape.(resource.Kept[*Widget])
	kept.ValidateDelete = func(_ context.Context, w *Widget) error {
		if w.Labels["busy"] != "" {
			return apierrors.NewConflict(widgetsGVR.GroupResource(), w.Name, errors.New("it is busy"))
		}
		return nil
	}
	d.Shape = kept
	ctx, c := t.Context(), client(t, serve(t, d), widgetsGVR)
	ok := must[*unstructured.Unstructured](t)
	for name, finalizers := range map[string][]string{"busy": nil, "busy-held": {"kit.test/hold"}, "free": nil} {
		w := newObject("Widget", name, nil)
		w.SetFinalizers(finalizers)
		if name != "free" {
			w.SetLabels(map[string]string{"busy": "yes"})
		}
		ok(c.Create(ctx, w, metav1.CreateOptions{}))
	}
	refused := func(what string, err error) {
		t.Helper()
		if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "it is busy") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, name := range []string{"busy", "busy-held"} {
		refused(name, c.Delete(ctx, name, metav1.DeleteOptions{}))
		refused(name+", dry run", c.Delete(ctx, name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}))
		if w := ok(c.Get(ctx, name, metav1.GetOptions{})); w.GetDeletionTimestamp() != nil {
			t.Errorf("%s is being deleted", name)
		}
	}
	refused("collection", c.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	if err := c.Delete(ctx, "free", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	for _, name := range []string{"busy", "busy-held"} {
		ok(c.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"labels":null}}`), metav1.PatchOptions{}))
	}
	if err := c.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}
