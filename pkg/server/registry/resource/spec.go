// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
)

// parts locates the fields Spec and Status by name, once per Definition, so that no type parameters are needed for
// them.
type parts struct{ spec, status []int }

func partsOf[T Object]() parts {
	var p parts
	t := reflect.TypeFor[T]().Elem()
	if f, ok := t.FieldByName("Spec"); ok {
		p.spec = f.Index
	}
	if f, ok := t.FieldByName("Status"); ok {
		p.status = f.Index
	}
	return p
}

func partOf(obj any, index []int) reflect.Value {
	return reflect.ValueOf(obj).Elem().FieldByIndex(index)
}

// specChanged reports whether Spec differs between the two objects; false for a type without Spec.
func (p parts) specChanged(a, b any) bool {
	return p.spec != nil && !equality.Semantic.DeepEqual(partOf(a, p.spec).Interface(), partOf(b, p.spec).Interface())
}

// copyStatus copies the Status of from to to.
func (p parts) copyStatus(from, to any) {
	if p.status != nil {
		partOf(to, p.status).Set(partOf(from, p.status))
	}
}

// keepStatusOnly replaces everything in obj except its Status by the content of old.
func (p parts) keepStatusOnly(old, obj any) {
	p.copyStatus(obj, old)
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(old).Elem())
}

func (p parts) clearStatus(obj any) { partOf(obj, p.status).SetZero() }
