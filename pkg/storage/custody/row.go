// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package custody

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

const (
	format = 1

	kindTombstone = 0
	kindSealed    = 1

	keyLen   = 32      // AES-256
	overhead = 12 + 16 // nonce and tag of AES-GCM

	versionAt = 2
	keyAt     = versionAt + 8
	wrappedAt = keyAt + len(keyID{})
	contentAt = wrappedAt + keyLen + overhead

	// The domains keep the two uses of AES-GCM apart from each other and from others of the same key.
	keyDomain     = "platform.ai/custody/key/v1"
	contentDomain = "platform.ai/custody/content/v1"
)

// keyID is the digest that names a key of the key file.
type keyID [8]byte

func (k keyID) String() string { return hex.EncodeToString(k[:]) }

// record is a row of the store. A version of 0 is that of a missing row or a tombstone.
type record struct {
	gone             bool
	version          int64
	key              keyID
	wrapped, content []byte // they share the row's memory
}

func tombstone() []byte { return []byte{format, kindTombstone} }

func isTombstone(row []byte) bool { return bytes.Equal(row, tombstone()) }

// parse reads a row without a key; nil is a missing one. The error is a *CorruptError.
func parse(uid types.UID, row []byte) (record, error) {
	if row == nil {
		return record{}, nil
	}
	if isTombstone(row) {
		return record{gone: true}, nil
	}
	if len(row) < contentAt+overhead || row[0] != format || row[1] != kindSealed {
		return record{}, &CorruptError{uid}
	}
	r := record{
		version: int64(binary.BigEndian.Uint64(row[versionAt:])),
		key:     keyID(row[keyAt:wrappedAt]),
		wrapped: row[wrappedAt:contentAt],
		content: row[contentAt:],
	}
	if r.version < 1 {
		return record{}, &CorruptError{uid}
	}
	return r, nil
}

// encode returns the row of sealed content.
func (r record) encode() []byte {
	b := make([]byte, 0, contentAt+len(r.content))
	b = append(b, format, kindSealed)
	b = binary.BigEndian.AppendUint64(b, uint64(r.version))
	return slices.Concat(b, r.key[:], r.wrapped, r.content)
}

// bound is what a ciphertext is authenticated with: the domain and 0, the keyspace, the version and the UID.
func bound(domain string, uid types.UID, version int64) []byte {
	b := append([]byte(domain), 0, byte(space))
	return append(binary.BigEndian.AppendUint64(b, uint64(version)), uid...)
}

// newAEAD returns AES-256-GCM that makes its nonces and stores them before the ciphertext.
func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// encrypt returns nonce, ciphertext and tag.
func encrypt(aead cipher.AEAD, plain, bound []byte) []byte {
	return aead.Seal(nil, nil, plain, bound) //nolint:gosec // the nonce is made at random
}

// seal returns the row of content, under a new data key.
func (k *Keys) seal(uid types.UID, version int64, data []byte) ([]byte, error) {
	key := make([]byte, keyLen)
	defer clear(key)
	_, _ = rand.Read(key) // never fails
	aead, err := newAEAD(key)
	if err != nil {
		return nil, err
	}
	return record{
		version: version, key: k.first,
		wrapped: encrypt(k.all[k.first], key, bound(keyDomain, uid, version)),
		content: encrypt(aead, data, bound(contentDomain, uid, version)),
	}.encode(), nil
}

// open returns the content of a sealed row. The error is a *KeyError or a *CorruptError.
func (k *Keys) open(uid types.UID, r record) ([]byte, error) {
	key, err := k.unwrap(uid, r)
	if err != nil {
		return nil, err
	}
	defer clear(key)
	aead, err := newAEAD(key)
	if err != nil {
		return nil, &CorruptError{uid}
	}
	data, err := aead.Open(nil, nil, r.content, bound(contentDomain, uid, r.version))
	if err != nil {
		return nil, &CorruptError{uid}
	}
	return data, nil
}

// rewrap returns a sealed row with its data key under the first key. The error is a *KeyError or a *CorruptError.
func (k *Keys) rewrap(uid types.UID, r record) ([]byte, error) {
	key, err := k.unwrap(uid, r)
	if err != nil {
		return nil, err
	}
	defer clear(key)
	r.key, r.wrapped = k.first, encrypt(k.all[k.first], key, bound(keyDomain, uid, r.version))
	return r.encode(), nil
}

// unwrap returns the data key of a sealed row, which the caller clears. The error is a *KeyError or a *CorruptError.
func (k *Keys) unwrap(uid types.UID, r record) ([]byte, error) {
	aead, ok := k.all[r.key]
	if !ok {
		return nil, &KeyError{uid, r.key.String(), k.file}
	}
	key, err := aead.Open(nil, nil, r.wrapped, bound(keyDomain, uid, r.version))
	if err != nil {
		return nil, &CorruptError{uid}
	}
	return key, nil
}
