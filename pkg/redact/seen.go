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

// Limits of how many values are removed wherever they occur again.
const (
	seenOnce  = 64   // of one text
	seenCount = 1024 // that a Seen keeps
)

// Seen holds the secrets that were removed from earlier texts, to remove them from later ones as well, where nothing
// identifies them. It keeps only values that cannot be ordinary words (see distinct), and the first 1,024 of these. The zero value is
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

// Values returns the values that were seen.
func (k *Seen) Values() []string {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.values)
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

// again removes the values that were found in s wherever else they are.
func again(s string, found []string) (string, bool) {
	if len(found) == 0 {
		return s, false
	}
	clean := replacerOf(found).replace(s)
	return clean, clean != s
}
