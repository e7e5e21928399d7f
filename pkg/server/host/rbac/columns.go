// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// createdAt returns the column that kubectl shows for roles.
func createdAt[T resource.Object]() resource.Column[T] {
	return resource.Column[T]{
		Name: "Created At", Description: "When the role was created.", Wide: true,
		Value: func(o T) any { return o.GetCreationTimestamp().UTC().Format(time.RFC3339) },
	}
}

func bindingColumns[T resource.Object](role func(T) rbacv1.RoleRef, subjects func(T) []rbacv1.Subject) []resource.Column[T] {
	return []resource.Column[T]{
		{Name: "Role", Description: "The role that is granted.", Value: func(o T) any {
			return role(o).Kind + "/" + role(o).Name
		}},
		{Name: "Users", Description: "The users it is granted to.", Wide: true, Value: func(o T) any {
			return names(subjects(o), rbacv1.UserKind)
		}},
		{Name: "Groups", Description: "The groups it is granted to.", Wide: true, Value: func(o T) any {
			return names(subjects(o), rbacv1.GroupKind)
		}},
		{Name: "ServiceAccounts", Description: "The ServiceAccounts it is granted to.", Wide: true, Value: func(o T) any {
			return names(subjects(o), rbacv1.ServiceAccountKind)
		}},
	}
}

func names(subjects []rbacv1.Subject, kind string) string {
	var out []string
	for _, s := range subjects {
		switch {
		case s.Kind != kind:
		case kind == rbacv1.ServiceAccountKind:
			out = append(out, s.Namespace+"/"+s.Name)
		default:
			out = append(out, s.Name)
		}
	}
	return strings.Join(out, ", ")
}
