// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connector has the rules of ConnectorProviders and Connections that the server, the controllers and the console share. It makes
// no request and reads no clock.
//
//	address.go     which addresses a provider may name
//	parameters.go  names and values that go into requests: parameters, scopes, headers
//	tools.go       tools, and which of the platform's own use a person's account
//	provider.go    all of these for one ConnectorProvider
//	consent.go     names, digests, and what a consent covers
//	state.go       the state of a Connection, and whether it can be used
//
// Package oauth, below, asks a provider for tokens.
//
// An address is checked here by its text, when a provider is written, so that a mistake is found early. A name that looks public may
// still lead to a private address; the transport that dials decides about that (package egress).
package connector

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/platform-ai/platform/pkg/egress"
)

// Limits of addresses, in bytes.
const (
	maxAddress = 2048
	maxQuery   = 1024
	maxHost    = 253
)

// CheckAddress returns why an endpoint of an OAuth client may not have the address raw: it must be an absolute https URL with a public
// host, without user info and fragment, and without parameters that OAuth defines or that look like credentials. The error does not
// repeat the address.
func CheckAddress(raw string) error {
	query, err := checkURL(raw)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(query, reserved); i >= 0 {
		return fmt.Errorf("must not have the parameter %s, which OAuth defines", parameter(query[i]))
	}
	return nil
}

// CheckToolAddress returns why a tool may not have the address raw. The rules are those of CheckAddress, but a tool may have parameters
// that only OAuth reserves, such as state=open, and must not have placeholders: nothing replaces them.
func CheckToolAddress(raw string) error {
	if placeholder.MatchString(raw) {
		return errors.New("must not have placeholders or braces, even if percent-encoded: nothing replaces them; arguments are sent as the JSON body, or as the query of GET and DELETE")
	}
	_, err := checkURL(raw)
	return err
}

// placeholder matches {name}, {{name}}, ${name}, $(name), and the verbs of printf as far as they are no percent-encoded byte.
var placeholder = regexp.MustCompile(`[{}]|%7[BbDd]|\$\(|%[qstv]|%d([^0-9A-Fa-f]|$)`)

// SameOrigin reports whether two https addresses have the same host and port.
func SameOrigin(a, b string) bool {
	u, errU := url.Parse(a)
	v, errV := url.Parse(b)
	return errU == nil && errV == nil && u.Host != "" && egress.SameOrigin(u, v)
}

// The characters of a URL without a fragment, and of them those that begin no escape (RFC 3986, appendix A). Some parsers read others,
// such as a backslash, as the end of the host.
var (
	isURL   = regexp.MustCompile(`^[A-Za-z0-9\-._~:/?\[\]@!$&'()*+,;=%]*$`)
	escapes = regexp.MustCompile(`^([^%]|%[0-9A-Fa-f]{2})*$`)
)

// checkURL checks all but the names that OAuth reserves, and returns the names of the parameters, sorted.
func checkURL(raw string) ([]string, error) {
	rest, https := strings.CutPrefix(raw, "https://")
	end := strings.IndexAny(rest+"/", "/?")
	switch {
	case len(raw) > maxAddress:
		return nil, fmt.Errorf("must have at most %d bytes", maxAddress)
	case !https:
		return nil, errors.New("must be an absolute URL that begins with https://")
	case strings.Contains(raw, "#"):
		return nil, errors.New("must not have a fragment")
	case !isURL.MatchString(raw):
		return nil, errors.New("must consist of characters of a URL; write an international host in punycode, and percent-encode the rest")
	case !escapes.MatchString(raw):
		return nil, errors.New("must have two hexadecimal digits after each %")
	case strings.Contains(rest[:end], "@"):
		return nil, errors.New("must not have a user or a password")
	}
	if err := checkAuthority(rest[:end]); err != nil {
		return nil, err
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("must be an absolute URL")
	}
	if len(u.RawQuery) > maxQuery {
		return nil, fmt.Errorf("must have a query of at most %d bytes", maxQuery)
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("must have a query of the form name=value&name=value")
	}
	names := slices.Sorted(maps.Keys(query))
	if slices.ContainsFunc(names, CredentialLike) {
		return nil, errors.New("must not have a parameter that looks like a credential")
	}
	return names, nil
}

func checkAuthority(authority string) error {
	host, port, hasPort := strings.Cut(authority, ":")
	literal, is6 := strings.CutPrefix(authority, "[")
	if is6 {
		var after string
		if host, after, is6 = strings.Cut(literal, "]"); !is6 || after != "" && after[0] != ':' {
			return errors.New("must have a host, and in brackets an IPv6 address alone")
		}
		port, hasPort = strings.CutPrefix(after, ":")
	}
	if n, err := strconv.ParseUint(port, 10, 16); hasPort && (err != nil || n == 0 || strconv.FormatUint(n, 10) != port) {
		return errors.New("port must be 1–65535")
	}
	if is6 {
		a, err := netip.ParseAddr(host)
		return checkIP(a, err == nil && a.Is6() && a.Zone() == "" && a.String() == host)
	}
	return checkName(strings.ToLower(host))
}

// label matches a part of a host's name, and topLevel the last: in letters, or punycode (RFC 1123, RFC 3696).
var (
	label    = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	topLevel = regexp.MustCompile(`^([a-z]{2,63}|xn--[a-z0-9-]{1,59})$`)
)

// private are last parts of names that lead into a private network, or nowhere by DNS.
var private = []string{
	"localhost", "localdomain", // this machine (RFC 6761), also in files of hosts
	"local",      // multicast DNS (RFC 6762), and with it cluster.local
	"internal",   // reserved for private use; names and metadata services of clouds
	"svc", "pod", // Services and Pods of a cluster: the search domains of a Pod complete them
	"default",         // Services of the namespace that each cluster has, such as kubernetes.default
	"consul",          // the service discovery of that name
	"arpa",            // home.arpa (RFC 8375); the rest has no hosts
	"test", "invalid", // never delegated (RFC 6761)
	"onion", "alt", // not resolved by DNS (RFC 7686, RFC 9476)
	"corp", "home", "intranet", "lan", "private", // in use in private networks, so never delegated (RFC 6762, appendix G)
}

// checkName checks a host in small letters that is not in brackets. A host whose last part begins with a digit is an IPv4 address for
// inet_aton and for browsers, which also read 127.1, 0x7f.1, 0177.0.0.1 and 2130706433 as one.
func checkName(host string) error {
	labels := strings.Split(host, ".")
	last := labels[len(labels)-1]
	switch {
	case host == "":
		return errors.New("must have a host")
	case last == "":
		return errors.New("host must not end with a dot")
	case last[0] >= '0' && last[0] <= '9':
		a, err := netip.ParseAddr(host)
		return checkIP(a, err == nil)
	case len(labels) == 1:
		return errors.New("host must be a full name with a dot in it")
	case len(host) > maxHost || slices.ContainsFunc(labels, func(l string) bool { return !label.MatchString(l) }):
		return errors.New("host must be a name of letters, digits and dashes, or an IP address")
	case !topLevel.MatchString(last):
		return errors.New("host must end with a top-level domain")
	case slices.Contains(private, last):
		return fmt.Errorf("host must be public, and names that end with .%s are not", last)
	}
	return nil
}

func checkIP(a netip.Addr, canonical bool) error {
	if !canonical {
		return errors.New("an IP address as host must be in its canonical form, such as 192.0.2.1 or [2001:db8::1]")
	}
	if !egress.Public(a) {
		return errors.New("host must be public, and that address is private, local or reserved")
	}
	return nil
}
