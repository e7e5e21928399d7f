// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package matrixchat_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"github.com/platform-ai/platform/artifacts/gateways/internal/gatewaytest"
	"github.com/platform-ai/platform/pkg/gateway/conformance"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
)

// world is a dendrite with the users bot and alice, who has made a room.
type world struct {
	dir, url   string
	dendrite   *gatewaytest.Process
	bot, alice *mautrix.Client
	room       id.RoomID
}

func newWorld(t *testing.T) *world {
	t.Helper()
	program := gatewaytest.NeedServers(t, "dendrite")
	w := &world{dir: t.TempDir()}
	address := fmt.Sprintf("127.0.0.1:%d", gatewaytest.FreePort(t))
	w.url = "http://" + address
	bin := filepath.Dir(program)
	config, err := exec.Command(bin+"/generate-config", "-dir", w.dir, "-server", "localhost").Output()
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(config), "private_key: matrix_key.pem", "private_key: "+w.dir+"/matrix_key.pem")
	text = strings.ReplaceAll(text, "registration_disabled: true", "registration_disabled: false")
	text = strings.Replace(text, "rate_limiting:\n    enabled: true", "rate_limiting:\n    enabled: false", 1)
	gatewaytest.Write(t, w.dir+"/dendrite.yaml", text)
	if out, err := exec.Command(bin+"/generate-keys", "--private-key", w.dir+"/matrix_key.pem").CombinedOutput(); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	w.dendrite = gatewaytest.Start(t, address, program, "-config", w.dir+"/dendrite.yaml", "-http-bind-address", address, "-https-bind-address", "", "-really-enable-open-registration")
	w.bot, w.alice = w.user(t, "bot"), w.user(t, "alice")
	gatewaytest.Write(t, w.dir+"/bot", w.bot.AccessToken+"\n")
	created, err := w.alice.CreateRoom(t.Context(), &mautrix.ReqCreateRoom{Preset: "public_chat"})
	if err != nil {
		t.Fatal(err)
	}
	w.room = created.RoomID
	return w
}

func (w *world) user(t *testing.T, name string) *mautrix.Client {
	t.Helper()
	c, err := mautrix.NewClient(w.url, "", "")
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.RegisterDummy(t.Context(), &mautrix.ReqRegister[any]{Username: name, Password: "the password of " + name})
	if err != nil {
		t.Fatal(err)
	}
	c.UserID, c.AccessToken = res.UserID, res.AccessToken
	return c
}

func (w *world) adapter(t *testing.T, p *gatewaytest.Platform) *gatewaytest.Adapter {
	t.Helper()
	a := gatewaytest.NewAdapter(t, "matrix-gateway", p, "--homeserver", w.url, "--user", w.bot.UserID.String(), "--access-token-file", w.dir+"/bot", "--room", w.room.String())
	w.healthy(t, a)
	return a
}

func (w *world) healthy(t *testing.T, a *gatewaytest.Adapter) {
	t.Helper()
	gatewaytest.Await(t, "the adapter is healthy", func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.URL+protocol.PathHealth, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+a.Token)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		defer res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}

// read returns what the bot has said, the oldest first.
func (w *world) read(ctx context.Context) (bodies []string, err error) {
	for from := ""; ; {
		res, err := w.alice.Messages(ctx, w.room, from, "", mautrix.DirectionBackward, nil, 100)
		if err != nil {
			return nil, err
		}
		for _, e := range res.Chunk {
			if body, ok := e.Content.Raw["body"].(string); ok && e.Sender == w.bot.UserID && e.Type.Type == event.EventMessage.Type {
				bodies = append(bodies, body)
			}
		}
		if from = res.End; from == "" || len(res.Chunk) == 0 {
			slices.Reverse(bodies)
			return bodies, nil
		}
	}
}

// TestConforms: the adapter conforms with a real homeserver; what it says it has posted is in the room once.
func TestConforms(t *testing.T) {
	w := newWorld(t)
	a := w.adapter(t, gatewaytest.NewPlatform(t))
	a.Kit(t, conformance.Options{AccountID: w.bot.UserID.String(), ContextID: w.room.String(), Count: func(ctx context.Context, marker string) (n int, err error) {
		bodies, err := w.read(ctx)
		for _, body := range bodies {
			n += strings.Count(body, marker)
		}
		return n, err
	}})
}

// TestConversation: while adapter and homeserver are killed in turn, each question arrives, also those that were asked while the adapter was
// away, more of them than the homeserver shows at once; each answer is there once, and all are in order.
func TestConversation(t *testing.T) {
	w, platform := newWorld(t), gatewaytest.NewPlatform(t)
	w.say(t, "this was said before the bot came", "")
	a := w.adapter(t, platform)
	const turns = 40
	var want []string
	answer := func(n int, question string, thread id.EventID) {
		e := platform.Next(t)
		if e.Text != question || e.Sender.ID != w.alice.UserID.String() || e.ContextID != w.room.String() || e.ThreadID != thread.String() {
			t.Fatalf("turn %d: %+v", n, e)
		}
		text := fmt.Sprintf("answer %d with <tags> & 𝕏", n)
		if got := a.Deliver(t, &e, fmt.Sprint("d-", n), text); got.Status != protocol.Delivered {
			t.Fatalf("turn %d: %+v", n, got)
		}
		want = append(want, text)
	}
	thread := id.EventID("")
	for n := range turns {
		away := false
		switch n % 10 {
		case 3:
			a.Kill()
			a.Start()
		case 5:
			a.Kill()
			away = true
		case 8:
			w.dendrite.Kill()
			w.dendrite.Start()
		}
		question := fmt.Sprintf("question %d with <tags> & 𝕏", n)
		said := w.say(t, question, thread)
		if away {
			a.Start()
		}
		answer(n, question, thread)
		if thread = ""; n%4 == 0 {
			thread = said
		}
	}
	a.Kill()
	for n := turns; n < turns+150; n++ {
		w.say(t, fmt.Sprintf("question %d", n), "")
	}
	a.Start()
	for n := turns; n < turns+150; n++ {
		answer(n, fmt.Sprintf("question %d", n), "")
	}
	if got, err := w.read(t.Context()); err != nil || !slices.Equal(got, want) {
		t.Errorf("answers: %q, %v", got, err)
	}
}

func (w *world) say(t *testing.T, text string, thread id.EventID) (said id.EventID) {
	t.Helper()
	content := event.MessageEventContent{MsgType: event.MsgText, Body: text}
	if thread != "" {
		content.RelatesTo = (&event.RelatesTo{}).SetThread(thread, thread)
	}
	res, err := w.alice.SendMessageEvent(t.Context(), w.room, event.EventMessage, &content)
	if err != nil {
		t.Fatal(err)
	}
	return res.EventID
}

// TestFinds: a message that was posted is found after the homeserver has forgotten its transaction, and is not posted again.
func TestFinds(t *testing.T) {
	w := newWorld(t)
	a := w.adapter(t, gatewaytest.NewPlatform(t))
	e := &protocol.Event{AccountID: w.bot.UserID.String(), ContextID: w.room.String()}
	first := a.Deliver(t, e, "d-1", "once")
	// The journal loses the outcome, as if the adapter had been killed before it was noted.
	a.Kill()
	w.dendrite.Kill()
	w.dendrite.Start()
	journals, err := filepath.Glob(a.Data() + "/deliveries")
	if err != nil || len(journals) != 1 {
		t.Fatal(journals, err)
	}
	raw, err := os.ReadFile(journals[0])
	if err != nil {
		t.Fatal(err)
	}
	started, _, _ := strings.Cut(string(raw), "\n")
	gatewaytest.Write(t, journals[0], started+"\n")
	a.Start()
	if again := a.Deliver(t, e, "d-1", "once"); again != first {
		t.Errorf("first %+v, then %+v", first, again)
	}
	if got, err := w.read(t.Context()); err != nil || !slices.Equal(got, []string{"once"}) {
		t.Errorf("%q, %v", got, err)
	}
	if answer := a.Deliver(t, &protocol.Event{AccountID: w.bot.UserID.String(), ContextID: "!nowhere:localhost"}, "d-2", "hello"); answer.Status != protocol.NonRetryableError {
		t.Error(answer)
	}
}
