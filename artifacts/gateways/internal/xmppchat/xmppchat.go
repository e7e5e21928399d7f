// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package xmppchat connects an adapter with an XMPP server: rooms (XEP-0045) and direct messages of one account.
//
// XMPP cannot recognise a repetition, and a client is not told that the server has a message. So a message to a room counts as posted when the
// room reflects it, and a direct message when the server answers a ping that was sent after it. If the connection breaks in between, nobody
// knows, and the delivery ends with an answer that says so.
//
// accountId is the bare JID of the account, contextId the bare JID of the room or of the other person. sender.id is the bare JID of a person
// in direct messages and in rooms that show who their occupants are; in other rooms it is ROOM/NICK, which has a slash and proves nothing.
//
// After the connection was lost, rooms are asked for what was said since the last message, if they give their messages ids (XEP-0359), by
// which the platform recognises what it has. What the history shows is from ROOM/NICK, because the nick may be somebody else's by now.
//
// The tests start a prosody, if there is one and GATEWAY_TEST_SERVERS is 1:
//
//	apt-get install prosody && GATEWAY_TEST_SERVERS=1 go test ./internal/xmppchat
package xmppchat

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"mellium.im/sasl"
	"mellium.im/xmlstream"
	"mellium.im/xmpp"
	"mellium.im/xmpp/dial"
	"mellium.im/xmpp/jid"
	"mellium.im/xmpp/muc"
	"mellium.im/xmpp/mux"
	"mellium.im/xmpp/ping"
	"mellium.im/xmpp/stanza"

	"github.com/platform-ai/platform/artifacts/gateways/internal/adapter"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
)

// Times of a connection.
const (
	connectTimeout = 30 * time.Second
	sendTimeout    = 30 * time.Second
	pingEvery      = time.Minute
	overlap        = time.Minute // of histories, because clocks differ
)

// partSize is how long a message may be, in bytes. Servers refuse stanzas that are much longer.
const partSize = 8000

// Options say which account is used.
type Options struct {
	Account jid.JID // bare
	// Server is HOST:PORT; empty means that it is looked up.
	Server   string
	Password func() (string, error)
	Roots    *x509.CertPool // nil means those of the system
	Rooms    []jid.JID      // each with the nick as its resource
	Log      *slog.Logger
}

// Chat is an account.
type Chat struct {
	o      Options
	events *adapter.Outbox // after Run

	mu      sync.Mutex
	session *xmpp.Session // nil without a connection
	ended   chan struct{} // closed when the session ends
	rooms   map[string]*room
	waits   map[string]chan outcome
}

// room is a room that the account is to be in.
type room struct {
	me        jid.JID
	joined    bool
	occupants map[string]jid.JID // who they are, by nick
	last      time.Time          // when something was said last, as far as it was put into the outbox
}

// outcome is what became of a message.
type outcome struct {
	id  string
	err error
}

var _ adapter.Chat = (*Chat)(nil)

// New returns a chat that is not connected.
func New(o Options) *Chat {
	c := &Chat{o: o, rooms: map[string]*room{}, waits: map[string]chan outcome{}}
	for _, me := range o.Rooms {
		c.rooms[me.Bare().String()] = &room{me: me}
	}
	return c
}

// Split divides a text.
func (c *Chat) Split(text string) []string { return adapter.Split(text, partSize) }

// Ready reports whether the account is connected and in its rooms.
func (c *Chat) Ready() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == nil {
		return errors.New("there is no connection to the XMPP server")
	}
	for name, r := range c.rooms {
		if !r.joined {
			return fmt.Errorf("the account is not in the room %s", name)
		}
	}
	return nil
}

// Run connects, and again when the connection is lost.
func (c *Chat) Run(ctx context.Context, events *adapter.Outbox) error {
	c.events = events
	var last map[string]time.Time
	if raw := events.Cursor(); raw != "" {
		if err := json.Unmarshal([]byte(raw), &last); err != nil {
			return fmt.Errorf("the position in the rooms: %w", err)
		}
	}
	for name, at := range last {
		if r := c.rooms[name]; r != nil {
			r.last = at
		}
	}
	var backoff adapter.Backoff
	for {
		began := time.Now()
		err := c.connected(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if time.Since(began) > time.Minute {
			backoff.Reset()
		}
		c.o.Log.Warn("the connection to the XMPP server is lost", "err", err)
		if err := backoff.Wait(ctx, 0); err != nil {
			return err
		}
	}
}

// dial connects and authenticates.
func (c *Chat) dial(ctx context.Context) (*xmpp.Session, error) {
	ctx, stop := context.WithTimeout(ctx, connectTimeout)
	defer stop()
	password, err := c.o.Password()
	if err != nil {
		return nil, err
	}
	var conn net.Conn
	if c.o.Server != "" {
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", c.o.Server)
	} else {
		conn, err = dial.Client(ctx, "tcp", c.o.Account)
	}
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	s, err := xmpp.NewClientSession(ctx, c.o.Account, conn,
		xmpp.StartTLS(&tls.Config{ServerName: c.o.Account.Domain().String(), RootCAs: c.o.Roots, MinVersion: tls.VersionTLS12}),
		xmpp.SASL("", password, sasl.ScramSha256, sasl.ScramSha1, sasl.Plain),
		xmpp.BindResource(),
	)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("log in: %w", err), conn.Close())
	}
	return s, nil
}

// connected has one connection until it ends.
func (c *Chat) connected(ctx context.Context) error {
	s, err := c.dial(ctx)
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	end := func() { _ = s.Conn().Close() } // whoever reads or writes notices
	stop := context.AfterFunc(ctx, end)
	defer stop()
	iqs := mux.New(stanza.NSClient, ping.Handle())
	served := make(chan error, 1)
	go func() {
		served <- s.Serve(xmpp.HandlerFunc(func(t xmlstream.TokenReadEncoder, start *xml.StartElement) error { return c.handle(iqs, t, start) }))
		end()
		close(ended)
	}()
	c.mu.Lock()
	c.session, c.ended = s, ended
	for _, r := range c.rooms {
		r.joined, r.occupants = false, map[string]jid.JID{}
	}
	c.mu.Unlock()
	err = c.enter(ctx, s)
	for err == nil {
		timer := time.NewTimer(pingEvery)
		select {
		case <-ended:
			timer.Stop()
			err = errors.New("the server ended it")
		case <-timer.C:
			err = c.ping(ctx, s)
		}
	}
	end()
	<-ended
	c.mu.Lock()
	c.session = nil
	for _, r := range c.rooms {
		r.joined = false
	}
	c.mu.Unlock()
	return errors.Join(err, <-served)
}

func (c *Chat) ping(ctx context.Context, s *xmpp.Session) error {
	ctx, stop := context.WithTimeout(ctx, sendTimeout)
	defer stop()
	err := ping.Send(ctx, s, s.LocalAddr().Domain())
	if _, refused := errors.AsType[stanza.Error](err); refused { // which is an answer
		return nil
	}
	if err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	return nil
}

// enter says that the account is there, and enters the rooms. The rooms answer later.
func (c *Chat) enter(ctx context.Context, s *xmpp.Session) error {
	if err := s.Send(ctx, stanza.Presence{Type: stanza.AvailablePresence}.Wrap(nil)); err != nil {
		return fmt.Errorf("presence: %w", err)
	}
	for _, r := range c.rooms {
		c.mu.Lock()
		history := xml.StartElement{Name: xml.Name{Local: "history"}, Attr: []xml.Attr{{Name: xml.Name{Local: "maxstanzas"}, Value: "0"}}}
		if !r.last.IsZero() {
			history.Attr = []xml.Attr{{Name: xml.Name{Local: "since"}, Value: r.last.Add(-overlap).UTC().Format(time.RFC3339)}}
		}
		c.mu.Unlock()
		payload := xmlstream.Wrap(xmlstream.Wrap(nil, history), xml.StartElement{Name: xml.Name{Space: muc.NS, Local: "x"}})
		if err := s.Send(ctx, stanza.Presence{To: r.me, Type: stanza.AvailablePresence}.Wrap(payload)); err != nil {
			return fmt.Errorf("enter %s: %w", r.me, err)
		}
	}
	return nil
}

// presence is somebody's presence in a room.
type presence struct {
	stanza.Presence
	X struct {
		Item struct {
			JID jid.JID `xml:"jid,attr"`
		} `xml:"item"`
		Status []struct {
			Code int `xml:"code,attr"`
		} `xml:"status"`
	} `xml:"http://jabber.org/protocol/muc#user x"`
	Error *stanza.Error `xml:"error"`
}

// message is a message that was received.
type message struct {
	stanza.Message
	Body     string `xml:"body"`
	StanzaID []struct {
		ID string `xml:"id,attr"`
		By string `xml:"by,attr"`
	} `xml:"urn:xmpp:sid:0 stanza-id"`
	Delay *struct {
		Stamp time.Time `xml:"stamp,attr"`
	} `xml:"urn:xmpp:delay delay"`
	Error *stanza.Error `xml:"error"`
}

// outgoing is a message that is sent.
type outgoing struct {
	stanza.Message
	Body     string `xml:"body"`
	OriginID struct {
		ID string `xml:"id,attr"`
	} `xml:"urn:xmpp:sid:0 origin-id"`
}

// handle takes what the server sends. An error ends the connection.
func (c *Chat) handle(iqs *mux.ServeMux, t xmlstream.TokenReadEncoder, start *xml.StartElement) error {
	d := xml.NewTokenDecoder(xmlstream.MultiReader(xmlstream.Token(*start), t))
	switch start.Name.Local {
	case "presence":
		var p presence
		if err := d.Decode(&p); err != nil {
			c.o.Log.Warn("a presence cannot be read", "err", err)
			return nil
		}
		c.present(&p)
	case "message":
		var m message
		if err := d.Decode(&m); err != nil {
			c.o.Log.Warn("a message cannot be read", "err", err)
			return nil
		}
		return c.received(&m)
	default:
		return iqs.HandleXMPP(t, start) //nolint:wrapcheck // it is the connection's
	}
	return nil
}

// present notes who is in a room.
func (c *Chat) present(p *presence) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.rooms[p.From.Bare().String()]
	if r == nil {
		return
	}
	nick := p.From.Resourcepart()
	switch p.Type {
	case stanza.AvailablePresence:
		if !p.X.Item.JID.Equal(jid.JID{}) {
			r.occupants[nick] = p.X.Item.JID.Bare()
		}
		if nick == r.me.Resourcepart() {
			r.joined = true
		}
	case stanza.UnavailablePresence:
		delete(r.occupants, nick)
		if nick == r.me.Resourcepart() {
			r.joined = false
			c.o.Log.Warn("the account was removed from a room", "room", p.From.Bare())
		}
	case stanza.ErrorPresence:
		r.joined = false
		c.o.Log.Warn("a room cannot be entered", "room", p.From.Bare(), "err", p.Error)
	}
}

// received takes a message: what became of one that was sent, or an event.
func (c *Chat) received(m *message) error {
	from := m.From.Bare().String()
	c.mu.Lock()
	r, wait := c.rooms[from], c.waits[m.ID]
	mine := r != nil && m.From.Resourcepart() == r.me.Resourcepart()
	c.mu.Unlock()
	switch {
	case m.Type == stanza.ErrorMessage:
		tell(wait, outcome{err: refusal(m.Error)})
		return nil
	case mine:
		tell(wait, outcome{id: m.by(from, m.ID)})
		return nil
	case m.Body == "" || (m.Type == stanza.GroupChatMessage) != (r != nil) || (m.Type != stanza.GroupChatMessage && m.From.Bare().Equal(c.o.Account)):
		return nil
	}
	return c.put(m, r, from)
}

// tell tells whoever waits for a message what became of it. The first outcome counts.
func tell(wait chan<- outcome, o outcome) {
	select {
	case wait <- o:
	default: // nobody waits, or it is known
	}
}

// refusal is why a message was refused.
func refusal(e *stanza.Error) error {
	if e == nil {
		return adapter.Refused(errors.New("the server refused it"))
	}
	if e.Type == stanza.Wait || e.Condition == stanza.ResourceConstraint || e.Condition == stanza.PolicyViolation {
		return adapter.NotSent(e, 0)
	}
	return adapter.Refused(e)
}

// by returns the id that somebody gave to a message, or another one.
func (m *message) by(who, otherwise string) string {
	for _, s := range m.StanzaID {
		if s.By == who && s.ID != "" {
			return s.ID
		}
	}
	return otherwise
}

// put puts a message into the outbox.
func (c *Chat) put(m *message, r *room, from string) error {
	at := time.Now().UTC()
	sender := m.From.Bare()
	if r != nil {
		sender = m.From
	}
	id := m.by(from, "")
	if r == nil {
		id = m.by(c.o.Account.String(), "")
	}
	switch {
	case m.Delay != nil:
		at = m.Delay.Stamp.UTC()
		if r != nil && id == "" {
			return nil // nobody can tell whether it was received before
		}
	case r != nil:
		c.mu.Lock()
		if who, ok := r.occupants[m.From.Resourcepart()]; ok {
			sender = who
		}
		c.mu.Unlock()
	}
	e := protocol.Event{
		ExternalEventID: id, AccountID: c.o.Account.String(), ContextID: from, Sender: protocol.Sender{ID: sender.String(), DisplayName: m.From.Resourcepart()},
		Text: m.Body,
	}
	if r == nil {
		e.Sender.DisplayName = m.From.Localpart()
	}
	switch {
	case id != "" && r != nil && m.Delay == nil:
		// The history has another time for it, so it has none.
	case id != "":
		if m.Delay != nil && r == nil {
			e.OccurredAt = &at
		}
	case m.ID != "":
		sum := sha256.Sum256([]byte(m.From.String() + "\x00" + m.ID + "\x00" + m.Body))
		e.ExternalEventID = "id-" + hex.EncodeToString(sum[:20])
	default:
		e.ExternalEventID = "received-" + rand.Text()
	}
	cursor := ""
	if r != nil {
		var err error
		if cursor, err = c.position(r, at); err != nil {
			return err
		}
	}
	if err := c.events.Put(cursor, e); err != nil {
		return fmt.Errorf("a message could not be kept: %w", err)
	}
	return nil
}

// position returns the position in all rooms, after something was said in one.
func (c *Chat) position(in *room, at time.Time) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if in.last.Before(at) {
		in.last = at
	}
	last := map[string]time.Time{}
	for name, r := range c.rooms {
		if !r.last.IsZero() {
			last[name] = r.last
		}
	}
	raw, err := json.Marshal(last)
	if err != nil {
		return "", fmt.Errorf("the position in the rooms: %w", err)
	}
	return string(raw), nil
}

// Send posts a message.
func (c *Chat) Send(ctx context.Context, m adapter.Message) (string, error) {
	to, err := jid.Parse(m.ContextID)
	if err != nil || m.AccountID != c.o.Account.String() || strings.Contains(m.ContextID, "/") {
		return "", adapter.Refused(fmt.Errorf("%q of %q is no place of this account", m.ContextID, m.AccountID))
	}
	wait := make(chan outcome, 1)
	c.mu.Lock()
	s, ended, r := c.session, c.ended, c.rooms[m.ContextID]
	if s == nil || (r != nil && !r.joined) {
		c.mu.Unlock()
		return "", adapter.NotSent(errors.New("the account is not connected, or not in the room"), time.Second)
	}
	c.waits[m.Key] = wait
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.waits, m.Key)
		c.mu.Unlock()
	}()
	ctx, stop := context.WithTimeout(ctx, sendTimeout)
	defer stop()
	out := outgoing{Message: stanza.Message{ID: m.Key, To: to, Type: stanza.ChatMessage}, Body: m.Text}
	out.OriginID.ID = m.Key
	if r != nil {
		out.Type = stanza.GroupChatMessage
	}
	if err := s.Encode(ctx, out); err != nil {
		return "", fmt.Errorf("send: %w", err)
	}
	if r != nil {
		return await(ctx, wait, ended)
	}
	if err := c.ping(ctx, s); err != nil {
		return "", err
	}
	select {
	case o := <-wait: // an error
		return "", o.err
	default:
		return m.Key, nil
	}
}

// await waits until the room reflects a message.
func await(ctx context.Context, wait <-chan outcome, ended <-chan struct{}) (string, error) {
	select {
	case o := <-wait:
		return o.id, o.err
	case <-ended:
		return "", errors.New("the connection was lost before the room reflected it")
	case <-ctx.Done():
		return "", errors.New("the room did not reflect it in time")
	}
}
