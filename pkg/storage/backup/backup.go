// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backup makes an archive from the store of a running server, and restores a store from an archive.
// Package archive defines the format.
//
// A backup holds no keys. The Secrets in it, which only a standalone server keeps, can be read only with
// that server's pki folder, and the tokens of accounts that people linked only with the server's key file of connectors.
package backup

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/platform-ai/platform/pkg/storage/archive"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/version"
)

// Source is a backup that is ready to be written. Until it is closed, it keeps files that the store would
// otherwise remove.
type Source struct {
	checkpoint engine.Checkpoint
	manifest   archive.Manifest
}

// Open makes a copy of the store for a backup, with the time now. Only one may be open at a time: a second
// call returns engine.ErrCheckpoint.
func Open(ctx context.Context, e engine.Engine, now time.Time) (*Source, error) {
	c, err := e.Checkpoint(ctx)
	if err != nil {
		return nil, fmt.Errorf("backup of the store: %w", err)
	}
	s := &Source{checkpoint: c, manifest: archive.Manifest{
		Format: archive.Format, Store: c.Layout(), Program: version.Version(), Revision: c.Revision(), Time: now.UTC().Truncate(time.Second),
	}}
	for _, f := range c.Files() {
		s.manifest.Files = append(s.manifest.Files, archive.File{Name: f.Name, Size: f.Size})
	}
	return s, nil
}

// Manifest describes what will be written.
func (s *Source) Manifest() *archive.Manifest { return &s.manifest }

// Close removes the copy. It must be called once.
func (s *Source) Close() error { return s.checkpoint.Close() }

// Write writes the backup; it ends early with ctx.
func (s *Source) Write(ctx context.Context, w io.Writer) error {
	return archive.Write(ctx, w, &s.manifest, s.checkpoint.Open)
}
