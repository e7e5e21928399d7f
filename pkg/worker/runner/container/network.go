// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package container

import (
	"context"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan/command"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker/proxy"
	"github.com/platform-ai/platform/pkg/worker/runner"
)

// openNetwork starts the proxy through which the command reaches the public internet, if the agent that delegated the task has
// that for its own programs, and adds it to the policy. It returns the variables for the command, and the function that ends
// the proxy.
func (r *run) openNetwork(ctx context.Context) (env []string, end func(), err error) {
	if r.Policy.Off || !command.Public(r.Task) {
		return nil, func() {}, nil
	}
	outside, err := proxy.ForPrograms(ctx, r.FetchAllow, r.Getenv(runspec.EnvControllerURL))
	if err != nil {
		return nil, nil, runner.Unavailable(v1alpha1.ReasonSandboxUnavailable, "the network of programs: %w", err)
	}
	r.Policy.ProxyPort = outside.Port()
	return outside.Env(), outside.Close, nil
}
