// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package marker

import (
	"regexp"
	"strings"
)

// legacyEnd matches what a marker without a valid signature may end with.
var legacyEnd = regexp.MustCompile(`^(?: sig=[A-Za-z0-9+/=_-]{1,128})? -->`)

// Legacy reports whether a text contains a marker of exactly this subject, without a signature or with any signature. Anybody can write
// one, so it proves nothing by itself: the caller decides whether it trusts the author of the text. The repository may be in any case.
func Legacy(body string, s Subject) bool {
	s, ok := s.canonical()
	if !ok {
		return false
	}
	for {
		_, after, found := strings.Cut(body, opening)
		if !found {
			return false
		}
		if n := len(s.Repository); len(after) >= n && strings.EqualFold(after[:n], s.Repository) {
			end, ok := strings.CutPrefix(after[n:], s.tail())
			if ok && legacyEnd.MatchString(end) {
				return true
			}
		}
		body = after
	}
}
