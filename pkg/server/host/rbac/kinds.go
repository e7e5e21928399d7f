// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// Resources returns the four kinds, served so that a write is answered only
// when the View has it.
func Resources(v *View) []resource.Resource {
	return []resource.Resource{
		guarded{roles, "Role", v},
		guarded{roleBindings, "RoleBinding", v},
		guarded{clusterRoles, "ClusterRole", v},
		guarded{clusterRoleBindings, "ClusterRoleBinding", v},
	}
}

// Names of these kinds may contain colons, as in "system:discovery".
func validName(name string, prefix bool) []string {
	if prefix {
		return content.IsPathSegmentPrefix(name)
	}
	return content.IsPathSegmentName(name)
}

func roleRef() *field.Path { return field.NewPath("roleRef") }

var roles = &resource.Definition[*rbacv1.Role]{
	Unguarded: true,
	Resource:  rbacv1.SchemeGroupVersion.WithResource("roles"),
	Kind:      "Role", Singular: "role",
	Shape: resource.Kept[*rbacv1.Role]{
		ValidateName:        validName,
		Validate:            validateRole,
		UnconditionalUpdate: true,
	},
	Columns: []resource.Column[*rbacv1.Role]{createdAt[*rbacv1.Role]()},
}

var clusterRoles = &resource.Definition[*rbacv1.ClusterRole]{
	Unguarded: true,
	Resource:  rbacv1.SchemeGroupVersion.WithResource("clusterroles"),
	Kind:      "ClusterRole", Singular: "clusterrole",
	ClusterScoped: true,
	Shape: resource.Kept[*rbacv1.ClusterRole]{
		ValidateName:        validName,
		Validate:            validateClusterRole,
		UnconditionalUpdate: true,
	},
	Columns: []resource.Column[*rbacv1.ClusterRole]{createdAt[*rbacv1.ClusterRole]()},
}

var roleBindings = &resource.Definition[*rbacv1.RoleBinding]{
	Unguarded: true,
	Resource:  rbacv1.SchemeGroupVersion.WithResource("rolebindings"),
	Kind:      "RoleBinding", Singular: "rolebinding",
	Shape: resource.Kept[*rbacv1.RoleBinding]{
		ValidateName:        validName,
		Validate:            validateRoleBinding,
		UnconditionalUpdate: true,
		Frozen: []resource.Frozen[*rbacv1.RoleBinding]{
			{Path: roleRef(), Value: func(b *rbacv1.RoleBinding) any { return b.RoleRef }},
		},
	},
	Columns: bindingColumns(
		func(b *rbacv1.RoleBinding) rbacv1.RoleRef { return b.RoleRef },
		func(b *rbacv1.RoleBinding) []rbacv1.Subject { return b.Subjects },
	),
}

var clusterRoleBindings = &resource.Definition[*rbacv1.ClusterRoleBinding]{
	Unguarded: true,
	Resource:  rbacv1.SchemeGroupVersion.WithResource("clusterrolebindings"),
	Kind:      "ClusterRoleBinding", Singular: "clusterrolebinding",
	ClusterScoped: true,
	Shape: resource.Kept[*rbacv1.ClusterRoleBinding]{
		ValidateName:        validName,
		Validate:            validateClusterRoleBinding,
		UnconditionalUpdate: true,
		Frozen: []resource.Frozen[*rbacv1.ClusterRoleBinding]{
			{Path: roleRef(), Value: func(b *rbacv1.ClusterRoleBinding) any { return b.RoleRef }},
		},
	},
	Columns: bindingColumns(
		func(b *rbacv1.ClusterRoleBinding) rbacv1.RoleRef { return b.RoleRef },
		func(b *rbacv1.ClusterRoleBinding) []rbacv1.Subject { return b.Subjects },
	),
}
