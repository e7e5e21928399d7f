// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package slackchat connects an adapter with a Slack app: the Events API over HTTP inwards, chat.postMessage outwards.
//
// Slack waits three seconds for the answer to an event, and sends it again, after about a minute and after five, if none came. So an event is
// written to the outbox, synced, and then answered with 200; whether and when the platform takes it does not matter to Slack. That a request
// is a repetition (X-Slack-Retry-Num) decides nothing, because the first one may never have arrived. A message has the same id however often
// and by whichever kind of event it comes.
//
// chat.postMessage takes no id of the sender, but each message has metadata with one, by which it is looked for before it is sent again. The
// app needs the scopes chat:write and, for the look, channels:history, groups:history, im:history and mpim:history.
//
// accountId is the workspace, contextId the channel, threadId the timestamp of a thread's first message, sender.id the user's id.
package slackchat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"github.com/platform-ai/platform/artifacts/gateways/internal/adapter"
	"github.com/platform-ai/platform/pkg/gateway/protocol"
)

// Metadata of messages.
const (
	metadataType = "platform_delivery"
	metadataKey  = "key"
)

// Bounds.
const (
	partSize   = 4000 // bytes, which Slack recommends
	maxBody    = 1 << 20
	mostPages  = 20
	pageSize   = 200
	checkEvery = 5 * time.Minute
)

// Options say which app is used.
type Options struct {
	// APIURL is the address of Slack's API, with a slash at the end; empty means that of Slack.
	APIURL string
	// BotToken is the token of the bot, SigningSecret the secret with which Slack signs events.
	BotToken, SigningSecret func() (string, error)
	Client                  *http.Client
	// MentionsOnly says that in channels only messages that mention the bot are events.
	MentionsOnly bool
	// InThreads says that answers to messages outside of threads begin a thread.
	InThreads bool
	Log       *slog.Logger
}

// Chat is an app in a workspace.
type Chat struct {
	o Options

	mu     sync.Mutex
	events *adapter.Outbox
	team   string
	ready  error
}

var (
	_ adapter.Chat   = (*Chat)(nil)
	_ adapter.Finder = (*Chat)(nil)
	_ http.Handler   = (*Chat)(nil)
)

// New returns a chat. It serves Slack's events.
func New(o Options) *Chat {
	return &Chat{o: o, ready: errNotAsked}
}

// Split divides a text.
func (c *Chat) Split(text string) []string { return adapter.Split(text, partSize) }

// Ready reports whether Slack knows the bot.
func (c *Chat) Ready() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ready
}

// errNotAsked says that the adapter has just started.
var errNotAsked = errors.New("it is not known yet who the bot is")

// client returns a client with the present token.
func (c *Chat) client() (*slack.Client, error) {
	token, err := c.o.BotToken()
	if err != nil {
		return nil, err
	}
	options := []slack.Option{slack.OptionHTTPClient(c.o.Client)}
	if c.o.APIURL != "" {
		options = append(options, slack.OptionAPIURL(c.o.APIURL))
	}
	return slack.New(token, options...), nil
}

// Run asks Slack who the bot is, again and again; events come by themselves.
func (c *Chat) Run(ctx context.Context, events *adapter.Outbox) error {
	c.mu.Lock()
	c.events = events
	c.mu.Unlock()
	var backoff adapter.Backoff
	for {
		team, err := c.whoami(ctx)
		c.mu.Lock()
		if c.ready = err; err == nil {
			c.team = team
		}
		c.mu.Unlock()
		least := checkEvery
		if err != nil {
			least = 0
			c.o.Log.Warn("Slack does not say who the bot is", "err", err)
		} else {
			backoff.Reset()
		}
		if err := backoff.Wait(ctx, least); err != nil {
			return err
		}
	}
}

func (c *Chat) whoami(ctx context.Context) (team string, err error) {
	cli, err := c.client()
	if err != nil {
		return "", err
	}
	res, err := cli.AuthTestContext(ctx)
	if err != nil {
		return "", fmt.Errorf("auth.test: %w", err)
	}
	return res.TeamID, nil
}

// envelope is what Slack posts.
type envelope struct {
	Type      string  `json:"type"`
	Challenge string  `json:"challenge"`
	TeamID    string  `json:"team_id"`
	Event     message `json:"event"`
}

// message is an event about a message.
type message struct {
	Type        string `json:"type"`
	Subtype     string `json:"subtype"`
	ChannelType string `json:"channel_type"`
	Channel     string `json:"channel"`
	User        string `json:"user"`
	BotID       string `json:"bot_id"`
	Text        string `json:"text"`
	TS          string `json:"ts"`
	ThreadTS    string `json:"thread_ts"`
}

// ServeHTTP takes an event of Slack.
func (c *Chat) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "events are posted", http.StatusMethodNotAllowed)
		return
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "the body cannot be read", http.StatusBadRequest)
		return
	}
	if err := c.verify(r.Header, raw); err != nil {
		c.o.Log.Warn("a request is not from Slack", "err", err)
		http.Error(w, "the signature is not right", http.StatusUnauthorized)
		return
	}
	var e envelope
	if err := json.Unmarshal(raw, &e); err != nil {
		http.Error(w, "the body is not an event", http.StatusBadRequest)
		return
	}
	if e.Type == "url_verification" {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, e.Challenge) // Slack asks again
		return
	}
	if err := c.take(&e); err != nil {
		c.o.Log.Error("an event could not be kept", "err", err)
		http.Error(w, "the event could not be kept", http.StatusServiceUnavailable)
	}
}

// verify checks the signature of a request, and that it is not old.
func (c *Chat) verify(h http.Header, raw []byte) error {
	secret, err := c.o.SigningSecret()
	if err != nil {
		return err
	}
	v, err := slack.NewSecretsVerifier(h, secret)
	if err != nil {
		return fmt.Errorf("signature: %w", err)
	}
	if _, err := v.Write(raw); err != nil {
		return fmt.Errorf("signature: %w", err)
	}
	if err := v.Ensure(); err != nil {
		return fmt.Errorf("signature: %w", err)
	}
	return nil
}

// unescape undoes what Slack does to texts.
var unescape = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

// take puts an event into the outbox, if a person wrote it for the bot.
func (c *Chat) take(e *envelope) error {
	m := &e.Event
	wanted := m.Type == "message" && (!c.o.MentionsOnly || m.ChannelType == "im") || m.Type == "app_mention" && c.o.MentionsOnly
	said := m.Subtype == "" || m.Subtype == "thread_broadcast" || m.Subtype == "file_share"
	if e.Type != "event_callback" || !wanted || !said || m.User == "" || m.BotID != "" || m.Text == "" {
		return nil
	}
	c.mu.Lock()
	events := c.events
	c.mu.Unlock()
	if events == nil {
		return errors.New("the adapter is starting")
	}
	event := protocol.Event{
		ExternalEventID: e.TeamID + ":" + m.Channel + ":" + m.TS, AccountID: e.TeamID, ContextID: m.Channel, ThreadID: m.ThreadTS,
		Sender: protocol.Sender{ID: m.User}, Text: unescape.Replace(m.Text), ReplyTarget: m.TS,
	}
	if at, ok := when(m.TS); ok {
		event.OccurredAt = &at
	}
	return events.Put("", event) //nolint:wrapcheck // it is told
}

// when returns the time of a timestamp, which is also the id of a message.
func when(ts string) (time.Time, bool) {
	seconds, micros, _ := strings.Cut(ts, ".")
	s, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return time.Time{}, false
	}
	us, _ := strconv.ParseInt(micros, 10, 64) // 0 if there are none
	return time.Unix(s, us*1000).UTC(), true
}

// thread returns the thread in which an answer belongs, or nothing.
func (c *Chat) thread(m adapter.Message) string {
	if m.ThreadID == "" && c.o.InThreads {
		return m.ReplyTarget
	}
	return m.ThreadID
}

// Send posts a message. What Slack would take for a mention is escaped.
func (c *Chat) Send(ctx context.Context, m adapter.Message) (string, error) {
	cli, err := c.client()
	if err != nil {
		return "", adapter.NotSent(err, 0)
	}
	c.mu.Lock()
	team := c.team
	c.mu.Unlock()
	switch team {
	case "":
		return "", adapter.NotSent(errNotAsked, time.Second)
	case m.AccountID:
	default:
		return "", adapter.Refused(fmt.Errorf("the workspace is %s and not %q", team, m.AccountID))
	}
	options := []slack.MsgOption{
		slack.MsgOptionText(m.Text, true), slack.MsgOptionDisableLinkUnfurl(),
		slack.MsgOptionMetadata(slack.SlackMetadata{EventType: metadataType, EventPayload: map[string]any{metadataKey: m.Key}}),
	}
	if thread := c.thread(m); thread != "" {
		options = append(options, slack.MsgOptionTS(thread))
	}
	_, ts, err := cli.PostMessageContext(ctx, m.ContextID, options...)
	if err != nil {
		return "", failure(err)
	}
	return ts, nil
}

// failure is what an error says about a message.
func failure(err error) error {
	var limited *slack.RateLimitedError
	var refused slack.SlackErrorResponse
	var status slack.StatusCodeError
	switch {
	case adapter.Dialing(err):
		return adapter.NotSent(err, 0)
	case errors.As(err, &limited):
		return adapter.NotSent(err, limited.RetryAfter)
	case errors.As(err, &refused):
		switch refused.Err {
		case "internal_error", "fatal_error", "request_timeout", "service_unavailable":
			return err // it may have been posted
		case "ratelimited", "rate_limited", "invalid_auth", "not_authed", "token_expired", "token_revoked", "accesslimited":
			return adapter.NotSent(err, 0) // it passes, or the token is being changed
		}
		return adapter.Refused(err)
	case errors.As(err, &status) && status.Code >= 400 && status.Code < 500:
		return adapter.NotSent(err, 0)
	}
	return err
}

// Find looks for a message of the bot.
func (c *Chat) Find(ctx context.Context, m adapter.Message, after time.Time) (string, bool, error) {
	cli, err := c.client()
	if err != nil {
		return "", false, err
	}
	oldest, cursor := strconv.FormatInt(after.Unix(), 10), ""
	for range mostPages {
		messages, next, err := c.page(ctx, cli, m, oldest, cursor)
		if err != nil {
			return "", false, fmt.Errorf("read %s: %w", m.ContextID, err)
		}
		for i := range messages {
			if meta := messages[i].Metadata; meta.EventType == metadataType && meta.EventPayload[metadataKey] == m.Key {
				return messages[i].Timestamp, true, nil
			}
		}
		if cursor = next; cursor == "" {
			return "", false, nil
		}
	}
	return "", false, fmt.Errorf("more than %d messages were written to %s since", mostPages*pageSize, m.ContextID)
}

// page returns some messages of the place of a message.
func (c *Chat) page(ctx context.Context, cli *slack.Client, m adapter.Message, oldest, cursor string) ([]slack.Message, string, error) {
	if thread := c.thread(m); thread != "" {
		messages, _, next, err := cli.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{
			ChannelID: m.ContextID, Timestamp: thread, Cursor: cursor, Limit: pageSize, Oldest: oldest, IncludeAllMetadata: true,
		})
		return messages, next, err //nolint:wrapcheck // by the caller
	}
	res, err := cli.GetConversationHistoryContext(ctx, &slack.GetConversationHistoryParameters{
		ChannelID: m.ContextID, Cursor: cursor, Limit: pageSize, Oldest: oldest, IncludeAllMetadata: true,
	})
	if err != nil {
		return nil, "", err //nolint:wrapcheck // by the caller
	}
	return res.Messages, res.ResponseMetaData.NextCursor, nil
}
