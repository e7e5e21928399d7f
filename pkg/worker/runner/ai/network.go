// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package ai

import (
	"context"
	"net"
	"net/netip"
	"net/url"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/egress"
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
	// What web_fetch may reach, programs may reach as well, but never a loopback address.
	outside, err := proxy.Start(egress.Guard{Allow: r.FetchAllow, NotSelf: true, Closed: platformAddresses(ctx, r.Getenv(runspec.EnvControllerURL))})
	if err != nil {
		return nil, nil, runner.Unavailable(v1alpha1.ReasonSandboxUnavailable, "the network of programs: %w", err)
	}
	r.Policy.ProxyPort = outside.Port()
	return outside.Env(), outside.Close, nil
}

// platformAddresses returns the addresses of this machine and of the server, which may be public ones.
func platformAddresses(ctx context.Context, server string) []netip.Addr {
	var all []netip.Addr
	own, _ := net.InterfaceAddrs()
	for _, a := range own {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			all = append(all, prefix.Addr().Unmap())
		}
	}
	if u, err := url.Parse(server); err == nil && u.Hostname() != "" {
		found, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname()) // a server that has no address cannot be reached
		for _, a := range found {
			all = append(all, a.Unmap().WithZone(""))
		}
	}
	return all
}
