// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/redact"
	"github.com/platform-ai/platform/test/corpus"
)

// TestCanaries redacts every canary in every context and checks that it is gone.
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

// TestInnocent redacts text without secrets, as text and in JSON; all of it must stay.
func TestInnocent(t *testing.T) {
	innocent := corpus.Innocent()
	if len(innocent) < 500 {
		t.Errorf("only %d innocent texts", len(innocent))
	}
	for _, s := range innocent {
		for name, text := range map[string]string{"as it is": s, "prose": "I saw " + s + " there.", "lines": "first\n" + s + "\nlast\n", "log": "2026-11-21T04:12:07Z INFO out: " + s} {
			if got, changed := redact.Text(text); changed {
				t.Errorf("%s:\n%q\nbecame\n%q", name, cut(text), cut(got))
			}
		}
		for name, v := range map[string]any{"value": s, "member": map[string]any{"note": s}, "list": []any{1, s}, "arguments": map[string]any{"arguments": map[string]any{"command": s}}} {
			raw, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			got, changed, err := redact.JSON(raw)
			if err != nil || changed {
				t.Errorf("JSON %s: %v\n%s\nbecame\n%s", name, err, cut(string(raw)), cut(string(got)))
			}
		}
	}
	t.Logf("%d innocent texts", len(innocent))
}

func cut(s string) string { return s[:min(len(s), 500)] }

// FuzzEmbedded puts a token that is recognised by its form between arbitrary texts, on lines of its own.
// The secret must not survive, and redacting the result must not change it.
func FuzzEmbedded(f *testing.F) {
	var all []corpus.Embedding
	for _, c := range corpus.Canaries() {
		if !c.Bare {
			continue
		}
		for _, e := range c.Embeddings() {
			if !e.JSON {
				all = append(all, e)
			}
		}
	}
	f.Add(uint16(0), "", "")
	f.Add(uint16(99), "a: |", "'\n")
	f.Add(uint16(999), "password=\"", "-----END PRIVATE KEY-----")
	f.Fuzz(func(t *testing.T, i uint16, before, after string) {
		e := all[int(i)%len(all)]
		text := before + "\n" + e.Text + "\n" + after
		got, _ := redact.Text(text)
		if again, more := redact.Text(got); more {
			t.Fatalf("%q -> %q -> %q", text, got, again)
		}
		for _, needle := range e.Needles {
			if strings.Contains(got, needle) && !strings.Contains(before+after, needle) {
				t.Fatalf("%q survives: %q -> %q", needle, text, got)
			}
		}
	})
}
