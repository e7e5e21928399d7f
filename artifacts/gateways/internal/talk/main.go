// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// The program talk is a person's client in one room of an XMPP server, for tests of conversations in which everything is killed once. Each
// line of standard input is a message. Each message of the room is a line of standard output, once and in the room's order: an object with
// its id in the room's archive, its sender (ROOM/NICK) and its text. An object with the member present says that the client is in the room,
// and has read all that was said before.
//
// The room's archive (XEP-0313) decides what there is. Whenever the client has entered the room, it reads the archive after the last message
// that it has printed, and keeps back what the room says meanwhile; what both have has one id (XEP-0359). It takes a line only when the room
// has reflected the one before. If the connection breaks in between, the archive says whether the room has the message, and it is sent again
// if not. A client that was killed remembers nothing: --after says where the next one goes on.
package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"mellium.im/sasl"
	"mellium.im/xmlstream"
	"mellium.im/xmpp"
	"mellium.im/xmpp/history"
	"mellium.im/xmpp/jid"
	"mellium.im/xmpp/muc"
	"mellium.im/xmpp/mux"
	"mellium.im/xmpp/ping"
	"mellium.im/xmpp/stanza"

	"github.com/platform-ai/platform/artifacts/gateways/internal/adapter"
)

const (
	connectTimeout = 30 * time.Second
	// reconnectAfter is short, because the tests wait for it.
	reconnectAfter = 100 * time.Millisecond
	// pageSize is what prosody gives at most.
	pageSize = 50
)

// printed is a line of the output.
type printed struct {
	ID      string `json:"id,omitempty"`
	From    string `json:"from,omitempty"`
	Text    string `json:"text,omitempty"`
	Present bool   `json:"present,omitempty"`
}

// outgoing is what a person says.
type outgoing struct {
	stanza.Message
	Body string `xml:"body"`
}

// incoming is a message of the room, or of its archive.
type incoming struct {
	stanza.Message
	Body     string `xml:"body"`
	StanzaID []struct {
		ID string `xml:"id,attr"`
		By string `xml:"by,attr"`
	} `xml:"urn:xmpp:sid:0 stanza-id"`
	Archived *struct {
		ID      string    `xml:"id,attr"`
		Message *incoming `xml:"forwarded>message"`
	} `xml:"urn:xmpp:mam:2 result"`
	Error *stanza.Error `xml:"error"`
}

// client is a person in a room.
type client struct {
	account    jid.JID
	me         jid.JID // the room with the nick
	server     string
	password   func() (string, error)
	encryption *tls.Config
	lines      <-chan string
	unsaid     *outgoing // a message of which it is not known that the room has it

	mu       sync.Mutex
	out      *json.Encoder
	err      error // of the output
	last     string
	known    map[string]bool // ids that were printed
	said     map[string]bool // ids that this client gave, as far as the room has them
	reading  bool            // the archive is being read
	kept     []*incoming     // what the room said meanwhile
	entered  chan error      // whether the room was entered
	reflects chan struct{}   // something was added to said
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	c, err := parse(os.Args[1:])
	if err == nil {
		err = c.run(ctx)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "talk:", err)
		os.Exit(1)
	}
}

func parse(args []string) (*client, error) {
	fs := flag.NewFlagSet("talk", flag.ContinueOnError)
	account := fs.String("account", "", "JID of the account")
	password := fs.String("password-file", "", "file with its password")
	server := fs.String("server", "", "HOST:PORT of the server")
	authority := fs.String("server-ca-file", "", "certificates of authorities for the server")
	room := fs.String("room", "", "room to be in, with the nick: room@conference.example.com/alice")
	after := fs.String("after", "", "id of the last message that was printed; without it all that the room has is printed")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	c := &client{
		server: *server, password: adapter.Line(*password), last: *after, out: json.NewEncoder(os.Stdout), known: map[string]bool{}, said: map[string]bool{},
		reflects: make(chan struct{}, 1),
	}
	var err error
	if c.account, err = jid.Parse(*account); err != nil {
		return nil, fmt.Errorf("--account: %w", err)
	}
	if c.me, err = jid.Parse(*room); err != nil || c.me.Resourcepart() == "" {
		return nil, fmt.Errorf("--room: %q is not a room with a nick", *room)
	}
	roots, err := adapter.CertPool(*authority)
	if err != nil {
		return nil, err
	}
	c.encryption = &tls.Config{ServerName: c.account.Domain().String(), RootCAs: roots, MinVersion: tls.VersionTLS12}
	return c, nil
}

// run is in the room, again after each broken connection, until the context ends.
func (c *client) run(ctx context.Context) error {
	lines := make(chan string)
	c.lines = lines
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			lines <- in.Text()
		}
	}()
	for {
		err := c.connected(ctx)
		if ctx.Err() != nil {
			return nil
		}
		c.mu.Lock()
		unprinted := c.err
		c.mu.Unlock()
		if unprinted != nil {
			return unprinted
		}
		fmt.Fprintln(os.Stderr, "talk: again:", err)
		again := time.NewTimer(reconnectAfter)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
		}
	}
}

// connected has one connection until it ends.
func (c *client) connected(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s, err := c.dial(ctx)
	if err != nil {
		return err
	}
	end := context.AfterFunc(ctx, func() { _ = s.Conn().Close() }) // whoever reads or writes notices
	defer end()
	defer func() { _ = s.Conn().Close() }()
	c.mu.Lock()
	c.reading, c.kept, c.entered = true, nil, make(chan error, 1)
	entered := c.entered
	c.mu.Unlock()
	others := mux.New(stanza.NSClient, ping.Handle())
	go func() {
		err := s.Serve(xmpp.HandlerFunc(func(t xmlstream.TokenReadEncoder, start *xml.StartElement) error { return c.handle(others, t, start) }))
		stop(errors.Join(errors.New("the connection has ended"), err))
	}()
	if err := c.enter(ctx, s); err != nil {
		return err
	}
	select {
	case err := <-entered:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := c.catchUp(ctx, s); err != nil {
		return err
	}
	return c.talk(ctx, s)
}

// dial connects and authenticates.
func (c *client) dial(ctx context.Context) (*xmpp.Session, error) {
	ctx, stop := context.WithTimeout(ctx, connectTimeout)
	defer stop()
	password, err := c.password()
	if err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.server)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	s, err := xmpp.NewClientSession(ctx, c.account, conn, xmpp.StartTLS(c.encryption), xmpp.SASL("", password, sasl.ScramSha256, sasl.ScramSha1, sasl.Plain), xmpp.BindResource())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("log in: %w", err), conn.Close())
	}
	return s, nil
}

// enter enters the room. Its own history, which is shorter than the archive, is not asked for.
func (c *client) enter(ctx context.Context, s *xmpp.Session) error {
	if err := s.Send(ctx, stanza.Presence{}.Wrap(nil)); err != nil {
		return fmt.Errorf("presence: %w", err)
	}
	none := xmlstream.Wrap(nil, xml.StartElement{Name: xml.Name{Local: "history"}, Attr: []xml.Attr{{Name: xml.Name{Local: "maxstanzas"}, Value: "0"}}})
	if err := s.Send(ctx, stanza.Presence{To: c.me}.Wrap(xmlstream.Wrap(none, xml.StartElement{Name: xml.Name{Space: muc.NS, Local: "x"}}))); err != nil {
		return fmt.Errorf("enter the room: %w", err)
	}
	return nil
}

// catchUp prints what the archive has after the last message that was printed, and then what the room has said meanwhile. The answer to a
// query comes after its results, which handle has printed by then.
func (c *client) catchUp(ctx context.Context, s *xmpp.Session) error {
	for complete := false; !complete; {
		c.mu.Lock()
		query := history.Query{ID: rand.Text(), Limit: pageSize, PageID: c.last}
		c.mu.Unlock()
		var page history.Result
		if err := s.UnmarshalIQElement(ctx, query.TokenReader(), stanza.IQ{Type: stanza.SetIQ, To: c.me.Bare()}, &page); err != nil {
			return fmt.Errorf("read the archive: %w", err)
		}
		complete = page.Complete
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = false
	for _, m := range c.kept {
		c.print(m.id(c.me), m)
	}
	c.kept = nil
	c.write(printed{Present: true})
	return c.err
}

// talk says what the person says, one after the other. A message whose fate the last connection left open comes first.
func (c *client) talk(ctx context.Context, s *xmpp.Session) error {
	for {
		if c.unsaid == nil {
			select {
			case text := <-c.lines:
				c.unsaid = &outgoing{stanza.Message{ID: rand.Text(), To: c.me.Bare(), Type: stanza.GroupChatMessage}, text}
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if !c.has(c.unsaid.ID) {
			if err := s.Encode(ctx, c.unsaid); err != nil {
				return fmt.Errorf("say: %w", err)
			}
		}
		for !c.has(c.unsaid.ID) {
			select {
			case <-c.reflects:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		c.unsaid = nil
	}
}

// has reports whether the room has a message of this client.
func (c *client) has(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.said[id]
}

// handle takes what the server sends. An error ends the connection.
func (c *client) handle(others *mux.ServeMux, t xmlstream.TokenReadEncoder, start *xml.StartElement) error {
	d := xml.NewTokenDecoder(xmlstream.MultiReader(xmlstream.Token(*start), t))
	switch start.Name.Local {
	case "presence":
		var p struct {
			stanza.Presence
			Error *stanza.Error `xml:"error"`
		}
		if err := d.Decode(&p); err != nil {
			return fmt.Errorf("read a presence: %w", err)
		}
		return c.present(p.Presence, p.Error)
	case "message":
		var m incoming
		if err := d.Decode(&m); err != nil {
			return fmt.Errorf("read a message: %w", err)
		}
		return c.received(&m)
	}
	return others.HandleXMPP(t, start)
}

// present notes whether the client is in the room.
func (c *client) present(p stanza.Presence, refused *stanza.Error) error {
	if !p.From.Equal(c.me) {
		return nil
	}
	c.mu.Lock()
	entered := c.entered
	c.mu.Unlock()
	var err error
	switch {
	case refused != nil:
		err = fmt.Errorf("the room cannot be entered: %w", *refused)
	case p.Type == stanza.UnavailablePresence:
		err = errors.New("the client was removed from the room")
	}
	select {
	case entered <- err:
	default: // it is known
	}
	return err
}

// received takes a message of the room or of its archive.
func (c *client) received(m *incoming) error {
	if !m.From.Bare().Equal(c.me.Bare()) {
		return nil
	}
	if m.Type == stanza.ErrorMessage {
		return fmt.Errorf("the room refused the message %s: %v", m.ID, m.Error)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case m.Archived != nil && m.Archived.Message != nil:
		c.print(m.Archived.ID, m.Archived.Message)
	case m.Body != "" && c.reading:
		c.kept = append(c.kept, m)
	case m.Body != "":
		c.print(m.id(c.me), m)
	}
	return c.err
}

// id returns the id that a message has in the archive of its room.
func (m *incoming) id(me jid.JID) string {
	for _, s := range m.StanzaID {
		if s.By == me.Bare().String() {
			return s.ID
		}
	}
	return ""
}

// print prints a message that was not printed yet. The caller holds mu.
func (c *client) print(id string, m *incoming) {
	if id == "" {
		c.err = fmt.Errorf("the room gives its messages no ids: %q", m.Body)
		return
	}
	if c.known[id] || id == c.last {
		return
	}
	c.known[id], c.last = true, id
	if m.Body != "" {
		c.write(printed{ID: id, From: m.From.String(), Text: m.Body})
	}
	if m.From.Equal(c.me) {
		c.said[m.ID] = true
		select {
		case c.reflects <- struct{}{}:
		default:
		}
	}
}

// write writes a line. The caller holds mu.
func (c *client) write(line printed) {
	if err := c.out.Encode(line); err != nil {
		c.err = fmt.Errorf("print: %w", err)
	}
}
