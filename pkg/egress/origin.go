// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"net/url"
	"strings"
)

// SameOrigin reports whether two http or https URLs have the same scheme, host and port.
func SameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	default:
		return "80"
	}
}
