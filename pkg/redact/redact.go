// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package redact recognises secrets in text and JSON and removes them.
//
// It is pure and works in time linear in its input: one pass over the bytes,
// in which a table of trigger bytes ('=', ':', '-', '_', …) decides where a
// matcher is asked at all. A matcher looks back over a bounded key and forward
// over what it removes. Text without a secret is returned as it came, without
// a copy.
//
// A value is removed for one of three reasons: its key says so (key.go), its
// own form does (formats.go, shapes.go, pem.go, and encoded.go for base64), or
// the program or file it stands in (command.go, manifest.go, url.go).
//
// What it guarantees, and the fuzz tests hold:
//   - Redacting twice gives what redacting once gave.
//   - The result is at most 4*len(input)+len(Marker) bytes long.
//   - Nothing panics, whatever the bytes.
//
// It errs towards removal: a word after "password=" goes, whatever it is. What
// it must leave alone are digests, UUIDs, base64 images and source code.
package redact

import (
	"encoding/json"
	"strings"
)

// Marker stands where a secret was.
const Marker = "[REDACTED]"

// maxPasses bounds how often the scan of a changed text is repeated. A pass
// that removes something can join two pieces into a new match; in practice the
// second pass finds nothing. A text that still changes after this many passes
// is replaced as a whole, so that the result is settled in every case.
const maxPasses = 6

// Text returns s without the secrets it contains, and whether any was removed.
// Queries and fragments of URLs count as secrets.
func Text(s string) (string, bool) { return settle(s, false) }

// Output is Text for what a run delivers to its user: queries and fragments of
// URLs stay, but for the secrets in them, and what is JSON is treated as JSON
// does and stays JSON.
func Output(s string) (string, bool) {
	if v := strings.TrimSpace(s); len(v) > 1 && (v[0] == '{' || v[0] == '[' || v[0] == '"') && json.Valid([]byte(v)) {
		out, changed := settleJSON([]byte(v), true)
		if !changed {
			return s, false
		}
		return string(out), true
	}
	return settle(s, true)
}

// settle repeats the scan until it changes nothing.
func settle(s string, queries bool) (string, bool) {
	out, changed := scan(s, queries)
	if !changed {
		return s, false
	}
	for range maxPasses {
		next, again := scan(out, queries)
		if !again {
			return out, true
		}
		out = next
	}
	return Marker, true
}
