// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package external

import (
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

// kinds says to which families reading and writing a resource belongs. An empty family is refused to transaction
// tokens whatever their scopes are.
var kinds = map[string]struct{ read, write string }{
	"agents":                 {"agents:read", "agents:write"},
	"skills":                 {"skills:read", "skills:write"},
	"tools":                  {"tools:read", ""},
	"catalogtools":           {"tools:read", ""},
	"providers":              {"providers:use", ""},
	"runtimepools":           {"agents:read", ""},
	"agentruntimes":          {"agents:read", ""},
	"memories":               {"memory:read", "memory:write"},
	"memoryproposals":        {"memory:read", "memory:write"},
	"memorysearches":         {"memory:read", "memory:read"}, // asked by a create
	"memoryproposalsearches": {"memory:read", "memory:read"},
	"sessions":               {"sessions:read", "sessions:write"},
	"transcriptsearches":     {"sessions:read", "sessions:read"},
	"taskqueries":            {"tasks:list", "tasks:list"},
	"approvals":              {"tasks:get", "tasks:update"},
	"executionevents":        {"tasks:get", "tasks:update"},
	"repositorymonitors":     {"monitors:read", "monitors:write"},
	"budgets":                {"", ""}, // what a namespace may use is nobody's concern who works for a task
}

// reads reports whether a verb changes nothing.
func reads(verb string) bool { return slices.Contains([]string{"get", "list", "watch"}, verb) }

// never reports whether a transaction token may never make the request, in any mode: what every task relies on is not
// changed in the transaction of one.
func never(a authorizer.Attributes) bool {
	return a.GetAPIGroup() == v1alpha1.GroupName && !reads(a.GetVerb()) &&
		slices.Contains([]string{"providers", "tools", "catalogtools", "runtimepools", "agentruntimes"}, a.GetResource())
}

// needed returns the families of scopes that a request needs, all of them; ok is false for a request that no scope
// covers.
func needed(a authorizer.Attributes) (list []string, ok bool) {
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
	default:
		k, known := kinds[resource]
		family := k.write
		if reads(a.GetVerb()) {
			family = k.read
		}
		return []string{family}, known && family != ""
	}
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
