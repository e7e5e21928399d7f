// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
)

// newSealer makes a cipher whose key only this process has.
func newSealer() (cipher.AEAD, error) {
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// seal encrypts a text that a browser keeps for this server.
func (h *Handler) seal(text []byte) string {
	return base64.RawURLEncoding.EncodeToString(h.sealer.Seal(nil, nil, text, nil)) //nolint:gosec // the nonce is made at random
}

// open is the reverse of seal.
func (h *Handler) open(text string) ([]byte, error) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	return h.sealer.Open(nil, nil, sealed, nil)
}
