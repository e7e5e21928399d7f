// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package expression_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/platform-ai/platform/pkg/server/expression"
)

// mutated applies a policy with these variables, named v0, v1 and so on, and this list of JSON patches to a ConfigMap.
func mutated(t *testing.T, s, patches string, variables ...string) (*corev1.ConfigMap, error) {
	t.Helper()
	p := &admissionv1.MutatingAdmissionPolicy{}
	for i, v := range variables {
		p.Spec.Variables = append(p.Spec.Variables, admissionv1.Variable{Name: fmt.Sprintf("v%d", i), Expression: v})
	}
	p.Spec.Mutations = []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{Expression: patches}}}
	compiled := expression.CompileMutating(p)
	if compiled.Error != nil || len(compiled.Mutators) != 1 {
		t.Fatalf("%v, %d mutations", compiled.Error, len(compiled.Mutators))
	}
	scheme := k8sruntime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	kind, resource := corev1.SchemeGroupVersion.WithKind("ConfigMap"), corev1.SchemeGroupVersion.WithResource("configmaps")
	object := &corev1.ConfigMap{Data: map[string]string{"s": s}}
	object.SetGroupVersionKind(kind)
	out, err := compiled.Mutators[0].Patch(t.Context(), patch.Request{
		MatchedResource: resource, Namespace: &corev1.Namespace{}, ObjectInterfaces: admission.NewObjectInterfacesFromScheme(scheme),
		VersionedAttributes: &admission.VersionedAttributes{
			Attributes:    admission.NewAttributesRecord(object, nil, kind, "default", "c", resource, "", admission.Create, nil, false, &user.DefaultInfo{Name: "u"}),
			VersionedKind: kind, VersionedObject: admission.NewLazyObject(object),
		},
	}, celconfig.RuntimeCELCostBudget)
	if err != nil {
		return nil, err
	}
	return out.(*corev1.ConfigMap), nil
}

// TestMutations: a mutation with variables changes an object, and one that explodes ends with an error that names the limit, and
// allocates little more than the limit.
func TestMutations(t *testing.T) {
	const add = `[JSONPatch{op: "add", path: "/data/%s", value: %s}]`
	out, err := mutated(t, "a", fmt.Sprintf(add, "more", "variables.v2"), again("object.data.s", "PREVIOUS + PREVIOUS", 2)...)
	if err != nil || out.Data["more"] != "aaaa" || out.Data["s"] != "a" {
		t.Errorf("%+v, %v", out, err)
	}
	long := strings.Repeat("a", 1<<20)
	for name, c := range map[string]struct {
		value     string
		variables []string
	}{
		"doubled":  {"variables.v40", again("object.data.s", "PREVIOUS + PREVIOUS", 40)},
		"replaced": {`object.data.s.replace("a", object.data.s)`, nil},
		"many":     {"lists.range(50000).map(i, object.data.s + string(i)).join()", nil},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := mutated(t, long, fmt.Sprintf(add, "more", c.value), c.variables...)
		runtime.ReadMemStats(&after)
		if grown := (after.TotalAlloc - before.TotalAlloc) >> 20; grown > maxAllocated {
			t.Errorf("%s: %d MiB allocated", name, grown)
		}
		if err == nil || !limits.MatchString(err.Error()) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
