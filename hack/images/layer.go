// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// certificatesPath is where programs look for the public certificate
// authorities; see crypto/x509.
const certificatesPath = "etc/ssl/certs/ca-certificates.crt"

// entry is one file, directory or link of an image. Its owner is root.
type entry struct {
	mode int64
	file string // path on this machine
	text string // content, if file is empty
	link string // target, for a symbolic link
	dir  bool
}

// newLayer makes the only layer of an image: the files of the options, /tmp,
// the users and the certificate authorities of this machine.
func newLayer(o options) (v1.Layer, error) {
	entries, err := collect(o)
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp("", "layer")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // a file left in the system's place for such
	if err := errors.Join(writeEntries(f, entries, o.created), f.Close()); err != nil {
		return nil, err
	}
	return tarball.LayerFromFile(f.Name(), tarball.WithCompressionLevel(gzip.BestSpeed),
		tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

// collect returns the content of the image, by path without the leading slash.
func collect(o options) (map[string]entry, error) {
	id, _, _ := strings.Cut(o.user, ":")
	entries := map[string]entry{
		"tmp":        {mode: 0o1777, dir: true},
		"etc/passwd": {mode: 0o644, text: "root:x:0:0:root:/:/sbin/nologin\nplatform:x:" + id + ":" + id + ":platform:/tmp:/sbin/nologin\n"},
		"etc/group":  {mode: 0o644, text: "root:x:0:\nplatform:x:" + id + ":\n"},
	}
	if _, err := os.Stat(o.certificates); err == nil {
		entries[certificatesPath] = entry{mode: 0o644, file: o.certificates}
	}
	for _, arg := range o.files {
		from, to, ok := strings.Cut(arg, "=/")
		if !ok || to == "" {
			return nil, fmt.Errorf("%q: want FILE=/PATH", arg)
		}
		if target, ok := strings.CutPrefix(from, "@"); ok {
			entries[to] = entry{mode: 0o777, link: target}
		} else if err := add(entries, from, to); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Collect(maps.Keys(entries)) {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, ok := entries[dir]; !ok {
				entries[dir] = entry{mode: 0o755, dir: true}
			}
		}
	}
	return entries, nil
}

// add puts a file or a directory of this machine at a path of the image.
func add(entries map[string]entry, from, to string) error {
	return filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := os.Stat(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		e := entry{mode: 0o644, file: p}
		if info.Mode()&0o100 != 0 {
			e.mode = 0o755
		}
		entries[path.Join(to, filepath.ToSlash(rel))] = e
		return nil
	})
}

// writeEntries writes a tar archive sorted by path, so that parents come first.
func writeEntries(w io.Writer, entries map[string]entry, at time.Time) error {
	tw := tar.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if err := entries[name].write(tw, name, at); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return tw.Close()
}

func (e entry) write(tw *tar.Writer, name string, at time.Time) error {
	h := &tar.Header{Name: name, Mode: e.mode, ModTime: at, Typeflag: tar.TypeReg, Size: int64(len(e.text))}
	switch {
	case e.dir:
		h.Name, h.Typeflag = name+"/", tar.TypeDir
	case e.link != "":
		h.Linkname, h.Typeflag = e.link, tar.TypeSymlink
	case e.file != "":
		f, err := os.Open(e.file)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // only read
		info, err := f.Stat()
		if err != nil {
			return err
		}
		h.Size = info.Size()
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		_, err = io.Copy(tw, f)
		return err
	}
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	_, err := io.WriteString(tw, e.text)
	return err
}

// pack writes the directory of an OCI layout as one tarball, atomically, and
// returns its size in bytes.
func pack(dir, out string, at time.Time) (int64, error) {
	entries := map[string]entry{}
	if err := add(entries, dir, ""); err != nil {
		return 0, err
	}
	f, err := os.Create(out + ".tmp")
	if err != nil {
		return 0, err
	}
	if err := errors.Join(writeEntries(f, entries, at), f.Close()); err != nil {
		return 0, err
	}
	info, err := os.Stat(f.Name())
	if err != nil {
		return 0, err
	}
	return info.Size(), os.Rename(f.Name(), out)
}
