// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// minKey is the minimum length of the key, and nonceLen the random part of a nonce, in bytes.
	minKey, nonceLen = 32, 24
	// maxToken bounds a token, in characters.
	maxToken = 256
)

// purpose keeps the HMACs of the two kinds of tokens apart.
type purpose string

const (
	forState      purpose = "platform.ai/connection-state/v1"
	forCompletion purpose = "platform.ai/connection-completion/v1"
)

// errToken says that a token is not one of this server.
var errToken = errors.New("not a token of this server")

// newToken returns a token that counts once: a nonce of random bytes and the UID of a connection, a dot, and an HMAC over the nonce. digest is
// what custody keeps of it, so that what is stored opens nothing.
func (h *Hub) newToken(p purpose, uid types.UID) (token string, digest []byte, err error) {
	nonce := make([]byte, nonceLen, nonceLen+len(uid))
	if _, err := rand.Read(nonce); err != nil {
		return "", nil, err
	}
	text := base64.RawURLEncoding.EncodeToString(append(nonce, uid...))
	return text + "." + base64.RawURLEncoding.EncodeToString(h.sign(p, text)), digestOf(text), nil
}

// readToken returns the connection of a token, and the digest by which custody knows it.
func (h *Hub) readToken(p purpose, token string) (uid types.UID, digest []byte, err error) {
	text, mac, ok := strings.Cut(token, ".")
	if !ok || len(token) > maxToken {
		return "", nil, errToken
	}
	got, err := base64.RawURLEncoding.Strict().DecodeString(mac)
	if err != nil || !hmac.Equal(got, h.sign(p, text)) {
		return "", nil, errToken
	}
	nonce, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(nonce) <= nonceLen {
		return "", nil, errToken
	}
	return types.UID(nonce[nonceLen:]), digestOf(text), nil
}

func (h *Hub) sign(p purpose, text string) []byte {
	mac := hmac.New(sha256.New, h.o.Key)
	for _, part := range []string{string(p), text} {
		_, _ = mac.Write(append([]byte(part), 0)) // never fails
	}
	return mac.Sum(nil)
}

func digestOf(text string) []byte {
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}
