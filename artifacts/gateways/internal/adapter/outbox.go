// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package adapter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/platform-ai/platform/pkg/gateway/protocol"
)

// Bounds of an outbox.
const (
	mostWaiting = 100_000 // events
	mostAtOnce  = 32      // requests
	postTimeout = 30 * time.Second
)

// ErrFull says that the outbox takes no more events until the platform has taken some.
var ErrFull = errors.New("too many events wait for the platform")

// entry is a record of the journal of events: events and the position after them, or an event that is done.
type entry struct {
	Events []protocol.Event `json:"events,omitempty"`
	Cursor string           `json:"cursor,omitempty"`
	Done   string           `json:"done,omitempty"` // an externalEventId
}

// Platform is where events are posted.
type Platform struct {
	// URL is the address of the gateway's events.
	URL string
	// Token returns the bearer token.
	Token func() (string, error)
	// Client carries the requests. It follows no redirects.
	Client *http.Client
}

// Outbox has the events that the platform does not have yet. The events of one context are posted in the order in which they were put.
type Outbox struct {
	platform Platform
	folder   string
	log      *slog.Logger
	journal  *journal
	slots    chan struct{}

	mu      sync.Mutex
	cursor  string
	order   []string // of waiting
	waiting map[string]*protocol.Event
	queues  map[string][]string // by context; present while somebody posts its events
	start   func(context string)
	posting sync.WaitGroup
}

// OpenOutbox opens the outbox in a folder. It posts nothing before Run.
func OpenOutbox(folder string, platform Platform, log *slog.Logger) (*Outbox, error) {
	o := &Outbox{
		platform: platform, folder: folder, log: log, slots: make(chan struct{}, mostAtOnce),
		waiting: map[string]*protocol.Event{}, queues: map[string][]string{},
	}
	var err error
	o.journal, err = openJournal(filepath.Join(folder, "events"), func(raw []byte) error {
		var e entry
		if err := json.Unmarshal(raw, &e); err != nil {
			return fmt.Errorf("decode events: %w", err)
		}
		o.apply(&e)
		return nil
	}, o.live)
	return o, err
}

// contextOf is what events are in order within.
func contextOf(e *protocol.Event) string { return e.AccountID + "\x00" + e.ContextID }

// apply brings what is known up to an entry.
func (o *Outbox) apply(e *entry) {
	if e.Cursor != "" {
		o.cursor = e.Cursor
	}
	for i := range e.Events {
		event := &e.Events[i]
		if o.waiting[event.ExternalEventID] != nil {
			continue
		}
		o.waiting[event.ExternalEventID] = event
		o.order = append(o.order, event.ExternalEventID)
		where := contextOf(event)
		queue, busy := o.queues[where]
		o.queues[where] = append(queue, event.ExternalEventID)
		if !busy && o.start != nil {
			o.start(where)
		}
	}
	delete(o.waiting, e.Done)
}

// live returns the entries of a rewritten journal.
func (o *Outbox) live() []any {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.order = slices.DeleteFunc(o.order, func(id string) bool { return o.waiting[id] == nil })
	all := []any{entry{Cursor: o.cursor}}
	for _, id := range o.order {
		all = append(all, entry{Events: []protocol.Event{*o.waiting[id]}})
	}
	return all
}

// Cursor returns the position in the chat system's stream after the events that were put.
func (o *Outbox) Cursor() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.cursor
}

// Waiting returns how many events the platform does not have yet.
func (o *Outbox) Waiting() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.waiting)
}

// Put writes events to disk, with the position after them, if there is one. When it has returned nil, the chat system may forget them. An event
// that waits already is not put again; one that the platform has is, and the platform recognises it.
func (o *Outbox) Put(cursor string, events ...protocol.Event) error {
	if o.Waiting()+len(events) > mostWaiting {
		return ErrFull
	}
	now := time.Now().UTC()
	for i := range events {
		events[i].ProtocolVersion, events[i].EventType = protocol.Version, protocol.EventText
		events[i].Text = Clip(events[i].Text, protocol.MaxText)
		events[i].Sender.DisplayName = Clip(events[i].Sender.DisplayName, protocol.MaxDisplayName)
		events[i].ReceivedAt = &now
	}
	e := entry{Events: events, Cursor: cursor}
	return o.journal.append(e, true, func() error {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.apply(&e)
		return nil
	})
}

// Run posts events until the context ends.
func (o *Outbox) Run(ctx context.Context) {
	o.mu.Lock()
	o.start = func(where string) { o.posting.Go(func() { o.drain(ctx, where) }) }
	for _, where := range slices.Sorted(maps.Keys(o.queues)) {
		o.start(where)
	}
	o.mu.Unlock()
	<-ctx.Done()
	o.mu.Lock()
	o.start = nil
	o.mu.Unlock()
	o.posting.Wait()
}

// next returns the first event of a context, and whether there is one. If not, the context has nobody who posts any more.
func (o *Outbox) next(where string) (*protocol.Event, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for queue := o.queues[where]; len(queue) > 0; queue = o.queues[where] {
		if e := o.waiting[queue[0]]; e != nil {
			return e, true
		}
		o.queues[where] = queue[1:]
	}
	delete(o.queues, where)
	return nil, false
}

// drain posts the events of a context until there are none.
func (o *Outbox) drain(ctx context.Context, where string) {
	var backoff Backoff
	for {
		e, ok := o.next(where)
		if !ok {
			return
		}
		done, after, err := o.post(ctx, e)
		if !done {
			o.log.Warn("an event was not posted, and will be", "id", e.ExternalEventID, "err", err)
			if backoff.Wait(ctx, after) != nil {
				return
			}
			continue
		}
		backoff.Reset()
		if err != nil {
			o.log.Error("an event was refused", "id", e.ExternalEventID, "err", err)
			if err = o.setAside(e, err); err != nil {
				o.log.Error("an event could not be set aside", "id", e.ExternalEventID, "err", err)
			}
		}
		finished := entry{Done: e.ExternalEventID} // if it is lost, the platform recognises the event
		err = o.journal.append(finished, false, func() error {
			o.mu.Lock()
			defer o.mu.Unlock()
			o.apply(&finished)
			return nil
		})
		if err != nil {
			o.log.Error("the outbox stops", "err", err)
			return
		}
	}
}

// post posts an event once. done says that it need not be posted again; with an error it was refused.
func (o *Outbox) post(ctx context.Context, e *protocol.Event) (done bool, after time.Duration, err error) {
	select {
	case o.slots <- struct{}{}:
		defer func() { <-o.slots }()
	case <-ctx.Done():
		return false, 0, context.Cause(ctx)
	}
	ctx, stop := context.WithTimeout(ctx, postTimeout)
	defer stop()
	token, err := o.platform.Token()
	if err != nil {
		return false, 0, err
	}
	raw, err := json.Marshal(e)
	if err != nil {
		return true, 0, fmt.Errorf("encode an event: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.platform.URL, bytes.NewReader(raw))
	if err != nil {
		return false, 0, fmt.Errorf("the address of the platform: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	res, err := o.platform.Client.Do(req)
	if err != nil {
		return false, 0, fmt.Errorf("the platform did not answer: %w", err)
	}
	defer func() { _ = res.Body.Close() }() // it was read as far as it is of interest
	var reply protocol.Reply
	switch res.StatusCode {
	case http.StatusAccepted:
		if err := protocol.Decode(res.Body, protocol.MaxAnswer, &reply); err != nil {
			o.log.Warn("the answer to an event cannot be read", "id", e.ExternalEventID, "err", err) // it is stored
		}
		o.log.Info("an event was posted", "id", e.ExternalEventID, "status", reply.Status, "event", reply.EventID, "state", reply.State, "message", reply.Message)
		return true, 0, nil
	case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		return true, 0, fmt.Errorf("the platform answered %d: %s", res.StatusCode, head(res))
	}
	seconds, _ := strconv.Atoi(res.Header.Get("Retry-After")) // 0 for what is no number
	return false, min(time.Duration(max(seconds, 0))*time.Second, 10*time.Minute), fmt.Errorf("the platform answered %d: %s", res.StatusCode, head(res))
}

// head returns the beginning of an answer.
func head(res *http.Response) string {
	b := make([]byte, 300)
	n, _ := res.Body.Read(b) // for people
	return string(bytes.ToValidUTF8(bytes.TrimSpace(b[:n]), nil))
}

// setAside writes an event that was refused to the file refused, for people.
func (o *Outbox) setAside(e *protocol.Event, why error) error {
	raw, err := json.Marshal(struct {
		Why   string          `json:"why"`
		Event *protocol.Event `json:"event"`
	}{why.Error(), e})
	if err != nil {
		return fmt.Errorf("encode an event: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(o.folder, "refused"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("set an event aside: %w", err)
	}
	_, err = f.Write(append(raw, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// Close closes the outbox, after Run has ended.
func (o *Outbox) Close() error { return o.journal.close() }
