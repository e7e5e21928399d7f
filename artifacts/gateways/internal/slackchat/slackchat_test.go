// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package slackchat_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/platform-ai/platform/artifacts/gateways/internal/gatewaytest"
	"github.com/platform-ai/platform/pkg/gateway/conformance"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
)

const secret = "8f742231b10e8888abcd99yyyzzz85a5"

// sign signs as Slack does.
func sign(secret string, at int64, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "v0:%d:%s", at, body)
	return "v0=" + hex.EncodeToString(mac.Sum(nil))
}

// TestVector: sign makes the signature of the example in Slack's documentation (docs.slack.dev/authentication/verifying-requests-from-slack).
func TestVector(t *testing.T) {
	const body = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner" +
		"&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
	if got := sign(secret, 1531420618, body); got != "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503" {
		t.Error(got)
	}
}

// bolt is a program with the receiver of Slack's own framework, whose signing secret and port are its arguments.
const bolt = `const { HTTPReceiver, App } = require("@slack/bolt");
const [secret, port] = process.argv.slice(1);
const receiver = new HTTPReceiver({ signingSecret: secret, endpoints: "/" });
const app = new App({ receiver, authorize: async () => ({ botToken: "xoxb-1", botUserId: "UBOT" }) });
app.event("message", async () => {});
app.start({ port: Number(port), host: "127.0.0.1" });`

// TestBolt: the adapter accepts and refuses the same requests as the receiver of @slack/bolt, which is in the node_modules of the folder that
// GATEWAY_TEST_BOLT names (npm install @slack/bolt).
func TestBolt(t *testing.T) {
	folder := os.Getenv("GATEWAY_TEST_BOLT")
	if folder == "" {
		t.Skip("GATEWAY_TEST_BOLT is not set")
	}
	t.Setenv("NODE_PATH", folder+"/node_modules")
	w := newWorld(t, gatewaytest.NewPlatform(t))
	port := gatewaytest.FreePort(t)
	gatewaytest.Start(t, fmt.Sprintf("127.0.0.1:%d", port), "node", "-e", bolt, secret, strconv.Itoa(port))
	other := &world{events: fmt.Sprintf("http://127.0.0.1:%d/", port)}
	now, accepted := time.Now().Unix(), 0
	for _, body := range []string{`{"type":"url_verification","challenge":"c-1"}`, said("ß 𝕏 <b>", "1531420618.000001", ""), said(" ", "1531420618.000002", `,"bot_id":"B1"`), said("{}", "1531420618.000003", "")} {
		for _, c := range []struct {
			secret string
			at     int64
		}{{secret, now}, {secret, now - 200}, {secret, now - 400}, {secret[:31], now}, {strings.ToUpper(secret), now}} {
			mine, _ := w.post(t, c.secret, c.at, body)
			bolts, _ := other.post(t, c.secret, c.at, body)
			if (mine == http.StatusOK) != (bolts == http.StatusOK) {
				t.Errorf("%s, signed with %s at %d: the adapter answers %d, bolt %d", body, c.secret, c.at-now, mine, bolts)
			}
			if mine == http.StatusOK {
				accepted++
			}
		}
	}
	if accepted != 8 {
		t.Errorf("%d are accepted", accepted)
	}
}

// fakeSlack has the methods of Slack's API that the adapter uses.
type fakeSlack struct {
	*httptest.Server

	mu       sync.Mutex
	messages []map[string]any
	fail     func(text string) int // the status; 200 that the message is taken and the answer is lost
}

func newSlack(t *testing.T) *fakeSlack {
	s := &fakeSlack{}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, v map[string]any) {
		v["ok"] = v["error"] == nil
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("/auth.test", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{"team_id": "T1", "user_id": "UBOT"})
	})
	mux.HandleFunc("/chat.postMessage", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if r.FormValue("channel") != "C1" {
			answer(w, map[string]any{"error": "channel_not_found"})
			return
		}
		code := 0
		if s.fail != nil {
			code = s.fail(r.FormValue("text"))
		}
		if code != 0 && code != http.StatusOK {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(code)
			return
		}
		var metadata any
		if err := json.Unmarshal([]byte(r.FormValue("metadata")), &metadata); err != nil {
			answer(w, map[string]any{"error": "invalid_metadata"})
			return
		}
		ts := fmt.Sprintf("%d.%06d", time.Now().Unix(), len(s.messages))
		s.messages = append(s.messages, map[string]any{"type": "message", "ts": ts, "text": r.FormValue("text"), "thread_ts": r.FormValue("thread_ts"), "metadata": metadata})
		if code == http.StatusOK {
			panic(http.ErrAbortHandler)
		}
		answer(w, map[string]any{"channel": "C1", "ts": ts})
	})
	list := func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		at, _ := strconv.Atoi(r.FormValue("cursor"))
		end := min(at+10, len(s.messages))
		next := ""
		if end < len(s.messages) {
			next = strconv.Itoa(end)
		}
		answer(w, map[string]any{"messages": s.messages[at:end], "has_more": next != "", "response_metadata": map[string]any{"next_cursor": next}})
	}
	mux.HandleFunc("/conversations.history", list)
	mux.HandleFunc("/conversations.replies", list)
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func (s *fakeSlack) texts() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.messages {
		all = append(all, m["text"].(string))
	}
	return all
}

// world is an adapter between the fake Slack and a platform.
type world struct {
	slack   *fakeSlack
	adapter *gatewaytest.Adapter
	events  string
}

func newWorld(t *testing.T, p *gatewaytest.Platform) *world {
	t.Helper()
	w := &world{slack: newSlack(t)}
	dir := t.TempDir()
	gatewaytest.Write(t, dir+"/bot", "xoxb-1")
	gatewaytest.Write(t, dir+"/secret", secret+"\n")
	address := fmt.Sprintf("127.0.0.1:%d", gatewaytest.FreePort(t))
	w.events = "http://" + address + "/"
	w.adapter = gatewaytest.NewAdapter(t, "slack-gateway", p, "--slack-listen", address, "--bot-token-file", dir+"/bot", "--signing-secret-file", dir+"/secret", "--api-url", w.slack.URL+"/")
	return w
}

// post posts as Slack does, and returns the status and the body of the answer. A connection that is refused is tried again.
func (w *world) post(t *testing.T, secret string, at int64, body string) (code int, answer string) {
	t.Helper()
	gatewaytest.Await(t, "the adapter answers", func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.events, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Slack-Signature", sign(secret, at, body))
		req.Header.Set("X-Slack-Request-Timestamp", strconv.FormatInt(at, 10))
		req.Header.Set("X-Slack-Retry-Num", "1")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		defer res.Body.Close()
		raw, err := io.ReadAll(res.Body)
		code, answer = res.StatusCode, string(bytes.TrimSpace(raw))
		return err == nil && code != http.StatusServiceUnavailable
	})
	return code, answer
}

// said is the event of a message.
func said(text, ts, more string) string {
	return fmt.Sprintf(`{"type":"event_callback","team_id":"T1","event":{"type":"message","channel":"C1","user":"U1","text":%q,"ts":%q%s}}`, text, ts, more)
}

// TestConforms: the adapter conforms, with answers that are divided and rate limits.
func TestConforms(t *testing.T) {
	w := newWorld(t, gatewaytest.NewPlatform(t))
	n := 0
	w.slack.fail = func(string) int {
		if n++; n%20 == 0 {
			return http.StatusTooManyRequests
		}
		return 0
	}
	w.adapter.Kit(t, conformance.Options{AccountID: "T1", ContextID: "C1", Count: func(_ context.Context, marker string) (int, error) {
		return strings.Count(strings.Join(w.slack.texts(), "\n"), marker), nil
	}})
}

// TestEvents: what Slack has signed just now becomes an event, once however often it comes, also when the adapter is killed after it answered;
// what others sign, what is old, and what is no message of a person does not.
func TestEvents(t *testing.T) {
	p := gatewaytest.NewPlatform(t)
	w := newWorld(t, p)
	now := time.Now().Unix()
	if code, answer := w.post(t, secret, now, `{"type":"url_verification","challenge":"c-1"}`); code != http.StatusOK || answer != "c-1" {
		t.Error(code, answer)
	}
	for _, c := range []struct {
		secret string
		at     int64
	}{{"another", now}, {secret, now - 600}, {secret, now + 600}} {
		if code, _ := w.post(t, c.secret, c.at, said("forged", "1.000001", "")); code != http.StatusUnauthorized {
			t.Errorf("%+v: %d", c, code)
		}
	}
	for _, more := range []string{`,"bot_id":"B1"`, `,"subtype":"message_changed"`, `,"subtype":"channel_join"`} {
		if code, _ := w.post(t, secret, now, said("not a person", "1.000002", more)); code != http.StatusOK {
			t.Errorf("%s: %d", more, code)
		}
	}
	for n := range 20 {
		body := said(fmt.Sprintf("question %d &lt;b&gt; &amp;amp;", n), fmt.Sprintf("1531420618.%06d", n), `,"thread_ts":"1531420000.000001"`)
		for range 3 { // X-Slack-Retry-Num is no reason to drop it
			if code, _ := w.post(t, secret, now, body); code != http.StatusOK {
				t.Error(code)
			}
		}
		if n%5 == 0 {
			w.adapter.Kill()
			w.adapter.Start()
		}
	}
	for n := range 20 {
		e := p.Next(t)
		if e.Text != fmt.Sprintf("question %d <b> &amp;", n) || e.ExternalEventID != fmt.Sprintf("T1:C1:1531420618.%06d", n) || e.ThreadID != "1531420000.000001" || e.Sender.ID != "U1" || e.OccurredAt.Unix() != 1531420618 {
			t.Errorf("event %d: %+v", n, e)
		}
		if answer := w.adapter.Deliver(t, &e, fmt.Sprint("d-", n), fmt.Sprintf("answer %d <!channel>", n)); answer.Status != protocol.Delivered {
			t.Errorf("%+v", answer)
		}
	}
	if texts := w.slack.texts(); len(texts) != 20 || texts[7] != "answer 7 &lt;!channel&gt;" || w.slack.messages[7]["thread_ts"] != "1531420000.000001" {
		t.Errorf("%q", texts)
	}
}

// TestLostAnswer: a message of which Slack's answer was lost is found by its metadata, and is not posted again; what Slack refuses is not repeated.
func TestLostAnswer(t *testing.T) {
	w := newWorld(t, gatewaytest.NewPlatform(t))
	lost := map[string]bool{}
	w.slack.fail = func(text string) int {
		if strings.Contains(text, "lost") && !lost[text] {
			lost[text] = true
			return http.StatusOK
		}
		return 0
	}
	event := &protocol.Event{AccountID: "T1", ContextID: "C1"}
	var want []string
	for n := range 25 { // more than a page
		text := fmt.Sprintf("text %d", n)
		if n%8 == 0 {
			text += " lost"
		}
		want = append(want, text)
		if answer := w.adapter.Deliver(t, event, fmt.Sprint("d-", n), text); answer.Status != protocol.Delivered || answer.ProviderMessageID == "" {
			t.Errorf("%+v", answer)
		}
	}
	if texts := w.slack.texts(); !slices.Equal(texts, want) {
		t.Errorf("%q", texts)
	}
	if answer := w.adapter.Deliver(t, &protocol.Event{AccountID: "T1", ContextID: "C2"}, "d-x", "hello"); answer.Status != protocol.NonRetryableError {
		t.Errorf("%+v", answer)
	}
}
