// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package matrixchat connects an adapter with a Matrix homeserver, as one user.
//
// Messages are sent with a transaction id that is derived from the delivery, so the homeserver takes each one once. Homeservers forget these ids
// (after minutes, or when they are started again), therefore each message also has a member of its own, ai.platform.delivery, by which it is
// looked for in the room before it is sent again.
//
// The position in the stream of the homeserver is kept together with the events that came before it. A gap that the homeserver leaves in
// a room after a long absence is read backwards. What was said before the user entered a room is not an event, nor are notices, which other
// bots write, edits and encrypted messages.
//
// accountId is the user, contextId the id of the room, threadId the first event of a thread, sender.id the Matrix id, which the homeservers vouch
// for.
//
// The tests start a dendrite, if there is one and GATEWAY_TEST_SERVERS is 1. It is built without cgo, and then uses SQLite:
//
//	git clone --branch v0.13.8 https://github.com/matrix-org/dendrite && cd dendrite
//	CGO_ENABLED=0 go build -o BIN ./cmd/dendrite ./cmd/generate-config ./cmd/generate-keys
//	PATH=BIN:$PATH GATEWAY_TEST_SERVERS=1 go test ./internal/matrixchat
package matrixchat

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"maunium.net/go/mautrix"
	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"github.com/platform-ai/platform/artifacts/gateways/internal/adapter"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
)

// member is the member of messages that has the key of a part.
const member = "ai.platform.delivery"

// Bounds.
const (
	partSize  = 10_000 // bytes: an event may have 65,536 with escapes, which may take six times as much
	pageSize  = 100
	mostPages = 100
	syncFor   = 30 * time.Second
)

// filter is what the homeserver is asked for.
const filter = `{"presence":{"types":[]},"account_data":{"types":[]},"room":{"ephemeral":{"types":[]},"account_data":{"types":[]},"state":{"types":["m.room.member"],"lazy_load_members":true},"timeline":{"limit":100,"types":["m.room.message","m.room.member"]}}}`

// Options say which user is used.
type Options struct {
	// Homeserver is the address of the homeserver.
	Homeserver string
	User       id.UserID
	Token      func() (string, error)
	Client     *http.Client
	// Rooms are entered. Invite says that invitations to others are accepted, too.
	Rooms  []id.RoomID
	Invite bool
	Log    *slog.Logger
}

// Chat is a user.
type Chat struct {
	o Options

	mu    sync.Mutex
	ready error
}

var (
	_ adapter.Chat   = (*Chat)(nil)
	_ adapter.Finder = (*Chat)(nil)
)

// New returns a chat that is not connected.
func New(o Options) *Chat {
	return &Chat{o: o, ready: errors.New("there is no connection to the homeserver")}
}

// Split divides a text.
func (c *Chat) Split(text string) []string { return adapter.Split(text, partSize) }

// Ready reports whether the homeserver answered the last time.
func (c *Chat) Ready() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ready
}

func (c *Chat) setReady(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ready = err
}

// client returns a client with the present token.
func (c *Chat) client() (*mautrix.Client, error) {
	token, err := c.o.Token()
	if err != nil {
		return nil, err
	}
	cli, err := mautrix.NewClient(c.o.Homeserver, c.o.User, token)
	if err != nil {
		return nil, fmt.Errorf("the address of the homeserver: %w", err)
	}
	cli.Client, cli.DefaultHTTPRetries, cli.IgnoreRateLimit = c.o.Client, 0, true
	return cli, nil
}

// Run reads the stream of the homeserver.
func (c *Chat) Run(ctx context.Context, events *adapter.Outbox) error {
	var backoff adapter.Backoff
	entered := false
	for ctx.Err() == nil {
		err := c.turn(ctx, events, &entered)
		if ctx.Err() != nil {
			break
		}
		c.setReady(err)
		if err == nil {
			backoff.Reset()
			continue
		}
		c.o.Log.Warn("the homeserver was not read", "err", err)
		if err := backoff.Wait(ctx, 0); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// turn reads the stream once.
func (c *Chat) turn(ctx context.Context, events *adapter.Outbox, entered *bool) error {
	cli, err := c.client()
	if err != nil {
		return err
	}
	if !*entered {
		if err := c.enter(ctx, cli); err != nil {
			return err
		}
		*entered = true
	}
	since := events.Cursor()
	req := mautrix.ReqSync{Since: since, FilterID: filter, Timeout: int(syncFor.Milliseconds())}
	if since == "" || c.Ready() != nil {
		req.Timeout = 0 // to know soon that it answers
	}
	bounded, stop := context.WithTimeout(ctx, 2*syncFor+time.Minute)
	defer stop()
	res, err := cli.FullSyncRequest(bounded, req)
	if err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	var all []protocol.Event
	if since != "" { // what was said before the first time is nobody's question
		for _, room := range sorted(res.Rooms.Join) {
			of, err := c.timeline(bounded, cli, room, &res.Rooms.Join[room].Timeline, since)
			if err != nil {
				return err
			}
			all = append(all, of...)
		}
	}
	if len(all) > 0 || res.NextBatch != since {
		if err := events.Put(res.NextBatch, all...); err != nil {
			return fmt.Errorf("events could not be kept: %w", err)
		}
	}
	if c.o.Invite {
		for room := range res.Rooms.Invite {
			if _, err := cli.JoinRoomByID(ctx, room); err != nil {
				c.o.Log.Warn("an invitation was not accepted", "room", room, "err", err)
			}
		}
	}
	return nil
}

// enter enters the rooms that are configured.
func (c *Chat) enter(ctx context.Context, cli *mautrix.Client) error {
	for _, room := range c.o.Rooms {
		if _, err := cli.JoinRoomByID(ctx, room); err != nil {
			return fmt.Errorf("enter %s: %w", room, err)
		}
	}
	return nil
}

func sorted(rooms map[id.RoomID]*mautrix.SyncJoinedRoom) []id.RoomID {
	all := make([]id.RoomID, 0, len(rooms))
	for room := range rooms {
		all = append(all, room)
	}
	slices.Sort(all)
	return all
}

// timeline returns the events of a room since a position, the oldest first.
func (c *Chat) timeline(ctx context.Context, cli *mautrix.Client, room id.RoomID, t *mautrix.SyncTimeline, since string) ([]protocol.Event, error) {
	all := t.Events
	entered := c.entered(all)
	from := t.PrevBatch
	for page := 0; t.Limited && entered < 0 && from != "" && page < mostPages; page++ {
		res, err := cli.Messages(ctx, room, from, since, mautrix.DirectionBackward, nil, pageSize)
		if err != nil {
			return nil, fmt.Errorf("read the gap in %s: %w", room, err)
		}
		if from = res.End; len(res.Chunk) == 0 || res.End == res.Start {
			break
		}
		if page == mostPages-1 {
			c.o.Log.Error("a gap is too long to be read", "room", room)
		}
		older := slices.Clone(res.Chunk)
		slices.Reverse(older)
		all = append(older, all...)
		entered = c.entered(all)
	}
	var events []protocol.Event
	seen := map[id.EventID]bool{}
	for _, e := range all[entered+1:] {
		if !seen[e.ID] {
			seen[e.ID] = true
			events = c.appendEvent(events, room, e)
		}
	}
	return events, nil
}

// entered returns the place of the event with which the user came into the room, or -1.
func (c *Chat) entered(all []*event.Event) int {
	for i, e := range slices.Backward(all) {
		if e.Type.Type != event.StateMember.Type || e.StateKey == nil || *e.StateKey != c.o.User.String() || e.Content.Raw["membership"] != "join" {
			continue
		}
		if was := e.Unsigned.PrevContent; was == nil || was.Raw["membership"] != "join" { // otherwise the name changed
			return i
		}
	}
	return -1
}

// appendEvent appends what a person said.
func (c *Chat) appendEvent(events []protocol.Event, room id.RoomID, e *event.Event) []protocol.Event {
	if e.Type.Type != event.EventMessage.Type || e.StateKey != nil || e.Sender == c.o.User {
		return events
	}
	if err := e.Content.ParseRaw(event.EventMessage); err != nil && !errors.Is(err, event.ErrContentAlreadyParsed) {
		return events // it is no message that can be read
	}
	m := e.Content.AsMessage()
	if m.Body == "" || (m.MsgType != event.MsgText && m.MsgType != event.MsgEmote) || m.RelatesTo.GetReplaceID() != "" {
		return events
	}
	at := time.UnixMilli(e.Timestamp).UTC()
	thread := m.RelatesTo.GetThreadParent()
	return append(events, protocol.Event{
		ExternalEventID: e.ID.String(), AccountID: c.o.User.String(), ContextID: room.String(), ThreadID: thread.String(),
		Sender: protocol.Sender{ID: e.Sender.String()}, Text: m.Body, ReplyTarget: e.ID.String(), OccurredAt: &at,
	})
}

// Send posts a message.
func (c *Chat) Send(ctx context.Context, m adapter.Message) (string, error) {
	cli, err := c.client()
	if err != nil {
		return "", adapter.NotSent(err, 0)
	}
	if m.AccountID != c.o.User.String() {
		return "", adapter.Refused(fmt.Errorf("the account is %s and not %q", c.o.User, m.AccountID))
	}
	content := event.MessageEventContent{MsgType: event.MsgNotice, Body: m.Text}
	if m.ThreadID != "" {
		content.RelatesTo = (&event.RelatesTo{}).SetThread(id.EventID(m.ThreadID), id.EventID(m.ReplyTarget))
	}
	res, err := cli.SendMessageEvent(ctx, id.RoomID(m.ContextID), event.EventMessage, &event.Content{Parsed: &content, Raw: map[string]any{member: m.Key}}, mautrix.ReqSendEvent{TransactionID: m.Key})
	if err != nil {
		return "", failure(err)
	}
	return res.EventID.String(), nil
}

// failure is what an error says about a message.
func failure(err error) error {
	var h mautrix.HTTPError
	if adapter.Dialing(err) {
		return adapter.NotSent(err, 0)
	}
	if !errors.As(err, &h) || h.Response == nil {
		return err
	}
	switch code := h.Response.StatusCode; {
	case code == http.StatusTooManyRequests:
		return adapter.NotSent(err, retryAfter(&h))
	case code == http.StatusUnauthorized:
		return adapter.NotSent(err, 0) // the token is being changed
	case code >= 400 && code < 500:
		return adapter.Refused(err)
	}
	return err
}

// retryAfter returns when a homeserver wants to be asked again.
func retryAfter(h *mautrix.HTTPError) time.Duration {
	if seconds, err := strconv.Atoi(h.Response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	if h.RespError != nil {
		if ms, ok := h.RespError.ExtraData["retry_after_ms"].(float64); ok && ms > 0 {
			return time.Duration(ms) * time.Millisecond
		}
	}
	return time.Second
}

// Find looks for a message of this user, backwards from the end of the room.
func (c *Chat) Find(ctx context.Context, m adapter.Message, after time.Time) (string, bool, error) {
	cli, err := c.client()
	if err != nil {
		return "", false, err
	}
	from := ""
	for range mostPages {
		res, err := cli.Messages(ctx, id.RoomID(m.ContextID), from, "", mautrix.DirectionBackward, nil, pageSize)
		if err != nil {
			return "", false, fmt.Errorf("read %s: %w", m.ContextID, err)
		}
		for _, e := range res.Chunk {
			if e.Sender == c.o.User && e.Content.Raw[member] == m.Key {
				return e.ID.String(), true, nil
			}
			if time.UnixMilli(e.Timestamp).Before(after) {
				return "", false, nil
			}
		}
		if from = res.End; from == "" || len(res.Chunk) == 0 {
			return "", false, nil
		}
	}
	return "", false, fmt.Errorf("more than %d events were written to %s since", mostPages*pageSize, m.ContextID)
}
