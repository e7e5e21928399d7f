// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// applier applies a widget of a size.
type applier struct {
	t *testing.T
	c dynamic.ResourceInterface
}

func (a applier) apply(manager string, force bool, spec string) (*unstructured.Unstructured, error) {
	a.t.Helper()
	body := `{"apiVersion":"` + widgetGV.String() + `","kind":"Widget","metadata":{"name":"a"},"spec":` + spec + `}`
	return a.c.Patch(a.t.Context(), "a", types.ApplyPatchType, []byte(body), metav1.PatchOptions{FieldManager: manager, Force: &force})
}

// owners returns who owns the size.
func owners(w *unstructured.Unstructured) string {
	var names []string
	for _, e := range w.GetManagedFields() {
		if e.FieldsV1 != nil && strings.Contains(e.FieldsV1.GetRawString(), `"f:size"`) {
			names = append(names, e.Manager)
		}
	}
	return strings.Join(names, " ")
}

// TestManagersAgreeOnZero: several managers apply the same zero value, which the stored object leaves out, without a conflict, and
// all own it. Who repeats it writes nothing, with and without force. Another value is a conflict, as ever.
func TestManagersAgreeOnZero(t *testing.T) {
	a := applier{t, client(t, serve(t, widgetDefinition()), widgetsGVR)}
	ok := must[*unstructured.Unstructured](t)
	ok(a.apply("flux", false, `{"colour":"red","size":0}`))
	now := ok(a.apply("argo", false, `{"size":0}`))
	if got := owners(now); got != "argo flux" && got != "flux argo" {
		t.Errorf("%s own the size", got)
	}
	for _, force := range []bool{false, true} {
		for _, manager := range []string{"flux", "argo", "flux"} {
			spec := `{"size":0}`
			if manager == "flux" {
				spec = `{"colour":"red","size":0}`
			}
			again := ok(a.apply(manager, force, spec))
			if again.GetResourceVersion() != now.GetResourceVersion() || owners(again) != owners(now) {
				t.Errorf("%s (force %v) wrote: %s own the size", manager, force, owners(again))
			}
			now = again
		}
	}

	if _, err := a.apply("third", false, `{"size":3}`); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), ".spec.size") {
		t.Errorf("another size: %v", err)
	}
	if _, err := a.apply("third", false, `{"size":0,"colour":"blue"}`); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), ".spec.colour") {
		t.Errorf("another colour: %v", err)
	}
	if got := owners(ok(a.apply("argo", false, `{}`))); got != "flux" {
		t.Errorf("%s own the size, which argo gave up", got)
	}
	forced := ok(a.apply("third", true, `{"size":3}`))
	if got := owners(forced); got != "third" {
		t.Errorf("%s own the size that third has forced", got)
	}
	if _, err := a.apply("flux", false, `{"colour":"red","size":0}`); !apierrors.IsConflict(err) {
		t.Errorf("zero instead of what third has set: %v", err)
	}
}
