// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package adapter

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/platform-ai/platform/pkg/gateway/protocol"
)

// Steps of a delivery that the journal has.
const (
	stepStarted = "started" // a part is about to be sent; of the first part, with all parts
	stepSent    = "sent"    // a part was posted
	stepUnsent  = "unsent"  // a part was not posted
	stepEnded   = "ended"   // the outcome
	stepAsked   = "asked"   // somebody asked for the outcome; at most once a day
)

// Times of deliveries.
const (
	remembered   = 31 * 24 * time.Hour // since somebody asked last
	askedAnew    = 24 * time.Hour
	sendTimeout  = time.Minute
	answerWithin = 12 * time.Second // the platform waits for 15
)

// step is a record of the journal of deliveries.
type step struct {
	ID    string           `json:"id"`
	Step  string           `json:"step"`
	At    time.Time        `json:"at"`
	Parts []string         `json:"parts,omitempty"`
	Part  int              `json:"part,omitempty"`
	Chat  string           `json:"chat,omitempty"` // the id that the chat system gave to a part
	End   *protocol.Answer `json:"end,omitempty"`
}

// known is what is remembered of a delivery.
type known struct {
	parts   []string  // until it has ended
	sent    []string  // the ids of the parts that were posted
	started time.Time // when the next part was about to be sent, if it was not noted whether it was posted
	asked   time.Time
	end     *protocol.Answer
}

// flight is a delivery that is being posted.
type flight struct {
	done   chan struct{}
	answer protocol.Answer // after done
	after  time.Duration
	err    error
}

// Deliveries posts deliveries, each once.
type Deliveries struct {
	chat    Chat
	log     *slog.Logger
	now     func() time.Time
	journal *journal

	mu      sync.Mutex
	known   map[string]*known
	flights map[string]*flight
	all     sync.WaitGroup
}

// OpenDeliveries opens the memory of deliveries in a folder.
func OpenDeliveries(folder string, chat Chat, log *slog.Logger) (*Deliveries, error) {
	d := &Deliveries{chat: chat, log: log, now: time.Now, known: map[string]*known{}, flights: map[string]*flight{}}
	var err error
	d.journal, err = openJournal(filepath.Join(folder, "deliveries"), func(raw []byte) error {
		var s step
		if err := json.Unmarshal(raw, &s); err != nil {
			return fmt.Errorf("decode a step of a delivery: %w", err)
		}
		return d.apply(&s)
	}, d.live)
	return d, err
}

// apply brings what is known up to a step.
func (d *Deliveries) apply(s *step) error {
	k := d.known[s.ID]
	if k == nil {
		k = &known{}
		d.known[s.ID] = k
	}
	if k.asked.Before(s.At) {
		k.asked = s.At
	}
	switch s.Step {
	case stepStarted:
		if len(s.Parts) > 0 {
			k.parts = s.Parts
		}
		k.started = s.At
	case stepSent:
		k.sent, k.started = append(k.sent, s.Chat), time.Time{}
	case stepUnsent:
		k.started = time.Time{}
	case stepEnded:
		k.end, k.parts, k.sent, k.started = s.End, nil, nil, time.Time{}
	case stepAsked:
	default:
		return fmt.Errorf("a delivery has the unknown step %q", s.Step)
	}
	return nil
}

// live returns the steps of a rewritten journal, without what is old. The journal is locked, and d is not.
func (d *Deliveries) live() []any {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []any
	oldest := d.now().Add(-remembered)
	for id, k := range d.known {
		switch {
		case k.asked.Before(oldest) && d.flights[id] == nil:
			delete(d.known, id)
			continue
		case k.end != nil:
			all = append(all, step{ID: id, Step: stepEnded, At: k.asked, End: k.end})
			continue
		case len(k.parts) == 0:
			continue // nothing of it was begun
		}
		all = append(all, step{ID: id, Step: stepStarted, At: cmp.Or(k.started, k.asked), Parts: k.parts})
		for n, message := range k.sent {
			all = append(all, step{ID: id, Step: stepSent, At: k.asked, Part: n, Chat: message})
		}
		switch {
		case k.started.IsZero() && len(k.sent) == 0:
			all = append(all, step{ID: id, Step: stepUnsent, At: k.asked})
		case !k.started.IsZero() && len(k.sent) > 0:
			all = append(all, step{ID: id, Step: stepStarted, At: k.started, Part: len(k.sent)})
		}
	}
	return all
}

// note writes a step, and then knows it.
func (d *Deliveries) note(s step) error {
	s.At = d.now()
	return d.journal.append(s, true, func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.apply(&s)
	})
}

// Deliver posts a delivery, or returns its outcome. Requests for one id wait for each other. The posting goes on when the context ends; after
// is when it may be asked for again, if that is known. With an error there is no answer.
func (d *Deliveries) Deliver(ctx context.Context, delivery *protocol.Delivery) (answer protocol.Answer, after time.Duration, err error) {
	id := delivery.IdempotencyID
	d.mu.Lock()
	if k := d.known[id]; k != nil && k.end != nil {
		answer, asked := *k.end, k.asked
		d.mu.Unlock()
		if d.now().Sub(asked) > askedAnew {
			err = d.note(step{ID: id, Step: stepAsked})
		}
		return answer, 0, err
	}
	f := d.flights[id]
	if f == nil {
		f = &flight{done: make(chan struct{})}
		d.flights[id] = f
		d.all.Go(func() { d.fly(context.WithoutCancel(ctx), f, delivery) })
	}
	d.mu.Unlock()
	ctx, stop := context.WithTimeout(ctx, answerWithin)
	defer stop()
	select {
	case <-f.done:
		return f.answer, f.after, f.err
	case <-ctx.Done():
		return protocol.Answer{Status: protocol.RetryableError, Message: "it is still being posted"}, time.Second, nil
	}
}

// fly posts a delivery and lands.
func (d *Deliveries) fly(ctx context.Context, f *flight, delivery *protocol.Delivery) {
	ctx, stop := context.WithTimeout(ctx, sendTimeout)
	defer stop()
	f.answer, f.after, f.err = d.post(ctx, delivery)
	d.mu.Lock()
	delete(d.flights, delivery.IdempotencyID)
	d.mu.Unlock()
	close(f.done)
	if f.err != nil || f.answer.Status != protocol.Delivered {
		d.log.Warn("a delivery was not posted", "id", delivery.IdempotencyID, "status", f.answer.Status, "message", f.answer.Message, "err", f.err)
	}
}

// look returns a copy of what is known, whose slices nobody changes.
func (d *Deliveries) look(id string) known {
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.known[id]; k != nil {
		return *k
	}
	return known{}
}

// result is what became of a part. With an answer, or an error, the posting ends.
type result struct {
	chat   string // the id that the chat system gave to it
	answer protocol.Answer
	after  time.Duration
	err    error
}

// post sends the parts of a delivery that were not sent.
func (d *Deliveries) post(ctx context.Context, delivery *protocol.Delivery) (protocol.Answer, time.Duration, error) {
	id := delivery.IdempotencyID
	for {
		k := d.look(id)
		if k.end != nil { // another flight ended in between
			return *k.end, 0, nil
		}
		if len(k.parts) == 0 {
			k.parts = d.chat.Split(delivery.Text)
		}
		if len(k.sent) == len(k.parts) {
			return d.end(id, protocol.Answer{Status: protocol.Delivered, ProviderMessageID: k.sent[0]})
		}
		r := d.part(ctx, delivery, &k)
		if r.err != nil || r.answer.Status != "" {
			return r.answer, r.after, r.err
		}
		if n := len(k.sent); n < len(k.parts)-1 {
			if err := d.note(step{ID: id, Step: stepSent, Part: n, Chat: r.chat}); err != nil {
				return protocol.Answer{}, 0, err
			}
			continue
		}
		first := append(slices.Clip(k.sent), r.chat)[0]
		return d.end(id, protocol.Answer{Status: protocol.Delivered, ProviderMessageID: first}) // which says that the last part was sent, too
	}
}

// part sends the next part.
func (d *Deliveries) part(ctx context.Context, delivery *protocol.Delivery, k *known) result {
	id, n := delivery.IdempotencyID, len(k.sent)
	m := Message{
		AccountID: delivery.AccountID, ContextID: delivery.ContextID, ThreadID: delivery.ThreadID, ReplyTarget: delivery.ReplyTarget,
		Text: k.parts[n], Key: partKey(id, n),
	}
	if !k.started.IsZero() {
		if r, found := d.find(ctx, id, m, k); found || r.err != nil || r.answer.Status != "" {
			return r
		}
		return d.send(ctx, id, m, n, len(k.parts))
	}
	s := step{ID: id, Step: stepStarted, Part: n}
	if n == 0 {
		s.Parts = k.parts
	}
	if err := d.note(s); err != nil {
		return result{err: err}
	}
	return d.send(ctx, id, m, n, len(k.parts))
}

// end notes an outcome.
func (d *Deliveries) end(id string, answer protocol.Answer) (protocol.Answer, time.Duration, error) {
	if err := d.note(step{ID: id, Step: stepEnded, End: &answer}); err != nil {
		return protocol.Answer{}, 0, err
	}
	return answer, 0, nil
}

// unknown is the outcome of a part that may have been posted.
func (d *Deliveries) unknown(id string, n, of int, why error) result {
	text := "it is not known whether it was posted"
	if of > 1 {
		text = fmt.Sprintf("%d of %d parts were posted, and it is not known whether the next one was", n, of)
	}
	if why != nil {
		text += ": " + why.Error()
	}
	answer, _, err := d.end(id, protocol.Answer{Status: protocol.NonRetryableError, Message: clip(text)})
	return result{answer: answer, err: err}
}

// find looks for a part that was about to be sent.
func (d *Deliveries) find(ctx context.Context, id string, m Message, k *known) (r result, found bool) {
	finder, can := d.chat.(Finder)
	if !can {
		return d.unknown(id, len(k.sent), len(k.parts), nil), false
	}
	const skew = 10 * time.Minute // between this clock and that of the chat system
	message, found, err := finder.Find(ctx, m, k.started.Add(-skew))
	if err != nil {
		r.answer = protocol.Answer{Status: protocol.RetryableError, Message: clip("it could not be looked up whether it was posted: " + err.Error())}
	}
	r.chat = message
	return r, found && err == nil
}

// send sends a part.
func (d *Deliveries) send(ctx context.Context, id string, m Message, n, of int) result {
	message, failure := d.chat.Send(ctx, m)
	if failure == nil {
		return result{chat: message}
	}
	not, ok := errors.AsType[*notSentError](failure)
	if !ok {
		if _, can := d.chat.(Finder); can {
			return result{answer: protocol.Answer{Status: protocol.RetryableError, Message: clip("it may have been posted, and will be looked up: " + failure.Error())}}
		}
		return d.unknown(id, n, of, failure)
	}
	if err := d.note(step{ID: id, Step: stepUnsent, Part: n}); err != nil {
		return result{err: err}
	}
	r := result{answer: protocol.Answer{Status: protocol.RetryableError, Message: not.Error()}, after: not.after}
	if not.permanent { // it is not remembered, so that a person can remove the cause and have it delivered
		r.answer.Status = protocol.NonRetryableError
	}
	if of > 1 {
		r.answer.Message = fmt.Sprintf("%d of %d parts were posted: %s", n, of, r.answer.Message)
	}
	r.answer.Message = clip(r.answer.Message)
	return r
}

// partKey identifies a part of a delivery in the chat system.
func partKey(id string, n int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d", id, n))
	return "gw-" + hex.EncodeToString(sum[:20])
}

// clip shortens a message of an answer.
func clip(s string) string {
	const most = 1000
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

// Close waits for what is being posted and closes the memory.
func (d *Deliveries) Close() error {
	d.all.Wait()
	return d.journal.close()
}
