// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/randfill"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	return s
}

// fill makes an object with random fields, some of them absent.
func fill(obj runtime.Object, seed int64, nils float64) {
	randfill.NewWithSeed(seed).NilChance(nils).NumElements(0, 2).Funcs(
		func(j *apiextensionsv1.JSON, _ randfill.Continue) { j.Raw = []byte(`{"a":{"b":[{"c":1}]}}`) },
		func(m *metav1.ObjectMeta, _ randfill.Continue) { m.Name = "a" },
		func(m *metav1.FieldsV1, _ randfill.Continue) {},
	).Fill(obj)
}

// Generated code follows tags; a tag that is missing on one optional field makes
// validation panic on objects without it.
func TestValidationTakesEveryShape(t *testing.T) {
	s := newScheme(t)
	for _, obj := range v1alpha1.KnownTypes() {
		if strings.HasSuffix(reflect.TypeOf(obj).Elem().Name(), "List") {
			continue
		}
		for seed := range int64(60) {
			created := obj.DeepCopyObject()
			fill(created, seed, []float64{0, 0.5, 1}[seed%3])
			s.Default(created)
			_ = s.Validate(t.Context(), nil, created)
			old := obj.DeepCopyObject()
			fill(old, seed+1000, []float64{1, 0.5, 0}[seed%3])
			_ = s.ValidateUpdate(t.Context(), nil, created, old)
			if _, ok := created.(*v1alpha1.ExecutionEvent); !ok {
				_ = s.ValidateUpdate(t.Context(), nil, created, old, "status")
			}
		}
	}
}

// A strategic merge patch looks for the members of a JSON value in its Go type, which has none: each such field must be replaced as
// a whole.
func TestStrategicMergePatchTakesEveryField(t *testing.T) {
	for _, obj := range v1alpha1.KnownTypes() {
		fill(obj, 1, 0)
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			t.Fatal(err)
		}
		was := runtime.DeepCopyJSON(content)
		got, err := strategicpatch.StrategicMergeMapPatch(content, runtime.DeepCopyJSON(content), obj)
		if err != nil {
			t.Errorf("%T: %v", obj, err)
		} else if diff := cmp.Diff(strategicpatch.JSONMap(was), got); diff != "" {
			t.Errorf("%T patched with itself is another object: %s", obj, diff)
		}
	}
}

func TestAbsentAndEmptyListsDiffer(t *testing.T) {
	c := runtime.DefaultUnstructuredConverter
	for _, tools := range [][]string{nil, {}} {
		u, err := c.ToUnstructured(&v1alpha1.TaskAgentRuntime{AllowedTools: tools})
		if err != nil {
			t.Fatal(err)
		}
		if _, there := u["allowedTools"]; there != (tools != nil) {
			t.Errorf("%#v: %v", tools, u)
		}
		var back v1alpha1.TaskAgentRuntime
		if err := c.FromUnstructured(u, &back); err != nil {
			t.Fatal(err)
		}
		if (back.AllowedTools == nil) != (tools == nil) {
			t.Errorf("%#v came back as %#v", tools, back.AllowedTools)
		}
	}
}
