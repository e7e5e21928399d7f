// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Parameter describes a query parameter.
type Parameter struct {
	Name string
	// Type is string, integer or boolean.
	Type string
	// Least is the least value of an integer.
	Least int
	// Repeated is set if the parameter may be given several times.
	Repeated bool
	// Only is the only value of a parameter of the path; empty if it may have any.
	Only string
	Text string
}

// Parameters returns the names of the query parameters that a row accepts, sorted.
func (r Row) Parameters() []string {
	names := append([]string{"namespace"}, r.Ignored...)
	for _, n := range r.Native {
		if n.Page {
			names = append(names, "limit", "continue")
		}
		names = append(names, n.Pass...)
		for _, p := range n.Asked() {
			names = append(names, p.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
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
