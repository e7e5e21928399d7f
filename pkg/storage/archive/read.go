// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
)

// Read reads a backup to its end and passes the content of each file to store. The stored files may be used
// only if Read returns no error, because the digests come last. Data that is not a valid backup is
// ErrInvalid or a *VersionError.
func Read(ctx context.Context, r io.Reader, store func(File, io.Reader) error) (*Manifest, error) {
	t := &tarReader{tar: tar.NewReader(&reader{ctx, r}), buf: make([]byte, copyBuffer)}
	b, err := t.small(manifestName, maxManifest)
	if err != nil {
		return nil, err
	}
	m, err := readManifest(b)
	if err != nil {
		return nil, err
	}
	for _, f := range m.Files {
		if err := t.file(f, store); err != nil {
			return nil, err
		}
	}
	want := bytes.Clone(t.sums.Bytes())
	have, err := t.small(sumsName, maxSums)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(want, have) {
		return nil, fmt.Errorf("%w: %s", ErrInvalid, difference(want, have))
	}
	if h, err := t.tar.Next(); err == nil {
		return nil, fmt.Errorf("%w: there is more after %s: %q", ErrInvalid, sumsName, h.Name)
	} else if !errors.Is(err, io.EOF) {
		return nil, invalid("end", err)
	}
	return m, nil
}

type tarReader struct {
	tar  *tar.Reader
	buf  []byte
	sums bytes.Buffer
}

// next moves to the next entry, which must have the given name.
func (t *tarReader) next(name string, size func(int64) bool) (int64, error) {
	h, err := t.tar.Next()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	switch {
	case err != nil:
		return 0, invalid(name, err)
	case h.Name != name:
		return 0, fmt.Errorf("%w: entry %q where %s must be", ErrInvalid, h.Name, name)
	case h.Typeflag != tar.TypeReg || sparse(h):
		return 0, fmt.Errorf("%w: %s is not a plain file", ErrInvalid, name)
	case !size(h.Size):
		return 0, fmt.Errorf("%w: %s has %d bytes, which is not what it must have", ErrInvalid, name, h.Size)
	}
	return h.Size, nil
}

// sparse reports whether a file has holes, which take no space in the tar.
func sparse(h *tar.Header) bool {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// small reads an entry of at most limit bytes into memory.
func (t *tarReader) small(name string, limit int64) ([]byte, error) {
	size, err := t.next(name, func(n int64) bool { return n <= limit })
	if err != nil {
		return nil, err
	}
	b := &bytes.Buffer{} // grows with the data read, not with the size in the header
	sum := sha256.New()
	if err := copyExactly(io.MultiWriter(b, sum), t.tar, size, t.buf); err != nil {
		return nil, invalid(name, err)
	}
	t.sum(name, sum)
	return b.Bytes(), nil
}

// file passes a store file to store.
func (t *tarReader) file(f File, store func(File, io.Reader) error) error {
	name := entryName(f)
	if _, err := t.next(name, func(n int64) bool { return n == f.Size }); err != nil {
		return err
	}
	e := &entry{r: t.tar, sum: sha256.New()}
	err := store(f, e)
	if err == nil { // what store did not read
		_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, e, t.buf)
	}
	if e.err != nil {
		return invalid(name, e.err)
	}
	if err != nil {
		return err
	}
	t.sum(name, e.sum)
	return nil
}

func (t *tarReader) sum(name string, h hash.Hash) { fmt.Fprintf(&t.sums, "%x  %s\n", h.Sum(nil), name) }

// entry is the content of an entry. It computes the digest of the data read, and distinguishes read errors
// from errors of store.
type entry struct {
	r   io.Reader
	sum hash.Hash
	err error
}

func (e *entry) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	e.sum.Write(p[:n]) // a hash never fails
	if err != nil && !errors.Is(err, io.EOF) {
		e.err = err
	}
	return n, err
}

// invalid distinguishes a bad tar from a source that failed.
func invalid(name string, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: it is cut off at %s", ErrInvalid, name)
	}
	if errors.Is(err, tar.ErrHeader) {
		return fmt.Errorf("%w: it is not a tar, or damaged, at %s", ErrInvalid, name)
	}
	return fmt.Errorf("backup: read %s: %w", name, err)
}

// difference names the first line of sums that differs from the expected one.
func difference(want, have []byte) string {
	lines := bytes.SplitAfter(have, []byte("\n"))
	for i, line := range bytes.SplitAfter(want, []byte("\n")) {
		if i >= len(lines) || !bytes.Equal(lines[i], line) {
			_, name, _ := bytes.Cut(bytes.TrimSpace(line), []byte("  "))
			return fmt.Sprintf("the digest of %s is not the one in %s", name, sumsName)
		}
	}
	return sumsName + " has too many lines"
}
