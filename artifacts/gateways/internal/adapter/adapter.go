// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Package adapter is what the adapters of chat systems have in common: the routes of the protocol platform.gateway.v1
// (docs/gateway-v1.md), a durable memory of deliveries, and an outbox of events.
//
// Both directions are journals on disk: files to which records are appended, synced, and which are read at start and rewritten when they
// have grown. A delivery is noted before its first part is sent (started), and its outcome before the platform is answered. An event is
// noted before the chat system is told that it was received, together with the position in the chat system's stream, and is posted to the
// platform until the platform has it. So the end of the program at any moment loses no event and posts no delivery twice.
//
// A program for a chat system implements Chat, and Finder if the chat system can be asked whether a message is there.
package adapter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// Message is a part of a delivery, as long as the chat system takes it.
type Message struct {
	AccountID, ContextID, ThreadID, ReplyTarget string
	Text                                        string
	// Key identifies the part in the chat system: always the same for the same part of the same delivery. It has letters, digits and
	// hyphens only.
	Key string
}

// Chat is a chat system.
type Chat interface {
	// Run is connected to the chat system until the context ends, and puts what people write into the outbox.
	Run(ctx context.Context, events *Outbox) error
	// Ready returns why messages cannot be sent now, or nil.
	Ready() error
	// Send posts a message and returns the id that the chat system gave to it. An error that is neither NotSent nor Refused says that the
	// message may have been posted.
	Send(ctx context.Context, m Message) (id string, err error)
	// Split divides a text into parts that the chat system takes.
	Split(text string) []string
}

// Finder is a Chat that can be asked for messages.
type Finder interface {
	// Find looks for a message that may have been posted after a time.
	Find(ctx context.Context, m Message, after time.Time) (id string, found bool, err error)
}

// notSentError is why nothing was posted.
type notSentError struct {
	err       error
	permanent bool
	after     time.Duration
}

func (n *notSentError) Error() string { return n.err.Error() }
func (n *notSentError) Unwrap() error { return n.err }

// NotSent says that nothing was posted, and that it may be later: after a while, if that is known.
func NotSent(err error, after time.Duration) error { return &notSentError{err: err, after: after} }

// Refused says that nothing was posted, and that the chat system will not take it.
func Refused(err error) error { return &notSentError{err: err, permanent: true} }

// errStopped says that the program ends.
var errStopped = errors.New("the adapter is ending")

// wait waits, unless the context ends.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait: %w", context.Cause(ctx))
	}
}

// Backoff counts delays from one second, doubled each time, to a minute.
type Backoff struct{ next time.Duration }

// Wait waits, and longer the next time. at is the least delay.
func (b *Backoff) Wait(ctx context.Context, least time.Duration) error {
	b.next = min(max(2*b.next, time.Second), time.Minute)
	return wait(ctx, max(b.next, least))
}

// Reset begins anew.
func (b *Backoff) Reset() { b.next = 0 }

// Dialing reports whether an error came before there was a connection, so that nothing was sent.
func Dialing(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}
