// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runners is the list of all runners. A program that runs only tasks of one type links that runner and not this
// package.
package runners

import (
	"context"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/worker/runner"
	"github.com/platform-ai/platform/pkg/worker/runner/ai"
	"github.com/platform-ai/platform/pkg/worker/runner/codingagent"
	"github.com/platform-ai/platform/pkg/worker/runner/container"
	"github.com/platform-ai/platform/pkg/worker/runner/remoteagent"
)

// All returns the runner of each type of task. Every one must pass the conformance tests of package worker.
func All() map[v1alpha1.TaskType]runner.Runner {
	return map[v1alpha1.TaskType]runner.Runner{
		v1alpha1.TaskTypeAgent:     runner.Func(agent),
		v1alpha1.TaskTypeAI:        ai.Runner,
		v1alpha1.TaskTypeContainer: container.Runner,
	}
}

// agent runs a coding agent here, or has a registered runtime do it.
func agent(ctx context.Context, r *runner.Run) (runner.Result, error) {
	if r.Remote != nil {
		return remoteagent.Runner.Run(ctx, r)
	}
	return codingagent.Runner.Run(ctx, r)
}
