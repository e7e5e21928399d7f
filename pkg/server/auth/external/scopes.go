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
		"skills:write", "gateways:read", "gateways:operate", "connectors:read", "connectors:manage",
	}
}

// Scopes says which families the requests for a kind need. A request without a family is refused to transaction tokens, whatever
// their scopes are.
type Scopes struct {
	// Read and Write are the families to which reading and writing the objects belongs.
	Read, Write string
	// Of, if set, decides in place of Read and Write, for a kind whose requests need several families, or others for a
	// subresource. ok is false for a request that no scope covers.
	Of func(a authorizer.Attributes) (families []string, ok bool)
}

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

// Reads reports whether a verb changes nothing.
func Reads(verb string) bool { return slices.Contains([]string{"get", "list", "watch"}, verb) }

// never reports whether a transaction token may never make the request, in any mode: what every task relies on, which transactions
// therefore only read, is not changed in the transaction of one.
func (k Kinds) never(a authorizer.Attributes) bool {
	scopes := k[a.GetResource()]
	return a.GetAPIGroup() == v1alpha1.GroupName && !Reads(a.GetVerb()) && scopes.Read != "" && scopes.Write == ""
}

// Needed returns the families of scopes that a request needs, all of them; ok is false for a request that no scope
// covers.
func (k Kinds) Needed(a authorizer.Attributes) (list []string, ok bool) {
	switch group, resource := a.GetAPIGroup(), a.GetResource(); {
	case group == "" && resource == "secrets" && Reads(a.GetVerb()):
		return []string{"secrets:read"}, true
	case group == "" && resource == "configmaps" && Reads(a.GetVerb()):
		return []string{"configmaps:read"}, true
	case group != v1alpha1.GroupName:
		return nil, false
	default:
		return k[resource].needed(a)
	}
}

func (s Scopes) needed(a authorizer.Attributes) (list []string, ok bool) {
	if s.Of != nil {
		return s.Of(a)
	}
	family := s.Write
	if Reads(a.GetVerb()) {
		family = s.Read
	}
	return []string{family}, family != ""
}
