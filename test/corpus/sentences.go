// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package corpus

import (
	"fmt"
	"strings"
)

// secretNouns name a secret in prose.
var secretNouns = []string{"token", "secret", "password", "key", "credential", "API key", "access token", "client secret", "private key", "refresh token", "passphrase", "db_password"}

// predicates are common words that say something about a secret.
var predicates = strings.Fields(`a about absent accepted active added also already always an available bad base64-encoded being below blank bound broken
	case-sensitive cached changed checked cleared compromised confidential configured copied correct created cryptographically deleted deprecated derived
	different disabled displayed due eight empty enabled encoded encrypted enough exactly exchanged exempt expired expiring exported exposed external fetched
	fine forbidden forgotten found four fresh from generated given good gone granted handled hard-coded hashed held here hidden idle ignored immutable important
	in incorrect inherited injected insecure inside instead internal invalid issued just kept known later leaked left less limited local locked logged long
	longer-lived lost malformed mandatory masked matched meant mentioned missing misspelled mounted much necessary needed never new no none not nothing now null
	obsolete obtained old omitted on once one only opaque optional or out outdated over parsed passed pending per-user permanent personal pinned present
	printed private protected provided public quoted random rate-limited read read-only ready received redacted refreshed refused regenerated rejected
	removed renewed replaced requested required reset restricted retrieved returned reused revoked right rotated safe salted saved scoped secure
	self-signed sensitive sent set shared short short-lived shown signed single-use sixty-four-bit stale still stored strong supplied supposed symmetric
	temporary the then there thirty-two-byte this three to too truncated twelve two typed unchanged undefined unique unknown unnecessary unreadable unset
	unsupported unused updated used useless user-supplied validated valid verified visible weak what where whitespace-trimmed why within world-readable
	written wrong yours zero 12 16-byte 2048-bit 256-bit AES-256-encrypted HMAC-SHA256 SHA-256-hashed UTF-8 NULL None GitHub's TokenReview PEM-encoded`)

// sentenceShapes are sentences with a noun and a predicate.
var sentenceShapes = []string{
	"The %s is %s.", "the %s is %s", "If the %s is %s, try again.", "Error: %s is %s", "Your %s is %s! Ask for another one.", "check whether the %s is %s before you call it",
	"the %s is %s and the request was refused", "// the %s is %s\n", "- The %s is %s\n", "WARN auth: %s is %s (attempt 2 of 5)", "The %s is not %s.", "What a %s is: %s things.",
}

// Sentences returns prose that says something about a secret and holds none: each noun with each predicate, in each shape
// in turn.
func Sentences() []string {
	var all []string
	for i, noun := range secretNouns {
		for j, word := range predicates {
			all = append(all, fmt.Sprintf(sentenceShapes[(i*7+j)%len(sentenceShapes)], noun, word), fmt.Sprintf(sentenceShapes[(i*5+j*3+1)%len(sentenceShapes)], noun, word))
		}
	}
	return all
}
