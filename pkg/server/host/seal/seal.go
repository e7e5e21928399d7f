// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package seal encrypts Secrets before they reach the disk of a standalone
// host. It uses k8s.io/apiserver's own transformer: AES-256-GCM with a key that
// is derived anew for every value from the seed in the key file.
//
// The key file has one line "ID SEED" per key, with the seed in base64. The
// first key encrypts; all of them decrypt. To rotate keys, add a new line at
// the top (see NewLine) and restart; each Secret is encrypted with the new key
// when it is next written. An old line may be removed when no Secret uses it
// any more.
package seal

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/aes"

	"github.com/platform-ai/platform/pkg/durable"
)

// ErrNoKeys means that the key file, which should exist, is missing.
var ErrNoKeys = errors.New("the encryption key file is missing")

const (
	// prefix precedes each encrypted value and is followed by the key's ID.
	prefix = "platform:enc:aesgcm:v1:"
	idSize = 4
)

// Open reads the key file. If the file does not exist, Open creates it with
// mode 0600 if create is set. Otherwise it returns ErrNoKeys, because a new key
// could not decrypt what an old key has encrypted.
func Open(path string, create bool) (value.Transformer, error) {
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && create:
		if b, err = makeFile(path); err != nil {
			return nil, fmt.Errorf("encryption key file: %w", err)
		}
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: restore %s; without it the stored Secrets cannot be read", ErrNoKeys, path)
	case err != nil:
		return nil, fmt.Errorf("encryption key file: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, fmt.Errorf("encryption key file: %w", err)
	}
	t, err := parse(b)
	if err != nil {
		return nil, fmt.Errorf("encryption key file %s: %w", path, err)
	}
	return t, nil
}

// NewLine generates a key and returns its line for the key file.
func NewLine() ([]byte, error) {
	random := make([]byte, idSize+aes.MinSeedSizeExtendedNonceGCM)
	if _, err := rand.Read(random); err != nil {
		return nil, err
	}
	id, seed := random[:idSize], random[idSize:]
	return fmt.Appendf(nil, "%s %s\n", hex.EncodeToString(id), base64.StdEncoding.EncodeToString(seed)), nil
}

// makeFile writes the first key durably, before the store has a Secret.
func makeFile(path string) (line []byte, err error) {
	if line, err = NewLine(); err != nil {
		return nil, err
	}
	return line, durable.WriteFile(path, line)
}

func parse(file []byte) (value.Transformer, error) {
	validID := regexp.MustCompile(`^[0-9A-Za-z_-]{1,64}$`)
	var keys []value.PrefixTransformer
	seen := map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(file))
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		id, encoded, _ := strings.Cut(text, " ")
		if !validID.MatchString(id) || seen[id] {
			return nil, fmt.Errorf("line %d: it must begin with an ID of its own", n)
		}
		seen[id] = true
		// The decoder's error is not returned, because it would quote the seed.
		seed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
		if err != nil || len(seed) < aes.MinSeedSizeExtendedNonceGCM {
			return nil, fmt.Errorf("line %d: the seed must be at least %d bytes in base64", n, aes.MinSeedSizeExtendedNonceGCM)
		}
		t, err := aes.NewHKDFExtendedNonceGCMTransformer(seed)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		keys = append(keys, value.PrefixTransformer{Prefix: []byte(prefix + id + ":"), Transformer: t})
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, errors.New("it holds no key")
	}
	return value.NewPrefixTransformers(errors.New("encrypted with a key that is not in the key file"), keys...), nil
}
