// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker/proxy"
)

// OpenNetwork starts the proxy through which programs of the run reach the public internet, if public says that they may, and
// adds it to their policy. It returns the variables for programs, and the function that ends the proxy.
func (r *Run) OpenNetwork(ctx context.Context, public bool) (env []string, end func(), err error) {
	if r.Policy.Off || !public {
		return nil, func() {}, nil
	}
	outside, err := proxy.ForPrograms(ctx, r.FetchAllow, r.Getenv(runspec.EnvControllerURL))
	if err != nil {
		return nil, nil, Unavailable(v1alpha1.ReasonSandboxUnavailable, "the network of programs: %w", err)
	}
	r.Policy.ProxyPort = outside.Port()
	return outside.Env(), outside.Close, nil
}
