// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package eventlog

import (
	"errors"
	"fmt"
)

// Errors of the log, to be compared with errors.Is.
var (
	// ErrClosed refuses an append after a terminal event. Late events are still accepted.
	ErrClosed = errors.New("the stream is closed")
	// ErrCancelled refuses an event that begins work after the mark of a cancellation; see event.Begins. Others are still accepted.
	ErrCancelled = errors.New("the task was cancelled")
	// ErrDeleted says that the stream was deleted.
	ErrDeleted = errors.New("the stream is deleted")
	// ErrTrimmed reports that an event was stored and is no longer kept.
	ErrTrimmed = errors.New("the event is no longer kept")
	// ErrNotFound reports that the event does not exist.
	ErrNotFound = errors.New("event not found")
	// ErrExpired reports that a revision is older than the history that is kept; see ExpiredError.
	ErrExpired = errors.New("the revision is too old")
	// ErrFuture reports that a revision is larger than the store's; see FutureError.
	ErrFuture = errors.New("the revision is too large")
	// ErrContinue reports that a continue token does not belong to this log or query.
	ErrContinue = errors.New("invalid continue token")
	// ErrLagging ends a watch that did not keep up.
	ErrLagging = errors.New("the watch fell too far behind")
	// ErrShutdown ends reads and watches when the log is closed.
	ErrShutdown = errors.New("the log is shut down")
	// ErrBadStream refuses a stream without UID, namespace or task, or with a name
	// that cannot be a part of a key.
	ErrBadStream = errors.New("invalid name, namespace or UID of an event stream")
)

// ExpiredError is an ErrExpired with the requested revision and the floor.
type ExpiredError struct {
	Revision, Floor uint64
	// Continue, if set, is a token that continues the list at the newest revision.
	Continue string
}

// Error names both revisions.
func (e *ExpiredError) Error() string {
	return fmt.Sprintf("the revision is too old: %d (%d)", e.Revision, e.Floor)
}

// Is makes every ExpiredError an ErrExpired.
func (e *ExpiredError) Is(target error) bool { return target == ErrExpired }

// FutureError is an ErrFuture with both revisions.
type FutureError struct{ Revision, Current uint64 }

// Error names both revisions.
func (e *FutureError) Error() string {
	return fmt.Sprintf("the revision is too large: %d, current: %d", e.Revision, e.Current)
}

// Is makes every FutureError an ErrFuture.
func (e *FutureError) Is(target error) bool { return target == ErrFuture }

// aheadError ends a watch that would begin at a revision that the store has not reached.
type aheadError struct{ FutureError }

// CorruptError reports a key or value that this package did not write.
type CorruptError struct {
	Key []byte
	Err error
}

// Error names the key.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("corrupt record %q: %v", e.Key, e.Err)
}

// Unwrap returns what is wrong with the record.
func (e *CorruptError) Unwrap() error { return e.Err }

var (
	errShort  = errors.New("too short")
	errKey    = errors.New("bad key")
	errFormat = errors.New("unknown format")
)
