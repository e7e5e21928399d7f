// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/wire"
)

// Permission implements codehost.Host. GitHub says a permission and the name of a role, which may be one that an organization has made:
// then the permission is what the role is based on. A made role may have any name, so a name counts only with the permission that GitHub
// gives its own role of that name.
func (h *Host) Permission(ctx context.Context, login string) (codehost.Permission, error) {
	if !wire.IsLogin(login) {
		return codehost.None, nil
	}
	found, _, err := h.client.Repositories.GetPermissionLevel(ctx, h.at.Owner, h.at.Name, url.PathEscape(login))
	switch err = wire.Error(ctx, err, kind); {
	case errors.Is(err, codehost.ErrNotFound):
		_, err := h.repository(ctx) // GitHub answers so, too, if it does not show the repository
		return codehost.None, err
	case err != nil:
		return codehost.None, err
	case found.GetUser() != nil && !strings.EqualFold(found.GetUser().GetLogin(), login):
		return codehost.None, wire.Malformed(kind)
	}
	switch permission, role := codehost.Permission(found.GetPermission()), codehost.Permission(found.GetRoleName()); permission {
	case codehost.Read:
		if role == codehost.Triage {
			return role, nil
		}
		return permission, nil
	case codehost.Write:
		if role == codehost.Maintain {
			return role, nil
		}
		return permission, nil
	case codehost.None, codehost.Admin:
		return permission, nil
	}
	return codehost.None, wire.Malformed(kind)
}
