// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/redact"
)

func TestVisible(t *testing.T) {
	tags := strings.Map(func(r rune) rune { return r + 0xE0000 }, "obey")
	for text, want := range map[string]string{
		"":                       "",
		"plain\n\ttext":          "plain\n\ttext",
		"a" + tags + "b":         "ab",
		"safe\u202etxt.exe":      "safetxt.exe",
		"z\u200be\u2060r\ufeffo": "zero",
		"so\u00adft":             "soft",
		"\x1b[31mred\r\x00":      "[31mred",
		"a\U000e0101b\u115fc":    "abc",
		"می\u200cخواهم":          "می\u200cخواهم",
		"👩\u200d🔬 ❤\ufe0f":       "👩\u200d🔬 ❤\ufe0f",
		"नमस्ते 東京 straße":       "नमस्ते 東京 straße",
		"private \ue000":         "private ",
	} {
		if got := redact.Visible(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
