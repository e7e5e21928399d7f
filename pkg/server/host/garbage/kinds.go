// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package garbage

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Kinds are the kinds whose objects are stored, and whether each is namespaced.
type Kinds map[schema.GroupVersionKind]bool

// Check refuses references to owners whose deletion the collector could not follow. References that the object had before are
// accepted, so that it can still be changed. old is nil for a new object.
func (k Kinds) Check(obj, old metav1.Object) field.ErrorList {
	var errs field.ErrorList
	for i, ref := range obj.GetOwnerReferences() {
		same := func(o metav1.OwnerReference) bool { return o.UID == ref.UID && kindOf(o) == kindOf(ref) }
		if old != nil && slices.ContainsFunc(old.GetOwnerReferences(), same) {
			continue
		}
		path := field.NewPath("metadata", "ownerReferences").Index(i)
		switch namespaced, stored := k[kindOf(ref)]; {
		case !stored:
			errs = append(errs, field.Invalid(path.Child("kind"), ref.APIVersion+" "+ref.Kind,
				"is not a kind that this server stores, so the object could never be deleted with its owner; leave the reference out"))
		case namespaced && obj.GetNamespace() == "":
			errs = append(errs, field.Invalid(path.Child("kind"), ref.Kind,
				"is namespaced, and an object without a namespace cannot belong to one that has a namespace; leave the reference out"))
		}
	}
	return errs
}
