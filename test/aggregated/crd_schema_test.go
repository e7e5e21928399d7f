// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/generated/openapi"
	"github.com/platform-ai/platform/test/kit"
)

// crdGroup is the group of the custom resources that have the types of the platform.
const crdGroup = "crd.example.com"

var crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// node is a schema, as a CustomResourceDefinition has it.
type node = map[string]any

// definitions are the OpenAPI definitions of the platform's types.
type definitions map[string]common.OpenAPIDefinition

func openAPI() definitions {
	return openapi.GetOpenAPIDefinitions(func(name string) spec.Ref { return spec.MustCreateRef("#/" + name) })
}

// kind returns the schema of a kind: of what people write and of its status. A CustomResourceDefinition says nothing about metadata.
func (d definitions) kind(kind string) node {
	s := d["ai.platform.core."+v1alpha1.SchemeGroupVersion.Version+"."+kind].Schema
	properties := node{}
	for name, p := range s.Properties {
		if name != "metadata" && name != "kind" && name != "apiVersion" {
			properties[name] = d.structural(p)
		}
	}
	return node{"type": "object", "properties": properties, "required": texts(s.Required)}
}

// opaque are types whose definition says less than a structural schema needs.
var opaque = map[string]node{
	intstr.IntOrString{}.OpenAPIModelName():   {"x-kubernetes-int-or-string": true},
	resource.Quantity{}.OpenAPIModelName():    {"x-kubernetes-preserve-unknown-fields": true, "format": "quantity"}, // also a number such as 0.5
	apiextensionsv1.JSON{}.OpenAPIModelName(): {"x-kubernetes-preserve-unknown-fields": true},
}

// structural returns a schema without references. What is only validated, such as enums, is left out: valid values are compared.
func (d definitions) structural(s spec.Schema) node {
	out := node{}
	if name, ok := strings.CutPrefix(s.Ref.String(), "#/"); ok {
		if o, ok := opaque[name]; ok {
			return o
		}
		out = d.structural(d[name].Schema)
	} else if len(s.Type) > 0 {
		out["type"] = s.Type[0]
	}
	if s.Format != "" {
		out["format"] = s.Format
	}
	for key, value := range s.Extensions {
		switch key {
		case "x-kubernetes-list-type", "x-kubernetes-map-type", "x-kubernetes-preserve-unknown-fields":
			out[key] = value
		case "x-kubernetes-list-map-keys":
			keys := reflect.ValueOf(value)
			list := make([]any, keys.Len())
			for i := range list {
				list[i] = fmt.Sprint(keys.Index(i))
			}
			out[key] = list
		}
	}
	if len(s.Properties) > 0 {
		properties := node{}
		for name, p := range s.Properties {
			member := d.structural(p)
			// A member that is an object and no pointer is always there, so that its own members get their defaults.
			if p.Default != nil && member["properties"] != nil && member["default"] == nil && !slices.Contains(s.Required, name) {
				member["default"] = node{}
			}
			properties[name] = member
		}
		out["properties"], out["required"] = properties, texts(s.Required)
	}
	if s.Items != nil {
		out["items"] = d.structural(*s.Items.Schema)
	}
	if s.AdditionalProperties != nil {
		out["additionalProperties"] = d.structural(*s.AdditionalProperties.Schema)
	}
	// The generator of OpenAPI gives each member that is no pointer a default, its zero value.
	if v := reflect.ValueOf(s.Default); v.IsValid() && !v.IsZero() && (v.Kind() != reflect.Map || v.Len() > 0) {
		out["default"] = number(s.Default)
	}
	return out
}

func number(v any) any {
	if n, ok := v.(int); ok {
		return int64(n)
	}
	return v
}

func texts(list []string) []any {
	out := make([]any, len(list))
	for i, text := range list {
		out[i] = text
	}
	return out
}

// records are kinds that the platform makes. No manifest has them, and their specs never change, which no schema can say.
var records = []string{"CodeHostDelivery", "GatewayDelivery", "GatewayEvent", "MonitorCommand", "MonitorItem", "MonitorMutation", "MonitorRun", "MonitorWorkAction", "ToolEffect"}

// alone are kinds of which two that say the same are refused, as the generated manifests do.
var alone = []string{"GatewayBinding", "GatewayIdentity"}

// stored returns the resources of the group whose objects people write: those that can be patched, in namespaces.
func (s *Server) stored() (all []metav1.APIResource) {
	s.t.Helper()
	list := kit.Must[*metav1.APIResourceList](s.t)(s.Kubernetes(s.t).Discovery().ServerResourcesForGroupVersion(v1alpha1.SchemeGroupVersion.String()))
	for _, r := range list.APIResources {
		if slices.Contains(r.Verbs, "patch") && !strings.Contains(r.Name, "/") && r.Namespaced && !slices.Contains(slices.Concat(records, alone), r.Kind) {
			all = append(all, r)
		}
	}
	if len(all) < 10 {
		s.t.Fatalf("discovery shows only %d kinds that are stored", len(all))
	}
	return all
}

// define makes a CustomResourceDefinition for each resource, with the schema of its type, and waits until all are served. They are deleted
// after the test.
func (s *Server) define(t *testing.T, resources []metav1.APIResource) {
	t.Helper()
	c := s.Dynamic(t).Resource(crds)
	for _, r := range resources {
		version := v1alpha1.SchemeGroupVersion.Version
		u := &unstructured.Unstructured{Object: node{
			"apiVersion": crds.GroupVersion().String(), "kind": "CustomResourceDefinition",
			"metadata": node{"name": r.Name + "." + crdGroup},
			"spec": node{
				"group": crdGroup, "scope": "Namespaced",
				"names": node{"plural": r.Name, "singular": r.SingularName, "kind": r.Kind, "listKind": r.Kind + "List"},
				"versions": []any{node{
					"name": version, "served": true, "storage": true, "subresources": node{"status": node{}},
					"schema": node{"openAPIV3Schema": openAPI().kind(r.Kind)},
				}},
			},
		}}
		made := kit.Must[*unstructured.Unstructured](t)(c.Create(t.Context(), u.DeepCopy(), metav1.CreateOptions{}))
		t.Cleanup(func() {
			s.c.Kubectl(t, "delete", crds.Resource, made.GetName())
		})
	}
	for _, r := range resources {
		s.await(crds, "", r.Name+"."+crdGroup, func(u *unstructured.Unstructured) bool { return condition(u, "Established") == "True" })
	}
}
