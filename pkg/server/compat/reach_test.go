// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/platform-ai/platform/pkg/tool"
	"github.com/platform-ai/platform/pkg/tool/builtin"
)

// TestWeb: the tools of runs that the catalogue has in the vendors' APIs, too, are made from the code of workers, and reach the network.
func TestWeb(t *testing.T) {
	t.Parallel()
	fetch, search := newWeb(Reach{})
	var want []tool.Definition
	for _, of := range builtin.In(builtin.APIs) {
		if of.In&builtin.Runs != 0 {
			want = append(want, of.Definition())
			if !of.Effects.Has(builtin.Sends) {
				t.Errorf("%s does not reach the network, and waits for a place", of.Name)
			}
		}
	}
	if d := cmp.Diff(want, []tool.Definition{fetch.Definition(), search.Definition()}); d != "" {
		t.Errorf("(-catalogue +code):\n%s", d)
	}
	for name, is := range map[string]bool{"web_fetch": true, "delegate_task": true, "delete_session": true, "weather": false} {
		if taken(name) != is {
			t.Errorf("%s is taken: %v", name, !is)
		}
	}
}
