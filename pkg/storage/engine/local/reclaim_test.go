// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local"
	"github.com/platform-ai/platform/test/kit"
)

// The space of a range that was deleted comes back although nothing else is written, and without a restart.
func TestSpaceComesBack(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	e, err := local.Open(context.Background(), local.Options{Dir: t.TempDir(), Registerer: registry, MemTableBytes: 1 << 20, ReclaimAfter: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	value := make([]byte, 64<<10)
	for i := range 512 { // 32 MiB
		for j := range value {
			value[j] = byte(rand.Uint32())
		}
		apply(t, e, func(b engine.Batch) error { return b.Set(fmt.Appendf(nil, "t%04d", i), value) })
	}
	apply(t, e, func(b engine.Batch) error { return b.DeleteRange([]byte("t"), []byte("u")) })
	e.Reclaim(t.Context(), []byte("t"), []byte("u"))
	kit.Await(t, "the space is free", func() bool { return metric(t, registry, "platform_store_disk_bytes") <= 16<<20 })
}

func apply(t *testing.T, e *local.Engine, change func(engine.Batch) error) {
	t.Helper()
	b, err := e.NewBatch()
	if err != nil {
		t.Fatal(err)
	}
	if err := change(b); err != nil {
		t.Fatal(err)
	}
	if err := e.Apply(b, engine.Sync); err != nil {
		t.Fatal(err)
	}
}

// A store that holds next to nothing takes little of its volume.
func TestLogsGrowAsNeeded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, err := local.Open(context.Background(), local.Options{Dir: dir, Reserve: -1, MemTableBytes: 32 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := newLedger().write(e, "a"); err != nil {
		t.Fatal(err)
	}
	var used int64
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		info, err := os.Stat(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		used += info.Sys().(*syscall.Stat_t).Blocks * 512
	}
	if used > 6<<20 {
		t.Errorf("it takes %d KiB", used>>10)
	}
}
