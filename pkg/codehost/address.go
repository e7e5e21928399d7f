// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codehost

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Address is the address of a repository in parts.
type Address struct {
	// Root is the address of the host without a slash at the end: scheme, host, port, and the path below which it serves.
	Root url.URL
	// Owner and Name are the last two segments of the path.
	Owner, Name string
}

// segment matches a name of an owner or of a repository. Nothing in it has a meaning in a URL.
var segment = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

// ParseAddress returns the parts of the address of a repository.
func ParseAddress(address string) (Address, error) {
	u, err := url.Parse(address)
	if err != nil {
		return Address{}, fmt.Errorf("%w: it is not a URL", ErrAddress) // the error may show a credential
	}
	switch {
	case u.Scheme != "https" && u.Scheme != "http" || u.Host == "":
		return Address{}, fmt.Errorf("%w: it must begin with https://HOST/ or http://HOST/", ErrAddress)
	case u.User != nil:
		return Address{}, fmt.Errorf("%w: it must not contain credentials", ErrAddress)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return Address{}, fmt.Errorf("%w: it must have neither query nor fragment", ErrAddress)
	case u.RawPath != "":
		return Address{}, fmt.Errorf("%w: its path must not contain escapes", ErrAddress)
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if len(parts) < 2 {
		return Address{}, fmt.Errorf("%w: its path must end with OWNER/NAME", ErrAddress)
	}
	last := len(parts) - 1
	parts[last] = strings.TrimSuffix(parts[last], ".git")
	for _, p := range parts {
		if !segment.MatchString(p) {
			return Address{}, fmt.Errorf("%w: each segment of its path must be letters, digits, '.', '_' and '-', and begin with neither '.' nor '-'", ErrAddress)
		}
	}
	a := Address{Root: url.URL{Scheme: u.Scheme, Host: u.Host}, Owner: parts[last-1], Name: parts[last]}
	if rest := parts[:last-1]; len(rest) > 0 {
		a.Root.Path = "/" + strings.Join(rest, "/")
	}
	return a, nil
}

// Key returns what two addresses of one repository have in common. Code hosts do not distinguish case in names.
func (a Address) Key() string {
	return a.Root.Scheme + "://" + strings.ToLower(a.Root.Host) + a.Root.Path + "/" + strings.ToLower(a.Owner+"/"+a.Name)
}

// Same reports whether two addresses name one repository.
func Same(a, b string) bool {
	x, err := ParseAddress(a)
	if err != nil {
		return false
	}
	y, err := ParseAddress(b)
	return err == nil && x.Key() == y.Key()
}
