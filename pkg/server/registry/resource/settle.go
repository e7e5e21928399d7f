// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"bytes"
	"reflect"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/platform-ai/platform/pkg/canonical"
)

// settle gives the new object of an update what the old one has wherever the two mean the same, so that whatever compares them later
// agrees: which fields are immutable, whether the generation rises, and whether there is anything to write.
//
//   - The kind, which decoding sets in stored objects, and which an applied object lacks. The generic registry compares the two to
//     leave out a write that would change only the times of managed fields.
//   - JSON of any shape that is written otherwise: with spaces, other escapes or another order of keys. A client that decodes and
//     encodes it changes these.
func settle[T Object](obj, old T) {
	obj.GetObjectKind().SetGroupVersionKind(old.GetObjectKind().GroupVersionKind())
	if holdsJSON(reflect.TypeFor[T]()) {
		settleJSON(reflect.ValueOf(obj), reflect.ValueOf(old))
	}
}

var typeJSON = reflect.TypeFor[apiextensionsv1.JSON]()

func settleJSON(obj, old reflect.Value) {
	switch t := obj.Type(); {
	case t == typeJSON:
		now, before := obj.Addr().Interface().(*apiextensionsv1.JSON), old.Interface().(apiextensionsv1.JSON)
		if !bytes.Equal(now.Raw, before.Raw) && canonical.Equal(now.Raw, before.Raw) {
			now.Raw = bytes.Clone(before.Raw)
		}
	case !holdsJSON(t):
	case t.Kind() == reflect.Pointer:
		if !obj.IsNil() && !old.IsNil() {
			settleJSON(obj.Elem(), old.Elem())
		}
	case t.Kind() == reflect.Slice:
		for i := range min(obj.Len(), old.Len()) {
			settleJSON(obj.Index(i), old.Index(i))
		}
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			settleJSON(obj.Field(i), old.Field(i))
		}
	}
}

// jsonHolders says of the types that were looked at whether they hold JSON of any shape, in fields and lists.
var jsonHolders sync.Map

func holdsJSON(t reflect.Type) bool {
	known, ok := jsonHolders.Load(t)
	if !ok {
		known, _ = jsonHolders.LoadOrStore(t, reachesJSON(t, map[reflect.Type]bool{}))
	}
	return known.(bool)
}

// reachesJSON looks through a type. A type that is among seen is being looked through, as it holds itself.
func reachesJSON(t reflect.Type, seen map[reflect.Type]bool) bool {
	if t == typeJSON || seen[t] {
		return t == typeJSON
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return reachesJSON(t.Elem(), seen)
	case reflect.Struct:
		for f := range t.Fields() {
			if f.IsExported() && reachesJSON(f.Type, seen) {
				return true
			}
		}
	}
	return false
}
