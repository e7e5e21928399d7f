// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/server"
	"github.com/platform-ai/platform/pkg/storage/archive"
	"github.com/platform-ai/platform/pkg/storage/backup"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
)

// A server opens a store that was restored into the data folder of another one that was lost, although the mark of the
// lost store was still there. Two restores into one folder do not run at the same time.
func TestRestoreCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func(dir string) (engine.Engine, error) {
		return local.Open(t.Context(), local.Options{Dir: filepath.Join(dir, archive.StoreFolder), Mark: filepath.Join(dir, local.MarkFile)})
	}
	e, err := open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	id := e.ID()
	var tar bytes.Buffer
	source, err := backup.Open(t.Context(), e, time.Unix(1_800_000_000, 0))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(source.Write(t.Context(), &tar), source.Close(), e.Close()); err != nil {
		t.Fatal(err)
	}
	if e, err = open(dir); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(e.Close(), os.RemoveAll(filepath.Join(dir, archive.StoreFolder))); err != nil {
		t.Fatal(err)
	}
	if _, err := open(dir); !errors.As(err, new(*local.LossError)) {
		t.Fatalf("the lost store: %v", err)
	}

	restore := func() (string, error) {
		var out bytes.Buffer
		cmd := server.NewRestoreCommand("platform-standalone")
		cmd.SetArgs([]string{"-", "--data-dir", dir})
		cmd.SetIn(bytes.NewReader(tar.Bytes()))
		cmd.SetOut(&out)
		cmd.SetErr(io.Discard)
		err := cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	lock, err := local.Lock(filepath.Join(dir, archive.StoreFolder+".restoring"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := restore(); !errors.Is(err, engine.ErrLocked) {
		t.Errorf("beside another restore: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := restore()
	if err != nil || !strings.HasPrefix(out, "restored "+filepath.Join(dir, archive.StoreFolder)+"\n") {
		t.Fatalf("%v\n%s", err, out)
	}
	if e, err = open(dir); err != nil {
		t.Fatalf("the restored store: %v", err)
	}
	if e.ID() != id {
		t.Error("it is not the store of the backup")
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
