// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"maps"
	"slices"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/worker/runner"
	"github.com/platform-ai/platform/pkg/worker/runner/ai"
	"github.com/platform-ai/platform/pkg/worker/runner/container"
)

// runners maps each type of task to its runner. Every runner in the map must pass the
// conformance tests of this package.
var runners = map[v1alpha1.TaskType]runner.Runner{
	v1alpha1.TaskTypeAI:        ai.Runner,
	v1alpha1.TaskTypeContainer: container.Runner,
}

// runnerOf returns the runner of a type of tasks.
func runnerOf(t v1alpha1.TaskType) (runner.Runner, error) {
	r, ok := runners[t]
	if !ok {
		return nil, runner.Fail(v1alpha1.ReasonRuntimeNotAvailable, "this worker has no runner for tasks of type %q; it runs tasks of the types %v", t, slices.Sorted(maps.Keys(runners)))
	}
	return r, nil
}
