// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

// Limits of the values that are removed wherever they occur again.
const (
	minSeen   = 8
	maxSeen   = 512
	seenOnce  = 64  // values of one text
	seenCount = 256 // values that a Seen keeps
)

// Seen holds the secrets that were removed from earlier texts, to remove them from later ones as well, where nothing
// identifies them. It keeps only values that cannot be ordinary words, and the first 256 of these. The zero value is
// ready to use, and a nil Seen keeps nothing. It is safe for concurrent use.
type Seen struct {
	mu       sync.Mutex
	values   []string
	replacer *replacer
}

// Text is like the function Text. It removes the values that were seen before as well.
func (k *Seen) Text(s string) (string, bool) { return k.apply(settle(s, false)) }

// Output is like the function Output. It removes the values that were seen before as well.
func (k *Seen) Output(s string) (string, bool) { return k.apply(output(s)) }

// JSON is like the function JSON, and leaves out white space between values. It removes the values that were seen before
// as well.
func (k *Seen) JSON(b []byte) ([]byte, bool, error) {
	s := string(b)
	valid, spaced := validJSON(s)
	if !valid {
		return nil, false, ErrSyntax
	}
	if spaced {
		var compact bytes.Buffer
		compact.Grow(len(b))
		if err := json.Compact(&compact, b); err != nil {
			return nil, false, ErrSyntax
		}
		s = compact.String()
	}
	out, changed, found := settleJSON(s, false)
	if k != nil {
		out, changed = k.apply(out, changed, found)
	}
	return []byte(out), changed, nil
}

// Remove returns s without the values that were seen.
func (k *Seen) Remove(s string) string {
	if k == nil {
		return s
	}
	if r := k.kept(); r != nil {
		return r.replace(s)
	}
	return s
}

// kept returns the replacer of the values that were seen; nil for none.
func (k *Seen) kept() *replacer {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.replacer
}

func (k *Seen) apply(s string, changed bool, found []string) (string, bool) {
	k.add(found)
	clean := k.Remove(s)
	return clean, changed || clean != s
}

func (k *Seen) add(found []string) {
	if k == nil || len(found) == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	n := len(k.values)
	for _, v := range found {
		if len(k.values) < seenCount && !slices.Contains(k.values, v) {
			k.values = append(k.values, strings.Clone(v)) // v is a part of a longer text
		}
	}
	if len(k.values) > n {
		k.replacer = replacerOf(k.values)
	}
}

// noted appends a removed value to found if it must be removed wherever it occurs.
func noted(found []string, v string) []string {
	if len(found) >= seenOnce {
		return found
	}
	if at := strings.LastIndexByte(v, ' '); at >= 0 && schemeWord(v[:at]) {
		v = v[at+1:]
	}
	if len(v) < minSeen || len(v) > maxSeen || !distinct(v) || slices.Contains(found, v) {
		return found
	}
	return append(found, v)
}

// distinct reports whether v is one word that mixes letters and digits, and is not a name or a number of something.
func distinct(v string) bool {
	for i := range len(v) {
		if c := v[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`"'\`+"`[]<>", c) >= 0 {
			return false
		}
	}
	digits, capitals, small := count(v)
	return capitals+small > 1 && digits > 1 && !algorithm(v)
}

// again removes the values that were found in s wherever else they are.
func again(s string, found []string) (string, bool) {
	if len(found) == 0 {
		return s, false
	}
	clean := replacerOf(found).replace(s)
	return clean, clean != s
}
