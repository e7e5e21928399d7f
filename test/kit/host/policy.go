// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	core "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
)

// Policy is an admission policy on tasks.
func Policy(name, expression, message string) *admissionv1.ValidatingAdmissionPolicy {
	return &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
					Rule: admissionv1.Rule{
						APIGroups: []string{"core.platform.ai"}, APIVersions: []string{"v1alpha1"}, Resources: []string{"tasks"},
					},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: expression, Message: message}},
		},
	}
}

// Deny is the binding that makes a policy refuse.
func Deny(policy string) *admissionv1.ValidatingAdmissionPolicyBinding {
	return &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
}

// Install stores a policy and a binding to it.
func Install(t testing.TB, k kubernetes.Interface, p *admissionv1.ValidatingAdmissionPolicy, b *admissionv1.ValidatingAdmissionPolicyBinding) {
	t.Helper()
	kit.Must[*admissionv1.ValidatingAdmissionPolicy](t)(k.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(t.Context(), p, metav1.CreateOptions{}))
	kit.Must[*admissionv1.ValidatingAdmissionPolicyBinding](t)(k.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(t.Context(), b, metav1.CreateOptions{}))
}

// Can is a rule for resources of the platform.
func Can(verb string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{v1alpha1.GroupName}, Verbs: []string{verb}, Resources: resources}
}

// Granted returns the client of a user who has these rights in namespace default.
func (h Host) Granted(t testing.TB, name string, rules ...rbacv1.PolicyRule) core.CoreV1alpha1Interface {
	t.Helper()
	r := h.Kubernetes(t).RbacV1()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	kit.Must[*rbacv1.Role](t)(r.Roles(metav1.NamespaceDefault).Create(t.Context(), role, metav1.CreateOptions{}))
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}, Subjects: []rbacv1.Subject{User(name)},
	}
	kit.Must[*rbacv1.RoleBinding](t)(r.RoleBindings(metav1.NamespaceDefault).Create(t.Context(), binding, metav1.CreateOptions{}))
	c := h.Config()
	c.Impersonate = rest.ImpersonationConfig{UserName: name}
	return CoreOf(t, c)
}
