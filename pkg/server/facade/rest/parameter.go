// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Parameters returns the names of the query parameters that a row accepts, sorted.
func (r Row) Parameters() []string {
	names := map[string]bool{"namespace": true}
	add := func(list ...string) {
		for _, name := range list {
			if name != "" {
				names[name] = true
			}
		}
	}
	add(r.Namespaces...)
	add(r.Ignored...)
	add(r.When)
	for _, n := range r.Native {
		if n.Page {
			add("limit", "continue")
		}
		add(n.Pass...)
		for _, line := range n.AskFor {
			add(askedFor(line)...)
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// askedFor returns the query parameters that a line of Native.AskFor reads.
func askedFor(line string) []string {
	if strings.Contains(line, " = ") {
		return nil // always the same
	}
	member, params, several := strings.Cut(line, ":")
	if !several {
		return []string{strings.TrimRight(member, "[]#?!0")}
	}
	var out []string
	for one := range strings.SplitSeq(params, "|") {
		if one = strings.TrimSpace(one); !strings.HasPrefix(one, ":") { // not one of the path
			out = append(out, one)
		}
	}
	return out
}

// parameters refuses a query with a parameter that the row does not have: a misspelt filter would return everything.
func (r Row) parameters(q url.Values) error {
	if r.Answer.Unsupported != "" {
		return nil // what the path will accept is not known
	}
	all := r.Parameters()
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if !slices.Contains(all, name) {
			return badRequest("%.64s: is not a parameter of this path; it has: %s", name, strings.Join(all, ", "))
		}
	}
	return nil
}
