// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/platform-ai/platform/pkg/codehost"
)

// checkText refuses a text that must not be written.
func checkText(name, text string) error {
	switch {
	case strings.TrimSpace(text) == "":
		return invalid("%s: must not be empty", name)
	case !utf8.ValidString(text):
		return invalid("%s: must be text", name)
	}
	if err := codehost.CheckText(text); err != nil {
		return invalid("%s: %v", name, err)
	}
	return nil
}

// mark is the hidden comment that says which call wrote a text, and for a review of which commit it is.
func mark(key, head string) string {
	if head == "" {
		return fmt.Sprintf("<!-- platform:call %s -->", key)
	}
	return fmt.Sprintf("<!-- platform:call %s head_sha=%s -->", key, head)
}

// marked reports whether a text was written by the call with a key, and of which commit it is; empty for none.
func marked(text, key string) (head string, ok bool) {
	_, rest, ok := strings.Cut(text, "<!-- platform:call "+key)
	if !ok {
		return "", false
	}
	rest, _, ok = strings.Cut(rest, " -->")
	head, _ = strings.CutPrefix(rest, " head_sha=")
	return head, ok
}

// ours returns the item whose text the call with a key wrote; nil if there is none.
func ours[T any](all []T, text func(*T) string, key string) *T {
	for i := range all {
		if _, ok := marked(text(&all[i]), key); ok {
			return &all[i]
		}
	}
	return nil
}

// characters returns at most n characters of a text.
func characters(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i]
		}
	}
	return text
}
