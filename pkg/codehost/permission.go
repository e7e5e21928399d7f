// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codehost

import "slices"

// Permission is what a user may do in a repository.
type Permission string

// Permissions, the lowest first, as GitHub names its roles. Gitea has neither Triage nor Maintain.
const (
	None     Permission = "none"
	Read     Permission = "read"
	Triage   Permission = "triage"
	Write    Permission = "write"
	Maintain Permission = "maintain"
	Admin    Permission = "admin"
)

var permissions = []Permission{None, Read, Triage, Write, Maintain, Admin}

// AtLeast reports whether p allows whatever least allows. It is false if one of them is none of the permissions above.
func (p Permission) AtLeast(least Permission) bool {
	have, want := slices.Index(permissions, p), slices.Index(permissions, least)
	return want >= 0 && have >= want
}
