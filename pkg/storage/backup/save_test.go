// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package backup

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/platform-ai/platform/pkg/storage/archive"
)

func TestSaveIsAllOrNothing(t *testing.T) {
	b := written(t, stored(t))
	dir := t.TempDir()
	path := filepath.Join(dir, "x.tar")
	for _, short := range []int{0, 700, len(b) / 2, len(b) - 1700} {
		if _, err := archive.Save(t.Context(), path, bytes.NewReader(b[:short]), false); !errors.Is(err, archive.ErrInvalid) {
			t.Errorf("%d of %d bytes: %v", short, len(b), err)
		}
		if got := names(t, dir); len(got) != 0 {
			t.Errorf("%d of %d bytes: %v is left", short, len(b), got)
		}
	}
	m, err := archive.Save(t.Context(), path, bytes.NewReader(b), false)
	if err != nil || m.Revision != 12 {
		t.Fatalf("%+v, %v", m, err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, b) {
		t.Errorf("the file is not the backup (%v)", err)
	}
	if got := names(t, dir); !cmp.Equal(got, []string{"x.tar"}) {
		t.Errorf("the folder has %v", got)
	}
}

func TestSaveReplacesOnlyWithForce(t *testing.T) {
	b := written(t, stored(t))
	for _, name := range []string{"x.tar", "x.tar" + partial} {
		path := filepath.Join(t.TempDir(), "x.tar")
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), name), []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Save(t.Context(), path, bytes.NewReader(b), false); !errors.Is(err, os.ErrExist) {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := os.ReadFile(filepath.Join(filepath.Dir(path), name)); err != nil || string(got) != "precious" {
			t.Errorf("%s was touched: %q, %v", name, got, err)
		}
		if _, err := archive.Save(t.Context(), path, bytes.NewReader(b), true); err != nil {
			t.Errorf("%s with force: %v", name, err)
		}
		if got := names(t, filepath.Dir(path)); !cmp.Equal(got, []string{"x.tar"}) {
			t.Errorf("the folder has %v", got)
		}
	}
}

func TestEndsWithItsContext(t *testing.T) {
	e := stored(t)
	b := written(t, e)
	ctx, cancel := context.WithCancel(t.Context())
	s, err := Open(ctx, e, time.Unix(1_800_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := s.Write(ctx, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("write: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	dir := t.TempDir()
	if _, err := archive.Save(ctx, filepath.Join(dir, "x.tar"), bytes.NewReader(b), false); !errors.Is(err, context.Canceled) {
		t.Errorf("save: %v", err)
	}
	if _, err := Restore(ctx, bytes.NewReader(b), dir, stores()); !errors.Is(err, context.Canceled) {
		t.Errorf("restore: %v", err)
	}
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("%v is left", got)
	}
}
