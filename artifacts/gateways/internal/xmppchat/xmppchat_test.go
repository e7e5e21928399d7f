// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package xmppchat_test

import (
	"context"
	"crypto/tls"
	"encoding/xml"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mellium.im/sasl"
	"mellium.im/xmlstream"
	"mellium.im/xmpp"
	"mellium.im/xmpp/jid"
	"mellium.im/xmpp/muc"
	"mellium.im/xmpp/stanza"

	"github.com/platform-ai/platform/artifacts/gateways/internal/adapter"
	"github.com/platform-ai/platform/artifacts/gateways/internal/gatewaytest"
	"github.com/platform-ai/platform/pkg/gateway/conformance"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
)

// config is that of a prosody of its own.
const config = `
daemonize = false
run_as_root = true
pidfile = "%[1]s/pid"
data_path = "%[1]s/data"
interfaces = { "127.0.0.1" }
c2s_ports = { %[2]d }
modules_enabled = { "roster", "saslauth", "tls", "disco", "ping", "mam", "offline" }
modules_disabled = { "s2s" }
authentication = "internal_plain"
c2s_require_encryption = true
log = { warn = "*console" }
VirtualHost "localhost"
	ssl = { key = "%[1]s/key.pem", certificate = "%[1]s/cert.pem" }
Component "conference.localhost" "muc"
	modules_enabled = { "muc_mam" }
	muc_room_locking = false
	muc_room_default_public_jids = true
`

const (
	room = "room@conference.localhost"
	bot  = "bot@localhost"
)

// world is a prosody with the accounts bot and alice.
type world struct {
	dir, address string
	prosody      *gatewaytest.Process
}

func newWorld(t *testing.T) *world {
	t.Helper()
	program := gatewaytest.NeedServers(t, "prosody")
	port := gatewaytest.FreePort(t)
	w := &world{dir: t.TempDir(), address: fmt.Sprintf("127.0.0.1:%d", port)}
	gatewaytest.Certificate(t, w.dir, "localhost")
	gatewaytest.Write(t, w.dir+"/prosody.cfg.lua", fmt.Sprintf(config, w.dir, port))
	for _, name := range []string{"bot", "alice"} {
		gatewaytest.Write(t, w.dir+"/data/localhost/accounts/"+name+".dat", `return { ["password"] = "the password of `+name+`"; };`)
		gatewaytest.Write(t, w.dir+"/"+name, "the password of "+name+"\n")
	}
	w.prosody = gatewaytest.Start(t, w.address, program, "-F", "--config", w.dir+"/prosody.cfg.lua")
	return w
}

func (w *world) adapter(t *testing.T, p *gatewaytest.Platform) *gatewaytest.Adapter {
	t.Helper()
	return gatewaytest.NewAdapter(t, "xmpp-gateway", p,
		"--account", bot, "--password-file", w.dir+"/bot", "--server", w.address, "--server-ca-file", w.dir+"/cert.pem", "--room", room+"/robot")
}

// person is a client of somebody who reads and writes.
type person struct {
	world   *world
	session *xmpp.Session

	mu     sync.Mutex
	inRoom bool
	robot  bool // is in the room
	bodies []string
}

// connect connects, again if need be, and enters the room.
func (p *person) connect(t *testing.T) {
	t.Helper()
	if p.session != nil {
		_ = p.session.Conn().Close()
	}
	p.mu.Lock()
	p.inRoom = false
	p.mu.Unlock()
	me := jid.MustParse("alice@localhost")
	conn, err := net.Dial("tcp", p.world.address)
	if err != nil {
		t.Fatal(err)
	}
	roots, err := adapter.CertPool(p.world.dir + "/cert.pem")
	if err != nil {
		t.Fatal(err)
	}
	p.session, err = xmpp.NewClientSession(t.Context(), me, conn, xmpp.StartTLS(&tls.Config{ServerName: "localhost", RootCAs: roots}),
		xmpp.SASL("", "the password of alice", sasl.ScramSha1, sasl.Plain), xmpp.BindResource())
	if err != nil {
		t.Fatal(err)
	}
	go func(s *xmpp.Session) { _ = s.Serve(xmpp.HandlerFunc(p.handle)) }(p.session)
	t.Cleanup(func() { _ = p.session.Conn().Close() })
	if err := p.session.Send(t.Context(), stanza.Presence{}.Wrap(nil)); err != nil {
		t.Fatal(err)
	}
	none := xmlstream.Wrap(nil, xml.StartElement{Name: xml.Name{Local: "history"}, Attr: []xml.Attr{{Name: xml.Name{Local: "maxstanzas"}, Value: "0"}}})
	if err := p.session.Send(t.Context(), stanza.Presence{To: jid.MustParse(room + "/alice")}.Wrap(xmlstream.Wrap(none, xml.StartElement{Name: xml.Name{Space: muc.NS, Local: "x"}}))); err != nil {
		t.Fatal(err)
	}
	gatewaytest.Await(t, "alice is in the room", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.inRoom
	})
}

func (p *person) handle(r xmlstream.TokenReadEncoder, start *xml.StartElement) error {
	var s struct {
		From string `xml:"from,attr"`
		Type string `xml:"type,attr"`
		Body string `xml:"body"`
	}
	if err := xml.NewTokenDecoder(xmlstream.MultiReader(xmlstream.Token(*start), r)).Decode(&s); err != nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case start.Name.Local == "presence" && s.From == room+"/alice":
		p.inRoom = true
	case start.Name.Local == "presence" && s.From == room+"/robot":
		p.robot = s.Type == ""
	case start.Name.Local == "message" && s.Body != "" && s.From != room+"/alice":
		p.bodies = append(p.bodies, s.Body)
	}
	return nil
}

func (p *person) say(t *testing.T, to string, kind stanza.MessageType, text string) {
	t.Helper()
	err := p.session.Encode(t.Context(), struct {
		stanza.Message
		Body string `xml:"body"`
	}{stanza.Message{To: jid.MustParse(to), Type: kind}, text})
	if err != nil {
		t.Fatal(err)
	}
}

func (p *person) read() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.bodies)
}

// TestConforms: the adapter conforms with a real server, in a room and in direct messages; what it says it has posted, a person has read once.
func TestConforms(t *testing.T) {
	w := newWorld(t)
	a := w.adapter(t, gatewaytest.NewPlatform(t))
	for _, context := range []string{room, "alice@localhost"} {
		p := &person{world: w}
		p.connect(t)
		a.Kit(t, conformance.Options{AccountID: bot, ContextID: context, Count: p.count(t)})
		_ = p.session.Conn().Close()
	}
}

// count counts what a person has read, after a message of her own has gone round, which comes after all that was there before.
func (p *person) count(t *testing.T) func(context.Context, string) (int, error) {
	return func(_ context.Context, marker string) (n int, err error) {
		end := fmt.Sprintf("alice says %d", time.Now().UnixNano())
		p.say(t, "alice@localhost", stanza.ChatMessage, end)
		gatewaytest.Await(t, "what alice says to herself", func() bool { return slices.Contains(p.read(), end) })
		for _, body := range p.read() {
			n += strings.Count(body, marker)
		}
		return n, nil
	}
}

// TestConversation: while adapter and server are killed in turn, each question arrives, each answer is read once, and all in order. A question
// that was asked while the adapter was away arrives from the history of the room.
func TestConversation(t *testing.T) {
	w, platform := newWorld(t), gatewaytest.NewPlatform(t)
	a := w.adapter(t, platform)
	p := &person{world: w}
	p.connect(t)
	kit := func(id string) { // the adapter is in the room
		event := &protocol.Event{AccountID: bot, ContextID: room}
		if answer := a.Deliver(t, event, "hello-"+id, "hello "+id); answer.Status != protocol.Delivered {
			t.Fatal(answer)
		}
	}
	kit("first")
	const turns = 60
	var want []string
	for n := range turns {
		where, kind := room, stanza.GroupChatMessage
		if n%3 == 0 {
			where, kind = bot, stanza.ChatMessage
		}
		away := false
		switch n % 10 {
		case 3:
			a.Kill()
			a.Start()
			kit(fmt.Sprint("after adapter ", n))
		case 5:
			a.Kill()
			away = true
			gatewaytest.Await(t, "the server knows that the adapter is gone", func() bool {
				p.mu.Lock()
				defer p.mu.Unlock()
				return !p.robot
			})
		case 8:
			w.prosody.Kill()
			w.prosody.Start()
			p.connect(t)
			kit(fmt.Sprint("after server ", n))
		}
		question := fmt.Sprintf("question %d with <tags> & 𝕏", n)
		p.say(t, where, kind, question)
		sender := "alice@localhost"
		if away {
			sync := fmt.Sprint("sync ", n)
			p.say(t, "alice@localhost", stanza.ChatMessage, sync)
			gatewaytest.Await(t, "the server has it", func() bool { return slices.Contains(p.read(), sync) })
			a.Start()
			if where == room {
				sender = room + "/alice"
			}
		}
		e := platform.Next(t)
		if e.Text != question || e.Sender.ID != sender || e.AccountID != bot || (where == room) != (e.ContextID == room) {
			t.Fatalf("turn %d: %+v", n, e)
		}
		text := fmt.Sprintf("answer %d with <tags> & 𝕏", n)
		if answer := a.Deliver(t, &e, fmt.Sprint("d-", n), text); answer.Status != protocol.Delivered {
			t.Fatalf("turn %d: %+v", n, answer)
		}
		want = append(want, text)
	}
	answers := func() []string {
		return slices.DeleteFunc(p.read(), func(body string) bool { return !strings.HasPrefix(body, "answer ") })
	}
	gatewaytest.Await(t, "all answers are read", func() bool { return len(answers()) >= turns })
	if got := answers(); !slices.Equal(got, want) {
		t.Errorf("answers: %q", got)
	}
}

// TestRefused: what the server refuses is not said to be posted.
func TestRefused(t *testing.T) {
	w := newWorld(t)
	a := w.adapter(t, gatewaytest.NewPlatform(t))
	for _, where := range []string{"nobody@localhost", "alice@localhost/phone", "not a jid@@"} {
		if answer := a.Deliver(t, &protocol.Event{AccountID: bot, ContextID: where}, "to "+where, "hello"); answer.Status != protocol.NonRetryableError {
			t.Errorf("%s: %+v", where, answer)
		}
	}
}
