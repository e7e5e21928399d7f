// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/test/kit"
)

// unpack writes the files of a checkpoint to a folder of their own.
func unpack(t *testing.T, c engine.Checkpoint) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range c.Files() {
		r, err := c.Open(f.Name)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil {
			t.Fatal(err)
		}
		if int64(len(b)) != f.Size {
			t.Errorf("%s has %d bytes, want %d", f.Name, len(b), f.Size)
		}
		if err := os.WriteFile(filepath.Join(dir, f.Name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func copied(t *testing.T, e *Engine) engine.Checkpoint {
	t.Helper()
	c, err := e.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCheckpointHasWhatWasAcknowledged(t *testing.T) {
	e := open(t, Options{})
	defer shut(t, e)
	if err := e.Commit(&put{key: "a", value: "1"}); err != nil {
		t.Fatal(err)
	}
	c := copied(t, e)
	if err := e.Commit(&put{key: "b", value: "2"}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Checkpoint(t.Context()); !errors.Is(err, engine.ErrCheckpoint) {
		t.Errorf("second checkpoint: %v", err)
	}
	if _, err := c.Open("../LAYOUT"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not of the checkpoint: %v", err)
	}
	found := open(t, Options{Dir: unpack(t, c)})
	defer shut(t, found)
	if c.Revision() != 2 || found.Revision() != 2 {
		t.Errorf("checkpoint says revision %d, the copy is at %d, want 2", c.Revision(), found.Revision())
	}
	if _, ok, err := found.Get([]byte("tb")); ok || err != nil {
		t.Errorf("the copy has a later write (%v)", err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(e.opts.Dir, checkpointDir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a closed checkpoint is left: %v", err)
	}
	if err := copied(t, e).Close(); err != nil { // the next one can be made
		t.Error(err)
	}
}

// TestCheckpointsUnderLoad checks that each checkpoint opens, is at exactly the revision that it reports,
// and holds every write acknowledged before it. Logs are small, so that recycled logs are copied while they
// are written.
func TestCheckpointsUnderLoad(t *testing.T) {
	e := open(t, Options{MemTableBytes: 512 << 10})
	defer shut(t, e)
	ctx, stop := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	var acknowledged atomic.Uint64
	value := string(make([]byte, 8<<10))
	for w := range 8 {
		writers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				p := &put{key: fmt.Sprintf("%d-%d", w, n%64), value: value}
				if err := e.Commit(p); err != nil {
					t.Error(err)
					return
				}
				for {
					have := acknowledged.Load()
					if p.rev <= have || acknowledged.CompareAndSwap(have, p.rev) {
						break
					}
				}
			}
		})
	}
	rounds := 8
	if kit.Offered(kit.Minutes) {
		rounds = 50
	}
	for range rounds {
		before := acknowledged.Load()
		c := copied(t, e)
		if c.Revision() < before {
			t.Errorf("checkpoint at %d, %d was acknowledged before", c.Revision(), before)
		}
		found := open(t, Options{Dir: unpack(t, c)})
		if found.Revision() != c.Revision() {
			t.Errorf("the copy is at %d, the checkpoint says %d", found.Revision(), c.Revision())
		}
		shut(t, found)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	writers.Wait()
}

func TestCheckpointOfACrashIsRemoved(t *testing.T) {
	dir := t.TempDir()
	e := open(t, Options{Dir: dir})
	if err := e.Commit(&put{key: "a", value: "1"}); err != nil {
		t.Fatal(err)
	}
	shut(t, e)
	left := filepath.Join(dir, checkpointDir)
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(left, "000007.sst"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	shut(t, open(t, Options{Dir: dir}))
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
}

func TestCheckpointEndsWithItsContext(t *testing.T) {
	e := open(t, Options{})
	defer shut(t, e)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	// The flush may finish first, so only an error is checked.
	if c, err := e.Checkpoint(ctx); err == nil {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	} else if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := copied(t, e).Close(); err != nil {
		t.Error(err)
	}
}

func TestRebase(t *testing.T) {
	dir := t.TempDir()
	e := open(t, Options{Dir: dir})
	if e.Base() != 0 {
		t.Errorf("base of a fresh store: %d", e.Base())
	}
	rev, err := e.Rebase(1 << 32)
	if err != nil || rev != 1<<32+1 || e.Revision() != rev {
		t.Errorf("rebase to %d, store at %d: %v", rev, e.Revision(), err)
	}
	shut(t, e)
	e = open(t, Options{Dir: dir})
	defer shut(t, e)
	if e.Base() != rev || e.Revision() != rev {
		t.Errorf("base %d, revision %d, want %d", e.Base(), e.Revision(), rev)
	}
}
