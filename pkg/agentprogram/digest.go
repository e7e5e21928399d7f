// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package agentprogram

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Digests returns the digests of programs. A file is read again only when its size or the time of its change is another one, or another
// file has its name. The zero value is ready to use.
type Digests struct {
	mu    sync.Mutex
	files map[string]digested
}

// digested is a file that was read.
type digested struct {
	info    os.FileInfo
	changed time.Time
	digest  string
}

// Digest returns the SHA-256 of a file in hexadecimal digits.
func (d *Digests) Digest(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if known, ok := d.files[file]; ok && os.SameFile(known.info, info) && known.info.Size() == info.Size() && known.changed.Equal(info.ModTime()) {
		return known.digest, nil
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read %s: %w", file, err)
	}
	if d.files == nil {
		d.files = map[string]digested{}
	}
	known := digested{info: info, changed: info.ModTime(), digest: hex.EncodeToString(h.Sum(nil))}
	d.files[file] = known
	return known.digest, nil
}
