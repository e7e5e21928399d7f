// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
)

const (
	// firstPause and lastPause bound the wait before a stream that was cut is
	// opened again.
	firstPause, lastPause = 200 * time.Millisecond, 5 * time.Second
	// patience is how long a stream may be unavailable before follow gives up.
	patience = 2 * time.Minute
)

// errCut ends a stream that can be opened again.
var errCut = errors.New("the stream was cut")

// cutError is the last error of a stream that could not be opened again.
type cutError struct{ err error }

// Error returns a text for people.
func (e *cutError) Error() string { return "the stream was cut: " + e.err.Error() }

// lost returns how a command ends that could not go on with what it follows; other errors are returned as they are.
func lost(err error, what string) error {
	if cut, ok := errors.AsType[*cutError](err); ok {
		return &outcome{codeUnknown, what + " was cut and could not be resumed: " + explain(cut.err)}
	}
	return err
}

// persist calls read until it succeeds or its error is final. It pauses between calls and returns a *cutError once the
// position has not changed for as long as patience.
func persist(ctx context.Context, clock clock.Clock, position func() int64, read func(context.Context) error) error {
	pause, since := firstPause, clock.Now()
	for {
		at := position()
		err := read(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !temporary(err):
			return err
		}
		if position() > at {
			pause, since = firstPause, clock.Now()
		}
		if clock.Since(since) > patience {
			return &cutError{err}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-clock.After(pause):
		}
		pause = min(2*pause, lastPause)
	}
}

// temporary reports whether another attempt may succeed. An error that is not
// an answer of the server is a failed connection.
func temporary(err error) bool {
	var status apierrors.APIStatus
	var o *outcome
	switch {
	case errors.As(err, &o):
		return false
	case !errors.As(err, &status):
		return true
	}
	code := status.Status().Code
	return code == 0 || code == 429 || code >= 500
}

// final makes an error that another attempt would not change, such as one of the output.
func final(err error) error {
	if err == nil {
		return nil
	}
	return &outcome{codeError, err.Error()}
}
