// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"maps"
	"slices"
	"testing"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/worker/agentloop"
	"github.com/platform-ai/platform/pkg/worker/runner/runnertest"
	"github.com/platform-ai/platform/pkg/worker/tool"
)

// TestBuiltinNames: the names that the API knows as built in are those of the tools that a worker has.
func TestBuiltinNames(t *testing.T) {
	r := &run{runnertest.New(t, "", v1alpha1.TaskSpec{}).Run}
	tools, err := r.builtin(&agentloop.Gate{})
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(tools)); !slices.Equal(got, tool.BuiltinNames()) {
		t.Errorf("a worker has %v, the API knows %v", got, tool.BuiltinNames())
	}
}
