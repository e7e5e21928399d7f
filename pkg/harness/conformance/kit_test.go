// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestChecks: a check needs only checks before it, and docs/harness-v2.md lists all checks and names no others.
func TestChecks(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/harness-v2.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	before := map[string]bool{}
	for _, c := range Checks() {
		for _, need := range c.needs {
			if !before[need] {
				t.Errorf("%s needs %s, which is not before it", c.Number, need)
			}
		}
		if before[c.Number] || c.Advice == "" {
			t.Errorf("%s is there twice, or has no advice", c.Number)
		}
		before[c.Number] = true
		if row := fmt.Sprintf("| %s | %s |\n", c.Number, c.Required); !strings.Contains(text, row) {
			t.Errorf("docs/harness-v2.md lacks the row %s", row)
		}
	}
	for _, number := range regexp.MustCompile(`\b[RAFBSPLXQWD][0-9]+\b`).FindAllString(text, -1) {
		if !before[number] {
			t.Errorf("docs/harness-v2.md names %s, and there is no such check", number)
		}
	}
}
