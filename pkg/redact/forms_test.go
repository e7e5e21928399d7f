// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"slices"
	"strings"
	"testing"

	"github.com/platform-ai/platform/test/corpus"
)

// TestForms makes secrets from each row of the table and puts them into texts that do not name them.
func TestForms(t *testing.T) {
	seen := map[string]bool{}
	rows := 0
	for line := range strings.Lines(formTable) {
		if line[0] == '#' {
			continue
		}
		rows++
		fields := strings.Split(strings.TrimSpace(line), "\t")
		rule, source, pattern := fields[0], fields[1], fields[2]
		if seen[rule] || seen[pattern] {
			t.Errorf("the rule or the pattern of %s is there twice", rule)
		}
		seen[rule], seen[pattern] = true, true
		if scanner, id, found := strings.Cut(source, ":"); !found || id == "" || !slices.Contains([]string{"gitleaks", "trufflehog", "noseyparker", "kingfisher", "vendor"}, scanner) {
			t.Errorf("%s: %q is not the rule of a scanner, nor a vendor", rule, source)
		}
		for seed := range uint64(5) {
			secret := corpus.Pattern(pattern, seed)
			if last := len(secret) - 1; !is(secret[last], alnum) {
				secret = secret[:last] + "0" // a sign may belong to the sentence
			}
			for _, format := range []string{"%", "I found % in the file.", "export SETTING=%\n", "got '%', then", `{"note":"%"}`, "x: %\ny: 1\n", "curl -H 'X-Thing: %' https://example.com/"} {
				text := strings.ReplaceAll(format, "%", secret)
				got, _ := Text(text)
				if strings.Contains(got, secret) || strings.Contains(got, secret[len(secret)-8:]) {
					t.Errorf("%s: %q became %q", rule, text, got)
				}
				if again, more := Text(got); more {
					t.Errorf("%s: a second time: %q became %q", rule, got, again)
				}
			}
		}
	}
	t.Logf("%d rules", rows)
}

func TestParseForm(t *testing.T) {
	for _, pattern := range []string{"abc", "(a|b)[0-9]{3}", "[0-9]{3}", "-[0-9]{3}", "[A-Za-z0-9]{3,4}-[0-9]{3}", "a_[0-9"} {
		if f, err := parseForm("x", pattern); err == nil {
			t.Errorf("%s became %+v", pattern, f)
		}
	}
	f, err := parseForm("x", `ab-c\.d[0-9]{3,5}_x[0-9A-Z]{2}z`)
	if err != nil || f.prefix != "ab-c.d" || f.anchor != 5 || f.of != digit || f.min != 3 || f.full != 5 || len(f.rest) != 2 ||
		f.rest[0] != (formPart{"_x", capital, 2, 2}) || f.rest[1] != (formPart{literal: "z"}) {
		t.Errorf("%+v, %v", f, err)
	}
}
