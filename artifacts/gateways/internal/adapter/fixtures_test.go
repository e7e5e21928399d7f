// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package adapter

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/gateway/protocol"
)

// chatServer is a chat system on loopback. It outlives the adapters, which are processes that are killed.
type chatServer struct {
	*httptest.Server

	mu     sync.Mutex
	posts  []Message
	events []protocol.Event
	more   chan struct{} // closed when there is another event
	// before is called before a message is taken, and says with which status it is refused; 0 if it is taken.
	before func(m Message) int
}

func newChatServer(t *testing.T) *chatServer {
	c := &chatServer{more: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /messages", c.take)
	mux.HandleFunc("GET /messages", c.find)
	mux.HandleFunc("GET /events", c.listen)
	c.Server = httptest.NewServer(mux)
	t.Cleanup(func() { c.CloseClientConnections(); c.Close() })
	return c
}

func (c *chatServer) take(w http.ResponseWriter, r *http.Request) {
	var m Message
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.before != nil {
		if code := c.before(m); code != 0 {
			w.WriteHeader(code)
			return
		}
	}
	c.posts = append(c.posts, m)
	fmt.Fprintf(w, "m-%d", len(c.posts))
}

func (c *chatServer) find(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, m := range c.posts {
		if m.Key == r.FormValue("key") {
			fmt.Fprintf(w, "m-%d", i+1)
			return
		}
	}
	w.WriteHeader(http.StatusNotFound)
}

func (c *chatServer) listen(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.Atoi(r.FormValue("after"))
	for {
		c.mu.Lock()
		events, more := c.events, c.more
		c.mu.Unlock()
		if len(events) > after {
			_ = json.NewEncoder(w).Encode(events[after])
			return
		}
		select {
		case <-more:
		case <-r.Context().Done():
			return
		}
	}
}

func (c *chatServer) say(events ...protocol.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, events...)
	close(c.more)
	c.more = make(chan struct{})
}

// count returns how many messages have a text in them.
func (c *chatServer) count(text string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.posts {
		n += strings.Count(m.Text, text)
	}
	return n
}

// partSize is how much the chat takes at once.
const partSize = 10_000

// blindChat is a client of the chat that cannot be asked.
type blindChat struct{ url string }

func (c blindChat) Ready() error               { return nil }
func (c blindChat) Split(text string) []string { return Split(text, partSize) }

func (c blindChat) ask(ctx context.Context, method, path string, body any) (int, []byte, error) {
	var in io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, in)
	if err != nil {
		return 0, nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	return res.StatusCode, raw, err
}

func (c blindChat) Send(ctx context.Context, m Message) (string, error) {
	code, raw, err := c.ask(ctx, http.MethodPost, "/messages", m)
	switch {
	case err != nil:
		return "", err
	case code == http.StatusForbidden:
		return "", Refused(errors.New("the bot was removed"))
	case code != http.StatusOK:
		return "", NotSent(fmt.Errorf("the chat answered %d", code), 0)
	}
	return string(raw), nil
}

func (c blindChat) Run(ctx context.Context, events *Outbox) error {
	for {
		at, _ := strconv.Atoi(events.Cursor())
		code, raw, err := c.ask(ctx, http.MethodGet, "/events?after="+strconv.Itoa(at), nil)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || code != http.StatusOK {
			return fmt.Errorf("the chat answered %d: %w", code, err)
		}
		var e protocol.Event
		if err := json.Unmarshal(raw, &e); err != nil {
			return err
		}
		if err := events.Put(strconv.Itoa(at+1), e); err != nil {
			return err
		}
	}
}

// findingChat is a client that can ask.
type findingChat struct{ blindChat }

func (c findingChat) Find(ctx context.Context, m Message, _ time.Time) (string, bool, error) {
	code, raw, err := c.ask(ctx, http.MethodGet, "/messages?key="+url.QueryEscape(m.Key), nil)
	if err != nil || (code != http.StatusOK && code != http.StatusNotFound) {
		return "", false, fmt.Errorf("the chat answered %d: %w", code, err)
	}
	return string(raw), code == http.StatusOK, nil
}

func chatOf(kind, url string) Chat {
	if kind == "finding" {
		return findingChat{blindChat{url}}
	}
	return blindChat{url}
}

// childEnv has the kind of chat in the environment of an adapter that is a child of the tests.
const childEnv = "ADAPTER_TEST_CHAT"

// TestMain is also the adapter, as a process of its own that can be killed.
func TestMain(m *testing.M) {
	kind := os.Getenv(childEnv)
	if kind == "" {
		os.Exit(m.Run())
	}
	f, _ := NewFlags("test-gateway")
	f.ready = func(address string) { fmt.Println(address) }
	kind, chat, _ := strings.Cut(kind, " ")
	os.Exit(Main(f, func(*slog.Logger) (Chat, error) { return chatOf(kind, chat), nil }))
}

// machine is where an adapter runs as a process.
type machine struct {
	t       *testing.T
	kind    string
	chat    *chatServer
	dir     string
	address string
	token   string
	events  string
	process *exec.Cmd
}

func newMachine(t *testing.T, kind, events string) *machine {
	t.Helper()
	m := &machine{t: t, kind: kind, chat: newChatServer(t), dir: t.TempDir(), address: "127.0.0.1:0", token: rand.Text(), events: events}
	if err := os.WriteFile(m.path("token"), []byte("an-older-one\n"+m.token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m.start()
	t.Cleanup(m.kill)
	return m
}

func (m *machine) path(name string) string { return filepath.Join(m.dir, name) }

func (m *machine) start() {
	m.process = exec.Command(os.Args[0], "--listen", m.address, "--token-file", m.path("token"), "--events-token-file", m.path("token"), "--events-url", m.events, "--data", m.path("data"))
	m.process.Env = append(os.Environ(), childEnv+"="+m.kind+" "+m.chat.URL)
	if testing.Verbose() {
		m.process.Stderr = os.Stderr
	}
	out, err := m.process.StdoutPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := m.process.Start(); err != nil {
		m.t.Fatal(err)
	}
	line := make([]byte, 64)
	n, err := out.Read(line)
	if err != nil {
		m.t.Fatalf("the adapter did not start: %v", err)
	}
	m.address = strings.TrimSpace(string(line[:n]))
}

// kill ends the adapter as a crash does.
func (m *machine) kill() {
	_ = m.process.Process.Kill()
	_ = m.process.Wait()
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
