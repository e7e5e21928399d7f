// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"context"
	"net"
	"net/netip"
	"net/url"

	"github.com/platform-ai/platform/pkg/egress"
)

// ForPrograms starts the proxy of a run's programs. They may reach public addresses, except those of this machine and of the server,
// whose URL is given. What the operator lets web_fetch reach (allow), they may reach as well, whatever its address is, but never a
// loopback address.
func ForPrograms(ctx context.Context, allow []string, server string) (*Proxy, error) {
	return Start(egress.Guard{Allow: allow, NotSelf: true, Closed: platformAddresses(ctx, server)})
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
