// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package requester

import (
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/rule"
)

// ValidateServerSet refuses values of a new task that only the server may set.
func ValidateServerSet(t *v1alpha1.Task) field.ErrorList {
	spec, path := &t.Spec, field.NewPath("spec")
	errs := validateIdentity(t, nil)
	if spec.RequestedBy != nil {
		errs = append(errs, field.Forbidden(path.Child("requestedBy"), "is set by the server"))
	}
	if spec.Transaction != nil {
		errs = append(errs, field.Forbidden(path.Child("transaction"), "is set by the server"))
	}
	return errs
}

// identityKeys returns the labels and annotations that say on whose behalf a task runs. Like spec.requestedBy and
// spec.transaction, they are written only by the server.
func identityKeys() sets.Set[string] {
	return sets.New(
		v1alpha1.AnnotationRequestedBySource,
		v1alpha1.AnnotationRequestedByStamp,
		v1alpha1.LabelTransactionID,
		v1alpha1.LabelAuthProfile,
		v1alpha1.AnnotationContextTokenProfile,
		v1alpha1.AnnotationTransactionIssuer,
		v1alpha1.AnnotationTransactionSubject,
		v1alpha1.AnnotationTransactionWorkload,
		v1alpha1.AnnotationTransactionScope,
		v1alpha1.AnnotationTransactionContextDigest,
		v1alpha1.AnnotationRequesterContextDigest,
		v1alpha1.AnnotationTransactionTokenSecret,
		v1alpha1.AnnotationTransactionTokenPending,
		v1alpha1.AnnotationTransactionTokenPendingSince,
	)
}

// validateIdentity refuses changes of identity keys. old is nil on create.
func validateIdentity(t, old *v1alpha1.Task) field.ErrorList {
	if old == nil {
		old = &v1alpha1.Task{}
	}
	var errs field.ErrorList
	meta := field.NewPath("metadata")
	for _, key := range sets.List(identityKeys()) {
		if rule.Changed(t.Labels, old.Labels, key) {
			errs = append(errs, field.Forbidden(meta.Child("labels").Key(key), "is set by the server"))
		}
		if rule.Changed(t.Annotations, old.Annotations, key) {
			errs = append(errs, field.Forbidden(meta.Child("annotations").Key(key), "is set by the server"))
		}
	}
	return errs
}
