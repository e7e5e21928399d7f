// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/test/kit"
)

const (
	tasks      = 4
	writers    = 16
	watchers   = 3
	minRunning = 100 * time.Millisecond // the least load of a round
	maxRunning = 1500 * time.Millisecond
)

func rounds(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("ROUNDS"))
	if err != nil || n < 1 {
		return 3
	}
	return n
}

// TestServerKilledUnderLoad kills the server with SIGKILL at random moments
// while writers append and watchers watch, and then checks every guarantee on
// what they saw.
func TestServerKilledUnderLoad(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	n := rounds(t)
	s := kit.StartServer(t, t.TempDir(), "--allow-host-commands")
	c := newClient(t, s.Kubeconfig)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n)*time.Minute+5*time.Minute)
	defer cancel()

	defer deleteTasks(t, s)
	names := openTasks(t, ctx, c, s)
	_, first, err := c.list(ctx)
	if err != nil {
		t.Fatal(err)
	}
	from, err := strconv.ParseUint(first, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	before, _, err := c.list(ctx)
	if err != nil {
		t.Fatal(err)
	}

	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	ws := make([]*watcher, watchers)
	for i := range ws {
		ws[i] = newWatcher(newClient(t, s.Kubeconfig), from)
		go ws[i].run(watching)
	}
	load := startLoad(t, ctx, s.Kubeconfig, names)

	for range n {
		pause(ctx, minRunning+time.Duration(random.Int64N(int64(maxRunning-minRunning))))
		s.Kill()
		s.Restart(t)
	}
	acknowledged, err := load.stop()
	if err != nil {
		t.Fatal(err)
	}
	stored, last, err := c.list(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkStored(acknowledged, stored); err != nil {
		t.Error(err)
	}
	rev, err := strconv.ParseUint(last, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	after := upTo(newest(stored, from), rev)
	resumed := 0
	for _, w := range ws {
		if err := w.check(ctx, after, rev); err != nil {
			t.Error(err)
		}
		resumed += w.resumed
	}
	t.Logf("seed %d: %d kills, %d events acknowledged, %d stored (%d before), %d watches with %d connections",
		seed, n, len(acknowledged), len(stored), len(before), watchers, resumed)
}

// pause returns after a time, or when the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d): // at what moment of a real server's history it is killed, and how often a client tries again meanwhile, is what is tested
	case <-ctx.Done():
	}
}

func newest(all []record, from uint64) []record {
	var out []record
	for _, r := range all {
		if r.revision > from {
			out = append(out, r)
		}
	}
	return out
}

func upTo(all []record, rev uint64) []record {
	var out []record
	for _, r := range all {
		if r.revision <= rev {
			out = append(out, r)
		}
	}
	return out
}

func maxRevision(all []record) (rev uint64) {
	for _, r := range all {
		rev = max(rev, r.revision)
	}
	return rev
}

// openTasks makes tasks that run until they are deleted, so that their streams are open.
func openTasks(t *testing.T, ctx context.Context, c *client, s *kit.Server) []string {
	t.Helper()
	var names []string
	for i := range tasks {
		name := fmt.Sprintf("load-%d", i)
		body := fmt.Sprintf(`{"apiVersion":"core.platform.ai/v1alpha1","kind":"Task","metadata":{"name":%q},
			"spec":{"type":"container","command":["sleep"],"args":["86400"]}}`, name)
		if err := c.insist(ctx, http.MethodPost, base+"tasks", []byte(body), nil); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	s.MustShell(t, "kubectl wait --for=jsonpath='{.status.phase}'=Running --timeout=300s task --all")
	return names
}

// deleteTasks ends the runs, which would outlive the server.
func deleteTasks(t *testing.T, s *kit.Server) {
	t.Helper()
	if r := s.Shell(t, "kubectl delete tasks --all --wait --timeout=300s"); r.Code != 0 {
		t.Errorf("tasks are left behind: %s", r.Output)
	}
}

// load is a set of writers, each with one append under way.
type load struct {
	end   chan struct{}
	pause time.Duration // between two appends of a writer
	wait  sync.WaitGroup

	mu   sync.Mutex // guards the rest
	acks []record
	err  error
}

func startLoad(t *testing.T, ctx context.Context, kubeconfig string, names []string) *load {
	t.Helper()
	l := &load{end: make(chan struct{})}
	for i := range writers {
		c := newClient(t, kubeconfig)
		l.wait.Go(func() { l.write(ctx, c, i, names[i%len(names)]) })
	}
	return l
}

func (l *load) write(ctx context.Context, c *client, writer int, task string) {
	for n := 0; ; n++ {
		select {
		case <-l.end:
			return
		default:
		}
		e := v1alpha1.ExecutionEvent{
			Type: v1alpha1.EventModelMessage, Summary: fmt.Sprintf("writer %d, message %d", writer, n),
			DedupKey: fmt.Sprintf("w%d/%d", writer, n),
		}
		e.APIVersion, e.Kind = "core.platform.ai/v1alpha1", "ExecutionEvent"
		body, err := json.Marshal(e)
		if err == nil {
			err = c.insist(ctx, http.MethodPost, base+"tasks/"+task+"/events", body, &e)
		}
		var r record
		if err == nil {
			r, err = toRecord(&e)
		}
		l.mu.Lock()
		if err != nil {
			l.err = fmt.Errorf("append to %s: %w", task, err)
			l.mu.Unlock()
			return
		}
		l.acks = append(l.acks, r)
		l.mu.Unlock()
		if l.pause > 0 {
			pause(ctx, l.pause)
		}
	}
}

// acknowledged is what was acknowledged so far.
func (l *load) acknowledged() []record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.acks)
}

// stop ends the writers, each after its append was answered.
func (l *load) stop() ([]record, error) {
	close(l.end)
	l.wait.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acks, l.err
}
