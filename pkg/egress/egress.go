// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package egress decides which addresses the platform may dial on behalf of a user or a model. It checks
// the address that is about to be connected, after name resolution and again for each redirect. A name that
// resolves to a private address, or that later changes its address, therefore does not get around it.
package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"
)

// ErrRefused is wrapped by the error of every dial that the guard refused.
var ErrRefused = errors.New("address not allowed")

// Guard defines which destinations may be dialled.
type Guard struct {
	// Private permits loopback, private and shared address space. It is for targets that an operator has
	// configured, not for those that a model or a page names. Link-local addresses, where clouds serve
	// their metadata, stay refused.
	Private bool
	// NotSelf closes this machine's own loopback addresses, where a server has listeners that ask for no credential. Allow
	// does not open them.
	NotSelf bool
	// Closed lists further addresses that may not be dialled, whatever their kind, unless Allow has the destination.
	Closed []netip.Addr
	// Allow lists destinations, as host:port as written in the URL, that may be dialled whatever address
	// they resolve to.
	Allow []string
}

// ForProviders returns the guard of everything that asks the address of a Provider: runs, chats, the vendors' APIs and the
// controller's probe. Models may be served on the same machine or inside the operator's network.
func ForProviders() Guard { return Guard{Private: true} }

// ParseAllow parses a comma-separated list of host:port.
func ParseAllow(s string) ([]string, error) {
	var out []string
	for item := range strings.SplitSeq(s, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		host, port, err := net.SplitHostPort(item)
		if err != nil || host == "" || port == "" {
			return nil, fmt.Errorf("%q is not host:port", item)
		}
		out = append(out, strings.ToLower(item))
	}
	return out, nil
}

// Transport returns an HTTP transport that dials through the guard. It uses no proxy and keeps no idle
// connection for more than a minute.
func (g Guard) Transport() *http.Transport {
	return &http.Transport{
		DialContext:           g.dial,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          16,
		IdleConnTimeout:       time.Minute,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: time.Minute,
		// The default, 10 MiB, would let each answer take that much before its body is limited.
		MaxResponseHeaderBytes: 256 << 10,
	}
}

func (g Guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: 10 * time.Second}
	if g.NotSelf || !g.allowed(address) {
		// Control runs with the resolved address, once for each one tried.
		d.Control = func(_, resolved string, _ syscall.RawConn) error { return g.check(resolved, g.allowed(address)) }
	}
	return d.DialContext(ctx, network, address)
}

func (g Guard) allowed(address string) bool {
	for _, a := range g.Allow {
		if strings.EqualFold(a, address) {
			return true
		}
	}
	return false
}

// check returns an error if a resolved address must not be dialled. allowed says that Allow has the destination.
func (g Guard) check(resolved string, allowed bool) error {
	ap, err := netip.ParseAddrPort(resolved)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if g.NotSelf && isLoopback(ap.Addr()) {
		return fmt.Errorf("%w: it is an address of the server itself", ErrRefused)
	}
	if allowed {
		return nil
	}
	if slices.Contains(g.Closed, ap.Addr().Unmap().WithZone("")) {
		return fmt.Errorf("%w: it is an address of the platform", ErrRefused)
	}
	if kind := classify(ap.Addr()); kind == kindForbidden || kind == kindPrivate && !g.Private {
		return fmt.Errorf("%w: it is private, local or reserved", ErrRefused)
	}
	return nil
}

// Public reports whether everybody can reach an address: it is not private, local or reserved. An IPv6 address that carries an IPv4
// address (IPv4-mapped and IPv4-compatible, NAT64, 6to4) is as public as the IPv4 address.
func Public(a netip.Addr) bool { return classify(a) == kindPublic }

type kind int

const (
	kindPublic kind = iota
	// kindPrivate is an address inside some network, including this machine.
	kindPrivate
	// kindForbidden is an address that may never be dialled: metadata services, multicast, reserved.
	kindForbidden
)

// isLoopback also recognises a loopback address that an IPv6 address carries, and the unspecified address, which Linux dials
// as loopback.
func isLoopback(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if inner, ok := embedded(a); ok {
		return isLoopback(inner)
	}
	return a.IsLoopback() || a.IsUnspecified()
}

// classify sorts an address by the special-purpose address registries of IANA. An IPv6 address that carries
// an IPv4 address is classified by the IPv4 address.
func classify(a netip.Addr) kind {
	a = a.Unmap().WithZone("")
	if inner, ok := embedded(a); ok {
		return classify(inner)
	}
	switch {
	case !a.IsValid(), a.IsUnspecified(), a.IsMulticast(), a.IsLinkLocalUnicast(), a.IsInterfaceLocalMulticast(),
		a == netip.AddrFrom4([4]byte{168, 63, 129, 16}), // Azure's platform address
		a == netip.MustParseAddr("fd00:ec2::254"):       // EC2 metadata over IPv6
		return kindForbidden
	case a.IsLoopback(), a.IsPrivate():
		return kindPrivate
	}
	for _, s := range []string{"100.64.0.0/10", "fec0::/10"} {
		if netip.MustParsePrefix(s).Contains(a) {
			return kindPrivate
		}
	}
	for _, s := range []string{
		"0.0.0.0/8", "192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"100::/64", "2001:db8::/32", "2001::/23", "5f00::/16",
	} {
		if netip.MustParsePrefix(s).Contains(a) {
			return kindForbidden
		}
	}
	return kindPublic
}

// embedded returns the IPv4 address inside a NAT64, 6to4 or IPv4-compatible address.
func embedded(a netip.Addr) (netip.Addr, bool) {
	if !a.Is6() {
		return netip.Addr{}, false
	}
	b := a.As16()
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(a), netip.MustParsePrefix("64:ff9b:1::/48").Contains(a):
		return netip.AddrFrom4([4]byte(b[12:16])), true
	case netip.MustParsePrefix("2002::/16").Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	case netip.MustParsePrefix("::/96").Contains(a) && !a.IsLoopback() && !a.IsUnspecified():
		return netip.AddrFrom4([4]byte(b[12:16])), true
	}
	return netip.Addr{}, false
}
