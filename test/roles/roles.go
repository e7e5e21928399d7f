// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package roles says who may do what, for the tests of permissions. It is written down a second time on purpose: the roles
// themselves are made in pkg/server/host/rbac. Kinds that are not named here are taken from the Definitions; what the Definitions
// say of a kind then means here for each role what it means for the kinds that are named.
package roles

import (
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/server/registry/core"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

const (
	read  = "get list watch"
	write = "create update patch delete deletecollection"
	// kinds are the resources whose objects users write.
	kinds = "tasks sessions agents providers tools skills memories memoryproposals"
	// operated are those whose objects operators alone write.
	operated = "budgets agentruntimes"
	// owned are those whose objects only controllers write.
	owned = "runtimepools"
)

// kept returns kinds, operated and owned, with the stored kinds of the Definitions that are in none of them.
func kept() (users, operators, controllers string) {
	users, operators, controllers = kinds, operated, owned
	named := strings.Fields(kinds + " " + operated + " " + owned)
	for _, r := range core.Definitions() {
		switch g := r.KindGrant(); {
		case !g.Status || slices.Contains(named, g.Resource):
		case slices.Contains(g.Writers, resource.Editor):
			users += " " + g.Resource
		case slices.Contains(g.Writers, resource.Operator):
			operators += " " + g.Resource
		default:
			controllers += " " + g.Resource
		}
	}
	return users, operators, controllers
}

// Names are the roles by their letters.
func Names() map[rune]string {
	return map[rune]string{'v': "platform-viewer", 'e': "platform-editor", 'a': "platform-approver", 'o': "platform-operator", 'p': "platform-connections", 'w': "platform-worker"}
}

// Permission is a verb on a resource or subresource of the group, and the letters of the roles that have it.
type Permission struct{ Verb, Resource, Roles string }

// Permissions returns every verb on every resource of the group, and permissions that only the server itself checks. Each is
// there once.
func Permissions() []Permission {
	var all []Permission
	for _, row := range table() {
		for resource := range strings.FieldsSeq(row.resources) {
			for verb := range strings.FieldsSeq(row.verbs) {
				known := slices.ContainsFunc(all, func(p Permission) bool { return p.Verb == verb && p.Resource == resource })
				if !known {
					all = append(all, Permission{Verb: verb, Resource: resource, Roles: row.roles})
				}
			}
		}
	}
	return all
}

type row struct{ verbs, resources, roles string }

// table is what holds. The first row that names a verb on a resource decides.
func table() []row {
	users, operators, controllers := kept()
	return []row{
		{read, "tasks sessions executionevents approvals memories memoryproposals", "veaow"},
		{read, "agents providers tools skills", "veow"},
		{"create", "tasks memoryproposals agents", "eow"}, // the guard keeps workers to children, proposals and agents of their own
		{"delete", "agents", "eow"},                       // the guard keeps workers to agents of their own
		{read, "connectorproviders", "veopw"},             // the guard keeps workers to those that their task is bound to
		{read, "connections", "veop"},
		{write, "connections", "op"}, // the guard keeps people to their own
		{"create", "connectionauthorizations connections/authorize connections/complete", "p"},
		{"get", "connectorproviders/status connections/status", "veop"},
		{read, users, "veo"},
		{write, users, "eo"},
		{read, operators, "veo"},
		{write, operators, "o"},
		{read, controllers, "veo"},
		{write, controllers, ""}, // controllers own them
		{read, "gatewayidentities", "veo"},
		{write, "gatewayidentities", "o"},
		{"get list", "catalogtools usagemeasurements", "veo"},
		{"get", status(users, operators, controllers), "veo"},
		{"update patch", status(users, operators, controllers), "o"},
		{"get", "tasks/events", "veaow"},
		{"get", "tasks/stream tasks/trace", "veao"},
		{"get", "tasks/result tasks/log tasks/artifacts tasks/delta tasks/plan tasks/inbox sessions/transcript skills/content", "veow"},
		{"get", "tasks/proxy", "w"},
		{"get", "tasks/calls sessions/events sessions/stream sessions/turn chats/config", "veo"},
		{"get", "tasks/recording usagemeasurements/recording", "eo"},
		{"create", "tasks/events tasks/log tasks/result tasks/artifacts tasks/delta tasks/proxy tasks/plan tasks/messages tasks/inbox tasks/reply tasks/transactiontoken", "w"},
		{"create", "tasks/cancel tasks/detach tasks/codehost", "eow"},
		{"create", "tasks/connectortool", "w"},
		{"create", "tasks/fork sessions/transcript sessions/cancel memories/disable memories/enable memories/discard memories/restore chats", "eo"},
		{"create", "memoryproposals/review memoryproposals/apply", "ao"},
		{"create", "memoryproposals/archive", "eao"},
		{"create", "memorysearches memoryproposalsearches", "veaow"},
		{"create", "transcriptsearches toolcalls", "veow"},
		{"create", "usagereports gatewayrecordqueries", "veo"},
		{"create", "taskqueries", "veao"},
		{"create", "approvals/decision", "a"},
		{"create", "repositorymonitors/runs repositorymonitors/commands", "eo"},
		{"create", "codehostdeliveries/replay gatewayevents/replay gatewaydeliveries/retry gatewaydeliveries/abandon", "o"},
		{"create", "executionevents executionevents/controlled usagelinks repositorymonitors/codehost gateways/probe gatewaydeliveries/send gatewayevents/decide connections/release", ""},
		{"get", "repositorymonitors/links", ""},
	}
}

// status returns the subresource status of all resources of lists.
func status(lists ...string) string {
	return strings.Join(strings.Fields(strings.Join(lists, " ")), "/status ") + "/status"
}
