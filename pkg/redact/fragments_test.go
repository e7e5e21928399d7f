// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"testing"

	"github.com/platform-ai/platform/pkg/redact"
)

func TestFragments(t *testing.T) {
	secrets := []string{"Pa55-Word-Of-The-Run", "hunter2", "", "ключ-от-дома"}
	for text, want := range map[string]string{
		"nothing to hide":                       "nothing to hide",
		"no curl with Pa55-Word-Of-The-Run!":    "no curl with [REDACTED]!",
		"lower pa55-word-of-the-run":            "lower [REDACTED]",
		"begins with Pa55-Word…":                "begins with [REDACTED]…",
		"ends with Of-The-Run":                  "ends with [REDACTED]",
		"hunter2 is short, hunter is a word":    "[REDACTED] is short, hunter is a word",
		"Pa55-Wo is too short a part to matter": "Pa55-Wo is too short a part to matter",
		"twice hunter2 hunter2":                 "twice [REDACTED] [REDACTED]",
		"open ключ-от-дома now":                 "open [REDACTED] now",
		"":                                      "",
	} {
		if got := redact.Fragments(text, secrets); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestKnown(t *testing.T) {
	t.Parallel()
	known := redact.KnownOf("abcdef", "", "abcdefgh", `x"<y`, "abcdef")
	for text, want := range map[string]string{
		"nothing":               "nothing",
		"abcdefgh abcdef":       "[REDACTED] [REDACTED]",
		`x"<y x\"<y x\"\u003cy`: "[REDACTED] [REDACTED] [REDACTED]",
	} {
		if got := known.Remove(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := (redact.Known{}).Remove("all of it"); got != "all of it" {
		t.Errorf("no values: %q", got)
	}
}
