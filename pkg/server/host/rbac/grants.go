// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"slices"
	"strings"

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
	written := g.of(resource.Editor).writes
	placeOfParent := func(g resource.Grant) int {
		kind, _, _ := strings.Cut(g.Resource, "/")
		return slices.Index(written, kind)
	}
	slices.SortStableFunc(g.subresources, func(a, b resource.Grant) int { return placeOfParent(a) - placeOfParent(b) })
	return g
}

// rights are the resources that a role may use, by what it may do with them.
type rights struct {
	// reads are the kinds that it gets, lists and watches, and views those that cannot be watched.
	reads, views []string
	// status is the status of each of reads, and gets are the subresources that it gets.
	status, gets []string
	// others are status, what of reads no Editor writes, and gets.
	others []string
	// creates are the kinds and subresources that it creates, and makes those kinds that it deletes as well.
	creates, makes []string
	// writes are the kinds that it creates, changes and deletes.
	writes []string
}

// of returns the rights of a role.
func (g grants) of(r resource.Role) (x rights) {
	var asks, posts []string // kinds and subresources that are created and not stored
	for _, k := range g.kinds {
		switch read := slices.Contains(k.Readers, r); {
		case read && k.Unwatched:
			x.views = append(x.views, k.Resource)
		case read:
			x.reads = append(x.reads, k.Resource)
			if k.Status {
				x.status = append(x.status, k.Resource+"/status")
			}
			if !slices.Contains(k.Writers, resource.Editor) {
				x.others = append(x.others, k.Resource)
			}
		}
		switch create := slices.Contains(k.Creators, r); {
		case create && k.Status:
			x.creates = append(x.creates, k.Resource)
		case create:
			asks = append(asks, k.Resource)
		}
		if slices.Contains(k.Makers, r) {
			x.makes = append(x.makes, k.Resource)
		}
		if slices.Contains(k.Writers, r) {
			x.writes = append(x.writes, k.Resource)
		}
	}
	for _, s := range g.subresources {
		if slices.Contains(s.Readers, r) {
			x.gets = append(x.gets, s.Resource)
		}
		if slices.Contains(s.Creators, r) {
			posts = append(posts, s.Resource)
		}
	}
	x.others = slices.Concat(x.status, x.others, x.gets)
	x.creates = slices.Concat(x.creates, x.makes, asks, posts)
	return x
}
