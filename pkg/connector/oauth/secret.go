// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/platform-ai/platform/pkg/redact"
)

// Secret is a token, or the secret of a client. However it is printed or logged, it is [REDACTED], and it has no JSON; Reveal returns it.
type Secret struct{ value string }

// SecretOf returns a text as a Secret.
func SecretOf(s string) Secret { return Secret{s} }

// Reveal returns the text: for a request, or for where tokens are kept sealed.
func (s Secret) Reveal() string { return s.value }

// Empty reports whether there is none.
func (s Secret) Empty() bool { return s.value == "" }

// String returns a mark in place of the text.
func (Secret) String() string { return redact.Marker }

// GoString returns a mark in place of the text.
func (Secret) GoString() string { return redact.Marker }

// Format writes a mark in place of the text, for each verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redact.Marker) }

// LogValue returns a mark in place of the text.
func (Secret) LogValue() slog.Value { return slog.StringValue(redact.Marker) }

// MarshalJSON fails, so that nothing else than the text is kept in its place by mistake.
func (Secret) MarshalJSON() ([]byte, error) {
	return nil, errors.New("a secret has no JSON: reveal it where it is sealed")
}
