// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// joint is how much of two texts is looked at where one continues the other, in bytes.
const joint = 512

// Tail is the end of a text that another one may continue, in the middle of a secret. The zero value is that of no text. It must
// not be shown.
type Tail string

// Continued returns text without the rest of a secret that begins in what came before, and the tail of the text.
func (t Tail) Continued(text string) (string, Tail) {
	tail := t + Tail(text)
	tail = tail[max(0, len(tail)-joint):]
	n := run(text[:min(len(text), joint)], 0, tokenByte)
	if n < joinable || t == "" {
		return text, tail
	}
	head := text[:n]
	if _, alone := Text(head); alone {
		return text, tail // it is removed in any case
	}
	if whole, _ := Text(string(t) + head); strings.HasSuffix(whole, head) {
		return text, tail
	}
	return Marker + text[n:], tail
}
