// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package github_test

import (
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/test/githubapi"
	"github.com/platform-ai/platform/test/kit"
)

// TestRoles: a role that an organization has made allows what it is based on, whatever its name is.
func TestRoles(t *testing.T) {
	h := githubapi.New(t)
	g := open(t, h, h.Token, 0)
	for _, c := range []struct {
		role, base string
		want       codehost.Permission
	}{
		{"none", "", codehost.None},
		{"read", "", codehost.Read},
		{"triage", "", codehost.Triage},
		{"write", "", codehost.Write},
		{"maintain", "", codehost.Maintain},
		{"admin", "", codehost.Admin},
		{"security team", "write", codehost.Write},
		{"visitors", "read", codehost.Read},
		{"owners", "admin", codehost.Admin},
		{"maintain", "read", codehost.Read},
		{"admin", "write", codehost.Write},
		{"triage", "admin", codehost.Admin},
		{"admin", "none", codehost.None},
		{"write", "read", codehost.Read},
	} {
		h.Change(func(s *githubapi.State) { s.Roles["rita"], s.Bases[c.role] = c.role, c.base })
		if got := kit.Must[codehost.Permission](t)(g.Permission(t.Context(), "rita")); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
		h.Change(func(s *githubapi.State) { clear(s.Bases) })
	}
	before := len(h.Requests())
	for _, login := range []string{"", ".", "..", "a/b", "rita/permission", "rita?", "rita#", "ri ta", "rita\n", "%72ita", "[bot]", strings.Repeat("a", 200)} {
		if got, err := g.Permission(t.Context(), login); err != nil || got != codehost.None {
			t.Errorf("%q: %s %v", login, got, err)
		}
	}
	if asked := h.Requests()[before:]; len(asked) != 0 {
		t.Errorf("%q", asked)
	}
	kit.Must[codehost.Permission](t)(g.Permission(t.Context(), "robot[bot]"))
	if asked := h.Requests()[before:]; asked[0] != "GET /api/v3/repos/ada/shop/collaborators/robot[bot]/permission" {
		t.Errorf("%q", asked)
	}
}
