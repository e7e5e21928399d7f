// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codehost

import (
	"fmt"
	"strings"
	"unicode"
)

// Credential returns the token without line breaks and spaces at its end, which a Secret that was made of a file often has; empty for
// none. A token that no header may contain is ErrCredential, and so is one of which nothing is left, because a request without a
// credential is not what was meant.
func (r Remote) Credential() (string, error) {
	token := strings.TrimRight(r.Token, " \t\r\n")
	switch {
	case strings.ContainsFunc(token, unicode.IsControl):
		return "", fmt.Errorf("%w: it must not contain line breaks or other control characters, except for line breaks at its end", ErrCredential)
	case token == "" && r.Token != "":
		return "", fmt.Errorf("%w: it consists of spaces and line breaks", ErrCredential)
	}
	return token, nil
}
