// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"net/url"
	"strings"
	"unicode/utf8"
)

// maxURL bounds addresses, in bytes.
const maxURL = 2048

// URL returns the address of a page that a browser may open; empty for any other.
func URL(address string) string {
	if u, err := url.Parse(address); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || len(address) > maxURL || !utf8.ValidString(address) {
		return ""
	}
	return address
}

// Login returns the name of a user whom a host gave, or an error.
func Login(name, kind string) (string, error) {
	if !isName(name) {
		return "", Malformed(kind)
	}
	return Text(name), nil
}

// Text returns a text of strangers as valid UTF-8.
func Text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func texts(all ...*string) {
	for _, s := range all {
		*s = Text(*s)
	}
}

func eachText(all []string) {
	for i := range all {
		all[i] = Text(all[i])
	}
}
