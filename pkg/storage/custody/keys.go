// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package custody

import (
	"bytes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/platform-ai/platform/pkg/durable"
)

// idDomain keeps the digests that name keys apart from others of the same key.
const idDomain = "platform.ai/custody/key-id/v1"

// newFile is the text before the key in a new file.
const newFile = `# Keys that seal the tokens of connections. Each line is the base64 of 32 random bytes. The first key seals; the others only open.
# Keep a copy in a safe place, apart from the backups of the store: without the key nobody can read the tokens again.
`

// Keys are the keys of a key file. They do not change, and may be used concurrently. The zero Keys open nothing, and must not seal.
type Keys struct {
	file  string
	first keyID
	all   map[keyID]cipher.AEAD
}

// OpenKeys reads a key file. Each line is a key: 32 bytes in standard base64 (RFC 4648, section 4), as "openssl rand -base64 32" writes
// them. Blank lines, and those that begin with #, have no meaning. The first key seals; the others only open what was sealed with them.
//
// To change the key, put a new line before the others and restart the server. The old line can be removed after a Rewrap that skipped
// no row.
//
// If there is no file, OpenKeys makes one with a new key, durably, which only its owner may read. Only the process that has the store
// open may call OpenKeys, so that two processes cannot make two keys. Errors have the path and the number of the line, never its content.
func OpenKeys(path string) (*Keys, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if content, err = makeKeys(path); err != nil {
			return nil, fmt.Errorf("keys of connections: %s is missing, and a new key cannot be written there: %w; restore the file, or let the server write to its folder",
				path, err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("keys of connections: %w", err)
	}
	defer clear(content)
	return parseKeys(path, content)
}

// makeKeys writes a file with a new key durably before the key is used, and returns its content.
func makeKeys(path string) ([]byte, error) {
	key := make([]byte, keyLen)
	defer clear(key)
	_, _ = rand.Read(key) // never fails
	content := make([]byte, 0, len(newFile)+base64.StdEncoding.EncodedLen(keyLen)+1)
	content = append(base64.StdEncoding.AppendEncode(append(content, newFile...), key), '\n')
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return content, durable.WriteFile(path, content)
}

// parseKeys reads the content of a key file.
func parseKeys(path string, content []byte) (*Keys, error) {
	k := &Keys{file: path, all: map[keyID]cipher.AEAD{}}
	lines := map[keyID]int{}
	n := 0
	for line := range bytes.Lines(content) {
		n++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		id, aead, err := parseKey(line)
		if err != nil {
			return nil, fmt.Errorf("keys of connections: %s, line %d: %w", path, n, err)
		}
		if before := lines[id]; before > 0 {
			return nil, fmt.Errorf("keys of connections: %s, line %d: the same key as in line %d; each key must be there once", path, n, before)
		}
		if len(lines) == 0 {
			k.first = id
		}
		lines[id], k.all[id] = n, aead
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("keys of connections: %s has no key; restore it, or remove it if no connection was ever made", path)
	}
	return k, nil
}

// parseKey reads one line of a key file. The error does not contain any of it.
func parseKey(line []byte) (id keyID, aead cipher.AEAD, err error) {
	encoding := base64.StdEncoding.Strict()
	key := make([]byte, encoding.DecodedLen(len(line)))
	defer clear(key)
	n, err := encoding.Decode(key, line)
	if err != nil {
		return id, nil, errors.New("not a key in standard base64")
	}
	if n != keyLen {
		return id, nil, fmt.Errorf("a key of %d bytes, and a key must have %d", n, keyLen)
	}
	if aead, err = newAEAD(key[:n]); err != nil {
		return id, nil, err
	}
	digested := slices.Concat([]byte(idDomain), []byte{0}, key[:n])
	defer clear(digested)
	sum := sha256.Sum256(digested)
	return keyID(sum[:len(id)]), aead, nil
}
