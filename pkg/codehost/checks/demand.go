// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"regexp"
	"slices"
	"strings"

	"github.com/platform-ai/platform/pkg/codehost"
)

// demand is what a branch requires, compared with the checks that were reported.
type demand struct {
	// every is set if each check has to pass, whatever its name is.
	every    bool
	names    map[string]bool
	patterns []*regexp.Regexp
	// absent are the required names and patterns that no reported check has.
	absent []string
}

func newDemand(required codehost.Required, found []codehost.Check) demand {
	reported := map[string]bool{}
	for _, c := range found {
		reported[c.Name] = true
	}
	d := demand{every: required.Any, names: map[string]bool{}}
	for _, name := range required.Names {
		if d.names[name] {
			continue // the host names it twice
		}
		d.names[name] = true
		if reported[name] {
			continue
		}
		var pattern *regexp.Regexp
		if required.Patterns {
			pattern = wildcard(name)
		}
		if pattern == nil || !slices.ContainsFunc(found, func(c codehost.Check) bool { return pattern.MatchString(c.Name) }) {
			d.absent = append(d.absent, name)
			continue
		}
		d.patterns = append(d.patterns, pattern)
	}
	return d
}

func (d demand) includes(name string) bool {
	return d.every || d.names[name] || slices.ContainsFunc(d.patterns, func(p *regexp.Regexp) bool { return p.MatchString(name) })
}

// wildcards replaces the wildcards of a quoted pattern. A quoted backslash is replaced by itself, so that it does not quote what follows.
var wildcards = strings.NewReplacer(`\\`, `\\`, `\*`, `.*`, `\?`, `.`)

// wildcard returns the names that a pattern matches; nil for a name without wildcards.
func wildcard(name string) *regexp.Regexp {
	if !strings.ContainsAny(name, "*?") {
		return nil
	}
	pattern, err := regexp.Compile(`(?s)^` + wildcards.Replace(regexp.QuoteMeta(name)) + `$`)
	if err != nil {
		return nil // it is not UTF-8
	}
	return pattern
}
