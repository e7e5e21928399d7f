// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/storage/eventlog"
)

// kib returns an event of about 1 KiB, as a worker sends it.
func kib() *v1alpha1.ExecutionEvent {
	e := of("ModelRequestCompleted")
	e.Summary = "model answered"
	e.Content = &apiextensionsv1.JSON{Raw: []byte(`{"iteration":3,"model":"m","provider":"p","inputTokens":1200,"outputTokens":300,"stopReason":"tool_use","text":"` +
		strings.Repeat("The build passes: go test ./pkg/x took 1.2s. ", 20) + `"}`)}
	return e
}

func stream(i int) eventlog.Stream {
	return eventlog.Stream{Namespace: "n", Task: fmt.Sprint("t", i), UID: types.UID(fmt.Sprint("uid-", i)), Session: fmt.Sprint("s", i%8)}
}

func BenchmarkAppend(b *testing.B) {
	for _, batch := range []int{1, 20} {
		for _, writers := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("batch=%d/writers=%d", batch, writers), func(b *testing.B) {
				l := open(b, nil, eventlog.Options{})
				events := make([]*v1alpha1.ExecutionEvent, batch)
				for i := range events {
					events[i] = kib()
				}
				var next atomic.Int64
				var wg sync.WaitGroup
				b.ResetTimer()
				for w := range writers {
					wg.Go(func() {
						for next.Add(1) <= int64(b.N) {
							if _, err := l.Append(context.Background(), stream(w), events); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
				b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "events/s")
			})
		}
	}
}

func BenchmarkRead(b *testing.B) {
	l := open(b, nil, eventlog.Options{})
	ctx := context.Background()
	const total, batch = 20000, 500
	events := make([]*v1alpha1.ExecutionEvent, batch)
	for i := range events {
		events[i] = kib()
	}
	for i := range total / batch {
		if _, err := l.Append(ctx, stream(i%4), events); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("page of 500", func(b *testing.B) {
		for b.Loop() {
			if _, err := l.TaskPage(ctx, stream(0), 1000, 500, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("list of 500", func(b *testing.B) {
		for b.Loop() {
			if _, err := l.List(ctx, eventlog.Query{Namespace: "n", Limit: 500}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("replay of 20000", func(b *testing.B) {
		for b.Loop() {
			w, err := l.Watch(ctx, eventlog.Query{}, 1, eventlog.WatchOptions{})
			if err != nil {
				b.Fatal(err)
			}
			for range total {
				<-w.ResultChan()
			}
			w.Stop()
		}
	})
}

// BenchmarkFanOut delivers every event to a thousand watches of one stream.
func BenchmarkFanOut(b *testing.B) {
	l := open(b, nil, eventlog.Options{})
	ctx := context.Background()
	const watches = 1000
	var wg sync.WaitGroup
	for range watches {
		w, err := l.Watch(ctx, eventlog.Query{Namespace: "n", Task: "t0"}, 1, eventlog.WatchOptions{})
		if err != nil {
			b.Fatal(err)
		}
		wg.Add(1)
		go func(w watch.Interface) {
			defer wg.Done()
			for range b.N {
				<-w.ResultChan()
			}
			w.Stop()
		}(w)
	}
	b.ResetTimer()
	for range b.N {
		if _, err := l.Append(ctx, stream(0), []*v1alpha1.ExecutionEvent{kib()}); err != nil {
			b.Fatal(err)
		}
	}
	wg.Wait()
	b.ReportMetric(float64(b.N*watches)/b.Elapsed().Seconds(), "deliveries/s")
}
