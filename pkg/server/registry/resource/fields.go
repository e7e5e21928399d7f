// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// Field is a field that clients can select by.
type Field[T Object] struct {
	// Path is the left side of the selector, for example "spec.type".
	Path string
	// Value returns the object's value of the field, in the text form that selectors use.
	Value func(T) string
	// Indexed makes a list by a value that is not empty cost what it returns, of a kind that is kept. A kind that has stored objects
	// cannot be given it.
	Indexed bool
}

// Register makes the Definition's fields known to the scheme. Selectors on any other field are refused with 400.
func (d *Definition[T]) Register(scheme *runtime.Scheme) error {
	known := []string{"metadata.name"}
	if !d.ClusterScoped {
		known = append(known, "metadata.namespace")
	}
	for _, f := range d.Fields {
		known = append(known, f.Path)
	}
	allowed := map[string]bool{}
	for _, k := range known {
		allowed[k] = true
	}
	return scheme.AddFieldLabelConversionFunc(d.Resource.GroupVersion().WithKind(d.Kind),
		func(label, value string) (string, string, error) {
			if allowed[label] {
				return label, value, nil
			}
			return "", "", fmt.Errorf("%q is not a known field selector of %s: only %s",
				label, d.Resource.Resource, strings.Join(known, ", "))
		})
}

// attrs returns the labels and selectable fields of a stored object.
func (k *kind[T]) attrs(obj runtime.Object) (labels.Set, fields.Set, error) {
	o, ok := obj.(T)
	if !ok {
		return nil, nil, fmt.Errorf("not a %s: %T", k.Kind, obj)
	}
	set := make(fields.Set, len(k.Fields)+2)
	set["metadata.name"] = o.GetName()
	if !k.ClusterScoped {
		set["metadata.namespace"] = o.GetNamespace()
	}
	for _, f := range k.Fields {
		set[f.Path] = f.Value(o)
	}
	return o.GetLabels(), set, nil
}
