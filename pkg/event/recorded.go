// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"strings"
	"unicode/utf8"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/redact"
)

// MaxRecordedPart bounds a part of a recording, in bytes as JSON. A longer one is kept as its size.
const MaxRecordedPart = 1 << 20

// PartTooLarge is why a part is not there that is larger than MaxRecordedPart; see v1alpha1.RecordedPart.
const PartTooLarge = "TooLarge"

// CleanPart removes secrets from a part: those that seen knows, and those that have the form of one.
func CleanPart(p *v1alpha1.RecordedPart, seen *redact.Seen) {
	text := func(s *string) { *s = cleanText(*s, seen) }
	if m := p.Message; m != nil {
		text(&m.Role)
		text(&m.Text)
		text(&m.Thinking)
		text(&m.ToolCallID)
		for i := range m.ToolCalls {
			c := &m.ToolCalls[i]
			text(&c.ID)
			text(&c.Name)
			text(&c.Arguments)
		}
		for i := range m.Images {
			text(&m.Images[i].MediaType)
			text(&m.Images[i].Digest)
		}
	}
	for i := range p.Tools {
		t := &p.Tools[i]
		text(&t.Name)
		text(&t.Description)
		if t.Parameters != nil {
			if clean, _, err := seen.JSON(t.Parameters.Raw); err == nil {
				t.Parameters.Raw = clean
			} else {
				t.Parameters = nil
			}
		}
	}
}

// cleanText removes secrets from a text. One that is JSON, as results and arguments are, is cleaned value by value: in it the line ends and
// quotes that show a secret are escaped.
func cleanText(s string, seen *redact.Seen) string {
	s = strings.ToValidUTF8(s, string(utf8.RuneError))
	if start := strings.TrimLeft(s, " \t\r\n"); strings.HasPrefix(start, "{") || strings.HasPrefix(start, "[") {
		if clean, changed, err := seen.JSON([]byte(s)); err == nil {
			if changed {
				return string(clean)
			}
			return s
		}
	}
	s, _ = seen.Text(s)
	return s
}
