// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Write writes the archive that m describes. open opens one of its files. Write stops early when ctx ends.
func Write(ctx context.Context, w io.Writer, m *Manifest, open func(name string) (io.ReadCloser, error)) error {
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	t := &tarWriter{ctx: ctx, tar: tar.NewWriter(w), time: m.Time, buf: make([]byte, copyBuffer)}
	if err := t.add(manifestName, int64(len(b)), bytes.NewReader(b)); err != nil {
		return err
	}
	for _, f := range m.Files {
		r, err := open(f.Name)
		if err != nil {
			return fmt.Errorf("backup: %w", err)
		}
		if err := errors.Join(t.add(entryName(f), f.Size, r), r.Close()); err != nil {
			return err
		}
	}
	sums := t.sums.Bytes()
	if err := t.add(sumsName, int64(len(sums)), bytes.NewReader(bytes.Clone(sums))); err != nil {
		return err
	}
	if err := t.tar.Close(); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return nil
}

type tarWriter struct {
	ctx  context.Context //nolint:containedctx // of the one Write
	tar  *tar.Writer
	time time.Time
	buf  []byte
	sums bytes.Buffer
}

func (t *tarWriter) add(name string, size int64, r io.Reader) error {
	if err := t.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: filePerm, ModTime: t.time}); err != nil {
		return fmt.Errorf("backup: %s: %w", name, err)
	}
	sum := sha256.New()
	if err := copyExactly(io.MultiWriter(t.tar, sum), &reader{t.ctx, r}, size, t.buf); err != nil {
		return fmt.Errorf("backup: %s: %w", name, err)
	}
	fmt.Fprintf(&t.sums, "%x  %s\n", sum.Sum(nil), name)
	return nil
}

// reader is a reader that stops when a context ends.
type reader struct {
	ctx context.Context //nolint:containedctx // of the one call that reads
	r   io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
