// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codehost_test

import (
	"testing"

	"github.com/platform-ai/platform/pkg/codehost"
)

// TestAtLeast: permissions have an order, and what is none of them allows nothing.
func TestAtLeast(t *testing.T) {
	order := []codehost.Permission{codehost.None, codehost.Read, codehost.Triage, codehost.Write, codehost.Maintain, codehost.Admin}
	for i, have := range order {
		for j, least := range order {
			if got := have.AtLeast(least); got != (i >= j) {
				t.Errorf("%s at least %s: %t", have, least, got)
			}
		}
		for _, other := range []codehost.Permission{"", "owner", "Admin", "admin "} {
			if have.AtLeast(other) || other.AtLeast(have) || other.AtLeast(other) {
				t.Errorf("%s and %q have an order", have, other)
			}
		}
	}
}
