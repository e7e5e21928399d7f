// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codehosttest

import (
	"testing"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/test/kit"
)

// TestPermissions: what users may do.
func TestPermissions(t *testing.T) {
	everywhere(t, map[string]func(*testing.T, place){"permissions": permissions})
}

func permissions(t *testing.T, p place) {
	h, ctx := p.open(t, p.maintainer), t.Context()
	all := []codehost.Permission{codehost.None, codehost.Read, codehost.Triage, codehost.Write, codehost.Maintain, codehost.Admin}
	if p.provider == codehost.Gitea {
		all = []codehost.Permission{codehost.None, codehost.Read, codehost.Write, codehost.Admin}
	}
	for _, want := range all {
		login := "may-" + string(want)
		p.grant(t, login, want)
		if got := kit.Must[codehost.Permission](t)(h.Permission(ctx, login)); got != want {
			t.Errorf("%s: %s", login, got)
		}
	}
	p.grant(t, "promoted", codehost.Read)
	p.grant(t, "promoted", codehost.Write)
	for login, want := range map[string]codehost.Permission{
		maintainer: codehost.Admin, "ADA": codehost.Admin, "promoted": codehost.Write,
		"stranger": codehost.None, "robot[bot]": codehost.None, "": codehost.None, "..": codehost.None, "ada/../ada": codehost.None, "ada/permission?": codehost.None, "a da": codehost.None,
	} {
		if got, err := h.Permission(ctx, login); err != nil || got != want {
			t.Errorf("%q: %s %v, want %s", login, got, err, want)
		}
	}
	_, hidden := p.open(t, p.readOnly).Permission(ctx, maintainer)
	_, wrong := p.open(t, "0123456789abcdef0123456789abcdef01234567").Permission(ctx, maintainer)
	refused(t, codehost.ErrCredential, map[string]error{"one who may only read": hidden, "a wrong token": wrong})
	p.url += "-of-nobody"
	_, gone := p.open(t, p.maintainer).Permission(ctx, maintainer)
	refused(t, codehost.ErrNotFound, map[string]error{"another repository": gone})
}
