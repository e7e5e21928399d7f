// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"reflect"

	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/pkg/visible"
)

// cleanStatus removes control characters from the texts of the Status. Models and programs write many of them, and every
// client shows them: one U+009B makes `kubectl get -o yaml` fail, and a terminal obeys it. A Spec is its author's and stays.
func (p parts) cleanStatus(obj any) {
	if p.status != nil {
		cleanTexts(partOf(obj, p.status))
	}
}

// cleanTexts cleans every text in v, which can be set.
func cleanTexts(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if s, changed := cleaned(v.String()); changed && v.CanSet() {
			v.SetString(s)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			cleanTexts(v.Elem())
		}
	case reflect.Struct:
		for field, f := range v.Fields() {
			if field.IsExported() { // others, such as those of a time, have no texts of anybody
				cleanTexts(f)
			}
		}
	case reflect.Slice:
		switch v.Type().Elem().Kind() {
		case reflect.Uint8: // JSON
			if v.CanSet() {
				v.SetBytes(visible.JSON(v.Bytes()))
			}
		case reflect.String, reflect.Struct, reflect.Pointer, reflect.Slice, reflect.Map:
			for i := range v.Len() {
				cleanTexts(v.Index(i))
			}
		default:
		}
	case reflect.Map:
		cleanMap(v)
	default:
	}
}

// cleanMap cleans the values of a map of texts; the keys are names.
func cleanMap(v reflect.Value) {
	if v.Type().Elem().Kind() != reflect.String {
		return
	}
	for m := v.MapRange(); m.Next(); {
		if s, changed := cleaned(m.Value().String()); changed {
			v.SetMapIndex(m.Key(), reflect.ValueOf(s).Convert(v.Type().Elem()))
		}
	}
}

// cleaned returns a text without control characters, and whether it had some. What they divided may be a secret.
func cleaned(s string) (string, bool) {
	plain := visible.Plain(s)
	if plain == s {
		return s, false
	}
	plain, _ = redact.Text(plain)
	return plain, true
}
