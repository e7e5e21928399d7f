// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"slices"
	"strings"

	"github.com/platform-ai/platform/test/roles"
)

// need is a permission that a request uses.
type need struct {
	verb, resource string
	// narrowed is set for a list or watch that selects what belongs to the task; everywhere for one of all namespaces.
	narrowed, everywhere bool
	// person is set if only somebody with an identity from outside may ask.
	person bool
	// children is set for a list of the tasks that the task delegated.
	children bool
	// unowned is set if the request cannot say that the task owns a new task.
	unowned bool
	// optional is set if the answer leaves out what the caller may not read. A need with unless exists only for callers
	// that do not have that permission.
	optional bool
	unless   *need
}

// permissions are those of the group, and of a resource that only requests of ours name.
var permissions = append(roles.Permissions(),
	roles.Permission{Verb: "list", Resource: "models", Roles: "veo"}, // of the vendors' APIs, which no worker uses
)

// everybody may ask these, if the server knows who they are.
var everybody = []string{
	"create selfsubjectreviews", "create selfsubjectaccessreviews", "create selfsubjectrulesreviews", "list customresourcedefinitions",
}

// outside are resources outside namespaces. The roles of callers are bound in one.
var outside = []string{"gatewayclasses", "gatewayclasses/status"}

// consents are what only a person does; owner is the person whose connection the questions are about.
var consents = []string{"create connectionauthorizations", "create connections/authorize", "create connections/complete"}

const owner = "OIDC viewer"

// person reports whether the caller has an identity from outside.
func (c caller) person() bool { return strings.HasPrefix(c.name, "OIDC") && !c.unknown }

// may is the model: whether a caller has a permission.
func (c caller) may(n need) bool {
	verbAndResource := n.verb + " " + n.resource
	switch {
	case verbAndResource == "create connections", (n.person || slices.Contains(consents, verbAndResource)) && !c.person():
		return false
	case n.resource == "connections" && n.narrowed && slices.Contains([]string{"list", "watch", "deletecollection"}, n.verb) && c.person() && c.name != owner:
		return false
	case verbAndResource == "create tasks/connectortool" && c.role != 'w': // only the run has the account of its requester
		return false
	case c.name == "administrator":
		return true
	case strings.HasPrefix(n.resource, "/"):
		return c.visits(n.resource)
	case c.unknown:
		return false
	case slices.Contains(everybody, verbAndResource):
		return n.resource != "customresourcedefinitions" || !strings.HasPrefix(c.name, "OIDC")
	case n.everywhere, slices.Contains(outside, n.resource):
		return false
	}
	for _, p := range permissions {
		if (strings.ContainsRune(p.Roles, c.role) || c.person() && strings.ContainsRune(p.Roles, 'p')) && p.Verb == n.verb && p.Resource == n.resource {
			return c.role != 'w' || c.works(n)
		}
	}
	return false
}

// visits is the model of paths that belong to no resource.
func (c caller) visits(path string) bool {
	first, _, deeper := strings.Cut(strings.Trim(path, "/"), "/")
	switch first {
	case "healthz", "livez", "readyz", "version":
		return !deeper && (!c.unknown || c.name == "anonymous")
	case "api", "apis", "openapi":
		return !c.unknown
	}
	return false
}

// works is the model of the guards: what a worker may do with what belongs to the task, beyond having the role.
func (c caller) works(n need) bool {
	self, parent := c.run == runSelf, c.run == runParent
	alive := c.run != runOver && c.run != runNone
	resource, sub, _ := strings.Cut(n.resource, "/")
	switch {
	case !alive:
		return false
	case n.verb == "delete":
		return false // agents that its own task created, which mine was not
	case n.verb == "create" && sub == "":
		// Searches and proposals are for the worker's own task, whichever it is. The others are for the task, which the body names.
		return self && !n.unowned || !slices.Contains([]string{"tasks", "toolcalls", "executionevents", "agents"}, resource)
	case n.verb == "create" && sub == "cancel":
		return self || parent
	case n.verb == "create" && (sub == "transactiontoken" || sub == "detach"):
		return parent
	case n.verb == "create":
		return self
	case resource == "connectorproviders": // the controller has bound the task to none
		return false
	case n.verb == "list" && resource == "providers":
		return self || !n.narrowed
	case n.children:
		return self
	case (n.verb == "list" || n.verb == "watch") && !n.narrowed:
		return false
	case resource == "tasks" && (sub == "inbox" || sub == "proxy"):
		return self
	case resource == "tasks", resource == "executionevents":
		return self || parent
	}
	return self
}

// allows is the model for a request that needs several permissions.
func (c caller) allows(needs []need) bool {
	return !slices.ContainsFunc(needs, func(n need) bool {
		return !n.optional && (n.unless == nil || !c.may(*n.unless)) && !c.may(n)
	})
}
