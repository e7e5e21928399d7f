// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package core_test

import (
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/auth/external"
)

// TestSameJSONIsNoChange: JSON that a client wrote otherwise, with spaces, other escapes, another order of keys or other forms of the
// same numbers, is what is stored: an immutable field accepts it, the generation stays, and nothing is written. Another digit is a change.
func TestSameJSONIsNoChange(t *testing.T) {
	t.Parallel()
	s := start(t)
	const stored = `{"b":[1,1972435959496572929],"a":"<x>"}`
	const identity = v1alpha1.GroupName + "/auth-"
	bearer := s.As("txn:u", map[string][]string{
		identity + "type": {external.TypeContextToken}, identity + "namespace": {"default"}, identity + "transaction-id": {"1"}, identity + "transaction-context": {stored},
	})
	task, err := s.Decode(`{"apiVersion":"core.platform.ai/v1alpha1","kind":"Task","metadata":{"name":"t","finalizers":["example.com/x"]},"spec":{"type":"container"}}`)
	if err == nil {
		_, err = s.Create(bearer, "tasks", task)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.MustApply("tools", `{"apiVersion":"core.platform.ai/v1alpha1","kind":"Tool","metadata":{"name":"t"},"spec":{"description":"d","http":{"url":"https://h/"},"parameters":{"type":"object","x-note":`+stored+`}}}`)
	for raw, want := range map[string]bool{ // whether it is the same
		stored: true,
		`{ "a": "\u003cx\u003e", "b": [ 1.0, 1972435959496572929 ] }`: true,
		`{"b":[1,1972435959496573000],"a":"<x>"}`:                     false,
		`{"b":[1972435959496572929,1],"a":"<x>"}`:                     false,
	} {
		before := s.Task("t")
		obj, err := s.Update(s.User(), "tasks", "t", func(o runtime.Object) {
			o.(*v1alpha1.Task).Spec.Transaction.Context = &apiextensionsv1.JSON{Raw: []byte(raw)}
		})
		if (err == nil) != want {
			t.Errorf("task with %s: %v", raw, err)
		}
		if err == nil && obj.(*v1alpha1.Task).ResourceVersion != before.ResourceVersion {
			t.Errorf("%s was written", raw)
		}
	}
	generation := int64(1)
	for _, c := range []struct {
		raw    string
		raises int64
	}{
		{`{"x-note":{"a":"\u003cx\u003e","b":[1,1972435959496572929]},"type":"object"}`, 0},
		{`{"type":"object","x-note":{"b":[1,1972435959496572930],"a":"<x>"}}`, 1},
	} {
		obj, err := s.Update(s.User(), "tools", "t", func(o runtime.Object) {
			o.(*v1alpha1.Tool).Spec.Parameters = &apiextensionsv1.JSON{Raw: []byte(c.raw)}
		})
		if err != nil {
			t.Fatal(err)
		}
		if generation += c.raises; obj.(*v1alpha1.Tool).Generation != generation {
			t.Errorf("%s: generation %d, want %d", c.raw, obj.(*v1alpha1.Tool).Generation, generation)
		}
	}
	// A client may drop a finalizer of an object that it decoded and encoded.
	if _, err := s.Update(s.User(), "tasks", "t", func(o runtime.Object) {
		task := o.(*v1alpha1.Task)
		task.Finalizers, task.Spec.Transaction.Context.Raw = nil, []byte(`{"a":"\u003cx\u003e","b":[1,1972435959496572929]}`)
	}); err != nil {
		t.Error(err)
	}
}

// TestUnchangedApplyWritesNothing: a write that would change only the times of managed fields is left out, as in kube-apiserver. Objects
// that were applied have no kind, and stored ones have; the generic registry compared the two.
func TestUnchangedApplyWritesNothing(t *testing.T) {
	t.Parallel()
	s := start(t)
	for resource, text := range map[string]string{
		"tasks": `{"apiVersion":"core.platform.ai/v1alpha1","kind":"Task","metadata":{"name":"t"},"spec":{"type":"container","suspend":false,"resources":{"limits":{"memory":"1Gi"}}}}`,
		"tools": `{"apiVersion":"core.platform.ai/v1alpha1","kind":"Tool","metadata":{"name":"t"},"spec":{"description":"d","http":{"url":"https://h/"},"parameters":{"type":"object"}}}`,
	} {
		obj := s.MustApply(resource, text)
		apply := func(at time.Time) runtime.Object {
			out, err := s.Update(s.User(), resource, "t", func(o runtime.Object) {
				o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // as the merge returns it
				m, err := meta.Accessor(o)
				if err != nil {
					t.Fatal(err)
				}
				now := metav1.NewTime(at)
				m.SetManagedFields([]metav1.ManagedFieldsEntry{{
					Manager: "x", Operation: metav1.ManagedFieldsOperationApply, APIVersion: "core.platform.ai/v1alpha1", Time: &now,
					FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:type":{}}}`)},
				}})
			})
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		first := revision(t, apply(time.Unix(1_700_000_000, 0)))
		if again := revision(t, apply(time.Unix(1_700_000_001, 0))); again != first || first == revision(t, obj) {
			t.Errorf("%s: created at %s, applied at %s, and again at %s", resource, revision(t, obj), first, again)
		}
	}
}

func revision(t *testing.T, o runtime.Object) string {
	t.Helper()
	m, err := meta.Accessor(o)
	if err != nil {
		t.Fatal(err)
	}
	return m.GetResourceVersion()
}
