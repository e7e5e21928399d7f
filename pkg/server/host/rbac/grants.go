// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// firstKinds are the kinds that roles name first, in this order. All others follow in the order of the resources.
func firstKinds() []string {
	return []string{
		"tasks", "sessions", "agents", "providers", "tools", "skills", "executionevents", "approvals", "memories", "memoryproposals",
		"budgets", "agentruntimes", "runtimepools",
		"memorysearches", "memoryproposalsearches", "transcriptsearches", "toolcalls", "usagereports", "taskqueries",
	}
}

// grants are what the definitions of the resources say about roles.
type grants struct {
	kinds        []resource.KindGrant
	subresources []resource.Grant
}

// grantsOf returns the grants of the platform's resources. Subresources are ordered as their kinds, but those of kinds that no
// Editor writes come first.
func grantsOf(resources []resource.Resource) grants {
	var g grants
	for _, r := range resources {
		if r.GroupVersionResource().Group == group {
			g.kinds, g.subresources = append(g.kinds, r.KindGrant()), append(g.subresources, r.Grants()...)
		}
	}
	place := func(k resource.KindGrant) int {
		if i := slices.Index(firstKinds(), k.Resource); i >= 0 {
			return i
		}
		return len(firstKinds())
	}
	slices.SortStableFunc(g.kinds, func(a, b resource.KindGrant) int { return place(a) - place(b) })
	written := g.where(writtenBy(resource.Editor))
	slices.SortStableFunc(g.subresources, func(a, b resource.Grant) int {
		return slices.Index(written, kindOf(a)) - slices.Index(written, kindOf(b))
	})
	return g
}

// kindOf returns the kind of a subresource.
func kindOf(g resource.Grant) string {
	kind, _, _ := strings.Cut(g.Resource, "/")
	return kind
}

// where returns the kinds for which all conditions hold.
func (g grants) where(conditions ...func(resource.KindGrant) bool) (names []string) {
	for _, k := range g.kinds {
		if !slices.ContainsFunc(conditions, func(holds func(resource.KindGrant) bool) bool { return !holds(k) }) {
			names = append(names, k.Resource)
		}
	}
	return names
}

func readBy(r resource.Role) func(resource.KindGrant) bool {
	return func(k resource.KindGrant) bool { return slices.Contains(k.Readers, r) }
}

func createdBy(r resource.Role) func(resource.KindGrant) bool {
	return func(k resource.KindGrant) bool { return slices.Contains(k.Creators, r) }
}

func madeBy(r resource.Role) func(resource.KindGrant) bool {
	return func(k resource.KindGrant) bool { return slices.Contains(k.Makers, r) }
}

func writtenBy(r resource.Role) func(resource.KindGrant) bool {
	return func(k resource.KindGrant) bool { return slices.Contains(k.Writers, r) }
}

func kept(k resource.KindGrant) bool    { return k.Status }
func watched(k resource.KindGrant) bool { return !k.Unwatched }

func not(condition func(resource.KindGrant) bool) func(resource.KindGrant) bool {
	return func(k resource.KindGrant) bool { return !condition(k) }
}

// read returns the subresources that a role may get.
func (g grants) read(r resource.Role) (paths []string) {
	for _, one := range g.subresources {
		if slices.Contains(one.Readers, r) {
			paths = append(paths, one.Resource)
		}
	}
	return paths
}

// create permits creating objects, some of which may be deleted, asking questions, of which nothing is stored, and subresources.
func (g grants) create(r resource.Role) rbacv1.PolicyRule {
	var paths []string
	for _, one := range g.subresources {
		if slices.Contains(one.Creators, r) {
			paths = append(paths, one.Resource)
		}
	}
	return rule([]string{"create"}, group, slices.Concat(g.where(createdBy(r), kept), g.where(madeBy(r)), g.where(createdBy(r), not(kept)), paths)...)
}

// readOthers returns what people with a role read besides the kinds that an Editor writes: the objects that operators, the server
// and the workers write.
func (g grants) readOthers(r resource.Role) []string {
	return slices.Concat(g.status(r), g.where(readBy(r), watched, not(writtenBy(resource.Editor))), g.read(r))
}

// status returns the status of each kind that a role reads.
func (g grants) status(r resource.Role) []string {
	status := slices.Concat(g.where(kept, readBy(r), writtenBy(resource.Editor)), g.where(kept, readBy(r), not(writtenBy(resource.Editor))))
	for i := range status {
		status[i] += "/status"
	}
	return status
}

// readViews permits reading what the server computes and nobody can watch: the catalogue of tools, and records of usage.
func (g grants) readViews(r resource.Role) rbacv1.PolicyRule {
	return rule([]string{"get", "list"}, group, g.where(readBy(r), not(watched))...)
}
