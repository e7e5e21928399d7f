// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package codehost_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/codehost"
)

// TestCredential: what a file has at its end does no harm, and no error shows the token.
func TestCredential(t *testing.T) {
	for token, want := range map[string]string{"": "", "s3cret": "s3cret", "s3cret\n": "s3cret", "s3cret \t\r\n\n": "s3cret", "s3c ret": "s3c ret"} {
		if got, err := (codehost.Remote{Token: token}).Credential(); err != nil || got != want {
			t.Errorf("%q: %q %v", token, got, err)
		}
	}
	for _, token := range []string{"\n", "  ", "\ns3cret", "s3\ncret", "s3\rcret\n", "s3cret\x00", "s3\tcret", "s3cret\x7f", "s3cret\u0085x"} {
		if got, err := (codehost.Remote{Token: token}).Credential(); !errors.Is(err, codehost.ErrCredential) || got != "" || strings.Contains(err.Error(), "cret") {
			t.Errorf("%q: %q %v", token, got, err)
		}
	}
}
