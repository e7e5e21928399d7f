// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"encoding/json"
	"slices"
	"testing"
)

// TestDefinitions: every tool that users choose from can be described without a run, in the order of the names, and no tool of
// coordination is among them.
func TestDefinitions(t *testing.T) {
	var names []string
	for _, d := range Definitions() {
		names = append(names, d.Name)
		if d.Description == "" || !json.Valid(d.Parameters) {
			t.Errorf("%s: %q, parameters %s", d.Name, d.Description, d.Parameters)
		}
	}
	if !slices.IsSorted(names) || len(slices.Compact(names)) != len(Definitions()) {
		t.Errorf("not in order, or twice: %q", names)
	}
	for name, listed := range map[string]bool{"code_exec": true, "recall_memory": true, "web_fetch": true, "delegate_task": false, "update_plan": false} {
		if !Has(name) || slices.Contains(names, name) != listed {
			t.Errorf("%s: a tool %v, which users choose from %v", name, Has(name), !listed)
		}
	}
	for _, b := range list {
		if slices.Contains(names, b.Name) == b.Unlisted {
			t.Errorf("%s is described: %v", b.Name, b.Unlisted)
		}
	}
}
