// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
)

// seal encrypts a credential with a key that is derived from the value of a cookie. So the memory of a server, and a copy
// of it, contains no credential of a session that is not making a request.
func seal(cookie, credential string) ([]byte, error) {
	a, err := sealer(cookie)
	if err != nil {
		return nil, err
	}
	return a.Seal(nil, nil, []byte(credential), nil), nil //nolint:gosec // the nonce is made at random
}

// Credential returns the credential of a session.
func (x *Session) Credential(secrets Secrets) (string, error) {
	a, err := sealer(secrets.Cookie)
	if err != nil {
		return "", err
	}
	text, err := a.Open(nil, nil, x.sealed, nil)
	if err != nil {
		return "", errors.New("session: the credential cannot be read")
	}
	return string(text), nil
}

func sealer(cookie string) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, []byte(cookie), nil, "credential of a session", secretBytes)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
