// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/standalone"
)

func agent(name, prompt string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "core.platform.ai/v1alpha1", "kind": "Agent",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"systemPrompt": map[string]any{"inline": prompt}},
	}}
}

func at(u *unstructured.Unstructured, path string) any {
	v, _, _ := unstructured.NestedFieldNoCopy(u.Object, strings.Split(path, ".")...)
	return v
}

// Point 6: a missing object is the typed error, with the kind and the name; a name can be used again at once.
func TestNotFoundIsTypedAndNamesCanBeReused(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	ctx, c, ok := t.Context(), s.In(t, standalone.Tasks), kit.Must[*unstructured.Unstructured](t)
	_, err := c.Get(ctx, "absent", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) || err.Error() != `tasks.core.platform.ai "absent" not found` {
		t.Errorf("get: %v", err)
	}
	status := apierrors.APIStatus(nil)
	if s, is := err.(apierrors.APIStatus); is {
		status = s
	}
	if d := status.Status().Details; d == nil || d.Name != "absent" || d.Group != "core.platform.ai" || d.Kind != "tasks" {
		t.Errorf("details: %+v", d)
	}
	if err := c.Delete(ctx, "absent", metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("delete: %v", err)
	}
	a := s.In(t, standalone.Agents)
	first := ok(a.Create(ctx, agent("again", "one"), metav1.CreateOptions{}))
	if _, err := a.Create(ctx, agent("again", "two"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("second create: %v", err)
	}
	if err := a.Delete(ctx, "again", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	second := ok(a.Create(ctx, agent("again", "two"), metav1.CreateOptions{}))
	if first.GetUID() == second.GetUID() {
		t.Error("the second object has the UID of the first")
	}
	uid := first.GetUID()
	if err := a.Delete(ctx, "again", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}); !apierrors.IsConflict(err) {
		t.Errorf("delete of the first: %v", err)
	}
}

// Point 7: only a change of spec changes the generation.
func TestGenerationFollowsSpecOnly(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	ctx, c, ok := t.Context(), s.In(t, standalone.Tasks), kit.Must[*unstructured.Unstructured](t)
	ok(c.Create(ctx, standalone.Task("a"), metav1.CreateOptions{}))
	for _, step := range []struct {
		what, patch, sub string
		generation       int64
	}{
		{"label", `{"metadata":{"labels":{"a":"b"}}}`, "", 1},
		{"annotation", `{"metadata":{"annotations":{"a":"b"}}}`, "", 1},
		{"status", `{"status":{"message":"x"},"spec":{"args":["y"]}}`, "status", 1},
		{"status by the object", `{"status":{"message":"forged"}}`, "", 1},
		{"spec", `{"spec":{"args":["x"]}}`, "", 2},
	} {
		var sub []string
		if step.sub != "" {
			sub = []string{step.sub}
		}
		got := ok(c.Patch(ctx, "a", types.MergePatchType, []byte(step.patch), metav1.PatchOptions{}, sub...))
		if got.GetGeneration() != step.generation {
			t.Errorf("%s: generation %d, want %d", step.what, got.GetGeneration(), step.generation)
		}
	}
	got := ok(c.Get(ctx, "a", metav1.GetOptions{}))
	if m := at(got, "status.message"); m != "x" {
		t.Errorf("status.message: %v", m)
	}
}

// Point 8: every kind of patch works.
func TestPatches(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	ctx, c, ok := t.Context(), s.In(t, standalone.Tasks), kit.Must[*unstructured.Unstructured](t)
	ok(c.Create(ctx, standalone.Task("a", "env", []any{map[string]any{"name": "A", "value": "1"}}), metav1.CreateOptions{}))
	for _, p := range []struct {
		kind  types.PatchType
		patch string
		path  string
		want  any
	}{
		{types.MergePatchType, `{"spec":{"priority":7}}`, "spec.priority", int64(7)},
		{types.JSONPatchType, `[{"op":"test","path":"/spec/priority","value":7},{"op":"replace","path":"/spec/priority","value":8}]`, "spec.priority", int64(8)},
		{types.StrategicMergePatchType, `{"spec":{"env":[{"name":"B","value":"2"}]}}`, "spec.env", []any{
			map[string]any{"name": "B", "value": "2"}, map[string]any{"name": "A", "value": "1"},
		}},
	} {
		got := ok(c.Patch(ctx, "a", p.kind, []byte(p.patch), metav1.PatchOptions{}))
		if d := cmp.Diff(p.want, at(got, p.path)); d != "" {
			t.Errorf("%s (-want +got):\n%s", p.kind, d)
		}
	}
	_, err := c.Patch(ctx, "a", types.JSONPatchType, []byte(`[{"op":"test","path":"/spec/priority","value":1}]`), metav1.PatchOptions{})
	if !apierrors.IsInvalid(err) {
		t.Errorf("failed test of a JSON patch: %v", err)
	}
	_, err = c.Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"prioritty":7}}`), metav1.PatchOptions{FieldValidation: "Strict"})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), `strict decoding error: unknown field "spec.prioritty"`) {
		t.Errorf("unknown field: %v", err)
	}
}

func TestServerSideApply(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	ctx, c, ok := t.Context(), s.In(t, standalone.Agents), kit.Must[*unstructured.Unstructured](t)
	opts := func(manager string) metav1.ApplyOptions { return metav1.ApplyOptions{FieldManager: manager} }
	first := ok(c.Apply(ctx, "a", agent("a", "alice"), opts("alice")))
	again := ok(c.Apply(ctx, "a", agent("a", "alice"), opts("alice")))
	if first.GetResourceVersion() != again.GetResourceVersion() {
		t.Errorf("an apply without a change was written: %s, %s", first.GetResourceVersion(), again.GetResourceVersion())
	}
	_, err := c.Apply(ctx, "a", agent("a", "bob"), opts("bob"))
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "alice": .spec.systemPrompt.inline`) {
		t.Errorf("conflict: %v", err)
	}
	got := ok(c.Apply(ctx, "a", agent("a", "bob"), metav1.ApplyOptions{FieldManager: "bob", Force: true}))
	if at(got, "spec.systemPrompt.inline") != "bob" || got.GetGeneration() != 2 {
		t.Errorf("forced: %v", got.Object)
	}
	withdrawn := agent("a", "")
	withdrawn.Object["spec"] = map[string]any{}
	if _, err = c.Apply(ctx, "a", withdrawn, opts("bob")); err != nil && !apierrors.IsInvalid(err) {
		t.Errorf("apply that withdraws the field: %v", err)
	}
}

func TestDryRunStoresNothing(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	ctx, c := t.Context(), s.In(t, standalone.Tasks)
	if _, err := c.Create(ctx, standalone.Task("a"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after a dry run: %v", err)
	}
}

func TestBadObjectsTellFieldAndRule(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	ctx, c, ok := t.Context(), s.In(t, standalone.Tasks), kit.Must[*unstructured.Unstructured](t)
	for name, tc := range map[string]struct {
		obj  *unstructured.Unstructured
		want string
	}{
		"unknown field": {standalone.Task("a", "comand", "x"), `strict decoding error: unknown field "spec.comand"`},
		"unknown value": {standalone.Task("a", "type", "robot"), `spec.type: Unsupported value: "robot": supported values: "agent", "ai", "container"`},
		"out of range":  {standalone.Task("a", "priority", int64(1001)), "spec.priority: Invalid value: 1001: must be less than or equal to 1000"},
		"wrong type":    {standalone.Task("a", "priority", "high"), "spec.priority"},
		"bad name":      {standalone.Task("A b"), "metadata.name"},
		"other kind":    {agent("a", "x"), "Agent in version"},
	} {
		_, err := c.Create(ctx, tc.obj, metav1.CreateOptions{FieldValidation: "Strict"})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
	ok(c.Create(ctx, standalone.Task("a"), metav1.CreateOptions{}))
	_, err := c.Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"type":"ai","prompt":"x"}}`), metav1.PatchOptions{})
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.type: Forbidden: field is immutable") {
		t.Errorf("immutable field: %v", err)
	}
}

// Point 3: selectors are obeyed or refused, on lists and on watches.
func TestSelectorsAreObeyedOrRefused(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	ctx, c := t.Context(), s.In(t, standalone.Tasks)
	for name, kind := range map[string]string{"a": "container", "b": "ai"} {
		u := standalone.Task(name, "type", kind, "prompt", "x")
		if kind == "ai" {
			unstructured.RemoveNestedField(u.Object, "spec", "command")
		} else {
			unstructured.RemoveNestedField(u.Object, "spec", "prompt")
		}
		u.SetLabels(map[string]string{"kind": kind})
		if _, err := c.Create(ctx, u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	names := func(o metav1.ListOptions) string {
		list, err := c.List(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, i := range list.Items {
			got = append(got, i.GetName())
		}
		return strings.Join(got, " ")
	}
	for _, tc := range []struct {
		o    metav1.ListOptions
		want string
	}{
		{metav1.ListOptions{}, "a b"},
		{metav1.ListOptions{LabelSelector: "kind=ai"}, "b"},
		{metav1.ListOptions{LabelSelector: "kind notin (ai)"}, "a"},
		{metav1.ListOptions{LabelSelector: "!kind"}, ""},
		{metav1.ListOptions{FieldSelector: "metadata.name=a"}, "a"},
		{metav1.ListOptions{FieldSelector: "spec.type=ai"}, "b"},
		{metav1.ListOptions{FieldSelector: "spec.type!=ai,metadata.namespace=default"}, "a"},
	} {
		if got := names(tc.o); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.o, got, tc.want)
		}
	}
	for _, resource := range []string{"tasks", "agents", "providers", "tools", "skills", "sessions", "executionevents"} {
		r := s.In(t, standalone.Tasks.GroupVersion().WithResource(resource))
		o := metav1.ListOptions{FieldSelector: "spec.colour=red"}
		if _, err := r.List(ctx, o); !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), "field selector") {
			t.Errorf("list of %s by an unknown field: %v", resource, err)
		}
		if _, err := r.Watch(ctx, o); !apierrors.IsBadRequest(err) {
			t.Errorf("watch of %s by an unknown field: %v", resource, err)
		}
	}
}
