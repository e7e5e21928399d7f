// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"context"

	"k8s.io/apimachinery/pkg/api/operation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

var widgetGV = schema.GroupVersion{Group: "kit.test", Version: "v1"}

// Widget is a kind with everything that this package treats specially.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WidgetSpec   `json:"spec,omitempty"`
	Status            WidgetStatus `json:"status,omitempty"`
}

type WidgetSpec struct {
	Colour string `json:"colour,omitempty"`
	Size   int64  `json:"size,omitempty"`
	Kind   string `json:"kind,omitempty"`
}

type WidgetStatus struct {
	Phase string `json:"phase,omitempty"`
}

type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}

// Note is a kind without Spec and Status.
type Note struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Text              string `json:"text,omitempty"`
}

type NoteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Note `json:"items"`
}

func (n *Note) DeepCopyObject() runtime.Object {
	c := *n
	n.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

func (l *NoteList) DeepCopyObject() runtime.Object {
	c := &NoteList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*Note))
	}
	return c
}

func (*Note) OpenAPIModelName() string     { return "test.kit.v1.Note" }
func (*NoteList) OpenAPIModelName() string { return "test.kit.v1.NoteList" }

func (w *Widget) DeepCopyObject() runtime.Object {
	c := *w
	w.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

func (l *WidgetList) DeepCopyObject() runtime.Object {
	c := &WidgetList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopyObject().(*Widget))
	}
	return c
}

func (*Widget) OpenAPIModelName() string     { return "test.kit.v1.Widget" }
func (*WidgetList) OpenAPIModelName() string { return "test.kit.v1.WidgetList" }

// widgets adds the kinds to a scheme, with a declarative rule as validation-gen would generate it.
func widgets(s *runtime.Scheme) error {
	for _, gv := range []schema.GroupVersion{widgetGV, {Group: widgetGV.Group, Version: runtime.APIVersionInternal}} {
		s.AddKnownTypes(gv, &Widget{}, &WidgetList{}, &Note{}, &NoteList{}, &Parcel{}, &ParcelList{})
	}
	metav1.AddToGroupVersion(s, widgetGV)
	s.AddValidationFunc(&Widget{}, func(_ context.Context, op operation.Operation, obj, _ any) field.ErrorList {
		w, path := obj.(*Widget), field.NewPath("spec", "size")
		switch op.Request.SubresourcePath() {
		case "/", "/status":
		default:
			return field.ErrorList{field.InternalError(nil, context.Canceled)}
		}
		if w.Spec.Size > 10 {
			return field.ErrorList{field.Invalid(path, w.Spec.Size, "must be less than or equal to 10")}
		}
		return nil
	})
	return s.SetVersionPriority(widgetGV)
}

func widgetDefinitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	str := func(doc string) spec.Schema { return *spec.StringProperty().WithDescription(doc) }
	obj := func(props map[string]spec.Schema) spec.Schema {
		return spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: props}}
	}
	to := func(name string) spec.Schema {
		return spec.Schema{SchemaProps: spec.SchemaProps{Ref: ref(name), Default: map[string]any{}}}
	}
	const objectMeta, listMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"
	kind := func(props map[string]spec.Schema) spec.Schema {
		props["apiVersion"], props["kind"], props["metadata"] = str("the version"), str("the kind"), to(objectMeta)
		return obj(props)
	}
	list := func(item string) common.OpenAPIDefinition {
		return common.OpenAPIDefinition{Schema: obj(map[string]spec.Schema{
			"apiVersion": str("the version"), "kind": str("the kind"), "metadata": to(listMeta),
			"items": *spec.ArrayProperty(&spec.Schema{SchemaProps: spec.SchemaProps{Ref: ref(item)}}),
		}), Dependencies: []string{listMeta, item}}
	}
	widget := kind(map[string]spec.Schema{
		"spec":   obj(map[string]spec.Schema{"colour": str("its colour"), "size": *spec.Int64Property(), "kind": str("its kind")}),
		"status": obj(map[string]spec.Schema{"phase": str("its phase")}),
	})
	note := kind(map[string]spec.Schema{"text": str("its text")})
	return map[string]common.OpenAPIDefinition{
		"test.kit.v1.Widget":     {Schema: widget, Dependencies: []string{objectMeta}},
		"test.kit.v1.Note":       {Schema: note, Dependencies: []string{objectMeta}},
		"test.kit.v1.WidgetList": list("test.kit.v1.Widget"),
		"test.kit.v1.NoteList":   list("test.kit.v1.Note"),
	}
}
