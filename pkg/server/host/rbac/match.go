// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// allows reports whether a rule permits a request, with the semantics of
// Kubernetes.
func allows(rule *rbacv1.PolicyRule, a authorizer.Attributes) bool {
	if !has(rule.Verbs, rbacv1.VerbAll, a.GetVerb()) {
		return false
	}
	if !a.IsResourceRequest() {
		return slices.ContainsFunc(rule.NonResourceURLs, func(pattern string) bool { return urlMatches(pattern, a.GetPath()) })
	}
	return has(rule.APIGroups, rbacv1.APIGroupAll, a.GetAPIGroup()) &&
		resourceMatches(rule.Resources, a.GetResource(), a.GetSubresource()) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, a.GetName()))
}

func has(set []string, all, s string) bool {
	return slices.Contains(set, all) || slices.Contains(set, s)
}

// resourceMatches supports "*" (which includes subresources), "pods",
// "pods/log" and "*/log". "pods" does not include "pods/log", and "pods/*"
// matches nothing.
func resourceMatches(set []string, resource, subresource string) bool {
	if subresource == "" {
		return has(set, rbacv1.ResourceAll, resource)
	}
	for _, r := range set {
		parent, sub, ok := strings.Cut(r, "/")
		if r == rbacv1.ResourceAll || ok && sub == subresource && (parent == "*" || parent == resource) {
			return true
		}
	}
	return false
}

// urlMatches supports "*", an exact path, and a path with trailing stars as a
// prefix.
func urlMatches(pattern, path string) bool {
	return pattern == rbacv1.NonResourceAll || pattern == path ||
		strings.HasSuffix(pattern, "*") && strings.HasPrefix(path, strings.TrimRight(pattern, "*"))
}

// principal is the index key of a subject: one kind and one name.
type principal struct{ kind, name string }

// subjectPrincipal returns the key of a subject of a binding in a namespace (""
// for a ClusterRoleBinding); ok is false for a subject that no user can be. The
// key of a ServiceAccount is that of the user that its tokens authenticate.
func subjectPrincipal(s rbacv1.Subject, namespace string) (p principal, ok bool) {
	switch s.Kind {
	case rbacv1.UserKind, rbacv1.GroupKind:
		return principal{s.Kind, s.Name}, true
	case rbacv1.ServiceAccountKind:
		if s.Namespace != "" {
			namespace = s.Namespace
		}
		if namespace == "" {
			return principal{}, false
		}
		return principal{rbacv1.UserKind, serviceaccount.MakeUsername(namespace, s.Name)}, true
	}
	return principal{}, false
}
