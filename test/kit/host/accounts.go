// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	core "github.com/platform-ai/platform/pkg/generated/clientset/versioned/typed/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
)

// User is who has a name.
func User(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

// Group is everybody in a group.
func Group(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}
}

// Account is a ServiceAccount.
func Account(namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
}

// Role makes a ClusterRole. One that exists is left as it is.
func (h Host) Role(t testing.TB, name string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	if _, err := h.Kubernetes(t).RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// Bind gives a ClusterRole in a namespace, or everywhere if that is empty. A binding that exists is left as it is.
func (h Host) Bind(t testing.TB, namespace, role string, to rbacv1.Subject) {
	t.Helper()
	r := h.Kubernetes(t).RbacV1()
	meta := metav1.ObjectMeta{Name: strings.Join([]string{role, "of", strings.ToLower(to.Kind), to.Namespace, to.Name}, ":")}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	var err error
	if namespace == "" {
		b := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: []rbacv1.Subject{to}}
		_, err = r.ClusterRoleBindings().Create(t.Context(), b, metav1.CreateOptions{})
	} else {
		b := &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: []rbacv1.Subject{to}}
		_, err = r.RoleBindings(namespace).Create(t.Context(), b, metav1.CreateOptions{})
	}
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// ServiceAccount makes a ServiceAccount, and its namespace, unless they exist. It gets ClusterRoles there; an empty one is none.
func (h Host) ServiceAccount(t testing.TB, namespace, name string, roles ...string) {
	t.Helper()
	h.Namespaces(t, namespace)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := h.Kubernetes(t).CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	for _, role := range roles {
		if role != "" {
			h.Bind(t, namespace, role, Account(namespace, name))
		}
	}
}

// Token makes a ServiceAccount with ClusterRoles, and returns a token of it.
func (h Host) Token(t testing.TB, namespace, name string, roles ...string) string {
	t.Helper()
	h.ServiceAccount(t, namespace, name, roles...)
	return h.TokenOf(t, namespace, name, authenticationv1.TokenRequestSpec{})
}

// TokenOf returns a token of a ServiceAccount that exists.
func (h Host) TokenOf(t testing.TB, namespace, name string, spec authenticationv1.TokenRequestSpec) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: spec}
	return kit.Must[*authenticationv1.TokenRequest](t)(h.Kubernetes(t).CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), name, request, metav1.CreateOptions{})).Status.Token
}

// As returns the client of a user who has ClusterRoles in namespace default. Without a name it is the administrator's.
func (h Host) As(t testing.TB, user string, roles ...string) core.CoreV1alpha1Interface {
	t.Helper()
	for _, role := range roles {
		h.Bind(t, metav1.NamespaceDefault, role, User(user))
	}
	c := h.Config()
	if user != "" {
		c.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	}
	return CoreOf(t, c)
}
