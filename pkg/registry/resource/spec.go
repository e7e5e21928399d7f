// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
)

// parts finds Spec and Status by name, once per Definition, so that the kit needs no type parameter for them.
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

func field(obj any, index []int) reflect.Value { return reflect.ValueOf(obj).Elem().FieldByIndex(index) }

// specChanged tells whether the two differ in Spec; without a Spec there is nothing to differ in.
func (p parts) specChanged(a, b any) bool {
	return p.spec != nil && !equality.Semantic.DeepEqual(field(a, p.spec).Interface(), field(b, p.spec).Interface())
}

// copySpec and copyStatus carry the part over from one object to another of the same type.
func (p parts) copySpec(from, to any) { copyPart(p.spec, from, to) }

func (p parts) copyStatus(from, to any) { copyPart(p.status, from, to) }

func copyPart(index []int, from, to any) {
	if index != nil {
		field(to, index).Set(field(from, index))
	}
}

func (p parts) clearStatus(obj any) {
	if p.status != nil {
		field(obj, p.status).SetZero()
	}
}
