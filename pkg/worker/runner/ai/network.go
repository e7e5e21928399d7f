// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"context"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/plan"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker/proxy"
	"github.com/platform-ai/platform/pkg/worker/runner"
)

// openNetwork starts the proxy through which programs of the run reach the public internet, if its Agent lets them, and adds it to
// their policy. It returns the variables for programs, and the function that ends the proxy.
func openNetwork(ctx context.Context, r *run, p *plan.Plan) (env []string, end func(), err error) {
	if r.Policy.Off || !plan.PublicNetwork(p.Agent) {
		return nil, func() {}, nil
	}
	outside, err := proxy.ForPrograms(ctx, r.FetchAllow, r.Getenv(runspec.EnvControllerURL))
	if err != nil {
		return nil, nil, runner.Unavailable(v1alpha1.ReasonSandboxUnavailable, "the network of programs: %w", err)
	}
	r.Policy.ProxyPort = outside.Port()
	return outside.Env(), outside.Close, nil
}
