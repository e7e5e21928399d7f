// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package harness is the protocol platform.harness.v2 between the platform and runtimes that run coding agents elsewhere:
// docs/harness-v2.md describes it. The package has the forms of what is sent, the fences of requests, and a Client.
//
// # Fences
//
// A Fence says for whom, by whom and about what a request is. Its digest says what is asked for; its capability proves that the
// controller asks, now, this instance. Both sides use the same code here, and the documentation has examples that a test compares.
//
// # What a runtime sends
//
// A runtime is another party's program. Each answer is read up to a bound, decoded strictly and checked before anybody sees it; a stream
// is checked event by event, and a silent one ends. An error of this package has no secret in it, even if the runtime repeats one.
package harness

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

// Protocol is the name of the protocol, which is compared exactly.
const Protocol = string(v1alpha1.HarnessV2)

// Media types of bodies.
const (
	TypeJSON      = "application/json"
	TypeStream    = "application/x-ndjson"
	TypeWorkspace = "application/gzip"
)

// Routes that are not below a session.
const (
	PathHealth       = "/v2/health"
	PathCapabilities = "/v2/capabilities"
	PathStatus       = "/v2/status"
	PathDrain        = "/v2/drain"
	PathBootstrap    = "/v2/credential-bootstrap"
	pathSessions     = "/v2/runtime-sessions/"
)

// PathSession returns the route of a session, and with more names one below it, such as ("s", "prompts", "p", "lease").
func PathSession(id string, below ...string) string {
	return strings.Join(append([]string{pathSessions + id}, below...), "/")
}

var name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// ValidName reports whether a text can name a session, prompt, permission, delta, operation or instance.
func ValidName(s string) bool { return name.MatchString(s) }

// NewOperation returns the name of an operation that nobody has used.
func NewOperation() string {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails
	return "op-" + hex.EncodeToString(raw[:])
}

// maxInteger is the largest number that all implementations of JSON read alike.
const maxInteger = 1<<53 - 1

// ErrProtocol is in the chain of the error for what a runtime sent against the protocol.
var ErrProtocol = errors.New("the runtime does not keep to " + Protocol)

func wrong(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrProtocol, fmt.Errorf(format, args...))
}

// Decode decodes JSON strictly: unknown members, members twice, and names in other letters are errors.
func Decode(raw []byte, into any) error {
	if !utf8.Valid(raw) {
		return errors.New("it is not UTF-8")
	}
	problems, err := kjson.UnmarshalStrict(raw, into)
	if err != nil {
		return err
	}
	return errors.Join(problems...)
}

// checkName returns an error unless a text is a name; member is where it is.
func checkName(member, text string) error {
	if !ValidName(text) {
		return fmt.Errorf("%s must have 1 to 128 letters, digits, dots, dashes and underscores, and begin with a letter or digit", member)
	}
	return nil
}

// word is one word, as a reason is.
var word = regexp.MustCompile(`^[A-Za-z]{1,64}$`)

var (
	digest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	commit = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// isLabel reports whether a text is short and has no control characters.
func isLabel(s string) bool {
	return len(s) <= validation.DNS1123SubdomainMaxLength && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0
}
