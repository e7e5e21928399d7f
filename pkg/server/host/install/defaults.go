// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// tokenSeconds is the default lifetime of a requested token, in seconds.
const tokenSeconds = 3600

// addDefaults registers the defaults that are applied when an object is
// decoded. That includes the result of a patch or a server-side apply, before
// fields get their owners.
func addDefaults(s *runtime.Scheme) {
	s.AddTypeDefaultingFunc(&corev1.Secret{}, func(o any) { defaultSecret(o.(*corev1.Secret)) })
	s.AddTypeDefaultingFunc(&authenticationv1.TokenRequest{}, func(o any) {
		if r := o.(*authenticationv1.TokenRequest); r.Spec.ExpirationSeconds == nil {
			seconds := int64(tokenSeconds)
			r.Spec.ExpirationSeconds = &seconds
		}
	})
	s.AddTypeDefaultingFunc(&rbacv1.RoleBinding{}, func(o any) {
		b := o.(*rbacv1.RoleBinding)
		defaultBinding(&b.RoleRef, b.Subjects)
	})
	s.AddTypeDefaultingFunc(&rbacv1.ClusterRoleBinding{}, func(o any) {
		b := o.(*rbacv1.ClusterRoleBinding)
		defaultBinding(&b.RoleRef, b.Subjects)
	})
	s.AddTypeDefaultingFunc(&admissionv1.ValidatingAdmissionPolicy{}, func(o any) {
		p := o.(*admissionv1.ValidatingAdmissionPolicy)
		if p.Spec.FailurePolicy == nil {
			fail := admissionv1.Fail
			p.Spec.FailurePolicy = &fail
		}
		defaultMatch(p.Spec.MatchConstraints)
	})
	s.AddTypeDefaultingFunc(&admissionv1.ValidatingAdmissionPolicyBinding{}, func(o any) {
		defaultMatch(o.(*admissionv1.ValidatingAdmissionPolicyBinding).Spec.MatchResources)
	})
}

// defaultSecret moves stringData, which is write-only, into data.
func defaultSecret(s *corev1.Secret) {
	if s.Type == "" {
		s.Type = corev1.SecretTypeOpaque
	}
	if len(s.StringData) > 0 && s.Data == nil {
		s.Data = make(map[string][]byte, len(s.StringData))
	}
	for k, v := range s.StringData {
		s.Data[k] = []byte(v)
	}
	s.StringData = nil
}

func defaultBinding(ref *rbacv1.RoleRef, subjects []rbacv1.Subject) {
	if ref.APIGroup == "" {
		ref.APIGroup = rbacv1.GroupName
	}
	for i := range subjects {
		if s := &subjects[i]; s.APIGroup == "" && (s.Kind == rbacv1.UserKind || s.Kind == rbacv1.GroupKind) {
			s.APIGroup = rbacv1.GroupName
		}
	}
}

// defaultMatch makes unset selectors match everything.
func defaultMatch(m *admissionv1.MatchResources) {
	if m == nil {
		return
	}
	if m.MatchPolicy == nil {
		equivalent := admissionv1.Equivalent
		m.MatchPolicy = &equivalent
	}
	if m.NamespaceSelector == nil {
		m.NamespaceSelector = &metav1.LabelSelector{}
	}
	if m.ObjectSelector == nil {
		m.ObjectSelector = &metav1.LabelSelector{}
	}
	for _, rules := range [][]admissionv1.NamedRuleWithOperations{m.ResourceRules, m.ExcludeResourceRules} {
		for i := range rules {
			if rules[i].Scope == nil {
				all := admissionv1.AllScopes
				rules[i].Scope = &all
			}
		}
	}
}
