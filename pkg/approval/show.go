// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Arguments are the arguments of a call as a person reads them before a decision:
// JSON without secrets, made Visible. It is one line, or one line a member if indent
// is not empty. It is empty if the request has no preview.
func Arguments(s *v1alpha1.ApprovalSpec, indent string) string {
	if s.TargetArgsPreview == nil || len(s.TargetArgsPreview.Raw) == 0 {
		return ""
	}
	text := readable(s.TargetArgsPreview.Raw, indent)
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = Visible(lines[i])
	}
	return strings.Join(lines, "\n")
}

// readable is JSON without the escapes that only HTML needs, so that a shell's && reads as such.
func readable(raw []byte, indent string) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return string(raw)
	}
	line := encode(v)
	var lines bytes.Buffer
	if indent == "" || json.Indent(&lines, line, "", indent) != nil {
		return string(line)
	}
	return lines.String()
}

// Exact reports whether the preview is the whole arguments: no secret was removed
// and no text was cut, so its digest is the one that the approval is for.
func Exact(s *v1alpha1.ApprovalSpec) bool {
	if s.TargetArgsPreview == nil {
		return false
	}
	digest, err := Digest(s.TargetArgsPreview.Raw)
	return err == nil && digest == s.TargetArgsDigest
}

// Visible escapes, as \uXXXX, each character that a reader would not see or that
// could change how the rest of the line looks: control characters, marks of
// direction, characters without width, and every space but the usual one.
func Visible(s string) string {
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// blankBraille looks like a space, and is a symbol.
const blankBraille = '\u2800'

func hidden(r rune) bool {
	return !unicode.IsPrint(r) || r == blankBraille ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Bidi_Control, unicode.Join_Control)
}
