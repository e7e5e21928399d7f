// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package tooleffect

import (
	"reflect"
	"regexp"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// The name follows from each part of the call, and from nothing else.
func TestName(t *testing.T) {
	t.Parallel()
	first := spec("work", "1")
	seen := map[string]string{}
	name := func(what string, s v1alpha1.ToolEffectSpec) {
		t.Helper()
		got, err := Name(&s)
		if err != nil || !regexp.MustCompile(`^effect-[0-9a-f]{40}$`).MatchString(got) {
			t.Fatal(what, got, err)
		}
		if other, again := seen[got]; again {
			t.Errorf("another %s has the name of another %s", what, other)
		}
		seen[got] = what
	}
	name("nothing", first)
	var change func(path string, v reflect.Value, s *v1alpha1.ToolEffectSpec)
	change = func(path string, v reflect.Value, s *v1alpha1.ToolEffectSpec) {
		for field, f := range v.Fields() {
			before := reflect.ValueOf(f.Interface())
			switch {
			case field.Name == "CreatedAt":
				continue
			case f.Kind() == reflect.Struct:
				change(path+field.Name+".", f, s)
				continue
			case f.CanInt():
				f.SetInt(f.Int() + 1)
			default:
				f.SetString(f.String() + "x")
			}
			name(path+field.Name, *s)
			f.Set(before)
		}
	}
	s := first
	change("", reflect.ValueOf(&s).Elem(), &s)
	if len(seen) != 15 {
		t.Errorf("%d names: %v", len(seen), seen)
	}
	s.CreatedAt = metav1.NewMicroTime(noon)
	if got, err := Name(&s); err != nil || seen[got] != "nothing" {
		t.Errorf("at another time: %s, %v", got, err)
	}
}
