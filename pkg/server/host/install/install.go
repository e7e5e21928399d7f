// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install adds the kinds of the standalone host to a scheme: the few
// Kubernetes kinds that the platform needs, with Kubernetes' defaults.
package install

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Install registers each kind as its version and as the internal version, with
// the same Go type.
func Install(s *runtime.Scheme) error {
	err := add(s, map[schema.GroupVersion][]runtime.Object{
		corev1.SchemeGroupVersion: {
			&corev1.Namespace{}, &corev1.NamespaceList{},
			&corev1.Secret{}, &corev1.SecretList{},
			&corev1.ConfigMap{}, &corev1.ConfigMapList{},
			&corev1.ServiceAccount{}, &corev1.ServiceAccountList{},
			&corev1.Event{}, &corev1.EventList{},
		},
		rbacv1.SchemeGroupVersion: {
			&rbacv1.Role{}, &rbacv1.RoleList{},
			&rbacv1.RoleBinding{}, &rbacv1.RoleBindingList{},
			&rbacv1.ClusterRole{}, &rbacv1.ClusterRoleList{},
			&rbacv1.ClusterRoleBinding{}, &rbacv1.ClusterRoleBindingList{},
		},
		admissionv1.SchemeGroupVersion: {
			&admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyList{},
			&admissionv1.ValidatingAdmissionPolicyBinding{}, &admissionv1.ValidatingAdmissionPolicyBindingList{},
		},
		coordinationv1.SchemeGroupVersion: {&coordinationv1.Lease{}, &coordinationv1.LeaseList{}},
		authenticationv1.SchemeGroupVersion: {
			&authenticationv1.TokenRequest{}, &authenticationv1.TokenReview{}, &authenticationv1.SelfSubjectReview{},
		},
		authorizationv1.SchemeGroupVersion: {
			&authorizationv1.SubjectAccessReview{}, &authorizationv1.LocalSubjectAccessReview{},
			&authorizationv1.SelfSubjectAccessReview{}, &authorizationv1.SelfSubjectRulesReview{},
		},
	})
	addDefaults(s)
	return err
}

// WhoAmI registers only what callers need to ask for their own identity and their own rules.
func WhoAmI(s *runtime.Scheme) error {
	return add(s, map[schema.GroupVersion][]runtime.Object{
		authenticationv1.SchemeGroupVersion: {&authenticationv1.SelfSubjectReview{}},
		authorizationv1.SchemeGroupVersion:  {&authorizationv1.SelfSubjectRulesReview{}},
	})
}

func add(s *runtime.Scheme, groups map[schema.GroupVersion][]runtime.Object) error {
	for gv, kinds := range groups {
		s.AddKnownTypes(gv, kinds...)
		s.AddKnownTypes(schema.GroupVersion{Group: gv.Group, Version: runtime.APIVersionInternal}, kinds...)
		metav1.AddToGroupVersion(s, gv)
		if err := s.SetVersionPriority(gv); err != nil {
			return err
		}
	}
	return nil
}
