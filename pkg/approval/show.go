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

// Arguments returns the arguments of a call as a person reads them before a decision: JSON without secrets,
// escaped by Visible. It is a single line, or one line for each member if indent is not empty. It is empty
// if the request has no preview.
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

// readable returns JSON without the escapes that only HTML needs, so that a shell's && is shown unescaped.
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

// Exact reports whether the preview shows the complete arguments: no secret was removed and no text was
// cut, so the digest of the preview is the one that the approval is for.
func Exact(s *v1alpha1.ApprovalSpec) bool {
	if s.TargetArgsPreview == nil {
		return false
	}
	digest, err := Digest(s.TargetArgsPreview.Raw)
	return err == nil && digest == s.TargetArgsDigest
}

// Visible escapes, as \uXXXX, each character that is invisible or that could change how the rest of the
// line looks: control characters, direction marks, zero-width characters, and every space except the
// ordinary one.
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

// blankBraille looks like a space, but Unicode classifies it as a symbol.
const blankBraille = '\u2800'

func hidden(r rune) bool {
	return !unicode.IsPrint(r) || r == blankBraille ||
		unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Bidi_Control, unicode.Join_Control)
}
