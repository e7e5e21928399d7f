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
// What it guarantees, and the fuzz tests hold:
//   - Redacting twice gives what redacting once gave.
//   - Output is at most 3*len(input)+len(Marker) bytes long.
//   - Nothing panics, whatever the bytes.
//
// It errs towards removal: a word after "password=" goes, whatever it is. What
// it must leave alone are digests, UUIDs, base64 images and source code.
package redact

// Marker stands where a secret was.
const Marker = "[REDACTED]"

// maxPasses bounds how often the scan of a changed text is repeated. A pass
// that removes something can join two pieces into a new match; in practice the
// second pass finds nothing. A text that still changes after this many passes
// is replaced as a whole, so that the result is settled in every case.
const maxPasses = 6

// Text returns s without the secrets it contains, and whether any was removed.
func Text(s string) (string, bool) {
	out, changed := scan(s)
	if !changed {
		return s, false
	}
	for range maxPasses {
		next, again := scan(out)
		if !again {
			return out, true
		}
		out = next
	}
	return Marker, true
}
