// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/platform-ai/platform/pkg/gateway/protocol"
	"github.com/platform-ai/platform/test/pipenet"
)

const token = "the-token-of-the-platform"

// world is what survives a restart of the adapter: its disk, and the chat.
type world struct {
	mu   sync.Mutex
	disk map[string]protocol.Answer // started has no status
	chat []string
}

// adapter is a small adapter, which is broken in some ways.
type adapter struct {
	world  *world
	broken []string

	posting lock // while one delivery is posted
	reading lock // while a body is read, if that is broken

	dead chan struct{} // closed when it was killed
}

// lock is a lock in which a bubble's time goes on.
type lock chan struct{}

func (l lock) take() func() {
	l <- struct{}{}
	return func() { <-l }
}

func (a *adapter) is(broken string) bool { return slices.Contains(a.broken, broken) }

func (a *adapter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if a.is("prefixes of tokens") {
		given = cmp.Or(map[bool]string{true: token}[given != "" && strings.HasPrefix(token, given)], given)
	}
	if given != token && (!a.is("health for everybody") || r.URL.Path != protocol.PathHealth) {
		if a.is("remembers strangers") && r.URL.Path == protocol.PathDeliveries {
			var d protocol.Delivery
			_ = json.NewDecoder(r.Body).Decode(&d)
			a.world.mu.Lock()
			a.world.disk[d.IdempotencyID] = protocol.Answer{Status: protocol.NonRetryableError, Message: "it was a stranger's"}
			a.world.mu.Unlock()
		}
		w.WriteHeader(http.StatusUnauthorized)
		if a.is("repeats tokens") {
			_, _ = io.WriteString(w, "I expected "+token)
		}
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case protocol.PathHealth:
		status := "ok"
		if a.is("other health") {
			status = "fine"
		}
		a.write(w, protocol.Health{Status: status})
	case protocol.PathCapabilities:
		c := protocol.Capabilities{ProtocolVersion: protocol.Version, AdapterName: "test", AdapterVersion: "1"}
		c.Capabilities = protocol.Capability{OutboundText: true, IdempotentDelivery: !a.is("no promise"), InterimMessages: true}
		if a.is("other version") {
			c.ProtocolVersions = &protocol.VersionRange{Min: 2, Max: 3}
		}
		a.write(w, c)
	case protocol.PathDeliveries:
		a.deliver(w, r)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (a *adapter) write(w http.ResponseWriter, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(raw)
}

// limit is how long a body may be.
func (a *adapter) limit() int64 {
	if a.is("short bodies") {
		return 80 << 10
	}
	return 1 << 20
}

func (a *adapter) deliver(w http.ResponseWriter, r *http.Request) {
	if (r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Content-Encoding") != "") && !a.is("any media type") {
		w.WriteHeader(http.StatusUnsupportedMediaType)
		return
	}
	if a.is("one body at a time") {
		defer a.reading.take()()
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, a.limit()))
	if err != nil {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	d, ok := a.decode(raw)
	if !ok {
		code := http.StatusBadRequest
		if a.is("refuses with 500") {
			code = http.StatusInternalServerError
		}
		w.WriteHeader(code)
		if a.is("long errors") {
			_, _ = w.Write(bytes.Repeat([]byte("x"), protocol.MaxAnswer+1))
		}
		return
	}
	if a.is("redirects") && strings.Contains(d.Text, "twins") {
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		return
	}
	if !a.is("looks before it locks") {
		defer a.posting.take()()
	}
	if answer, alive := a.once(r.Context(), d); alive {
		a.write(w, answer)
	} else {
		panic(http.ErrAbortHandler)
	}
}

// decode reads a delivery, and reports whether it is one.
func (a *adapter) decode(raw []byte) (d protocol.Delivery, ok bool) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if !a.is("any member") {
		decoder.DisallowUnknownFields()
	}
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '{' || decoder.Decode(&d) != nil {
		return d, false
	}
	if decoder.More() && !a.is("anything after") {
		return d, false
	}
	size := len(d.Text)
	if a.is("counts characters") {
		size = len([]rune(d.Text))
	}
	if size > protocol.MaxText || (a.is("short ids") && len(d.IdempotencyID) > 100) {
		return d, false
	}
	known := slices.Contains([]string{protocol.KindFinal, protocol.KindError, protocol.KindInterim}, d.Kind) || a.is("any kind")
	return d, known && d.ProtocolVersion == protocol.Version && d.IdempotencyID != "" && d.DeliveryID != "" && d.AccountID != "" && d.ContextID != "" && d.Text != ""
}

// key is what a delivery is known by.
func (a *adapter) key(d protocol.Delivery) string {
	switch {
	case a.is("known by text"):
		return d.Text
	case a.is("known by id and text"):
		return d.IdempotencyID + d.Text
	case a.is("known by half of the id"):
		return d.IdempotencyID[:min(len(d.IdempotencyID), 100)]
	}
	return d.IdempotencyID
}

// once posts a delivery, and reports whether the adapter still lives.
func (a *adapter) once(ctx context.Context, d protocol.Delivery) (protocol.Answer, bool) {
	if d.Kind == protocol.KindInterim && a.is("no interim texts") {
		return protocol.Answer{Status: protocol.NonRetryableError}, true
	}
	key := a.key(d)
	a.world.mu.Lock()
	answer, known := a.world.disk[key]
	a.world.mu.Unlock()
	if known && answer.Status == "" && !a.is("sends blindly after a crash") {
		answer = protocol.Answer{Status: protocol.NonRetryableError, Message: "nobody knows"}
		return answer, a.keep(key, answer)
	}
	if known && answer.Status != "" {
		return answer, true
	}
	if !a.keep(key, protocol.Answer{}) {
		return answer, false
	}
	a.world.mu.Lock()
	a.world.chat = append(a.world.chat, d.Text)
	answer = protocol.Answer{Status: protocol.Delivered, ProviderMessageID: fmt.Sprint("m-", len(a.world.chat))}
	a.world.mu.Unlock()
	t := time.NewTimer(time.Second) // of the bubble: the chat takes its time
	defer t.Stop()
	gone := ctx.Done()
	if !a.is("ends with the request") {
		gone = nil
	}
	select {
	case <-a.dead:
		return answer, false
	case <-gone:
		a.forget(key)
		return answer, false
	case <-t.C:
	}
	if a.is("forgets") {
		a.forget(key)
		return answer, true
	}
	return answer, a.keep(key, answer)
}

func (a *adapter) forget(key string) {
	a.world.mu.Lock()
	defer a.world.mu.Unlock()
	delete(a.world.disk, key)
}

// keep writes to disk, unless the adapter was killed.
func (a *adapter) keep(key string, answer protocol.Answer) bool {
	select {
	case <-a.dead:
		return false
	default:
	}
	a.world.mu.Lock()
	defer a.world.mu.Unlock()
	a.world.disk[key] = answer
	return true
}

// machine runs an adapter, and another one after a restart.
type machine struct {
	world    *world
	broken   []string
	adapter  *adapter
	listener *pipenet.Listener
	server   *http.Server
}

func (m *machine) start() {
	m.adapter = &adapter{world: m.world, broken: m.broken, posting: make(lock, 1), reading: make(lock, 1), dead: make(chan struct{})}
	m.listener = pipenet.Listen()
	m.server = &http.Server{Handler: m.adapter}
	go func() { _ = m.server.Serve(m.listener) }()
}

func (m *machine) kill() {
	close(m.adapter.dead)
	_ = m.server.Close()
}

// check runs the kit on an adapter that is broken in some ways.
func check(t *testing.T, restart, count bool, broken ...string) Report {
	t.Helper()
	m := &machine{world: &world{disk: map[string]protocol.Answer{}}, broken: broken}
	m.start()
	transport := &http.Transport{DialContext: m.dial}
	o := Options{URL: "http://adapter.example.com/", Token: token, AccountID: "account", ContextID: "context", Client: &http.Client{Transport: transport}}
	if restart {
		o.Restart = func(context.Context) error {
			synctest.Wait() // until the adapter waits for the chat
			m.kill()
			if m.adapter.is("forgets at a restart") {
				clear(m.world.disk)
			}
			m.start()
			return nil
		}
	}
	if count {
		o.Count = func(_ context.Context, marker string) (n int, err error) {
			m.world.mu.Lock()
			defer m.world.mu.Unlock()
			for _, text := range m.world.chat {
				n += strings.Count(text, marker)
			}
			return n, nil
		}
	}
	r := Run(t.Context(), o)
	m.kill()
	transport.CloseIdleConnections()
	return r
}

func (m *machine) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return m.listener.DialContext(ctx, network, address)
}

func numbers(r Report, state State) (all []string) {
	for _, result := range r.Results {
		if result.State == state {
			all = append(all, result.Number)
		}
	}
	return all
}

// TestConforming: an adapter that keeps to the protocol passes each check. Without a restart just the checks that need one are skipped, and
// the report says so.
func TestConforming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := check(t, true, true)
		for _, result := range r.Results {
			if result.State != Passed {
				t.Error(result.Text())
			}
		}
		if !r.Conforms || r.Adapter != "test 1" || len(r.Results) != len(Checks()) {
			t.Error(r.Text())
		}
		r = check(t, false, false)
		if skipped := numbers(r, Skipped); !r.Conforms || !slices.Equal(skipped, []string{"R1", "R2"}) || !strings.Contains(r.Text(), noRestart) {
			t.Error(r.Text())
		}
	})
}

// TestBroken: for each way to break an adapter the kit names what is broken. What it names only when messages of the chat are counted is
// in counted.
func TestBroken(t *testing.T) {
	for _, c := range []struct {
		broken          string
		failed, counted []string
		chance          string // what is named if the second request comes early enough
	}{
		{broken: "other health", failed: []string{"H1", "R1"}},
		{broken: "no promise", failed: []string{"H2"}},
		{broken: "other version", failed: []string{"H3"}},
		{broken: "health for everybody", failed: []string{"A1", "A2"}},
		{broken: "prefixes of tokens", failed: []string{"A2"}},
		{broken: "remembers strangers", failed: []string{"A3"}},
		{broken: "repeats tokens", failed: []string{"T3"}},
		{broken: "any member", failed: []string{"B1"}},
		{broken: "anything after", failed: []string{"B2"}},
		{broken: "any media type", failed: []string{"B3"}},
		{broken: "counts characters", failed: []string{"B4"}},
		{broken: "any kind", failed: []string{"B5"}},
		{broken: "refuses with 500", failed: []string{"B1", "B2", "B4", "B5"}},
		{broken: "long errors", failed: []string{"T2"}},
		{broken: "redirects", failed: []string{"D7", "T1"}},
		{broken: "forgets", failed: []string{"D2"}},
		{broken: "looks before it locks", failed: []string{"D3"}, chance: "S2"},
		{broken: "known by id and text", failed: []string{"D4"}},
		{broken: "short bodies", failed: []string{"D6"}},
		{broken: "short ids", failed: []string{"D6"}},
		{broken: "known by half of the id", failed: []string{"D6"}},
		{broken: "known by text", failed: []string{"D4", "D7"}},
		{broken: "no interim texts", failed: []string{"K1"}},
		{broken: "one body at a time", failed: []string{"S1"}},
		{broken: "ends with the request", counted: []string{"S2"}},
		{broken: "forgets at a restart", failed: []string{"R1"}},
		{broken: "sends blindly after a crash", counted: []string{"R2"}},
	} {
		t.Run(c.broken, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				failed := func(r Report) []string {
					return slices.DeleteFunc(numbers(r, Failed), func(number string) bool { return number == c.chance })
				}
				if r := check(t, true, false, c.broken); !slices.Equal(failed(r), c.failed) {
					t.Errorf("without counting:\n%s", r.Text())
				}
				want := append(slices.Clone(c.failed), c.counted...)
				if r := check(t, true, true, c.broken); !slices.Equal(failed(r), want) || r.Conforms {
					t.Errorf("with counting:\n%s", r.Text())
				}
			})
		})
	}
}

// TestEnded: when the context ends nothing more is asked, and the report does not say that the adapter conforms.
func TestEnded(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if r := Run(ctx, Options{URL: "http://127.0.0.1:1", Token: token}); r.Conforms || r.Counts[Skipped] != len(Checks()) {
		t.Error(r.Text())
	}
}

// TestChecks: a check needs only checks before it, and docs/gateway-v1.md lists all checks and names no others.
func TestChecks(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/gateway-v1.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	before := map[string]bool{}
	for _, c := range Checks() {
		for _, need := range c.needs {
			if !before[need] {
				t.Errorf("%s needs %s, which is not before it", c.Number, need)
			}
		}
		if before[c.Number] || c.Advice == "" {
			t.Errorf("%s is there twice, or has no advice", c.Number)
		}
		before[c.Number] = true
		if row := fmt.Sprintf("| %s | %s |\n", c.Number, c.Required); !strings.Contains(text, row) {
			t.Errorf("docs/gateway-v1.md lacks the row %s", row)
		}
	}
	for _, number := range regexp.MustCompile(`\b[HABDKSRT][0-9]+\b`).FindAllString(text, -1) {
		if !before[number] {
			t.Errorf("docs/gateway-v1.md names %s, and there is no such check", number)
		}
	}
}
