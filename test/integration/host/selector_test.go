// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit/host"
	"github.com/platform-ai/platform/test/kit/standalone"
)

// What refers to a task is selected by taskName in every kind that can be listed, also where the field has a longer path.
func TestOneSelectorForTheTask(t *testing.T) {
	t.Parallel()
	s := standalone.Start(t)
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	types, checked := scheme.KnownTypes(v1alpha1.SchemeGroupVersion), 0
	resources, err := s.Kubernetes(t).Discovery().ServerResourcesForGroupVersion(v1alpha1.SchemeGroupVersion.String())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range resources.APIResources {
		if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") || !refersToTask(types[r.Kind]) {
			continue
		}
		checked++
		path := "/apis/" + v1alpha1.SchemeGroupVersion.String() + "/namespaces/default/" + r.Name + "?fieldSelector=taskName%3Dnone"
		if code, body := host.Get(t, s.Config(), path, ""); code != http.StatusOK {
			t.Errorf("%s: %d %s", r.Name, code, body)
		}
	}
	if checked < 5 {
		t.Errorf("only %d kinds refer to a task", checked)
	}
}

// refersToTask reports whether the type or its spec has a field taskName.
func refersToTask(t reflect.Type) bool {
	for f := range t.Fields() {
		switch name, _, _ := strings.Cut(f.Tag.Get("json"), ","); {
		case name == "taskName", name == "spec" && f.Type.Kind() == reflect.Struct && refersToTask(f.Type):
			return true
		}
	}
	return false
}
