// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// part is a part of a text, in bytes.
type part struct{ from, to int }

// whole returns all of s as one part.
func whole(s string) []part { return []part{{0, len(s)}} }

// nearby is how far from a change a pass can have a different result than the pass before, in bytes. It is more than a matcher
// remembers or looks back, but for a command, whose arguments may be reach bytes from its name. A matcher that looks ahead does so
// to the end of its line, which is always in the same part.
const nearby = 3 * keyLimit

// scanResult is the result of one pass.
type scanResult struct {
	text    string
	changed bool
	found   []string // what was found before, and what this pass found
	parts   []part   // of text; a next pass over these has the result of a pass over all
}

// scanParts makes one pass over some parts of s, which are in order.
func scanParts(s string, queries bool, found []string, parts []part) scanResult {
	x := scanner{s: s, queries: queries, found: found, cut: -1, manifest: -1, commandAt: -1, named: -1}
	for _, p := range parts {
		x.pass(p)
	}
	if len(x.changes) == 0 {
		return scanResult{text: s, found: x.found}
	}
	x.out.WriteString(s[x.done:])
	r := scanResult{text: x.out.String(), changed: true, found: x.found}
	// Blocks of keys and manifests have many lines.
	if x.nextEnd > 0 || x.nextSSHEnd > 0 || x.nextStray > 0 || x.manifest >= 0 || x.nextManifest > 0 {
		r.parts = whole(r.text)
		return r
	}
	near := nearby
	if x.command != noProgram || x.joined {
		near += reach
	}
	r.parts = around(r.text, x.changes, near)
	return r
}

// around returns the parts of s that are near to positions, which are in order. Each is made of whole lines.
func around(s string, positions []int, near int) []part {
	var parts []part
	for _, at := range positions {
		from, to := max(0, at-near), min(len(s), at+near)
		if n := len(parts); n == 0 || from > parts[n-1].to {
			from = strings.LastIndexByte(s[:from], '\n') + 1
			parts = append(parts, part{from, from})
		}
		last := &parts[len(parts)-1]
		if to > last.to {
			last.to = indexFrom(s, to, "\n")
		}
	}
	return parts
}
