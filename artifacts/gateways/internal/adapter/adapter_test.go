// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package adapter

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/platform-ai/platform/pkg/gateway/conformance"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
)

// nowhere is a platform that is not there.
const nowhere = "http://127.0.0.1:1/events"

// kit runs the conformance kit on an adapter, whose restarts are kills.
func (m *machine) kit(url string, restarted func()) conformance.Report {
	return conformance.Run(m.t.Context(), conformance.Options{
		URL: url, Token: m.token, AccountID: "account", ContextID: "context",
		Restart: func(context.Context) error {
			m.kill()
			restarted()
			m.start()
			return nil
		},
		Count: func(_ context.Context, marker string) (int, error) { return m.chat.count(marker), nil },
	})
}

func failed(r conformance.Report) (numbers []string) {
	for _, result := range r.Results {
		if result.State == conformance.Failed {
			numbers = append(numbers, result.Number)
		}
	}
	return numbers
}

// TestConforms: the adapter passes all checks, with each kind of chat.
func TestConforms(t *testing.T) {
	for _, kind := range []string{"blind", "finding"} {
		t.Run(kind, func(t *testing.T) {
			m := newMachine(t, kind, nowhere)
			if r := m.kit("http://"+m.address, func() {}); !r.Conforms || r.Counts[conformance.Passed] != len(conformance.Checks()) {
				t.Error(r.Text())
			}
		})
	}
}

// TestForgetful: the kit finds an adapter that forgets what it delivered, at once or at a restart.
func TestForgetful(t *testing.T) {
	m := newMachine(t, "blind", nowhere)
	if r := m.kit("http://"+m.address, func() { _ = os.Remove(m.path("data/deliveries")) }); !slices.Equal(failed(r), []string{"R1"}) {
		t.Error(r.Text())
	}
	// An adapter whose memory is another one for each request.
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := &Server{Chat: blindChat{m.chat.URL}, Tokens: func() ([]string, error) { return []string{m.token}, nil }, Log: quiet()}
		deliveries, err := OpenDeliveries(t.TempDir(), s.Chat, s.Log) // empty each time
		if err != nil {
			t.Error(err)
			return
		}
		s.Deliveries, s.Capabilities = deliveries, protocol.Capabilities{ProtocolVersion: protocol.Version, AdapterName: "forgetful", Capabilities: protocol.Capability{IdempotentDelivery: true, InterimMessages: true}}
		s.ServeHTTP(w, r)
		if err := deliveries.Close(); err != nil {
			t.Error(err)
		}
	}))
	defer front.Close()
	r := conformance.Run(t.Context(), conformance.Options{URL: front.URL, Token: m.token, AccountID: "account", ContextID: "context"})
	if !slices.Equal(failed(r), []string{"D2"}) {
		t.Error(r.Text())
	}
}

// delivery is a delivery of a text.
func delivery(id, text string) *protocol.Delivery {
	return &protocol.Delivery{
		ProtocolVersion: protocol.Version, DeliveryID: id, IdempotencyID: id, OriginatingEventID: "gev-1", Kind: protocol.KindFinal,
		AccountID: "account", ContextID: "context", Text: text,
	}
}

// long is a text of three parts, each of which has its number.
func long(id string) string {
	var b strings.Builder
	for n := range 3 {
		fmt.Fprintf(&b, "%-9999s\n", fmt.Sprintf("<%s %d>", id, n))
	}
	return b.String()
}

// open opens the memory of deliveries.
func open(t *testing.T, dir string, chat Chat) *Deliveries {
	t.Helper()
	d, err := OpenDeliveries(dir, chat, quiet())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// deliver delivers and expects a status.
func deliver(t *testing.T, d *Deliveries, one *protocol.Delivery, status string) protocol.Answer {
	t.Helper()
	answer, _, err := d.Deliver(t.Context(), one)
	if err != nil || answer.Status != status {
		t.Fatalf("%s: %+v, %v", one.IdempotencyID, answer, err)
	}
	return answer
}

// TestCrash: wherever the program ends while it posts a delivery of three parts, afterwards a chat that can be asked has each part once, and
// one that cannot has no part twice, and what is not known ends with an answer that says so. The journal is cut around each record, and of a
// part that was started there are two worlds: it was posted or not.
func TestCrash(t *testing.T) {
	for _, kind := range []string{"blind", "finding"} {
		t.Run(kind, func(t *testing.T) {
			whole, _ := journalOf(t, kind)
			ends := 0
			for _, cut := range cuts(whole) {
				for _, posted := range []bool{false, true} {
					ends += crash(t, kind, whole[:cut], posted)
				}
			}
			if (kind == "blind") != (ends > 0) {
				t.Errorf("%d ends are not known", ends)
			}
		})
	}
}

// cuts returns where a journal is cut: around the end of each line, and within long ones.
func cuts(whole []byte) []int {
	all := []int{0}
	for i, b := range whole {
		if b == '\n' {
			all = append(all, i-30, i, i+1, i+4)
		} else if i%9001 == 9000 {
			all = append(all, i)
		}
	}
	return slices.DeleteFunc(all, func(cut int) bool { return cut > len(whole) })
}

// journalOf returns the journal of a delivery that came to its end.
func journalOf(t *testing.T, kind string) ([]byte, *chatServer) {
	t.Helper()
	server, dir := newChatServer(t), t.TempDir()
	d := open(t, dir, chatOf(kind, server.URL))
	if answer := deliver(t, d, delivery("one", long("one")), protocol.Delivered); answer.ProviderMessageID != "m-1" {
		t.Fatal(answer)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(dir + "/deliveries")
	if err != nil {
		t.Fatal(err)
	}
	return raw, server
}

// crash goes on after a crash, and returns 1 if what became of the delivery is not known.
func crash(t *testing.T, kind string, journal []byte, posted bool) int {
	t.Helper()
	server, dir := newChatServer(t), t.TempDir()
	defer server.Close()
	if err := os.WriteFile(dir+"/deliveries", journal, 0o600); err != nil {
		t.Fatal(err)
	}
	d := open(t, dir, chatOf(kind, server.URL))
	defer d.Close()
	k := d.look("one")
	before := len(k.sent)
	if k.end != nil {
		before = 3
	}
	if posted && !k.started.IsZero() {
		before++
	}
	for n, text := range Split(long("one"), partSize)[:before] {
		server.posts = append(server.posts, Message{Text: text, Key: partKey("one", n)})
	}
	answer, _, err := d.Deliver(t.Context(), delivery("one", "another text, which does not count if it was begun"+strings.Repeat("\n"+long("one"), map[bool]int{true: 0, false: 1}[k.parts != nil || k.end != nil])))
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := d.Deliver(t.Context(), delivery("one", long("one")))
	if err != nil || again != answer {
		t.Fatalf("first %+v, then %+v, %v", answer, again, err)
	}
	for n := range 3 {
		count := server.count(fmt.Sprintf("<one %d>", n))
		if count > 1 || (answer.Status == protocol.Delivered && count != 1) {
			t.Fatalf("after %d bytes, posted %v: part %d is there %d times, %+v", len(journal), posted, n, count, answer)
		}
	}
	if answer.Status == protocol.NonRetryableError {
		return 1
	}
	if answer.Status != protocol.Delivered {
		t.Fatalf("after %d bytes: %+v", len(journal), answer)
	}
	return 0
}

// TestPartFails: a repetition goes on with the first part that was not sent, also after a restart and a rewritten journal; what the chat
// refuses for good can be delivered when the cause is gone.
func TestPartFails(t *testing.T) {
	server, dir := newChatServer(t), t.TempDir()
	refuse := 0
	server.before = func(m Message) int {
		if strings.Contains(m.Text, "<one 1>") {
			return refuse
		}
		return 0
	}
	d := open(t, dir, blindChat{server.URL})
	for _, c := range []struct {
		code   int
		status string
	}{{503, protocol.RetryableError}, {403, protocol.NonRetryableError}, {0, protocol.Delivered}, {503, protocol.Delivered}} {
		refuse = c.code
		answer := deliver(t, d, delivery("one", long("one")), c.status)
		if c.status != protocol.Delivered && !strings.HasPrefix(answer.Message, "1 of 3 parts were posted") {
			t.Error(answer)
		}
		d.journal.mu.Lock()
		err := d.journal.rewrite()
		d.journal.mu.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		d = open(t, dir, blindChat{server.URL})
	}
	defer d.Close()
	if len(server.posts) != 3 {
		t.Errorf("%d messages", len(server.posts))
	}
	for n := range 3 {
		if !strings.Contains(server.posts[n].Text, fmt.Sprintf("<one %d>", n)) {
			t.Errorf("message %d is another part", n)
		}
	}
}

// TestRemembered: ids are forgotten 31 days after somebody asked for them, and not before.
func TestRemembered(t *testing.T) {
	server, dir := newChatServer(t), t.TempDir()
	d := open(t, dir, blindChat{server.URL})
	defer d.Close()
	now := time.Now()
	d.now = func() time.Time { return now }
	rewrite := func() {
		d.journal.mu.Lock()
		defer d.journal.mu.Unlock()
		if err := d.journal.rewrite(); err != nil {
			t.Fatal(err)
		}
	}
	deliver(t, d, delivery("one", "once"), protocol.Delivered)
	for range 3 {
		now = now.Add(30 * 24 * time.Hour)
		rewrite()
		deliver(t, d, delivery("one", "once"), protocol.Delivered)
	}
	if n := server.count("once"); n != 1 {
		t.Errorf("it is there %d times", n)
	}
	now = now.Add(32 * 24 * time.Hour)
	rewrite()
	if k := d.look("one"); k.end != nil {
		t.Error("it is not forgotten")
	}
}

// TestJournal: a damaged journal is not taken for one that was cut off, two processes cannot have one, and after an error nothing is written.
func TestJournal(t *testing.T) {
	whole, _ := journalOf(t, "blind")
	for at := 0; at < len(whole)-100; at += 997 {
		dir := t.TempDir()
		damaged := slices.Clone(whole)
		damaged[at] ^= 1
		if err := os.WriteFile(dir+"/deliveries", damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenDeliveries(dir, blindChat{}, quiet()); err == nil || !strings.Contains(err.Error(), "damaged at byte") {
			t.Errorf("byte %d: %v", at, err)
		}
	}
	dir := t.TempDir()
	d := open(t, dir, blindChat{})
	if _, err := OpenDeliveries(dir, blindChat{}, quiet()); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Error(err)
	}
	_ = d.journal.file.Close() // the disk fails
	s := &Server{Chat: d.chat, Deliveries: d, Tokens: func() ([]string, error) { return []string{"t"}, nil }, Log: quiet()}
	for path, body := range map[string]string{protocol.PathHealth: "", protocol.PathDeliveries: encode(t, delivery("one", "text"))} {
		method := map[bool]string{true: http.MethodGet, false: http.MethodPost}[body == ""]
		if path == protocol.PathHealth {
			_ = d.note(step{ID: "x", Step: stepAsked}) // notices
		}
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer t")
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != http.StatusServiceUnavailable {
			t.Errorf("%s is answered with %d", path, w.Code)
		}
	}
}

func encode(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// platform takes events, and often fails to.
type platform struct {
	*httptest.Server

	mu     sync.Mutex
	took   []string // ids, in the order in which they were stored
	said   map[string]string
	fails  int // how many of ten requests fail
	failed int
	all    chan struct{}
	want   int
}

func newPlatform(t *testing.T, fails, want int) *platform {
	p := &platform{said: map[string]string{}, fails: fails, want: want, all: make(chan struct{})}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func (p *platform) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var e protocol.Event
	if err := protocol.Decode(r.Body, protocol.MaxEventBody, &e); err != nil || len(e.Check()) > 0 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	lost := rand.IntN(10) < p.fails
	if lost && rand.IntN(2) == 0 { // before it was stored
		p.failed++
		w.WriteHeader([]int{401, 404, 429, 503, 500}[rand.IntN(5)])
		return
	}
	status := protocol.ReplyAccepted
	if said, ok := p.said[e.ExternalEventID]; ok {
		status = protocol.ReplyDuplicate
		if said != e.Text {
			w.WriteHeader(http.StatusConflict)
			return
		}
	} else {
		p.said[e.ExternalEventID] = e.Text
		p.took = append(p.took, e.ExternalEventID)
		if len(p.took) == p.want {
			close(p.all)
		}
	}
	if lost { // after it
		p.failed++
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(http.StatusAccepted)
	_ = json.NewEncoder(w).Encode(protocol.Reply{Status: status, EventID: "gev-1"})
}

// TestKilled: while the adapter is killed again and again, and the platform often fails, each event arrives, those of a context in order, and
// each delivery is in the chat once.
func TestKilled(t *testing.T) {
	const kills, contexts, each = 30, 5, 12
	p := newPlatform(t, 2, contexts*each)
	m := newMachine(t, "finding", p.URL)
	for n := range each {
		for c := range contexts {
			m.chat.say(protocol.Event{
				ExternalEventID: fmt.Sprintf("e-%d-%02d", c, n), AccountID: "account", ContextID: fmt.Sprint("context-", c), Sender: protocol.Sender{ID: "alice"}, Text: fmt.Sprint("question ", n),
			})
		}
	}
	const deliveries = 40
	var all sync.WaitGroup
	left := make(chan int, deliveries)
	for i := range deliveries {
		left <- i
	}
	close(left)
	address := m.address
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for range 4 {
		all.Go(func() {
			for i := range left {
				for !post(ctx, address, m.token, delivery(fmt.Sprint("d-", i), long(fmt.Sprint("d-", i)))) && ctx.Err() == nil {
					time.Sleep(5 * time.Millisecond) // it was killed just now
				}
			}
		})
	}
	for range kills {
		time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond) // the moment is random
		m.kill()
		m.start()
	}
	all.Wait()
	select {
	case <-p.all:
	case <-time.After(time.Minute): // a broken adapter
		t.Errorf("%d of %d events arrived", len(p.took), contexts*each)
	}
	for i := range deliveries {
		for n := range 3 {
			if count := m.chat.count(fmt.Sprintf("<d-%d %d>", i, n)); count != 1 {
				t.Errorf("part %d of delivery %d is there %d times", n, i, count)
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range contexts {
		prefix := fmt.Sprintf("e-%d-", c)
		ofContext := slices.DeleteFunc(slices.Clone(p.took), func(id string) bool { return !strings.HasPrefix(id, prefix) })
		if len(ofContext) != each || !slices.IsSorted(ofContext) {
			t.Errorf("of context %d arrived %v", c, ofContext)
		}
	}
	t.Logf("the platform failed %d times", p.failed)
}

// post posts a delivery once, and reports whether it has its outcome.
func post(ctx context.Context, address, token string, d *protocol.Delivery) bool {
	c := blindChat{"http://" + address}
	raw, err := json.Marshal(d)
	if err != nil {
		return false
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+protocol.PathDeliveries, strings.NewReader(string(raw)))
	if err != nil {
		return false
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	var answer protocol.Answer
	return protocol.Decode(res.Body, protocol.MaxAnswer, &answer) == nil && answer.Status == protocol.Delivered
}

// TestRefused: an event that the platform will never take is set aside, and does not hold up the next one.
func TestRefused(t *testing.T) {
	p := newPlatform(t, 0, 1)
	dir := t.TempDir()
	o, err := OpenOutbox(dir, Platform{URL: p.URL, Token: func() (string, error) { return "t", nil }, Client: http.DefaultClient}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	event := protocol.Event{ExternalEventID: "bad", AccountID: "account", ContextID: "context", Sender: protocol.Sender{ID: "alice"}, Text: strings.Repeat("𝕏", 20_000)}
	good := event
	event.ThreadID, good.ExternalEventID = strings.Repeat("x", 257), "good"
	if err := o.Put("7", event, good); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); o.Run(ctx) }()
	<-p.all
	stop()
	<-ended
	if o.Cursor() != "7" || len(p.said["good"]) > protocol.MaxText {
		t.Error(o.Cursor(), len(p.said["good"]))
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(dir + "/refused"); err != nil || !strings.Contains(string(raw), `"externalEventId":"bad"`) {
		t.Errorf("%s, %v", raw, err)
	}
}

// TestSplit: the parts of a text are the text, valid and not too long.
func TestSplit(t *testing.T) {
	for range 2000 {
		var b strings.Builder
		for b.Len() < rand.IntN(300) {
			b.WriteString([]string{"a", "ß", "€", "𝕏", " ", "\n"}[rand.IntN(6)])
		}
		text, most := b.String(), 4+rand.IntN(60)
		parts := Split(text, most)
		if strings.Join(parts, "") != text {
			t.Fatalf("%q becomes %q", text, parts)
		}
		for _, part := range parts {
			if len(part) > most || strings.ToValidUTF8(part, "") != part || (part == "" && text != "") {
				t.Fatalf("a part of %q is %q", text, part)
			}
		}
	}
}
