// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"fmt"
	"net"
	"net/url"
)

// CheckSecure requires that what is sent to an address, and what comes from it, cannot be read or changed on its way: TLS,
// or a server of this machine. An empty address is accepted. The error names the flag.
func CheckSecure(flag, address string) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	if err == nil && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == "" {
		ip := net.ParseIP(u.Hostname())
		if u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()) {
			return nil
		}
	}
	return fmt.Errorf("%s: %q: must be an https address without user, query and fragment; http is for loopback only", flag, address)
}
