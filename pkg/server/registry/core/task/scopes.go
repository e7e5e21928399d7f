// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package task

import (
	"slices"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/platform-ai/platform/pkg/server/auth/external"
)

// scopes returns what a transaction token needs for a request about tasks: each verb has a family of its own.
func scopes(a authorizer.Attributes) (families []string, ok bool) {
	switch sub, verb := a.GetSubresource(), a.GetVerb(); {
	case sub == "fork" && verb == "create":
		return []string{"tasks:get", "tasks:create"}, true
	case sub != "" && external.Reads(verb):
		return []string{"tasks:get"}, true
	case sub != "":
		return []string{"tasks:update"}, true
	case verb == "watch":
		return []string{"tasks:list"}, true
	case slices.Contains([]string{"create", "get", "list", "delete", "update"}, verb):
		return []string{"tasks:" + verb}, true
	case verb == "patch":
		return []string{"tasks:update"}, true
	case verb == "deletecollection":
		return []string{"tasks:delete"}, true
	}
	return nil, false
}
