// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/server/registry/resource"
)

// TestGuardIsNeeded: a resource whose Definition does not say what workers may do is not served, nor one that says two things.
func TestGuardIsNeeded(t *testing.T) {
	silent, both := noteDefinition(), noteDefinition()
	silent.Unguarded = false
	both.Guard = struct{ resource.Guard[*Note] }{}
	for name, d := range map[string]*resource.Definition[*Note]{"neither": silent, "both": both} {
		if _, err := d.Storage(t.Context(), resource.Config{}); err == nil || !strings.Contains(err.Error(), "resource notes: set Guard, or Unguarded") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
