// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/generated/clientset/versioned"
	"github.com/platform-ai/platform/pkg/sse"
)

// streamer follows a stream of events (SSE) across any number of broken connections, and only ever resumes at the last
// id that it saw: in the header, as a browser, or in the URL.
type streamer struct {
	c      *client
	path   string
	header bool
	open   func(ctx context.Context, path string) (io.ReadCloser, error) // instead of c, where set

	mu       sync.Mutex // guards the rest
	seen     []row
	last     int64
	complete string // the data of stream_complete
	err      error
	change   chan struct{}
	opened   int
}

func newStreamer(c *client, path string, header bool) *streamer {
	return &streamer{c: c, path: path, header: header, change: make(chan struct{})}
}

// run ends with the stream or with ctx.
func (s *streamer) run(ctx context.Context) {
	for ctx.Err() == nil {
		ended, err := s.follow(ctx)
		if err != nil || ended {
			s.mu.Lock()
			s.err = err
			s.wake()
			s.mu.Unlock()
			return
		}
		pause(ctx, retryPause)
	}
}

func (s *streamer) wake() {
	close(s.change)
	s.change = make(chan struct{})
}

// connect opens the stream after the last id. It returns nil if the server is down.
func (s *streamer) connect(ctx context.Context) (io.ReadCloser, error) {
	s.mu.Lock()
	last := strconv.FormatInt(s.last, 10)
	s.mu.Unlock()
	if s.open != nil {
		return s.open(ctx, s.path+"?after="+last)
	}
	path := s.path
	if !s.header {
		path += "?after=" + last
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.c.url+path, nil)
	if err != nil {
		return nil, err
	}
	if s.header && last != "0" {
		req.Header.Set(sse.LastEventID, last)
	}
	resp, err := s.c.http.Do(req)
	if err != nil {
		return nil, nil //nolint:nilerr // the server is down
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		if resp.StatusCode/100 == 4 && resp.StatusCode != http.StatusTooManyRequests {
			return nil, fmt.Errorf("%w: resuming %s at %s answered %d", errBrokeStreamed, s.path, last, resp.StatusCode)
		}
		return nil, nil
	}
	return resp.Body, nil
}

// follow reads one connection to its end, and reports whether the stream has ended. It returns an error only if a
// guarantee is broken.
func (s *streamer) follow(ctx context.Context) (ended bool, err error) {
	body, err := s.connect(ctx)
	if body == nil {
		return false, err
	}
	defer body.Close()
	s.mu.Lock()
	s.opened++
	s.mu.Unlock()
	frames := sse.NewReader(body, sse.Options{})
	for {
		f, err := frames.Next()
		if errors.Is(err, sse.ErrTooLong) {
			return false, err
		}
		if err != nil {
			return false, nil // cut
		}
		if ended, err := s.take(f); ended || err != nil {
			return ended, err
		}
	}
}

func (s *streamer) take(f *sse.Event) (ended bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.wake()
	switch f.Type {
	case "execution_event":
		var e v1alpha1.ExecutionEvent
		if err := json.Unmarshal([]byte(f.Data), &e); err != nil {
			return false, err
		}
		if f.ID != strconv.FormatInt(e.Seq, 10) {
			return false, fmt.Errorf("%w: event %d has the id %q", errBrokeStreamed, e.Seq, f.ID)
		}
		s.seen = append(s.seen, toRow(&e))
		s.last = e.Seq
		return false, nil
	case "stream_complete":
		s.complete = f.Data
		return true, nil
	}
	return false, fmt.Errorf("%w: %s: frame %s %s", errBrokeStreamed, s.path, f.Type, f.Data)
}

func toRow(e *v1alpha1.ExecutionEvent) row {
	r := row{id: e.Seq, task: e.TaskName, seq: e.Seq, text: string(e.Type) + " " + e.Summary}
	if e.StreamType == v1alpha1.StreamSession {
		r.seq = e.TaskSeq
	}
	return r
}

// await waits until the stream has reached an id, or has ended if last is 0, and returns what was seen.
func (s *streamer) await(ctx context.Context, last int64) ([]row, error) {
	for {
		s.mu.Lock()
		seen, at, err, change, complete := s.seen, s.last, s.err, s.change, s.complete
		s.mu.Unlock()
		if err != nil || complete != "" || last > 0 && at >= last {
			return seen, err
		}
		select {
		case <-change:
		case <-ctx.Done():
			return seen, fmt.Errorf("%w: %s is stuck at %d of %d", errBrokeStreamed, s.path, at, last)
		}
	}
}

// retryWatch is client-go's RetryWatcher: a watch that resumes by itself at the last revision.
func (w *watcher) retryWatch(ctx context.Context, c versioned.Interface) {
	events := c.CoreV1alpha1().ExecutionEvents("default")
	w.mu.Lock()
	from := strconv.FormatUint(w.revision, 10)
	w.mu.Unlock()
	rw, err := watchtools.NewRetryWatcherWithContext(ctx, from, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w.mu.Lock()
			w.resumed++
			w.mu.Unlock()
			return events.Watch(ctx, o)
		},
	})
	if err == nil {
		defer rw.Stop()
		err = w.takeAll(rw.ResultChan())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() == nil {
		w.err = errors.Join(err, fmt.Errorf("%w: the watch of client-go gave up at %d", errBrokeResumable, w.revision))
	}
	w.wake()
}

func (w *watcher) takeAll(events <-chan watch.Event) error {
	for e := range events {
		object, err := json.Marshal(e.Object)
		if err == nil {
			err = w.take(string(e.Type), object)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// kubectl runs the real kubectl, and returns its output as it arrives. The process ends when the output is closed.
type kubectl struct {
	program, server string
	env             []string
}

func (k *kubectl) start(ctx context.Context, args ...string) (io.ReadCloser, error) {
	cmd := exec.CommandContext(ctx, k.program, append([]string{"--server", k.server}, args...)...)
	cmd.Env, cmd.Stderr = k.env, io.Discard
	if os.Getenv("VERBOSE") != "" {
		cmd.Stderr = os.Stderr
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &output{out, cmd}, nil
}

type output struct {
	io.Reader
	cmd *exec.Cmd
}

func (o *output) Close() error {
	_ = o.cmd.Process.Kill()
	return o.cmd.Wait()
}

// pauseKubectl is the time between two starts: each costs the machine much more than a connection.
const pauseKubectl = 200 * time.Millisecond

// stream opens a path with kubectl get --raw.
func (k *kubectl) stream(ctx context.Context, path string) (io.ReadCloser, error) {
	pause(ctx, pauseKubectl)
	return k.start(ctx, "get", "--raw", path)
}

// rawWatch is a watch by kubectl get --raw, which is started again at the last revision.
func (w *watcher) rawWatch(ctx context.Context, k *kubectl) {
	for ctx.Err() == nil {
		w.mu.Lock()
		q := url.Values{"watch": {"true"}, "resourceVersion": {strconv.FormatUint(w.revision, 10)}}
		w.resumed++
		w.mu.Unlock()
		out, err := k.stream(ctx, base+"executionevents?"+q.Encode())
		if err == nil {
			err = w.decode(out)
			out.Close()
		}
		if err != nil {
			w.mu.Lock()
			w.err = err
			w.wake()
			w.mu.Unlock()
			return
		}
	}
}

// listings are what each run of kubectl get --watch printed: first the present state, then the changes.
type listings struct {
	mu   sync.Mutex // guards the rest
	runs [][]record
	err  error
}

func (l *listings) run(ctx context.Context, k *kubectl) {
	for ctx.Err() == nil {
		pause(ctx, pauseKubectl)
		out, err := k.start(ctx, "get", "executionevents", "--watch", "-o", "json")
		if err == nil {
			err = l.read(out)
			out.Close()
		}
		if err != nil {
			l.mu.Lock()
			l.err = err
			l.mu.Unlock()
			return
		}
	}
}

func (l *listings) all() [][]record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.runs)
}

// await waits until a run has reached a revision and returns what was printed.
func (l *listings) await(ctx context.Context, revision uint64) ([][]record, error) {
	for {
		runs := l.all()
		if n := len(runs); n > 0 && maxRevision(runs[n-1]) >= revision {
			return runs, nil
		}
		l.mu.Lock()
		err := l.err
		l.mu.Unlock()
		if err == nil && ctx.Err() != nil {
			err = fmt.Errorf("%w: kubectl get --watch does not get to revision %d", errBrokeResumable, revision)
		}
		if err != nil {
			return runs, err
		}
		pause(ctx, retryPause)
	}
}

func (l *listings) read(out io.Reader) error {
	l.mu.Lock()
	n := len(l.runs)
	l.runs = append(l.runs, nil)
	l.mu.Unlock()
	for objects := json.NewDecoder(out); ; {
		var object struct {
			v1alpha1.ExecutionEvent
			Items []v1alpha1.ExecutionEvent `json:"items"`
		}
		if err := objects.Decode(&object); err != nil {
			return nil //nolint:nilerr // cut
		}
		if object.Kind == "ExecutionEvent" {
			object.Items = append(object.Items, object.ExecutionEvent)
		}
		for i := range object.Items {
			r, err := toRecord(&object.Items[i])
			if err != nil {
				return err
			}
			l.mu.Lock()
			l.runs[n] = append(l.runs[n], r)
			l.mu.Unlock()
		}
	}
}
