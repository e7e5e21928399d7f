// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package redact recognises secrets in text and JSON and removes them.
//
// It keeps no state between calls and works in time linear in its input. It makes one pass over the bytes,
// in which a table of trigger bytes ('=', ':', '-', '_', …) decides where a matcher is called at all. A
// matcher looks back over a bounded key and forward over the value to remove. Text without a secret is
// returned unchanged, without a copy.
//
// Values that a caller knows to be secret are removed whatever they look like, in each form in which programs write them (Known).
//
// Any other value is removed for one of three reasons: its key names a secret (key.go), it has the form of a secret
// (forms.tsv, shapes.go, crypt.go, pem.go, and encoded.go for base64), or the program or file that contains it is
// known to hold a secret there (command.go, manifest.go, url.go).
//
// The following guarantees are checked by fuzz tests:
//   - Redacting twice gives the same result as redacting once.
//   - The result is at most 4*len(input)+len(Marker) bytes long.
//   - Nothing panics, whatever the bytes.
//
// When in doubt it removes: a word after "password=" is removed, whatever it is. It must not remove
// digests, UUIDs, base64 images and source code.
package redact

import "strings"

// Marker replaces a removed secret.
const Marker = "[REDACTED]"

// maxPasses bounds how often the scan of a changed text is repeated. A pass that removes something can join
// two pieces into a new match. In practice the second pass finds nothing. A text that still changes after
// this many passes is replaced as a whole, so that redacting the result never changes it.
const maxPasses = 6

// Text returns s without the secrets it contains, and whether any was removed.
// Queries and fragments of URLs count as secrets. A value that is removed once is removed wherever it occurs in s.
func Text(s string) (string, bool) {
	out, changed, _ := settle(s, false)
	return out, changed
}

// Output is Text for what a run delivers to its user. Queries and fragments of URLs stay, except for
// secrets in them. Input that is JSON is treated as JSON does and stays JSON.
func Output(s string) (string, bool) {
	out, changed, _ := output(s)
	return out, changed
}

func output(s string) (string, bool, []string) {
	if v := strings.TrimSpace(s); len(v) > 1 && (v[0] == '{' || v[0] == '[' || v[0] == '"') && isJSON(v) {
		out, changed, found := settleJSON(v, true)
		if !changed {
			return s, false, nil
		}
		return out, true, found
	}
	return settle(s, true)
}

// settle repeats the scan until it changes nothing, and removes what was found wherever else it is.
// found are the removed values that must not occur elsewhere, either.
func settle(s string, queries bool) (out string, changed bool, found []string) {
	return rescan(s, queries, true)
}

// rescan repeats the scan until it changes nothing. With everywhere it also removes what was found wherever else it is.
func rescan(s string, queries, everywhere bool) (out string, changed bool, found []string) {
	r := scanParts(s, queries, nil, whole(s))
	if !r.changed {
		return s, false, nil
	}
	for range maxPasses {
		clean, more, parts := r.text, false, r.parts
		if everywhere {
			if clean, more = again(r.text, r.found); more {
				parts = whole(clean)
			}
		}
		next := scanParts(clean, queries, r.found, parts)
		if !next.changed && !more {
			return r.text, true, r.found
		}
		r = next
	}
	return Marker, true, r.found
}
