// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package storebench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

const (
	watches        = 1000
	fanOutWriters  = 4
	writesASecond  = 200 // of the window, so that a run of any store takes about that long
	deliveryPause  = 500 * time.Microsecond
	deliverySample = 4096
)

var versioner = storage.APIObjectVersioner{}

func watchFrom(ctx context.Context, s storage.Interface, rev uint64) (watch.Interface, error) {
	return s.Watch(ctx, "/pods/", storage.ListOptions{ResourceVersion: strconv.FormatUint(rev, 10), Recursive: true, Predicate: storage.Everything})
}

// follow delivers revisions from rev on until seen returns false. Where the store
// cuts the watch it opens a new one, as a client would.
func follow(ctx context.Context, s storage.Interface, rev uint64, seen func(rev uint64) bool) error {
	for {
		w, err := watchFrom(ctx, s, rev)
		if err != nil {
			return err
		}
		for ev := range w.ResultChan() {
			if ev.Type == watch.Error {
				w.Stop()
				return fmt.Errorf("watch: %v", ev.Object)
			}
			if rev, err = versioner.ObjectResourceVersion(ev.Object); err != nil {
				return err
			}
			if !seen(rev) {
				w.Stop()
				return nil
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// delivery measures the time from the start of a write to the arrival of its event
// at a watch, one write at a time, and returns a percentile in microseconds.
func delivery(percentile float64) measure {
	return func(ctx context.Context, s storage.Interface, window time.Duration) (float64, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		rev, err := s.GetCurrentResourceVersion(ctx)
		if err != nil {
			return 0, err
		}
		w, err := watchFrom(ctx, s, rev)
		if err != nil {
			return 0, err
		}
		defer w.Stop()
		run := strconv.FormatInt(time.Now().UnixNano(), 36)
		took := make([]float64, 0, deliverySample)
		for end := time.Now().Add(window); time.Now().Before(end); time.Sleep(deliveryPause) {
			name := fmt.Sprintf("watched-%s-%d", run, len(took))
			arrived, failed := make(chan time.Time, 1), make(chan error, 1)
			go func() {
				ev, ok := <-w.ResultChan()
				if !ok || ev.Type != watch.Added {
					failed <- fmt.Errorf("watch: %v", ev)
					return
				}
				arrived <- time.Now()
			}()
			start := time.Now()
			if err := s.Create(ctx, key(name), pod(name), &example.Pod{}, 0); err != nil {
				return 0, err
			}
			select {
			case at := <-arrived:
				took = append(took, float64(at.Sub(start).Microseconds()))
			case err := <-failed:
				return 0, err
			}
		}
		slices.Sort(took)
		return took[int(percentile*float64(len(took)-1))], nil
	}
}

// fanOut has many watches of everything while a few writers update one object each,
// and returns events delivered a second, until the last watch has seen the last write.
func fanOut(ctx context.Context, s storage.Interface, window time.Duration) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	writes := max(int(window.Seconds()*writesASecond), writesASecond/2)
	from, err := s.GetCurrentResourceVersion(ctx)
	if err != nil {
		return 0, err
	}
	var (
		last      atomic.Uint64 // revision of the last write; 0 while it is not known
		seen      [watches]atomic.Uint64
		delivered atomic.Int64
		followers sync.WaitGroup
		errs      = make([]error, watches)
	)
	for n := range watches {
		followers.Go(func() {
			errs[n] = follow(ctx, s, from, func(rev uint64) bool {
				delivered.Add(1)
				seen[n].Store(rev)
				return last.Load() == 0 || rev < last.Load()
			})
		})
	}
	start := time.Now()
	highest, err := fanOutWrites(ctx, s, writes)
	if err != nil {
		return 0, err
	}
	last.Store(highest)
	ended := make(chan struct{})
	go func() { followers.Wait(); close(ended) }()
	for behind(seen[:], highest) {
		select {
		case <-ended:
			if behind(seen[:], highest) {
				return 0, errors.Join(append(errs, errors.New("a watch ended early"))...)
			}
		case <-time.After(time.Millisecond):
		}
	}
	took := time.Since(start)
	cancel()
	followers.Wait()
	if got, want := delivered.Load(), int64(watches*writes); got < want {
		return 0, fmt.Errorf("%d events delivered, want at least %d", got, want)
	}
	return float64(watches*writes) / took.Seconds(), nil
}

func behind(seen []atomic.Uint64, rev uint64) bool {
	for n := range seen {
		if seen[n].Load() < rev {
			return true
		}
	}
	return false
}

// fanOutWrites updates a few objects and returns the highest revision.
func fanOutWrites(ctx context.Context, s storage.Interface, writes int) (uint64, error) {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		high uint64
		errs = make([]error, fanOutWriters)
		run  = strconv.FormatInt(time.Now().UnixNano(), 36)
	)
	for w := range fanOutWriters {
		wg.Go(func() {
			name := fmt.Sprintf("written-%s-%d", run, w)
			for i := w; i < writes && errs[w] == nil; i += fanOutWriters {
				out := &example.Pod{}
				errs[w] = s.GuaranteedUpdate(ctx, key(name), out, true, nil, storage.SimpleUpdate(func(runtime.Object) (runtime.Object, error) {
					p := pod(name)
					p.Labels["n"] = strconv.Itoa(i)
					return p, nil
				}), nil)
				if rev, err := versioner.ObjectResourceVersion(out); err == nil {
					mu.Lock()
					high = max(high, rev)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return high, errors.Join(errs...)
}
