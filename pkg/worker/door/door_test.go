// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package door

import (
	"bufio"
	"cmp"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/runspec"
	"github.com/platform-ai/platform/pkg/worker/client"
)

const workerToken = "the-workers-token"

// opened is a door in front of a server.
type opened struct {
	*Door
	t *testing.T

	mu    sync.Mutex
	got   []*http.Request
	ended []string
}

// open opens a door. address is where the server listens; serve is what it does.
func open(t *testing.T, most int, serve http.HandlerFunc) *opened {
	t.Helper()
	o := &opened{t: t}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		o.got = append(o.got, r.Clone(r.Context()))
		o.mu.Unlock()
		serve(w, r)
	}))
	t.Cleanup(server.Close)
	o.Door = o.before(server.URL, most)
	return o
}

func (o *opened) before(url string, most int) *Door {
	o.t.Helper()
	api, err := client.New(client.Config{ServerURL: url, Token: workerToken}, clock.RealClock{})
	if err != nil {
		o.t.Fatal(err)
	}
	d, err := Open(Options{
		API: api, Task: &v1alpha1.Task{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "work"}}, MaxRequests: most,
		Ended: func(reason, message string) { o.ended = append(o.ended, reason+": "+message) },
	})
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(d.Close)
	return d
}

// ask sends a request and returns the status and the body.
func (o *opened) ask(path string, header ...string) (code int, body string) {
	o.t.Helper()
	r, err := http.NewRequestWithContext(o.t.Context(), http.MethodPost, o.URL(path), strings.NewReader(`{"model":"m"}`))
	if err != nil {
		o.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+o.Key())
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return answer.StatusCode, err.Error()
	}
	return answer.StatusCode, string(text)
}

// TestPassesOn: a request reaches the task's own path as the worker, with what the vendor needs of its header and nothing else.
func TestPassesOn(t *testing.T) {
	o := open(t, 0, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"ok":true}`) })
	code, body := o.ask("/anthropic/v1/messages?beta=true", "Anthropic-Version", "2023-06-01", "Impersonate-User", "admin", "Cookie", "a=b", "X-Forwarded-For", "1.2.3.4")
	if code != http.StatusOK || body != `{"ok":true}` {
		t.Fatalf("%d %s", code, body)
	}
	r := o.got[0]
	if want := "/apis/core.platform.ai/v1alpha1/namespaces/ns/tasks/work/proxy/anthropic/v1/messages?beta=true"; r.URL.String() != want {
		t.Errorf("it asked %s", r.URL)
	}
	if r.Header.Get("Authorization") != "Bearer "+workerToken || r.Header.Get("Anthropic-Version") == "" {
		t.Errorf("header %v", r.Header)
	}
	for _, name := range []string{"Impersonate-User", "Cookie", "X-Forwarded-For"} {
		if r.Header.Get(name) != "" {
			t.Errorf("%s was passed on", name)
		}
	}
}

// TestKey: the door opens for its key alone, not for a page in a browser, and to the vendors' paths alone.
func TestKey(t *testing.T) {
	o := open(t, 0, func(http.ResponseWriter, *http.Request) {})
	for name, tc := range map[string]struct {
		path   string
		header []string
		want   int
	}{
		"no key":       {"/openai/v1/responses", []string{"Authorization", ""}, http.StatusUnauthorized},
		"another key":  {"/openai/v1/responses", []string{"Authorization", "Bearer " + workerToken}, http.StatusUnauthorized},
		"as x-api-key": {"/anthropic/v1/messages", []string{"Authorization", "", "X-Api-Key", o.Key()}, http.StatusOK},
		"a page":       {"/openai/v1/responses", []string{"Origin", "http://evil.example"}, http.StatusUnauthorized},
		"events":       {"/events", nil, http.StatusNotFound},
		"above":        {"/openai/v1/..%2f..%2f..%2fevents", nil, http.StatusNotFound},
	} {
		code, body := o.ask(tc.path, tc.header...)
		if code != tc.want {
			t.Errorf("%s: %d %s", name, code, body)
		}
	}
	for _, r := range o.got {
		if !strings.Contains(r.URL.Path, "/tasks/work/proxy/") || strings.Contains(r.URL.Path, "..") {
			t.Errorf("it asked %s", r.URL.EscapedPath())
		}
	}
}

// TestWaits: while the server is away, does not know the worker, or a rate limit applies, the request waits. A vendor's own limit is the
// agent's business.
func TestWaits(t *testing.T) {
	n := 0
	o := open(t, 0, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "responses") {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		n++
		switch n {
		case 1:
			w.WriteHeader(http.StatusUnauthorized)
		case 2:
			w.Header().Set(runspec.HeaderReason, v1alpha1.ReasonRateLimited)
			w.WriteHeader(http.StatusTooManyRequests)
		default:
			_, _ = io.WriteString(w, "answered")
		}
	})
	if code, body := o.ask("/openai/v1/chat/completions"); code != http.StatusOK || body != "answered" {
		t.Errorf("%d %s", code, body)
	}
	if code, _ := o.ask("/openai/v1/responses"); code != http.StatusTooManyRequests {
		t.Errorf("a vendor's limit: %d", code)
	}

	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	away := &opened{t: t}
	away.Door = away.before("http://"+address, 0)
	done := make(chan string)
	go func() {
		code, body := away.ask("/openai/v1/chat/completions")
		done <- fmt.Sprint(code, body)
	}()
	back, err := net.Listen("tcp4", address)
	if err != nil {
		t.Skipf("the port is taken: %v", err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "back") })}
	go server.Serve(back) //nolint:errcheck // it is closed
	t.Cleanup(func() { _ = server.Close() })
	if got := <-done; got != "200back" {
		t.Errorf("after the server came back: %s", got)
	}
}

// TestEnds: a budget that is spent, and the last turn, end the run once, and the agent is told.
func TestEnds(t *testing.T) {
	o := open(t, 1, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "responses") {
			w.Header().Set(runspec.HeaderReason, v1alpha1.ReasonBudgetExhausted)
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `{"error":{"message":"Budget small is spent"}}`)
		}
	})
	if code, body := o.ask("/openai/v1/responses"); code != http.StatusForbidden || !strings.Contains(body, "small") {
		t.Errorf("%d %s", code, body)
	}
	if code, _ := o.ask("/anthropic/v1/messages/count_tokens"); code != http.StatusOK {
		t.Errorf("counting: %d", code)
	}
	if code, _ := o.ask("/anthropic/v1/messages"); code != http.StatusOK {
		t.Errorf("the last turn: %d", code)
	}
	if code, body := o.ask("/anthropic/v1/messages"); code != http.StatusForbidden || !strings.Contains(body, `"type":"error"`) || !strings.Contains(body, "maxTurns") {
		t.Errorf("after the last turn: %d %s", code, body)
	}
	if got := strings.Join(o.ended, "|"); got != "BudgetExhausted: Budget small is spent" {
		t.Errorf("ended %q", got)
	}
}

// TestStreams: parts of an answer arrive as they come, and one that breaks off is seen to.
func TestStreams(t *testing.T) {
	more := make(chan struct{})
	o := open(t, 0, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: one\n")
		_ = http.NewResponseController(w).Flush()
		<-more
		panic(http.ErrAbortHandler)
	})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, o.URL("/openai/v1/chat/completions"), strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", o.Key())
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	in := bufio.NewReader(answer.Body)
	if line, err := in.ReadString('\n'); err != nil || line != "data: one\n" {
		t.Fatalf("%q, %v", line, err)
	}
	close(more)
	if _, err := in.ReadString('\n'); err == nil || err == io.EOF {
		t.Errorf("an answer that broke off ends with %v", err)
	}
}

// TestAtOnce: of requests at once no more are held than may be, and no more reach the server than the run has turns.
func TestAtOnce(t *testing.T) {
	for name, most := range map[string]int{"held": 0, "turns": 5} {
		want := cmp.Or(most, maxHeld)
		var now, highest atomic.Int64
		arrived, release := make(chan struct{}, 100), make(chan struct{})
		o := open(t, most, func(http.ResponseWriter, *http.Request) {
			if n := now.Add(1); n > highest.Load() {
				highest.Store(n)
			}
			arrived <- struct{}{}
			<-release
			now.Add(-1)
		})
		codes := make(chan int, 40)
		for range cap(codes) {
			go func() {
				code, _ := o.ask("/openai/v1/chat/completions")
				codes <- code
			}()
		}
		for range want {
			<-arrived
		}
		refused := 0
		if most > 0 { // all others are refused meanwhile
			for range cap(codes) - most {
				if <-codes == http.StatusForbidden {
					refused++
				}
			}
		}
		close(release)
		answered := 0
		for range cap(codes) - refused {
			if <-codes == http.StatusOK {
				answered++
			}
		}
		if highest.Load() > int64(want) || answered+refused != cap(codes) || most > 0 && answered != most {
			t.Errorf("%s: %d at once, %d answered, %d refused", name, highest.Load(), answered, refused)
		}
	}
}

// TestToken: a worker whose token is over does not let the agent wait for an answer that cannot come.
func TestToken(t *testing.T) {
	o := &opened{t: t}
	api, err := client.New(client.Config{ServerURL: "http://127.0.0.1:1", Token: "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"exp":1}`)) + ".x"}, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	if o.Door, err = Open(Options{API: api, Task: &v1alpha1.Task{}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	if code, body := o.ask("/openai/v1/chat/completions"); code != http.StatusBadGateway || !strings.Contains(body, "token") {
		t.Errorf("%d %s", code, body)
	}
}
