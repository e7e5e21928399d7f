// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package githubapi

import (
	"cmp"
	"net/http"
	"strings"
)

// bases are the permissions that GitHub gives for its own roles.
var bases = map[string]string{"none": "none", "read": "read", "triage": "read", "write": "write", "maintain": "write", "admin": "admin"}

// collaborator serves what a user may do. Those who may only read are not told.
func (h *Host) collaborator(w http.ResponseWriter, r *http.Request, path string) {
	login, what, _ := strings.Cut(path, "/")
	role := ""
	for user, has := range h.state.Roles {
		if strings.EqualFold(user, login) {
			login, role = user, has
		}
	}
	switch {
	case what != "permission":
		refuse(w, http.StatusNotFound, "Not Found")
	case r.Header.Get("Authorization") == "Bearer "+h.ReadOnly:
		refuse(w, http.StatusForbidden, "Must have push access to view collaborator permission.")
	case role == "":
		refuse(w, http.StatusNotFound, login+" is not a user")
	default:
		answer(w, http.StatusOK, map[string]any{"permission": cmp.Or(h.state.Bases[role], bases[role]), "role_name": role, "user": Account(login)})
	}
}
