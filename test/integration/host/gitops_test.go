// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// examples are the manifests of artifacts/examples that can be applied to a standalone server: neither what is only created, nor what is
// not of this group.
func examples(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	return host.Manifests(t, filepath.Join("..", "..", "..", "artifacts", "examples"), "create", "cluster", "identity")
}

// resourceOf returns a client of the object's resource.
func resourceOf(s *standalone.Server, t *testing.T, u *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	groups, err := restmapper.GetAPIGroupResources(s.Kubernetes(t).Discovery())
	if err != nil {
		t.Fatal(err)
	}
	gvk := u.GroupVersionKind()
	m, err := restmapper.NewDiscoveryRESTMapper(groups).RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		t.Fatal(err)
	}
	if m.Scope.Name() == "root" {
		return s.Dynamic(t).Resource(m.Resource)
	}
	return s.Dynamic(t).Resource(m.Resource).Namespace("default")
}

// TestApplyingAgainChangesNothing: two managers that apply an unchanged manifest again and again write once each, and never
// meet a conflict.
func TestApplyingAgainChangesNothing(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	s := standalone.Start(t)
	for _, u := range examples(t) {
		name := u.GetKind() + " " + u.GetName()
		c, data := resourceOf(s, t, u), kit.Must[[]byte](t)(u.MarshalJSON())
		version, status := "", any(nil)
		for i := range 6 { // each of two managers, when it adds its fields and when it repeats them
			now, err := c.Patch(t.Context(), u.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: []string{"flux", "argo"}[i%2]})
			switch {
			case err != nil:
				t.Fatalf("%s, apply %d: %v", name, i, err)
			case i > 1 && now.GetResourceVersion() != version && equality.Semantic.DeepEqual(now.Object["status"], status): // the server itself writes a status
				t.Fatalf("%s: apply %d wrote", name, i)
			}
			version, status = now.GetResourceVersion(), now.Object["status"]
		}
	}
}

// optional calls f with each optional field of a struct that holds a text, a number or a truth and that the stored form leaves out if
// it is zero, and with that zero. It goes into the structs that the content has, and into the first elements of its lists.
func optional(of reflect.Type, content map[string]any, path string, f func(path string, in map[string]any, name string, zero any)) {
	for field := range of.Fields() {
		name, tag, _ := strings.Cut(field.Tag.Get("json"), ",")
		typ := field.Type
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		} else if zero := zeroOf(typ.Kind()); zero != nil && strings.Contains(tag, "omitempty") {
			f(path+"."+name, content, name, zero)
		}
		switch inner := content[name].(type) {
		case map[string]any:
			if typ.Kind() == reflect.Struct {
				optional(typ, inner, path+"."+name, f)
			}
		case []any:
			if element, ok := inner[0].(map[string]any); ok && typ.Kind() == reflect.Slice && typ.Elem().Kind() == reflect.Struct {
				optional(typ.Elem(), element, path+"."+name, f)
			}
		}
	}
}

func zeroOf(k reflect.Kind) any {
	switch k {
	case reflect.String:
		return ""
	case reflect.Bool:
		return false
	case reflect.Int, reflect.Int32, reflect.Int64:
		return int64(0)
	}
	return nil
}

// TestManagersAgreeOnZeroEverywhere: in each optional field of the kinds that are stored, two managers may apply its zero value, with
// and without force, and nothing is written again.
func TestManagersAgreeOnZeroEverywhere(t *testing.T) {
	kit.Needs(t, kit.Minutes)
	t.Parallel()
	s := standalone.Start(t)
	known := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(known); err != nil {
		t.Fatal(err)
	}
	agreed, seen := 0, map[string]bool{}
	for _, u := range examples(t) {
		of, ok := known.AllKnownTypes()[u.GroupVersionKind()]
		if !ok {
			continue
		}
		c := resourceOf(s, t, u)
		spec, _ := of.FieldByName("Spec")
		content, _ := u.Object["spec"].(map[string]any)
		optional(spec.Type, content, u.GetKind()+".spec", func(path string, in map[string]any, name string, zero any) {
			if _, given := in[name]; given || seen[path] {
				return
			}
			seen[path], in[name] = true, zero
			defer delete(in, name)
			data, version := kit.Must[[]byte](t)(u.MarshalJSON()), ""
			for i, by := range []string{"flux", "argo", "flux", "argo", "flux"} {
				now, err := c.Patch(t.Context(), u.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: by, Force: new(i > 2)})
				switch {
				case i == 0 && (apierrors.IsInvalid(err) || apierrors.IsForbidden(err)):
					return
				case err != nil:
					t.Errorf("%s: %s, apply %d: %v", path, by, i, err)
					return
				case i > 1 && now.GetResourceVersion() != version:
					t.Errorf("%s: %s, apply %d wrote", path, by, i)
				}
				version = now.GetResourceVersion()
			}
			agreed++
		})
	}
	t.Logf("%d of %d fields accept their zero", agreed, len(seen))
	if agreed < 50 {
		t.Errorf("%d fields were tried, too few to show anything", agreed)
	}
}

// TestDurationsStayAsWritten: in every kind that has one.
func TestDurationsStayAsWritten(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	ctx, ok := t.Context(), kit.Must[*unstructured.Unstructured](t)
	c := s.In(t, standalone.Tasks)
	made := ok(c.Create(ctx, standalone.Task("a", "timeout", "10m", "retryPolicy.initialDelay", "90s"), metav1.CreateOptions{}))
	read := ok(c.Get(ctx, "a", metav1.GetOptions{}))
	for _, u := range []*unstructured.Unstructured{made, read} {
		if at(u, "spec.timeout") != "10m" || at(u, "spec.retryPolicy.initialDelay") != "90s" {
			t.Errorf("spec: %v", at(u, "spec"))
		}
	}
	for value, want := range map[string]string{"soon": `spec.timeout: Invalid value: "soon": must be a duration, such as 90s`, "-1s": "spec.timeout: Invalid value: \"-1s\": must be greater than zero"} {
		if _, err := c.Create(ctx, standalone.Task("b", "timeout", value), metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// TestListsMergeByName: a strategic merge patch, as kubectl sends it, changes one tool of an agent, as server-side apply does.
func TestListsMergeByName(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	ctx, ok, c := t.Context(), kit.Must[*unstructured.Unstructured](t), s.In(t, standalone.Agents)
	a := agent("a", "hello")
	tools := []any{map[string]any{"name": "web_fetch"}, map[string]any{"name": "web_search"}}
	if err := unstructured.SetNestedSlice(a.Object, tools, "spec", "tools"); err != nil {
		t.Fatal(err)
	}
	ok(c.Create(ctx, a, metav1.CreateOptions{}))
	const one = `{"apiVersion":"core.platform.ai/v1alpha1","kind":"Agent","metadata":{"name":"a"},"spec":{"tools":[{"name":"%s","enabled":false}]}}`
	ok(c.Patch(ctx, "a", types.StrategicMergePatchType, []byte(strings.ReplaceAll(one, "%s", "web_fetch")), metav1.PatchOptions{}))
	now := ok(c.Patch(ctx, "a", types.ApplyPatchType, []byte(strings.ReplaceAll(one, "%s", "code_exec")), metav1.PatchOptions{FieldManager: "flux"}))
	got := map[any]any{}
	for _, tool := range at(now, "spec.tools").([]any) {
		m := tool.(map[string]any)
		got[m["name"]] = m["enabled"]
	}
	if len(got) != 3 || got["web_fetch"] != false || got["web_search"] != true || got["code_exec"] != false {
		t.Errorf("tools: %v", got)
	}
}

// TestEmptyWarnPercent: an empty list, which is not stored, means the same in each write: the default.
func TestEmptyWarnPercent(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	ctx, ok, c := t.Context(), kit.Must[*unstructured.Unstructured](t), s.In(t, standalone.Agents.GroupVersion().WithResource("budgets"))
	const budget = `{"apiVersion":"core.platform.ai/v1alpha1","kind":"Budget","metadata":{"name":"a"},"spec":{"limit":{"tokens":1},"window":"day","warnPercent":[]}}`
	made := ok(c.Patch(ctx, "a", types.ApplyPatchType, []byte(budget), metav1.PatchOptions{FieldManager: "flux"}))
	put := ok(c.Update(ctx, made.DeepCopy(), metav1.UpdateOptions{}))
	if put.GetResourceVersion() != made.GetResourceVersion() || !equality.Semantic.DeepEqual(at(made, "spec.warnPercent"), []any{int64(80)}) {
		t.Errorf("a PUT of what was read wrote %v in place of %v", at(put, "spec"), at(made, "spec"))
	}
}
