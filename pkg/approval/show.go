// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/visible"
)

// Arguments returns the arguments of a call as a person reads them before a decision: JSON without secrets,
// escaped by visible.Exact. It is a single line, or one line for each member if indent is not empty. It is empty
// if the request has no preview.
func Arguments(s *v1alpha1.ApprovalSpec, indent string) string {
	if s.TargetArgsPreview == nil || len(s.TargetArgsPreview.Raw) == 0 {
		return ""
	}
	text := readable(s.TargetArgsPreview.Raw, indent)
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = visible.Exact(lines[i])
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
