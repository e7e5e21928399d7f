// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package expression_test

import (
	"os"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/yaml"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/expression"
)

// The example policy on Secrets sees every place where an editor can name one.
func TestSecretsExample(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../../artifacts/examples/policies/secrets.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var p admissionv1.ValidatingAdmissionPolicy
	if err := yaml.UnmarshalStrict([]byte(strings.SplitN(string(raw), "\n---\n", 2)[0]), &p); err != nil {
		t.Fatal(err)
	}
	v := expression.Compile(&p)
	env := func(name string) []corev1.EnvVar {
		return []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: "B", ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: name}, Key: "k"},
		}}}
	}
	for resource, named := range map[string]func(secret string) runtime.Object{
		"tasks": func(s string) runtime.Object { return &v1alpha1.Task{Spec: v1alpha1.TaskSpec{Env: env(s)}} },
		"tasks, mounted": func(s string) runtime.Object {
			return &v1alpha1.Task{Spec: v1alpha1.TaskSpec{SecretRef: &v1alpha1.NamespacedReference{Name: s}}}
		},
		"agents": func(s string) runtime.Object {
			return &v1alpha1.Agent{Spec: v1alpha1.AgentSpec{SecretRef: &v1alpha1.LocalReference{Name: s}}}
		},
		"providers": func(s string) runtime.Object {
			return &v1alpha1.Provider{Spec: v1alpha1.ProviderSpec{SecretRef: v1alpha1.ProviderSecretReference{Name: s}}}
		},
		"tools": func(s string) runtime.Object {
			return &v1alpha1.Tool{Spec: v1alpha1.ToolSpec{HTTP: &v1alpha1.ToolHTTP{AuthSecretRef: &v1alpha1.KeyReference{Name: s, Key: "k"}}}}
		},
	} {
		plural, _, _ := strings.Cut(resource, ",")
		for secret, want := range map[string]string{"agents-key": "", "database": "not database"} {
			for group, denies := range map[string]bool{"editors": true, user.SystemPrivilegedGroup: false} {
				object := named(secret)
				gvr := v1alpha1.SchemeGroupVersion.WithResource(plural)
				attr := &admission.VersionedAttributes{
					Attributes: admission.NewAttributesRecord(object, nil, v1alpha1.SchemeGroupVersion.WithKind("X"), "default", "x", gvr, "",
						admission.Create, nil, false, &user.DefaultInfo{Name: "u", Groups: []string{group}}),
					VersionedKind: v1alpha1.SchemeGroupVersion.WithKind("X"), VersionedObject: admission.NewLazyObject(object),
				}
				got := ""
				for _, d := range v.Validate(t.Context(), gvr, attr, nil, &corev1.Namespace{}, celconfig.RuntimeCELCostBudget, nil).Decisions {
					got += d.Message
				}
				if expect := denies && want != ""; expect != (got != "") || expect && !strings.Contains(got, want) {
					t.Errorf("%s as %s of %s: %q", secret, group, resource, got)
				}
			}
		}
	}
}
