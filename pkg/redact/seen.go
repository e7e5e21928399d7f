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
//
// A worker has one for its run, so the later events, the log, the result and the end of the run do not repeat a value that was removed
// once. Earlier texts keep a value that only a later one identifies, because what was recorded is never changed. The server sees one event
// at a time, and does the same within it.
type Seen struct {
	// Known is removed from all texts, before anything else: what is removed for another reason could be a part of a value.
	Known Known

	mu     sync.Mutex
	values []string
	finder *finder
}

// Text is like the function Text. It removes the values that were seen before as well.
func (k *Seen) Text(s string) (string, bool) {
	clean := k.known(s)
	out, changed, found := settle(clean, false)
	return k.apply(out, changed || clean != s, found)
}

// Output is like the function Output. It removes the values that were seen before as well.
func (k *Seen) Output(s string) (string, bool) {
	clean := k.known(s)
	if k != nil && clean != s && isJSON(s) {
		clean = k.Known.JSON(s)
	}
	out, changed, found := output(clean)
	return k.apply(out, changed || clean != s, found)
}

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
	clean := s
	if k != nil {
		clean = k.Known.JSON(s)
	}
	out, changed, found := settleJSON(clean, false)
	changed = changed || clean != s
	if k != nil {
		out, changed = k.apply(out, changed, found)
	}
	return []byte(out), changed, nil
}

// known returns s without the values that are known.
func (k *Seen) known(s string) string {
	if k == nil {
		return s
	}
	return k.Known.Remove(s)
}

// Remove returns s without the values that are known or were seen.
func (k *Seen) Remove(s string) string {
	if k == nil {
		return s
	}
	return k.again(k.Known.Remove(s))
}

// again returns s without the values that were seen.
func (k *Seen) again(s string) string {
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

// kept returns the finder of the values that were seen; nil for none.
func (k *Seen) kept() *finder {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.finder
}

func (k *Seen) apply(s string, changed bool, found []string) (string, bool) {
	k.add(found)
	clean := k.again(s)
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
		k.finder = finderOf(k.values)
	}
}

// again removes the values that were found in s wherever else they are.
func again(s string, found []string) (string, bool) {
	if len(found) == 0 {
		return s, false
	}
	clean := finderOf(found).replace(s)
	return clean, clean != s
}
