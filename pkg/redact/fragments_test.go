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
