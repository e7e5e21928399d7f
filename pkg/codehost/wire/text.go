// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/platform-ai/platform/pkg/codehost"
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

// login matches the names of users on all hosts. GitHub's Apps have names that end with "[bot]".
var login = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}(\[bot\])?$`)

// IsLogin reports whether a text can be the name of a user, so that it names one segment of a path.
func IsLogin(name string) bool { return login.MatchString(name) }

// CheckLabel returns an error for a text that cannot name one label in a path: without a name all labels of an issue would be meant.
func CheckLabel(name string) error {
	switch bare := strings.TrimSpace(name); {
	case bare == "", bare == ".", bare == "..", !isName(name):
		return fmt.Errorf("%w: a label needs a name without control characters, which is neither %q nor %q", codehost.ErrRefused, ".", "..")
	}
	return nil
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
