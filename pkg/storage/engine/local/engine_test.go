// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/platform-ai/platform/pkg/storage/engine"
)

func TestMain(m *testing.M) {
	// Pebble does not stop its compaction scheduler when opening fails.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/cockroachdb/pebble/v2.(*ConcurrencyLimitScheduler).periodicGranter"))
}

// put is a engine.Txn that writes a key, n revisions long, and notes its publication.
type put struct {
	key, value string
	n          int
	refuse     error
	rev        uint64
	published  func(rev uint64)
}

func (p *put) Sequence(b engine.Batch) error {
	if p.refuse != nil {
		b.Next() // a refused Txn's revisions are assigned again
		return p.refuse
	}
	for range max(p.n, 1) {
		p.rev = b.Next()
	}
	return b.Set([]byte("t"+p.key), binary.BigEndian.AppendUint64([]byte(p.value), p.rev))
}

func (p *put) Publish() {
	if p.published != nil {
		p.published(p.rev)
	}
}

func open(t testing.TB, o Options) *Engine {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	if o.OnFatal == nil {
		o.OnFatal = func(err error) { t.Errorf("fatal: %v", err) }
	}
	e, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func shut(t testing.TB, e *Engine) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestCommitAssignsRevisionsInOrder(t *testing.T) {
	e := open(t, Options{GroupBytes: 4 << 10})
	defer shut(t, e)
	if got := e.Revision(); got != 1 {
		t.Errorf("a fresh store is at %d, want 1", got)
	}
	var (
		last   uint64 = 1
		wg     sync.WaitGroup
		refuse = errors.New("no")
	)
	const writers, each = 32, 50
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if err := e.Commit(&put{refuse: refuse}); !errors.Is(err, refuse) {
					t.Errorf("refused Txn: %v", err)
				}
				p := &put{key: fmt.Sprintf("%d/%d", w, i), value: string(make([]byte, 200)), n: 1 + i%3}
				p.published = func(rev uint64) { // never concurrent, so last needs no lock
					if rev != last+uint64(p.n) {
						t.Errorf("published %d after %d", rev, last)
					}
					last = rev
				}
				if err := e.Commit(p); err != nil {
					t.Error(err)
				}
				if got := e.Revision(); got < p.rev {
					t.Errorf("revision %d after commit of %d", got, p.rev)
				}
			}
		})
	}
	wg.Wait()
	if got := e.Revision(); got != last {
		t.Errorf("revision %d, last published %d", got, last)
	}
}

func TestReopen(t *testing.T) {
	dir := t.TempDir()
	e := open(t, Options{Dir: dir})
	for i := range 10 {
		if err := e.Commit(&put{key: fmt.Sprint(i), value: "v", n: 3}); err != nil {
			t.Fatal(err)
		}
	}
	if rev, err := e.Bump(5); err != nil || rev != 36 {
		t.Errorf("bump: %d, %v", rev, err)
	}
	shut(t, e)
	e = open(t, Options{Dir: dir})
	defer shut(t, e)
	if got := e.Revision(); got != 36 {
		t.Errorf("revision %d after reopening, want 36", got)
	}
	it, err := e.NewIter([]byte("t"), []byte("u"))
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	var keys []string
	for ok := it.First(); ok; ok = it.Next() {
		keys = append(keys, string(it.Key()))
	}
	if err := it.Error(); err != nil || len(keys) != 10 || keys[9] != "t9" {
		t.Errorf("keys %v, %v", keys, err)
	}
	if v, ok, err := e.Get([]byte("t0")); err != nil || !ok || binary.BigEndian.Uint64(v[1:]) != 4 {
		t.Errorf("get: %q %v %v", v, ok, err)
	}
	if _, ok, err := e.Get([]byte("tnone")); ok || err != nil {
		t.Errorf("get of nothing: %v %v", ok, err)
	}
}

func TestBackgroundBatch(t *testing.T) {
	e := open(t, Options{})
	for i := range 10 {
		if err := e.Commit(&put{key: fmt.Sprint(i), value: "v"}); err != nil {
			t.Fatal(err)
		}
	}
	b, err := e.NewBatch()
	if err != nil {
		t.Fatal(err)
	}
	if rev := b.Next(); rev != 0 {
		t.Errorf("a background batch got revision %d", rev)
	}
	if err := errors.Join(b.DeleteRange([]byte("t2"), []byte("t8")), b.Delete([]byte("t9")), b.Set([]byte("tx"), nil), e.Apply(b, engine.Sync)); err != nil {
		t.Fatal(err)
	}
	b.Discard()
	it, err := e.NewIter([]byte("t"), []byte("u"))
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for ok := it.Last(); ok; ok = it.Prev() {
		keys = append(keys, string(it.Key()))
	}
	if diff := cmp.Diff([]string{"tx", "t8", "t1", "t0"}, keys); diff != "" {
		t.Error(diff)
	}
	closed := make(chan error)
	go func() { closed <- e.Close() }()
	for e.Healthy() == nil { // Close has begun once new operations are refused
	}
	if !it.SeekGE([]byte("t1")) || !it.SeekLT([]byte("t1")) || string(it.Key()) != "t0" || !it.Valid() {
		t.Error("an iterator does not outlive the beginning of Close")
	}
	if err := it.Close(); err != nil {
		t.Error(err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if err := it.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	for name, call := range map[string]func() error{
		"Close":      e.Close,
		"Commit":     func() error { return e.Commit(&put{}) },
		"Get":        func() error { _, _, err := e.Get([]byte("t")); return err },
		"NewIter":    func() error { _, err := e.NewIter(nil, nil); return err },
		"NewBatch":   func() error { _, err := e.NewBatch(); return err },
		"Checkpoint": func() error { _, err := e.Checkpoint(t.Context()); return err },
		"Healthy":    e.Healthy,
	} {
		if err := call(); !errors.Is(err, engine.ErrClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
}

func TestOpenIsExclusive(t *testing.T) {
	for _, memory := range []bool{false, true} {
		o := Options{Dir: filepath.Join(t.TempDir(), "store")}
		if memory {
			o = Options{Dir: "store", FS: vfs.NewMem()}
		}
		e := open(t, o)
		if _, err := Open(context.Background(), o); !errors.Is(err, engine.ErrLocked) {
			t.Errorf("second open (memory %v): %v", memory, err)
		}
		shut(t, e)
		e = open(t, o)
		shut(t, e)
	}
}

// snapshot maps every file below dir to its contents.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		files[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestUnknownLayoutIsRefusedUnmodified(t *testing.T) {
	store := func(t *testing.T, layout string) string {
		dir := t.TempDir()
		e := open(t, Options{Dir: dir})
		if err := e.Commit(&put{key: "a", value: "b"}); err != nil {
			t.Fatal(err)
		}
		shut(t, e)
		path := filepath.Join(dir, layoutFile)
		if layout == "" {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(path, []byte(layout+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	for name, have := range map[string]string{"newer": "platform-store/2", "older": "platform-store/0", "other": "x", "missing": ""} {
		t.Run(name, func(t *testing.T) {
			dir := store(t, have)
			before := snapshot(t, dir)
			_, err := Open(context.Background(), Options{Dir: dir})
			layout, ok := errors.AsType[*LayoutError](err)
			if !ok || layout.Have != have || layout.Want != Layout {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(before, snapshot(t, dir)); diff != "" {
				t.Errorf("the directory was modified: %s", diff)
			}
		})
	}
	t.Run("foreign", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "letter.txt"), []byte("dear"), 0o600); err != nil {
			t.Fatal(err)
		}
		before := snapshot(t, dir)
		if _, err := Open(context.Background(), Options{Dir: dir}); err == nil {
			t.Error("opened a directory of somebody else's files")
		}
		if diff := cmp.Diff(before, snapshot(t, dir)); diff != "" {
			t.Errorf("the directory was modified: %s", diff)
		}
	})
}

func TestMetrics(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	e := open(t, Options{Registerer: r})
	if err := e.Commit(&put{key: "a", value: "1"}); err != nil {
		t.Fatal(err)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		m := f.GetMetric()[0]
		got[f.GetName()] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
	}
	if got["platform_store_revision"] != 2 || got["platform_store_commit_requests_total"] != 1 || got["platform_store_disk_bytes"] == 0 || got["platform_store_db_size_bytes"] == 0 {
		t.Errorf("metrics %v", got)
	}
	shut(t, e)
	if families, err := r.Gather(); err != nil || len(families) != 0 {
		t.Errorf("%d metrics after Close, %v", len(families), err)
	}
}
