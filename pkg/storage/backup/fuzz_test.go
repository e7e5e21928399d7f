// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"archive/tar"
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/platform-ai/platform/pkg/storage/archive"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
)

// FuzzRead checks that for any input the reader terminates, returns only files that may be written, each
// with the size stated in the manifest, and accepts nothing whose digest is wrong.
func FuzzRead(f *testing.F) {
	plain := crafted{
		manifest: archive.Manifest{Format: archive.Format, Store: local.Layout, Files: []archive.File{{Name: "LAYOUT", Size: 4}, {Name: "000001.log"}}},
		entries:  []tar.Header{{Name: "store/LAYOUT", Typeflag: tar.TypeReg}, {Name: "store/000001.log", Typeflag: tar.TypeReg}},
		data:     [][]byte{[]byte("data"), nil},
	}
	f.Add(plain.bytes(f))
	plain.behind = true
	f.Add(plain.bytes(f))
	plain.behind, plain.entries[0].Typeflag, plain.entries[0].Linkname, plain.data[0] = false, tar.TypeLink, "/etc/passwd", nil
	f.Add(plain.bytes(f))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var got []archive.File
		m, err := archive.Read(t.Context(), bytes.NewReader(b), func(file archive.File, r io.Reader) error {
			if !filepath.IsLocal(file.Name) || strings.ContainsAny(file.Name, `/\`) {
				t.Errorf("file %q", file.Name)
			}
			n, err := io.Copy(io.Discard, r)
			if err == nil && n != file.Size {
				t.Errorf("%s has %d bytes, want %d", file.Name, n, file.Size)
			}
			if n > int64(len(b)) {
				t.Errorf("%s has %d bytes of a backup of %d", file.Name, n, len(b))
			}
			got = append(got, file)
			return err
		})
		if err == nil && len(got) != len(m.Files) {
			t.Errorf("%d files, the manifest has %d", len(got), len(m.Files))
		}
	})
}
