// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/test/corpus"
)

// TestCanaries redacts every canary in every surrounding and looks for it.
func TestCanaries(t *testing.T) {
	canaries := corpus.Canaries()
	if len(canaries) < 200 {
		t.Errorf("only %d canaries", len(canaries))
	}
	embeddings := 0
	for _, c := range canaries {
		t.Run(c.Name, func(t *testing.T) {
			for _, e := range c.Embeddings() {
				embeddings++
				got := redacted(t, e)
				for _, needle := range e.Needles {
					if len(needle) < 5 || !strings.Contains(c.Text, needle) {
						t.Fatalf("%s: %q is no secret of %q", e.Name, needle, c.Text)
					}
					if strings.Contains(got, needle) {
						t.Errorf("%s: %q survives in\n%s\nof\n%s", e.Name, needle, got, e.Text)
					}
				}
			}
		})
	}
	t.Logf("%d canaries in %d embeddings", len(canaries), embeddings)
}

func redacted(t *testing.T, e corpus.Embedding) string {
	t.Helper()
	if !e.JSON {
		got, _ := redact.Text(e.Text)
		if again, more := redact.Text(got); more {
			t.Errorf("%s: a second time:\n%s\n%s", e.Name, got, again)
		}
		return got
	}
	got, _, err := redact.JSON([]byte(e.Text))
	if err != nil {
		t.Fatalf("%s: %v", e.Name, err)
	}
	return string(got)
}
