// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runnertest makes runs for the tests of runners, without a worker.
package runnertest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/worker/client"
	"github.com/platform-ai/platform/pkg/worker/runner"
)

// Run is a run that keeps its events and its log in memory.
type Run struct {
	*runner.Run
	mu     sync.Mutex
	events []*v1alpha1.ExecutionEvent
	log    bytes.Buffer
}

// New returns a run of a task in folders of its own. The API server is at
// serverURL; empty for a run that needs none.
func New(t *testing.T, serverURL string, spec v1alpha1.TaskSpec) *Run {
	t.Helper()
	r := &Run{}
	r.Run = &runner.Run{
		Task:    &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "t", UID: "uid"}, Spec: spec},
		Attempt: 2, Recorder: r, Log: (*log)(r), Scrub: func(text string) string { return text }, SecretsIn: func([]byte) []string { return nil }, Clock: clock.RealClock{},
		Config: runner.Config{
			WorkDir: t.TempDir(), TempDir: t.TempDir(), ArtifactsDir: t.TempDir(), Getenv: os.Getenv, Environ: os.Environ,
		},
	}
	if serverURL != "" {
		var err error
		if r.API, err = client.New(client.Config{ServerURL: serverURL, Token: "token"}, clock.RealClock{}); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// Record keeps an event.
func (r *Run) Record(e *v1alpha1.ExecutionEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// Commit keeps an event.
func (r *Run) Commit(_ context.Context, e *v1alpha1.ExecutionEvent) error {
	r.Record(e)
	return nil
}

// Begin keeps an event.
func (r *Run) Begin(ctx context.Context, e *v1alpha1.ExecutionEvent) error { return r.Commit(ctx, e) }

// Events returns what was recorded.
func (r *Run) Events() []*v1alpha1.ExecutionEvent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Logged returns the log.
func (r *Run) Logged() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.String()
}

// log is the log of a run.
type log Run

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.Write(p)
}

func (l *log) Line(format string, args ...any) { _, _ = fmt.Fprintf(l, format+"\n", args...) }
