// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// NamesSecret reports whether a header, a parameter of a query or a variable of that name holds a credential, whatever
// its value looks like.
func NamesSecret(name string) bool {
	if k := keyKind(name); k >= secretValue {
		return true
	}
	switch strings.ToLower(name) {
	case "key", "sig", "signature", "auth", "pwd", "jwt", "cookie", "x-functions-key":
		return true
	}
	return false
}
