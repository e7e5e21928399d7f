// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package aggregated

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// known is a difference between the platform's kinds and custom resources that stays, with the reason.
type known struct {
	reason string
	is     func(difference) bool
	// seldom is set if the seed of the default run does not show the difference.
	seldom bool
}

// alike are the differences that stay. Each must occur in the default run, unless it is seldom.
var alike = []known{
	{"the stored form leaves out most values that are zero, as Kubernetes' own kinds do", func(d difference) bool {
		return d.ours == "" && zero(d.theirs)
	}, false},
	{"an empty text takes the default, as in Kubernetes' own kinds", func(d difference) bool {
		return zero(d.theirs) && d.ours != "" && d.ours == defaultOf(d)
	}, true},
	{"an amount is stored in the canonical form, as in a Pod", func(d difference) bool {
		a, errA := resource.ParseQuantity(strings.Trim(d.ours, `"`))
		b, errB := resource.ParseQuantity(strings.Trim(d.theirs, `"`))
		return strings.Contains(d.what, "resources.") && errA == nil && errB == nil && a.Cmp(b) == 0
	}, false},
	{"kinds with Go types refuse 1.0 for a whole number in a PUT, as a Deployment does; server-side apply takes it", func(d difference) bool {
		return d.step == "put what was read, 1 as 1.0" && d.what == "code" && d.ours == "400"
	}, false},
	{"a Budget without warnPercent warns at 80; a tag cannot give a list a default", func(d difference) bool {
		return d.kind == "Budget" && strings.HasPrefix(d.what, "spec.warnPercent") && slices.Contains([]string{"[]", "80"}, d.ours) && (d.theirs == "" || zero(d.theirs))
	}, false},
	{"who applies null owns the member, as in Kubernetes' own kinds; custom resources refuse null, so there it is left out, and who applies it owns what it was in", func(d difference) bool {
		_, path, owner := strings.Cut(d.what, " of ")
		null := strings.HasPrefix(d.step, "apply with null") && d.step != "apply with null for the member again"
		return owner && (d.null(path) || d.ours == "owned" && path == "."+strings.Join(d.optional, ".")) || null && strings.HasSuffix(d.what, " moved") && d.ours == "true"
	}, false},
	{"the entry of a second manager has a time only if its apply changed the form of the object, which null and zero values do here, and creationTimestamp: null there", func(d difference) bool {
		generated := len(d.added) > 0
		second := d.theirs == "without a time" && d.ours == "" || d.step == "apply without a member that the other manager keeps" && d.what == retimedName && d.ours == "true"
		meta, _ := d.content["metadata"].(node)
		at, given := meta["creationTimestamp"]
		again := d.step == "apply again by the first manager" && strings.HasSuffix(d.what, " moved") && d.ours == "false"
		return generated && (second || again && given && at == nil)
	}, false},
	{"a custom resource without any member left has the spec null, which its schema refuses", func(d difference) bool {
		return d.step == "apply without a member" && d.what == "code" && d.theirs == "422" && strings.Contains(d.all[1]["message"], "spec in body must be of type object")
	}, false},
	{"what cannot be changed after the create, which the schema does not say", func(d difference) bool {
		return d.step == "apply without a member" && d.what == "code" && d.ours == "422" && strings.Contains(d.all[0]["message"], "immutable")
	}, false},
	{"the server records who created a task", func(d difference) bool {
		return d.kind == "Task" && d.theirs == "" && (d.what == "metadata.annotations" || strings.HasPrefix(d.what, "metadata.annotations.platform.ai/requested-by"))
	}, false},
	{"defaults of a Task that depend on its type", func(d difference) bool {
		return d.kind == "Task" && slices.Contains([]string{"spec.timeout", "spec.workspace.pushBranch"}, d.what) && (d.theirs == "" || zero(d.theirs))
	}, false},
	{"secrets, and the queries of addresses that may hold some, are removed from what agents remember", func(d difference) bool {
		return strings.HasPrefix(d.kind, "Memory") && strings.Contains(d.theirs, "://") && strings.Contains(d.theirs, "?")
	}, true},
	{"kubectl replaces lists of custom resources as a whole, so that a default within an element is a change each time", func(d difference) bool {
		return d.step == "kubectl apply again" && (d.what == moved && d.ours == "false" || strings.Contains(d.ours+d.theirs, "/kubectl-written-"))
	}, false},
	{"kubectl says configured for a null or a zero value that is not stored, and for an amount in another form, as it does for Kubernetes' own kinds; nothing is written", func(d difference) bool {
		return d.step == "kubectl apply again" && (strings.Contains(d.ours+d.theirs, "/kubectl-generated-") || strings.Contains(d.ours+d.theirs, "/kubectl-amount"))
	}, false},
	{"the platform warns of settings that have no effect", func(d difference) bool {
		return strings.HasPrefix(d.ours, "Warning: ") && d.theirs == ""
	}, false},
}

func zero(text string) bool { return slices.Contains([]string{`""`, "0", "false", "[]", "{}"}, text) }

var index = regexp.MustCompile(`\[\d+\]`)

// defaultOf returns the default of the member where a difference is, as JSON; empty if there is none.
func defaultOf(d difference) string {
	s := openAPI().kind(d.kind)
	for name := range strings.SplitSeq(index.ReplaceAllString(d.what, ""), ".") {
		if items, ok := s["items"].(node); ok {
			s = items
		}
		properties, _ := s["properties"].(node)
		if s, _ = properties[name].(node); s == nil {
			return ""
		}
	}
	if s["default"] == nil {
		return ""
	}
	text, err := json.Marshal(s["default"])
	if err != nil {
		return ""
	}
	return string(text)
}
