// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"context"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// The rules and messages are those of Kubernetes, so that existing tools work with them.

func validateRole(_ context.Context, r *rbacv1.Role) field.ErrorList {
	return validateRules(r.Rules, true)
}

func validateClusterRole(_ context.Context, r *rbacv1.ClusterRole) field.ErrorList {
	errs := validateRules(r.Rules, false)
	if r.AggregationRule == nil {
		return errs
	}
	path := field.NewPath("aggregationRule", "clusterRoleSelectors")
	if len(r.AggregationRule.ClusterRoleSelectors) == 0 {
		errs = append(errs, field.Required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil"))
	}
	for i := range r.AggregationRule.ClusterRoleSelectors {
		errs = append(errs, metav1validation.ValidateLabelSelector(
			&r.AggregationRule.ClusterRoleSelectors[i], metav1validation.LabelSelectorValidationOptions{}, path.Index(i))...)
	}
	return errs
}

func validateRules(rules []rbacv1.PolicyRule, namespaced bool) field.ErrorList {
	var errs field.ErrorList
	for i, r := range rules {
		path := field.NewPath("rules").Index(i)
		if len(r.Verbs) == 0 {
			errs = append(errs, field.Required(path.Child("verbs"), "verbs must contain at least one value"))
		}
		if urls := path.Child("nonResourceURLs"); len(r.NonResourceURLs) > 0 {
			if namespaced {
				errs = append(errs, field.Invalid(urls, r.NonResourceURLs, "namespaced rules cannot apply to non-resource URLs"))
			}
			if len(r.APIGroups) > 0 || len(r.Resources) > 0 || len(r.ResourceNames) > 0 {
				errs = append(errs, field.Invalid(urls, r.NonResourceURLs, "rules cannot apply to both regular resources and non-resource URLs"))
			}
			continue
		}
		if len(r.APIGroups) == 0 {
			errs = append(errs, field.Required(path.Child("apiGroups"), "resource rules must supply at least one api group"))
		}
		if len(r.Resources) == 0 {
			errs = append(errs, field.Required(path.Child("resources"), "resource rules must supply at least one resource"))
		}
	}
	return errs
}

func validateRoleBinding(_ context.Context, b *rbacv1.RoleBinding) field.ErrorList {
	return slices.Concat(validateRoleRef(b.RoleRef, "Role", "ClusterRole"), validateSubjects(b.Subjects, true), validateWorkers(b, b.RoleRef, b.Subjects))
}

func validateClusterRoleBinding(_ context.Context, b *rbacv1.ClusterRoleBinding) field.ErrorList {
	return slices.Concat(validateRoleRef(b.RoleRef, "ClusterRole"), validateSubjects(b.Subjects, false), validateWorkers(b, b.RoleRef, b.Subjects))
}

// validateWorkers allows the role of workers to be bound only to the ServiceAccounts of workers, because the server
// restricts these to the task that their credential names. Any other subject with that role could read and write what
// all workers of the namespace together may.
func validateWorkers(b metav1.Object, ref rbacv1.RoleRef, subjects []rbacv1.Subject) field.ErrorList {
	if ref.Kind != "ClusterRole" || ref.Name != v1alpha1.ClusterRoleWorker || b.GetDeletionTimestamp() != nil {
		return nil
	}
	workers := []string{v1alpha1.ServiceAccountAIWorker, v1alpha1.ServiceAccountAgentWorker, v1alpha1.ServiceAccountContainerWorker}
	var errs field.ErrorList
	for i, s := range subjects {
		if s.Kind != rbacv1.ServiceAccountKind || !slices.Contains(workers, s.Name) {
			errs = append(errs, field.Forbidden(field.NewPath("subjects").Index(i), fmt.Sprintf("ClusterRole %s may be bound only to the ServiceAccounts %s, not to the %s %s: bind another role",
				ref.Name, strings.Join(workers, ", "), s.Kind, s.Name)))
		}
	}
	return errs
}

func validateRoleRef(ref rbacv1.RoleRef, kinds ...string) field.ErrorList {
	var errs field.ErrorList
	if ref.APIGroup != rbacv1.GroupName {
		errs = append(errs, field.NotSupported(roleRef().Child("apiGroup"), ref.APIGroup, []string{rbacv1.GroupName}))
	}
	known := false
	for _, k := range kinds {
		known = known || k == ref.Kind
	}
	if !known {
		errs = append(errs, field.NotSupported(roleRef().Child("kind"), ref.Kind, kinds))
	}
	if ref.Name == "" {
		return append(errs, field.Required(roleRef().Child("name"), ""))
	}
	for _, msg := range validName(ref.Name, false) {
		errs = append(errs, field.Invalid(roleRef().Child("name"), ref.Name, msg))
	}
	return errs
}

func validateSubjects(subjects []rbacv1.Subject, namespaced bool) field.ErrorList {
	var errs field.ErrorList
	for i, s := range subjects {
		errs = append(errs, validateSubject(s, namespaced, field.NewPath("subjects").Index(i))...)
	}
	return errs
}

func validateSubject(s rbacv1.Subject, namespaced bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	group := ""
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		if s.Name != "" {
			for _, msg := range validation.ValidateServiceAccountName(s.Name, false) {
				errs = append(errs, field.Invalid(path.Child("name"), s.Name, msg))
			}
		}
		if !namespaced && s.Namespace == "" {
			errs = append(errs, field.Required(path.Child("namespace"), ""))
		}
	case rbacv1.UserKind, rbacv1.GroupKind:
		group = rbacv1.GroupName
	default:
		return append(errs, field.NotSupported(path.Child("kind"), s.Kind,
			[]string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind}))
	}
	if s.APIGroup != group {
		errs = append(errs, field.NotSupported(path.Child("apiGroup"), s.APIGroup, []string{group}))
	}
	return errs
}
