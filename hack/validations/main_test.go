// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// generated has one of each form that the generator writes. Empty finds nothing; Loop is a type that contains itself; Kind is
// registered.
const generated = `package p

import (
	context "context"

	corev1 "k8s.io/api/core/v1"
	field "k8s.io/apimachinery/pkg/util/validation/field"
)

func RegisterValidations() { _ = Validate_Kind }

// Validate_Kind validates a Kind.
func Validate_Kind(ctx context.Context, obj *Kind) (errs field.ErrorList) {
	// field Kind.TypeMeta has no validation

	{ // field Kind.Resources
		fn := func(obj *corev1.ResourceRequirements) (errs field.ErrorList) {
			if e := validate.OptionalPointer(obj).MarkShortCircuit(); len(e) != 0 {
				earlyReturn = true
			}
			return
		}
		errs = append(errs, fn(obj.Resources)...)
	}

	{ // field Kind.Loop
		fn := func(obj *Loop) (errs field.ErrorList) {
			// call the type's validation function
			errs = append(errs, Validate_Loop(ctx, obj)...)
			return
		}
		errs = append(errs, fn(obj.Loop)...)
	}

	return errs
}

// Validate_Loop validates a Loop.
func Validate_Loop(ctx context.Context, obj *Loop) (errs field.ErrorList) {
	{ // field Loop.Loops
		fn := func(obj []Loop) (errs field.ErrorList) {
			// iterate the list and call the type's validation function
			if e := validate.EachValSliceVal(ctx, obj, nil, nil, Validate_Loop); len(e) != 0 {
				errs = append(errs, e...)
			}
			return
		}
		errs = append(errs, fn(obj.Loops)...)
	}

	return errs
}

// Validate_Spec validates a Spec.
func Validate_Spec(ctx context.Context, obj *Spec) (errs field.ErrorList) {
	{ // field Spec.Loops
		fn := func(obj []Loop) (errs field.ErrorList) {
			if e := validate.MaxItems(ctx, obj, 8); len(e) != 0 {
				errs = append(errs, e...)
			}
			// iterate the list and call the type's validation function
			if e := validate.EachValSliceVal(ctx, obj, nil, nil, Validate_Loop); len(e) != 0 {
				errs = append(errs, e...)
			}
			return
		}
		errs = append(errs, fn(obj.Loops)...)
	}

	{ // field Spec.Conditions
		fn := func(obj []Condition) (errs field.ErrorList) {
			if e := validate.EachValSliceVal(ctx, obj, nil, nil, validation.Validate_Condition); len(e) != 0 {
				errs = append(errs, e...)
			}
			return
		}
		errs = append(errs, fn(obj.Conditions)...)
	}

	{ // field Spec.Other
		fn := func(obj *Spec) (errs field.ErrorList) {
			errs = append(errs, Validate_Spec(ctx, obj)...)
			return
		}
		errs = append(errs, fn(obj.Other)...)
	}

	return errs
}
`

const pruned = `package p

import (
	context "context"

	field "k8s.io/apimachinery/pkg/util/validation/field"
)

func RegisterValidations() { _ = Validate_Kind }

// Validate_Kind validates a Kind.
func Validate_Kind(ctx context.Context, obj *Kind) (errs field.ErrorList) {
	return errs
}

// Validate_Spec validates a Spec.
func Validate_Spec(ctx context.Context, obj *Spec) (errs field.ErrorList) {
	{ // field Spec.Loops
		fn := func(obj []Loop) (errs field.ErrorList) {
			if e := validate.MaxItems(ctx, obj, 8); len(e) != 0 {
				errs = append(errs, e...)
			}
			return
		}
		errs = append(errs, fn(obj.Loops)...)
	}

	{ // field Spec.Conditions
		fn := func(obj []Condition) (errs field.ErrorList) {
			if e := validate.EachValSliceVal(ctx, obj, nil, nil, validation.Validate_Condition); len(e) != 0 {
				errs = append(errs, e...)
			}
			return
		}
		errs = append(errs, fn(obj.Conditions)...)
	}

	{ // field Spec.Other
		fn := func(obj *Spec) (errs field.ErrorList) {
			errs = append(errs, Validate_Spec(ctx, obj)...)
			return
		}
		errs = append(errs, fn(obj.Other)...)
	}

	return errs
}
`

// TestPrune: what finds no error goes, also where types contain themselves, and nothing else does.
func TestPrune(t *testing.T) {
	got, err := prune([]byte(generated))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(pruned, string(got)); diff != "" {
		t.Error(diff)
	}
}
