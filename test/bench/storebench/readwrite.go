// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package storebench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/example"
	"k8s.io/apiserver/pkg/storage"
)

const (
	updated  = 1024   // objects that updates spread over
	read     = 10_000 // objects that gets spread over
	pageSize = 500
)

// throughput runs f on n goroutines until the window is over, and returns calls
// per second. f gets the number of its goroutine and a number unique to the call.
func throughput(n int, window time.Duration, f func(worker, call int) error) (float64, error) {
	var (
		wg    sync.WaitGroup
		calls atomic.Int64
		errs  = make([]error, n)
		start = time.Now()
		end   = start.Add(window)
	)
	for w := range n {
		wg.Go(func() {
			for i := 0; time.Now().Before(end); i++ {
				if errs[w] = f(w, i); errs[w] != nil {
					return
				}
				calls.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(calls.Load()) / time.Since(start).Seconds(), errors.Join(errs...)
}

func load(ctx context.Context, s storage.Interface, n int) error {
	const writers = 64
	var wg sync.WaitGroup
	errs := make([]error, writers)
	for w := range writers {
		wg.Go(func() {
			for i := w; i < n && errs[w] == nil; i += writers {
				errs[w] = s.Create(ctx, key(loaded(i)), pod(loaded(i)), nil, 0)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func loaded(i int) string { return fmt.Sprintf("loaded-%07d", i) }

type measure = func(context.Context, storage.Interface, time.Duration) (float64, error)

func creates(n int) measure {
	return func(ctx context.Context, s storage.Interface, window time.Duration) (float64, error) {
		return throughput(n, window, func(w, i int) error {
			name := fmt.Sprintf("created-%03d-%07d", w, i)
			return s.Create(ctx, key(name), pod(name), &example.Pod{}, 0)
		})
	}
}

// updates change objects that no other goroutine changes.
func updates(n int) measure {
	return func(ctx context.Context, s storage.Interface, window time.Duration) (float64, error) {
		return throughput(n, window, func(w, i int) error {
			own := updated / n
			return s.GuaranteedUpdate(ctx, key(loaded(w*own+i%own)), &example.Pod{}, false, nil, storage.SimpleUpdate(func(o runtime.Object) (runtime.Object, error) {
				p, ok := o.(*example.Pod)
				if !ok {
					return nil, fmt.Errorf("%T is no pod", o)
				}
				p.Labels["n"] = strconv.Itoa(i)
				return p, nil
			}), nil)
		})
	}
}

func gets(n int) measure {
	return func(ctx context.Context, s storage.Interface, window time.Duration) (float64, error) {
		return throughput(n, window, func(w, i int) error {
			return s.Get(ctx, key(loaded((w*7919+i*104729)%read)), storage.GetOptions{}, &example.Pod{})
		})
	}
}

// lists walks the resource in pages, again and again, and returns objects a second.
func lists(ctx context.Context, s storage.Interface, window time.Duration) (float64, error) {
	start, objects := time.Now(), 0
	for walks := 0; walks == 0 || time.Since(start) < window; walks++ {
		pred := storage.Everything
		pred.Limit = pageSize
		for {
			out := &example.PodList{}
			if err := s.GetList(ctx, "/pods/", storage.ListOptions{Recursive: true, Predicate: pred}, out); err != nil {
				return 0, err
			}
			objects += len(out.Items)
			if pred.Continue = out.Continue; pred.Continue == "" {
				break
			}
		}
	}
	return float64(objects) / time.Since(start).Seconds(), nil
}
