// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codehost

import (
	"errors"
	"regexp"

	"github.com/platform-ai/platform/pkg/redact"
)

// reserved matches the beginning of the hidden comments by which the platform recognises what it wrote.
var reserved = regexp.MustCompile(`(?i)<!--\s*platform\b`)

// CheckText returns why a text must not be written on a code host; nil if it may. The error says nothing of what the text contains.
func CheckText(text string) error {
	if reserved.MatchString(text) {
		return errors.New(`must not contain comments that begin with "<!-- platform", by which the platform recognises what it wrote`)
	}
	if _, secret := redact.Output(text); secret {
		return errors.New("looks like it contains a secret")
	}
	return nil
}
