// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	"github.com/platform-ai/platform/test/kit"
)

const (
	streamedTasks    = 64
	streamedSessions = 8 // each with an eighth of the tasks
	// appendPause is the time between two appends of one task. All tasks together make the platform busy, but do not
	// saturate the machine.
	appendPause = 25 * time.Millisecond
	// cutsPerRound is how often connections are cut before the server is killed; each cut takes about a third of them.
	cutsPerRound = 3
)

// TestReadersUnderKills cuts connections and kills the server at random moments while 64 tasks append. Every kind of
// reader resumes by itself, and must get every event exactly once and in order.
func TestReadersUnderKills(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	n := rounds(t)
	s := kit.StartServer(t, t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n)*time.Minute+5*time.Minute)
	defer cancel()
	world := newWorld(t, ctx, s)

	reading, stopReading := context.WithCancel(ctx)
	var readers sync.WaitGroup
	defer readers.Wait()
	defer stopReading()
	world.read(t, reading, &readers)
	load := world.write(t, ctx)
	for range n {
		for range cutsPerRound {
			pause(ctx, time.Duration(random.Int64N(int64(maxRunning/cutsPerRound))))
			world.proxy.cut(random, 1.0/3)
		}
		pause(ctx, time.Duration(random.Int64N(int64(minRunning))))
		s.Kill()
		s.Restart(t)
	}
	acknowledged, err := load.stop()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range world.tasks { // so that their streams end
		body := fmt.Appendf(nil, `{"apiVersion":"core.platform.ai/v1alpha1","kind":"ExecutionEvent","type":"TaskCancelled","dedupKey":"end"}`)
		if err := world.admin.insist(ctx, http.MethodPost, base+"tasks/"+name+"/events", body, nil); err != nil {
			t.Fatal(err)
		}
	}
	stored, _, err := world.admin.list(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkStored(acknowledged, stored); err != nil {
		t.Error(err)
	}
	ctx, cancel = context.WithTimeout(ctx, kit.Patience)
	defer cancel()
	world.checkWatches(t, ctx, stored)
	world.checkTasks(t, ctx)
	world.checkSessions(t, ctx, stored)
	t.Logf("seed %d: %d kills, %d connections cut, %d events stored; %s", seed, n, world.proxy.cuts, len(stored), world.connections())
}

// world is the tasks and sessions, and everybody who reads their events through the proxy.
type world struct {
	s     *kit.Server
	proxy *proxy
	admin *client // does not go through the proxy
	tasks []string
	from  uint64 // the revision before the first event

	watches  map[string]*watcher
	streams  map[string]*streamer // of a task, by its name
	sessions map[string]*streamer // by session
	raw      map[string]*streamer // of a task or session by kubectl, by path
	listings listings
}

func sessionOf(task int) string { return fmt.Sprintf("session-%d", task%streamedSessions) }

// newWorld makes tasks that wait for their schedule: their streams are open, and nothing runs.
func newWorld(t *testing.T, ctx context.Context, s *kit.Server) *world {
	t.Helper()
	cfg := config(t, "", s.Kubeconfig)
	u, err := url.Parse(cfg.Host)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		s: s, proxy: startProxy(t, u.Host), admin: dial(t, cfg),
		watches: map[string]*watcher{}, streams: map[string]*streamer{}, sessions: map[string]*streamer{}, raw: map[string]*streamer{},
	}
	create := func(kind string, object map[string]any) {
		object["apiVersion"] = "core.platform.ai/v1alpha1"
		body, err := json.Marshal(object)
		if err == nil {
			err = w.admin.insist(ctx, http.MethodPost, base+kind, body, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range streamedSessions {
		create("sessions", map[string]any{"kind": "Session", "metadata": map[string]any{"name": sessionOf(i)}})
	}
	for i := range streamedTasks {
		name := fmt.Sprintf("task-%02d", i)
		create("tasks", map[string]any{"kind": "Task", "metadata": map[string]any{"name": name}, "spec": map[string]any{
			"type": "container", "command": []string{"true"}, "schedule": "0 0 29 2 *", "suspend": true,
			"sessionRef": map[string]any{"name": sessionOf(i)},
		}})
		w.tasks = append(w.tasks, name)
	}
	_, first, err := w.admin.list(ctx)
	if err == nil {
		w.from, err = strconv.ParseUint(first, 10, 64)
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// read starts all readers. Half of the streams use HTTP/1.1, and half resume by the header.
func (w *world) read(t *testing.T, ctx context.Context, wait *sync.WaitGroup) {
	t.Helper()
	through := func(http1 bool) *client {
		cfg := config(t, w.proxy.url(), w.s.Kubeconfig)
		if http1 {
			cfg.NextProtos = []string{"http/1.1"}
		}
		return dial(t, cfg)
	}
	var clients [8]*client
	for i := range clients {
		clients[i] = through(i%2 == 0)
	}
	for i, name := range w.tasks {
		w.streams[name] = newStreamer(clients[i%len(clients)], base+"tasks/"+name+"/stream", i%4 < 2)
	}
	for i := range streamedSessions {
		w.sessions[sessionOf(i)] = newStreamer(clients[i%len(clients)], base+"sessions/"+sessionOf(i)+"/stream", i%4 < 2)
	}
	k := &kubectl{program: kit.Bin(t, "kubectl"), server: w.proxy.url(), env: w.s.Env(t)}
	for _, path := range []string{base + "tasks/" + w.tasks[0] + "/stream", base + "sessions/" + sessionOf(1) + "/stream"} {
		w.raw[path] = newStreamer(nil, path, false)
		w.raw[path].open = k.stream
	}
	for _, of := range []map[string]*streamer{w.streams, w.sessions, w.raw} {
		for _, s := range of {
			wait.Go(func() { s.run(ctx) })
		}
	}
	for _, name := range []string{"plain HTTP", "client-go", "kubectl --raw"} {
		w.watches[name] = newWatcher(through(false), w.from)
	}
	c, err := versioned.NewForConfig(config(t, w.proxy.url(), w.s.Kubeconfig))
	if err != nil {
		t.Fatal(err)
	}
	wait.Go(func() { w.watches["plain HTTP"].run(ctx) })
	wait.Go(func() { w.watches["client-go"].retryWatch(ctx, c) })
	wait.Go(func() { w.watches["kubectl --raw"].rawWatch(ctx, k) })
	wait.Go(func() { w.listings.run(ctx, k) })
}

// write starts a writer per task, each with one append under way, also through the proxy.
func (w *world) write(t *testing.T, ctx context.Context) *load {
	t.Helper()
	l := &load{end: make(chan struct{}), pause: appendPause}
	var clients [8]*client
	for i := range clients {
		clients[i] = dial(t, config(t, w.proxy.url(), w.s.Kubeconfig))
	}
	for i, name := range w.tasks {
		l.wait.Go(func() { l.write(ctx, clients[i%len(clients)], i, name) })
	}
	return l
}

func (w *world) checkWatches(t *testing.T, ctx context.Context, stored []record) {
	t.Helper()
	newest := newest(stored, w.from)
	last := maxRevision(stored)
	for name, watcher := range w.watches {
		if err := watcher.check(ctx, newest, last); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	runs, err := w.listings.await(ctx, last)
	if err != nil {
		t.Error(err)
	}
	for i, run := range runs { // each is a list at some time, followed by later changes
		if err := checkWatched(run, upTo(stored, maxRevision(run))); err != nil {
			t.Errorf("kubectl get --watch, run %d: %v", i, err)
		}
	}
}

// rows reads all pages of a task or session.
func (w *world) rows(ctx context.Context, path string) (rows []row, err error) {
	for after := int64(0); ; {
		var page v1alpha1.ExecutionEventPage
		if err := w.admin.insist(ctx, http.MethodGet, fmt.Sprintf("%s/events?limit=1000&after=%d", path, after), nil, &page); err != nil {
			return nil, err
		}
		if page.Gap != nil {
			return nil, fmt.Errorf("%w: %s has a gap: %+v", errBrokeStreamed, path, *page.Gap)
		}
		for i := range page.Events {
			rows = append(rows, toRow(&page.Events[i]))
			after = page.Events[i].Seq
		}
		if after >= page.LatestSeq {
			return rows, nil
		}
	}
}

func (w *world) checkTasks(t *testing.T, ctx context.Context) {
	t.Helper()
	for _, name := range w.tasks {
		path := base + "tasks/" + name
		stored, err := w.rows(ctx, path)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, s := range []*streamer{w.streams[name], w.raw[path+"/stream"]} {
			if s == nil {
				continue
			}
			seen, err := s.await(ctx, 0)
			if err == nil {
				err = checkStreamed(seen, stored)
			}
			if want := fmt.Sprintf(`{"lastSeq":%d,"type":"TaskCancelled","streamUID":"`, len(stored)); err == nil && !strings.HasPrefix(s.complete, want) {
				err = fmt.Errorf("%w: %s ended with %s, want %s", errBrokeStreamed, path, s.complete, want)
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
}

func (w *world) checkSessions(t *testing.T, ctx context.Context, stored []record) {
	t.Helper()
	of := map[string][]record{}
	for _, r := range stored {
		i, err := strconv.Atoi(r.task[len("task-"):])
		if err != nil {
			t.Fatal(err)
		}
		of[sessionOf(i)] = append(of[sessionOf(i)], r)
	}
	for name, s := range w.sessions {
		path := base + "sessions/" + name
		timeline, err := w.rows(ctx, path)
		if err == nil {
			err = checkTimeline(timeline, of[name])
		}
		if err != nil {
			t.Error(err)
			continue
		}
		for _, s := range []*streamer{s, w.raw[path+"/stream"]} {
			if s == nil {
				continue
			}
			seen, err := s.await(ctx, int64(len(timeline)))
			if err == nil {
				err = checkStreamed(seen, timeline)
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
}

// connections returns how often each kind of reader connected.
func (w *world) connections() string {
	count := func(of map[string]*streamer) (n int) {
		for _, s := range of {
			s.mu.Lock()
			n += s.opened
			s.mu.Unlock()
		}
		return n
	}
	text := fmt.Sprintf("connections: %d task streams %d, %d session streams %d, %d streams by kubectl %d, kubectl get --watch %d",
		len(w.streams), count(w.streams), len(w.sessions), count(w.sessions), len(w.raw), count(w.raw), len(w.listings.all()))
	for name, watcher := range w.watches {
		watcher.mu.Lock()
		text += fmt.Sprintf(", watch by %s %d", name, watcher.resumed)
		watcher.mu.Unlock()
	}
	return text
}
