// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact_test

import (
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/redact"
)

// TestContinued: wherever a token is cut into two texts, its second half does not show.
func TestContinued(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("aB3dE6gH9k", 4)[:36]
	for _, token := range []string{"ghp_" + long, "xoxb-123456789012-123456789012-" + long[:24], "password=" + long[:20], "Authorization: Bearer " + long, "AKIA" + "QWERTYUIOP234567"} {
		for cut := 4; cut <= len(token)-4; cut++ {
			var tail redact.Tail
			first, tail := tail.Continued("it says " + token[:cut])
			second, _ := tail.Continued(token[cut:] + " there")
			if first, _ = redact.Text(first); strings.Contains(token[cut:], " ") {
				continue // the value has not begun
			}
			if second, _ = redact.Text(second); strings.Contains(second, token[max(cut, len(token)-8):]) || !strings.HasSuffix(second, " there") {
				t.Errorf("%q and %q", first, second)
			}
		}
	}
	for _, texts := range [][2]string{{"the first half of", " a sentence"}, {"one", "two"}, {"", "ghost"}, {"password=abc", "\nnext line"}, {"a commit 4f8a1c9be27d0f6a", "4f8a1c9be27d0f6a is there"}, {"see https://example.com/pa", "th/to/page"}} {
		var tail redact.Tail
		_, tail = tail.Continued(texts[0])
		if got, _ := tail.Continued(texts[1]); got != texts[1] {
			t.Errorf("%q after %q became %q", texts[1], texts[0], got)
		}
	}
}
