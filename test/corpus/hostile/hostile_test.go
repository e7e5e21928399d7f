// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"testing"

	"github.com/platform-ai/platform/test/corpus/hostile"
)

// TestEvents: there are as many bodies as are promised, each is another one, and each has a name.
func TestEvents(t *testing.T) {
	t.Parallel()
	all := hostile.Events(256 << 10)
	if len(all) != hostile.Bodies {
		t.Errorf("%d bodies, not %d", len(all), hostile.Bodies)
	}
	texts, names := map[string]string{hostile.Right(): "right"}, map[string]bool{}
	for _, b := range all {
		if other, ok := texts[b.Text]; ok {
			t.Errorf("%s and %s are the same", b.Name, other)
		}
		if names[b.Name] {
			t.Errorf("%s is there twice", b.Name)
		}
		texts[b.Text], names[b.Name] = b.Name, true
	}
}
