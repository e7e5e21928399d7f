// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

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

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/version"
)

// Source is a backup that is ready to be written. It keeps files that the store
// would otherwise remove until it is closed.
type Source struct {
	checkpoint *engine.Checkpoint
	manifest   Manifest
}

// Open makes a copy of the store for a backup. Only one is open at a time: a
// second one is engine.ErrCheckpoint. Its time is now.
func Open(ctx context.Context, e *engine.Engine, now time.Time) (*Source, error) {
	c, err := e.Checkpoint(ctx)
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	s := &Source{checkpoint: c, manifest: Manifest{
		Format: Format, Store: engine.Layout, Program: version.Version(), Revision: c.Revision(), Time: now.UTC().Truncate(time.Second),
	}}
	for _, f := range c.Files() {
		s.manifest.Files = append(s.manifest.Files, File{Name: f.Name, Size: f.Size})
	}
	return s, nil
}

// Manifest tells what will be written.
func (s *Source) Manifest() *Manifest { return &s.manifest }

// Close gives up the copy. It is called once.
func (s *Source) Close() error { return s.checkpoint.Close() }

// Write writes the backup; it ends early with ctx.
func (s *Source) Write(ctx context.Context, w io.Writer) error {
	b, err := json.MarshalIndent(&s.manifest, "", "  ")
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	t := &tarWriter{ctx: ctx, tar: tar.NewWriter(w), time: s.manifest.Time, buf: make([]byte, copyBuffer)}
	if err := t.add(manifestName, int64(len(b)), bytes.NewReader(b)); err != nil {
		return err
	}
	for _, f := range s.manifest.Files {
		r, err := s.checkpoint.Open(f.Name)
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

// reader ends with a context.
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
