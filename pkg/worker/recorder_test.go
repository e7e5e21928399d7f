// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/event"
	"github.com/platform-ai/platform/pkg/worker/client"
)

// BenchmarkEvents measures what a worker does with each event: redaction, the journal on disk and the requests, to a server
// that stores nothing.
func BenchmarkEvents(b *testing.B) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusCreated)
	}))
	defer s.Close()
	c := &Config{TaskName: "t", TaskNamespace: "ns", TaskUID: "uid", Attempt: 1, ServerURL: s.URL, SpoolDir: b.TempDir()}
	api, err := client.New(client.Config{ServerURL: s.URL, Token: token}, clock.RealClock{})
	if err != nil {
		b.Fatal(err)
	}
	w := newWorker(c, api, clock.RealClock{})
	if err := w.openSpool(); err != nil {
		b.Fatal(err)
	}
	w.log.out.start(b.Context())
	w.events.out.start(b.Context())
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		w.events.Record(event.New(v1alpha1.EventToolCallCompleted, v1alpha1.SeverityInfo, "", fmt.Sprintf("call %d of tool read_file", n),
			map[string]any{"tool": "read_file", "call": n, "bytes": 1234, "path": "src/main.go"}))
		if n%5000 == 0 { // the queue is bounded
			if err := w.events.out.flush(b.Context(), 0); err != nil {
				b.Fatal(err)
			}
		}
	}
	if lost, _ := w.closeOutboxes(b.Context()); lost > 0 {
		b.Errorf("%d events were lost", lost)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "events/s")
}
