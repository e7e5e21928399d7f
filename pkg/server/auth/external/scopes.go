// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"fmt"
	"slices"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// scopePrefix begins the default scope of each family.
const scopePrefix = "platform:"

// families are the families of scopes. Those of parts of the platform that are not built yet have no requests.
func families() []string {
	return []string{
		"tasks:create", "tasks:get", "tasks:list", "tasks:delete", "tasks:update", "tools:read", "tools:use", "providers:use", "secrets:read",
		"secrets:credentials:read", "configmaps:read", "agents:read", "agents:write", "memory:read", "memory:write", "sessions:read",
		"sessions:write", "security:read", "security:write", "monitors:read", "monitors:write", "monitors:operate", "skills:read",
		"skills:write", "gateways:read", "gateways:operate",
	}
}

// Scopes says to which families reading and writing the objects of a kind belongs. An empty family is refused to transaction tokens
// whatever their scopes are.
type Scopes struct{ Read, Write string }

// Kinds are the scopes of kinds by their resources. Those of a kind that is not there are empty.
type Kinds map[string]Scopes

// check reports a family that no flag configures.
func (k Kinds) check() error {
	for resource, scopes := range k {
		for _, f := range []string{scopes.Read, scopes.Write} {
			if f != "" && !slices.Contains(families(), f) {
				return fmt.Errorf("scopes of %s: %q is not one of %v", resource, f, families())
			}
		}
	}
	return nil
}

// reads reports whether a verb changes nothing.
func reads(verb string) bool { return slices.Contains([]string{"get", "list", "watch"}, verb) }

// never reports whether a transaction token may never make the request, in any mode: what every task relies on, which transactions
// therefore only read, is not changed in the transaction of one.
func (k Kinds) never(a authorizer.Attributes) bool {
	scopes := k[a.GetResource()]
	return a.GetAPIGroup() == v1alpha1.GroupName && !reads(a.GetVerb()) && scopes.Read != "" && scopes.Write == ""
}

// Needed returns the families of scopes that a request needs, all of them; ok is false for a request that no scope
// covers.
func (k Kinds) Needed(a authorizer.Attributes) (list []string, ok bool) {
	switch group, resource := a.GetAPIGroup(), a.GetResource(); {
	case group == "" && resource == "secrets" && reads(a.GetVerb()):
		return []string{"secrets:read"}, true
	case group == "" && resource == "configmaps" && reads(a.GetVerb()):
		return []string{"configmaps:read"}, true
	case group != v1alpha1.GroupName:
		return nil, false
	case resource == "tasks":
		return ofTask(a)
	case resource == "usagereports" || resource == "usagemeasurements": // both show tasks, sessions and what monitors asked for
		return []string{"tasks:list", "monitors:read", "sessions:read"}, true
	case resource == "chats" && a.GetSubresource() == "config": // which Provider and model answer
		return []string{"providers:use"}, reads(a.GetVerb())
	case resource == "chats": // a turn asks a Provider, and is kept in a session
		return []string{"sessions:write", "providers:use"}, a.GetVerb() == "create"
	case resource == "repositorymonitors": // which this version does not serve, but asks for permissions on
		return Scopes{Read: "monitors:read", Write: "monitors:write"}.family(a.GetVerb())
	default:
		return k[resource].family(a.GetVerb())
	}
}

// family returns the one that a verb belongs to.
func (s Scopes) family(verb string) (list []string, ok bool) {
	family := s.Write
	if reads(verb) {
		family = s.Read
	}
	return []string{family}, family != ""
}

// ofTask returns the families of a request about tasks.
func ofTask(a authorizer.Attributes) (list []string, ok bool) {
	switch sub, verb := a.GetSubresource(), a.GetVerb(); {
	case sub == "fork" && verb == "create":
		return []string{"tasks:get", "tasks:create"}, true
	case sub != "" && reads(verb):
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
