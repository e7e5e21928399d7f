// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"

	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/engine/local/localtest"
	"github.com/platform-ai/platform/test/kit"
)

func on(disk *localtest.Disk, more ...func(*setup)) func(*setup) {
	return func(s *setup) {
		s.engine.FS, s.engine.Dir, s.engine.MemTableBytes = disk.FS(), localtest.Dir, 256<<10
		for _, f := range more {
			f(s)
		}
	}
}

// shown records what readers and watches have seen of a store: the object and its label at each revision.
// All of it must be found again after a crash.
type shown struct {
	mu   sync.Mutex
	seen map[uint64]string
}

func (s *shown) note(t *testing.T, p *example.Pod, gone bool) {
	rev := revisionOf(t, p)
	what := p.Name + "=" + p.Labels["v"]
	if gone {
		what = p.Name + " gone"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if other, ok := s.seen[rev]; ok && other != what {
		t.Errorf("revision %d was shown as %q and as %q", rev, other, what)
	}
	s.seen[rev] = what
}

func (s *shown) copied() map[uint64]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := make(map[uint64]string, len(s.seen))
	maps.Copy(c, s.seen)
	return c
}

// TestCrash cuts the power at random points under load. Everything that was acknowledged, read or watched
// before must be in the history found afterwards.
func TestCrash(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { crash(t, seed) })
	}
}

func crash(t *testing.T, seed uint64) {
	disk := localtest.NewDisk()
	h := open(t, on(disk, func(s *setup) { s.db.ObjectCacheBytes = int64(seed%2) - 1 })) // decoded objects kept or not
	s := &shown{seen: map[uint64]string{}}
	var (
		wg       sync.WaitGroup
		stop     atomic.Bool
		progress = make(chan struct{})
		once     sync.Once
	)
	w := watchFrom(t, h, 1)
	wg.Go(func() {
		for ev := range w.ResultChan() {
			if ev.Type == watch.Error {
				t.Errorf("watch: %v", ev.Object)
				return
			}
			s.note(t, objectOf(t, ev), ev.Type == watch.Deleted)
			if revisionOf(t, ev.Object) > 100+40*seed {
				once.Do(func() { close(progress) })
			}
		}
	})
	for n := range 6 {
		wg.Go(func() {
			name := fmt.Sprint(n)
			for i := 0; !stop.Load(); i++ {
				switch i % 4 {
				case 0:
					s.note(t, create(t, h, name), false)
				case 3:
					s.note(t, remove(t, h, name), true)
				default:
					s.note(t, setLabel(t, h, name, fmt.Sprint(i)), false)
				}
			}
		})
	}
	<-progress
	before := s.copied()
	crashed := disk.Crash(int(seed*13)%100, seed)
	stop.Store(true)
	defer wg.Wait()
	defer w.Stop()

	found := open(t, on(crashed))
	last := found.db.Revision()
	history := map[uint64]string{}
	again := watchFrom(t, found, 1)
	for rev := uint64(1); rev < last; rev++ {
		ev := next(t, again)
		p := objectOf(t, ev)
		history[revisionOf(t, p)] = p.Name + "=" + p.Labels["v"]
		if ev.Type == watch.Deleted {
			history[revisionOf(t, p)] = p.Name + " gone"
		}
	}
	for rev, want := range before {
		if history[rev] != want {
			t.Errorf("revision %d was shown as %q, after the crash it is %q (store at %d)", rev, want, history[rev], last)
		}
	}
	if p := create(t, found, "after"); revisionOf(t, p) != last+1 {
		t.Errorf("first write after the crash got %s, want %d", p.ResourceVersion, last+1)
	}
}

// TestDiskFailure makes a disk fail under load. No later write may be acknowledged, shown or watched, and
// the store must report that it is not ready.
func TestDiskFailure(t *testing.T) {
	for _, kind := range []localtest.Kind{localtest.Write, localtest.Sync} {
		disk := localtest.NewDisk()
		fatal := make(chan error, 1)
		h := open(t, on(disk, func(s *setup) { s.engine.OnFatal = func(err error) { fatal <- err } }))
		create(t, h, "before")
		w := watchFrom(t, h, h.db.Revision())
		if err := h.ReadinessCheck(); err != nil {
			t.Fatal(err)
		}
		disk.Fail(func(o localtest.Op) error {
			if o.Log() && o.Kind == kind {
				return localtest.ErrInjected
			}
			return nil
		})
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				name := fmt.Sprint(i)
				if err := h.Create(context.Background(), podKey(name), pod(name), nil, 0); !errors.Is(err, engine.ErrFailed) {
					t.Errorf("create on a failed disk: %v", err)
				}
			})
		}
		wg.Wait()
		if err := <-fatal; !errors.Is(err, engine.ErrFailed) {
			t.Errorf("fatal: %v", err)
		}
		if err := h.ReadinessCheck(); !errors.Is(err, engine.ErrFailed) {
			t.Errorf("readiness: %v", err)
		}
		if got, err := listAt(h, h.db.Revision()); err != nil || len(got) != 1 {
			t.Errorf("listed %v, %v", got, err)
		}
		select {
		case ev := <-w.ResultChan():
			t.Errorf("watched %v", ev)
		default:
		}
	}
}

// TestStress runs these at once: writers that contend for few keys, watches that must see every change once
// and in order, paged lists that must each be of one revision, and compaction.
func TestStress(t *testing.T) {
	t.Parallel()
	for _, objects := range []int64{-1, 1 << 20} {
		t.Run(fmt.Sprintf("objects=%d", objects), func(t *testing.T) {
			stress(t, open(t, on(localtest.NewDisk(), func(s *setup) { s.db.RingEvents, s.db.ObjectCacheBytes = 64, objects })))
		})
	}
}

func stress(t *testing.T, h harness) {
	const keys, writers = 6, 24
	each := 15 // which is five times what the ring holds
	if kit.Offered(kit.Minutes) {
		each = 60
	}
	for i := range keys {
		create(t, h, fmt.Sprint(i))
	}
	from := h.db.Revision()
	var side, watches, writes sync.WaitGroup
	for n := range 4 {
		w := watchFrom(t, h, from)
		watches.Go(func() {
			for rev := from; rev < from+uint64(writers*each); rev++ {
				if ev := next(t, w); ev.Type != watch.Modified || revisionOf(t, ev.Object) != rev+1 {
					t.Errorf("watch %d: %s at %d after %d", n, ev.Type, revisionOf(t, ev.Object), rev)
					return
				}
			}
		})
	}
	var done atomic.Bool
	side.Add(2)
	go func() {
		defer side.Done()
		for !done.Load() {
			if err := walk(t, h, keys); err != nil {
				t.Errorf("list: %v", err)
				return
			}
		}
	}()
	go func() { // exact lists rewind while others write
		defer side.Done()
		for !done.Load() {
			rev := max(h.db.Revision(), from+20) - 20
			if got, err := listAt(h, rev); err == nil && len(got) != keys {
				t.Errorf("%d objects at %d", len(got), rev)
			}
		}
	}()
	for n := range writers {
		writes.Go(func() {
			for i := range each {
				if err := increment(h, podKey(fmt.Sprint((n+i)%keys))); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writes.Wait()
	watches.Wait()
	done.Store(true)
	side.Wait()
	total := 0
	for i := range keys {
		p := &example.Pod{}
		if err := h.Get(context.Background(), podKey(fmt.Sprint(i)), storage.GetOptions{}, p); err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(p.Labels["n"])
		if err != nil {
			t.Error(err)
		}
		total += n
	}
	if total != writers*each {
		t.Errorf("%d increments survived of %d", total, writers*each)
	}
	if len(h.topic.heads) != 0 {
		t.Errorf("%d keys are thought to be on their way", len(h.topic.heads))
	}
}

func increment(s storage.Interface, key string) error {
	return s.GuaranteedUpdate(context.Background(), key, &example.Pod{}, false, nil, storage.SimpleUpdate(func(o apiruntime.Object) (apiruntime.Object, error) {
		p, _ := o.(*example.Pod)
		n, _ := strconv.Atoi(p.Labels["n"])
		p.Labels = map[string]string{"n": strconv.Itoa(n + 1)}
		return p, nil
	}), nil)
}

// walk lists everything in pages of two; all pages must be of one revision.
func walk(t *testing.T, s storage.Interface, want int) error {
	pred := storage.Everything
	pred.Limit = 2
	names, rv := 0, ""
	for {
		out := &example.PodList{}
		if err := s.GetList(context.Background(), "/pods/", storage.ListOptions{Recursive: true, Predicate: pred}, out); err != nil {
			return err
		}
		if rv == "" {
			rv = out.ResourceVersion
		}
		if out.ResourceVersion != rv {
			t.Errorf("page of revision %s in a list of %s", out.ResourceVersion, rv)
		}
		for i := range out.Items {
			at, err := strconv.ParseUint(rv, 10, 64)
			if err != nil {
				return err
			}
			if got := revisionOf(t, &out.Items[i]); got > at {
				t.Errorf("object of revision %d in a list of %d", got, at)
			}
		}
		names += len(out.Items)
		if out.Continue == "" {
			break
		}
		pred.Continue = out.Continue
	}
	if names != want {
		t.Errorf("listed %d objects, want %d", names, want)
	}
	return nil
}
