// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package gitea

import (
	"context"
	"errors"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"github.com/platform-ai/platform/pkg/codehost"
	"github.com/platform-ai/platform/pkg/codehost/wire"
)

// accessModes are Gitea's words for permissions.
var accessModes = map[sdk.AccessMode]codehost.Permission{
	sdk.AccessModeNone: codehost.None, sdk.AccessModeRead: codehost.Read, sdk.AccessModeWrite: codehost.Write, sdk.AccessModeAdmin: codehost.Admin,
	sdk.AccessModeOwner: codehost.Admin,
}

// Permission implements codehost.Host. Gitea shows the permissions of others to administrators of the repository.
func (h *Host) Permission(ctx context.Context, user string) (codehost.Permission, error) {
	if !wire.IsLogin(user) {
		return codehost.None, nil
	}
	found, err := ask(ctx, h, func(c *sdk.Client) (*sdk.CollaboratorPermissionResult, *sdk.Response, error) {
		return c.CollaboratorPermission(h.at.Owner, h.at.Name, user)
	})
	switch {
	case errors.Is(err, codehost.ErrNotFound):
		_, err := h.repository(ctx) // Gitea answers so, too, if it does not show the repository
		return codehost.None, err
	case err != nil:
		return codehost.None, err
	case found == nil || found.User != nil && !strings.EqualFold(found.User.UserName, user):
		return codehost.None, wire.Malformed(kind)
	}
	permission, known := accessModes[found.Permission]
	if !known {
		return codehost.None, wire.Malformed(kind)
	}
	return permission, nil
}
