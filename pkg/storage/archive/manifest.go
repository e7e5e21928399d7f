// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"encoding/json"
	"fmt"
	"math"
	"path"
	"regexp"
	"time"
)

// Manifest describes a backup.
type Manifest struct {
	// Format is Format.
	Format string `json:"format"`
	// Store is the layout of the store, StoreLayout.
	Store string `json:"store"`
	// Program is the version of the server.
	Program string `json:"program"`
	// Revision is the revision of the last write in the backup.
	Revision uint64 `json:"revision"`
	// Time is when the copy was made.
	Time time.Time `json:"time"`
	// Files are the files of the store.
	Files []File `json:"files"`
}

// File is a file of the store.
type File struct {
	Name string `json:"name"`
	// Size in bytes.
	Size int64 `json:"size"`
}

// Size returns the total size of all files in bytes.
func (m *Manifest) Size() (n int64) {
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

// fileName matches the valid names of store files, which are never paths or hidden files.
var fileName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// readManifest reads and checks a manifest.
func readManifest(b []byte) (*Manifest, error) {
	m := &Manifest{}
	if err := json.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrInvalid, manifestName, err)
	}
	if m.Format != Format {
		return nil, &VersionError{What: "backup", Have: m.Format, Want: Format}
	}
	if m.Store != StoreLayout {
		return nil, &VersionError{What: "store in the backup", Have: m.Store, Want: StoreLayout}
	}
	seen := map[string]bool{}
	room := int64(math.MaxInt64)
	for _, f := range m.Files {
		if !fileName.MatchString(f.Name) || f.Size < 0 || f.Size > room || seen[f.Name] {
			return nil, fmt.Errorf("%w: %s: file %q of %d bytes is not possible", ErrInvalid, manifestName, f.Name, f.Size)
		}
		seen[f.Name] = true
		room -= f.Size
	}
	return m, nil
}

func entryName(f File) string { return path.Join(StoreFolder, f.Name) }
