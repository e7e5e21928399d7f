// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package robustness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
)

const base = "/apis/core.platform.ai/v1alpha1/namespaces/default/"

// retryPause keeps a client from spinning while the server is down.
const retryPause = 10 * time.Millisecond

// client talks plain HTTP to the server, without a library that retries on its own.
type client struct {
	http *http.Client
	url  string
}

func newClient(t *testing.T, kubeconfig string) *client {
	t.Helper()
	return dial(t, config(t, "", kubeconfig))
}

// config returns a client's configuration; server replaces the one of the kubeconfig.
func config(t *testing.T, server, kubeconfig string) *rest.Config {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags(server, kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	cfg.Dial = (&net.Dialer{}).DialContext // or all clients would share one connection
	return cfg
}

func dial(t *testing.T, cfg *rest.Config) *client {
	t.Helper()
	h, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &client{http: h, url: cfg.Host}
}

// statusError is an answer other than 2xx.
type statusError struct {
	code int
	body string
}

func (e *statusError) Error() string { return fmt.Sprintf("status %d: %s", e.code, e.body) }

func (c *client) do(ctx context.Context, method, path string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return &statusError{resp.StatusCode, string(data)}
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(data, out)
}

// insist repeats a request until it is answered, across the crashes that are tested.
// An answer that calls the request invalid ends it.
func (c *client) insist(ctx context.Context, method, path string, body []byte, out any) error {
	for {
		err := c.do(ctx, method, path, body, out)
		var status *statusError
		if err == nil || ctx.Err() != nil || (errors.As(err, &status) && status.code/100 == 4 && status.code != http.StatusTooManyRequests) {
			return err
		}
		pause(ctx, retryPause)
	}
}

func toRecord(e *v1alpha1.ExecutionEvent) (record, error) {
	rev, err := strconv.ParseUint(e.ResourceVersion, 10, 64)
	if err != nil {
		return record{}, fmt.Errorf("revision of %s: %w", e.Name, err)
	}
	return record{task: e.TaskName, key: e.DedupKey, seq: e.Seq, revision: rev}, nil
}

// list reads all events, page by page.
func (c *client) list(ctx context.Context) (events []record, revision string, err error) {
	cont := ""
	for {
		var page v1alpha1.ExecutionEventList
		q := url.Values{"limit": {"500"}}
		if cont != "" {
			q.Set("continue", cont)
		}
		if err := c.insist(ctx, http.MethodGet, base+"executionevents?"+q.Encode(), nil, &page); err != nil {
			return nil, "", err
		}
		for i := range page.Items {
			r, err := toRecord(&page.Items[i])
			if err != nil {
				return nil, "", err
			}
			events = append(events, r)
		}
		if cont = page.Continue; cont == "" {
			return events, page.ResourceVersion, nil
		}
	}
}

// watcher follows all events across any number of broken connections, and only
// ever resumes at the last revision that it saw.
type watcher struct {
	c *client

	mu       sync.Mutex // guards the rest
	seen     []record
	revision uint64
	err      error
	change   chan struct{}
	resumed  int
}

func newWatcher(c *client, from uint64) *watcher {
	return &watcher{c: c, revision: from, change: make(chan struct{})}
}

func (w *watcher) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := w.follow(ctx); err != nil {
			w.mu.Lock()
			w.err = err
			w.wake()
			w.mu.Unlock()
			return
		}
		pause(ctx, retryPause)
	}
}

func (w *watcher) wake() {
	close(w.change)
	w.change = make(chan struct{})
}

// follow reads one connection to its end. It returns an error only if a guarantee is broken.
func (w *watcher) follow(ctx context.Context) error {
	w.mu.Lock()
	from := w.revision
	w.mu.Unlock()
	q := url.Values{"watch": {"true"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {strconv.FormatUint(from, 10)}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.c.url+base+"executionevents?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	resp, err := w.c.http.Do(req)
	if err != nil {
		return nil // the server is down
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		if resp.StatusCode == http.StatusGone || resp.StatusCode == http.StatusGatewayTimeout {
			return fmt.Errorf("%w: resuming at %d answered %d", errBrokeResumable, from, resp.StatusCode)
		}
		return nil
	}
	w.mu.Lock()
	w.resumed++
	w.mu.Unlock()
	return w.decode(resp.Body)
}

// decode reads the frames of a watch until it is cut.
func (w *watcher) decode(from io.Reader) error {
	frames := json.NewDecoder(from)
	for {
		var frame struct {
			Type   string          `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if err := frames.Decode(&frame); err != nil {
			return nil //nolint:nilerr // cut
		}
		if err := w.take(frame.Type, frame.Object); err != nil {
			return err
		}
	}
}

func (w *watcher) take(kind string, object []byte) error {
	if kind == "ERROR" {
		var status metav1.Status
		if err := json.Unmarshal(object, &status); err != nil {
			return err
		}
		return fmt.Errorf("%w: %s", errBrokeResumable, status.Message)
	}
	var e v1alpha1.ExecutionEvent
	if err := json.Unmarshal(object, &e); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.wake()
	if kind == "BOOKMARK" {
		rev, err := strconv.ParseUint(e.ResourceVersion, 10, 64)
		w.revision = max(w.revision, rev)
		return err
	}
	r, err := toRecord(&e)
	if err != nil {
		return err
	}
	if kind == "ADDED" {
		w.seen = append(w.seen, r)
	}
	w.revision = r.revision
	return nil
}

// check waits until the watch has reached a revision, and compares what was seen up to it with what is stored up to it.
func (w *watcher) check(ctx context.Context, stored []record, revision uint64) error {
	seen, err := w.await(ctx, maxRevision(stored))
	if err != nil {
		return err
	}
	return checkWatched(upTo(seen, revision), stored)
}

// await waits until the watch has reached a revision and returns what was seen.
func (w *watcher) await(ctx context.Context, revision uint64) ([]record, error) {
	for {
		w.mu.Lock()
		seen, at, err, change := w.seen, w.revision, w.err, w.change
		w.mu.Unlock()
		if err != nil || at >= revision {
			return seen, err
		}
		select {
		case <-change:
		case <-ctx.Done():
			return seen, fmt.Errorf("%w: stuck at revision %d of %d", errBrokeResumable, at, revision)
		}
	}
}
