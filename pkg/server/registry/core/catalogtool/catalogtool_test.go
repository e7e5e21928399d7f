// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package catalogtool

import (
	"testing"
)

// TestPosition: a token of another list, or a made-up one, is refused and never read as a position.
func TestPosition(t *testing.T) {
	for _, good := range []string{afterBuiltin + "file_read", atTools, atTools + "opaque"} {
		after, rest, err := position(token(good))
		if got := afterBuiltin + after; err != nil || rest != good && got != good {
			t.Errorf("%s: %q, %q, %v", good, after, rest, err)
		}
	}
	for _, bad := range []string{"!", "bm90aGluZw", token("x:file_read"), token("")} {
		if _, _, err := position(bad); err == nil && bad != "" {
			t.Errorf("%q is accepted", bad)
		}
	}
}
