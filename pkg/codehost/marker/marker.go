// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package marker writes and finds the hidden comment by which a review proves what was reviewed. A code host may move a review to
// another commit after a push, so what the host says about its commit is no proof. The comment is
//
//	<!-- platform:pr-review repo=OWNER/NAME pr=NUMBER head_sha=SHA sig=SIGNATURE -->
//
// on one line, with single spaces and in this order. OWNER/NAME is in lower case, because hosts do not distinguish the case. Every other
// form is ignored, so that there is one way to write a marker. Where it stands in a text does not matter, nor does what is around it.
//
// The signature is an HMAC-SHA256 in lower-case hexadecimal. Its key belongs to the platform and is independent of the credential for
// the code host. A marker therefore stays valid when that credential is replaced.
package marker

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

const (
	opening, closing = "<!-- platform:pr-review repo=", " -->"
	// version begins what is signed. It changes with what the signature covers.
	version = "platform:pr-review:v1"
	sigSize = 2 * sha256.Size
)

// Subject is what was reviewed.
type Subject struct {
	// Repository is OWNER/NAME. Its case does not matter.
	Repository string
	// PullRequest is the number of the pull request.
	PullRequest int64
	// HeadSHA is the commit that was its head: 40 or 64 digits, lower-case hexadecimal.
	HeadSHA string
}

var repository = regexp.MustCompile(`^[a-z0-9_][a-z0-9._-]{0,127}/[a-z0-9_][a-z0-9._-]{0,127}$`)

// canonical returns the subject as it is written and signed, or false for one that does not exist.
func (s Subject) canonical() (Subject, bool) {
	s.Repository = strings.ToLower(s.Repository)
	return s, s.PullRequest > 0 && repository.MatchString(s.Repository) && (v1alpha1.IsLowerHex(s.HeadSHA, 40) || v1alpha1.IsLowerHex(s.HeadSHA, 64))
}

// tail is what a marker has between the repository and the signature.
func (s Subject) tail() string { return fmt.Sprintf(" pr=%d head_sha=%s", s.PullRequest, s.HeadSHA) }

// MinKey is the size of the shortest key, in bytes.
const MinKey = 16

// Keys sign markers with the current key, and accept what the previous ones signed. The zero value signs and accepts nothing.
type Keys struct {
	keys [][]byte // the current key first
}

// NewKeys returns keys, each of at least MinKey bytes.
func NewKeys(current []byte, previous ...[]byte) (Keys, error) {
	if len(current) < MinKey {
		return Keys{}, fmt.Errorf("the key that signs reviews has %d bytes and must have at least %d", len(current), MinKey)
	}
	keys := [][]byte{slices.Clone(current)}
	for i, key := range previous {
		if len(key) < MinKey { // anybody could sign with an empty one
			return Keys{}, fmt.Errorf("previous key %d that signed reviews has %d bytes and must have at least %d", i+1, len(key), MinKey)
		}
		keys = append(keys, slices.Clone(key))
	}
	return Keys{keys: keys}, nil
}

// Marker returns the marker of a subject, which is the same each time. It is empty for a subject that does not exist: another form of
// repository or commit, or a number below 1.
func (k Keys) Marker(s Subject) string {
	s, ok := s.canonical()
	if !ok || len(k.keys) == 0 {
		return ""
	}
	return opening + s.Repository + s.tail() + " sig=" + sign(k.keys[0], s) + closing
}

// Find reports whether a text contains a marker of exactly this subject that one of the keys signed. It reads the text once.
func (k Keys) Find(body string, s Subject) bool {
	s, ok := s.canonical()
	if !ok {
		return false
	}
	var signatures []string
	for _, key := range k.keys {
		signatures = append(signatures, sign(key, s))
	}
	beginning := opening + s.Repository + s.tail() + " sig="
	for {
		_, after, found := strings.Cut(body, beginning)
		if !found {
			return false
		}
		if len(after) >= sigSize && strings.HasPrefix(after[sigSize:], closing) && isOneOf(after[:sigSize], signatures) {
			return true
		}
		body = after
	}
}

// isOneOf takes the same time whichever bytes differ. The text is a stranger's, who could otherwise find out a signature byte by byte.
func isOneOf(given string, signatures []string) bool {
	found := false
	for _, s := range signatures {
		found = hmac.Equal([]byte(given), []byte(s)) || found
	}
	return found
}

// sign returns the signature of a subject in its canonical form.
func sign(key []byte, s Subject) string {
	mac := hmac.New(sha256.New, key)
	for _, value := range []string{version, s.Repository, strconv.FormatInt(s.PullRequest, 10), s.HeadSHA} {
		// With its size before it, no part of a value can be taken for another value.
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(value)))
		mac.Write(size[:])
		mac.Write([]byte(value))
	}
	return hex.EncodeToString(mac.Sum(nil))
}
