// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/server/registry/resource"
	"github.com/platform-ai/platform/pkg/storage/turn"
)

// live holds the frames of a background turn that runs. All of them are stored. They stay in memory as long as the turn
// runs, so that a client that reads slowly gets the last ones, too, when the session is deleted meanwhile.
type live struct {
	mu      sync.Mutex
	first   int64
	frames  []turn.Frame
	changed chan struct{} // closed with the next change
	closed  bool
}

func newLive() *live { return &live{changed: make(chan struct{})} }

// begin sets the number of the first frame and those that are stored.
func (l *live) begin(first int64, frames []turn.Frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.first, l.frames = first, frames
}

// head returns the numbers of the first and of the last frame.
func (l *live) head() turn.Head {
	l.mu.Lock()
	defer l.mu.Unlock()
	return turn.Head{First: l.first, Last: l.first + int64(len(l.frames)) - 1}
}

// last returns the number of the last frame.
func (l *live) last() int64 { return l.head().Last }

// show adds frames that are stored.
func (l *live) show(frames []turn.Frame) {
	if len(frames) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frames = append(l.frames, frames...)
	close(l.changed)
	l.changed = make(chan struct{})
}

// close ends the streams of all clients once they have every frame.
func (l *live) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.closed = true
		close(l.changed)
	}
}

// after returns the frames after a number, what is closed when there are more, and whether there will be none.
func (l *live) after(n int64) (frames []turn.Frame, changed <-chan struct{}, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := min(max(n+1-l.first, 0), int64(len(l.frames)))
	return l.frames[at:], l.changed, l.closed
}

// Stream gives one client the frames of a background turn. It is for one goroutine.
type Stream struct {
	store *turn.Store
	uid   types.UID
	live  *live // nil if the turn is over
	sent  int64
	last  int64 // frame of a turn that is over
	read  bool
}

// Over reports whether the turn is over and the client has all of it.
func (s *Stream) Over() bool { return s.live == nil && s.sent >= s.last }

// Attach returns the frames of the newest background turn of a session after a number, which is 0 for all of them.
// Errors are API errors.
func (s *Service) Attach(session *v1alpha1.Session, after int64) (*Stream, error) {
	if s == nil || session.Spec.SessionType != v1alpha1.SessionTypeChat {
		return nil, errNoTurn(session.Name)
	}
	out := &Stream{store: s.o.Turns, uid: session.UID, live: s.busy.live(session.UID), sent: after}
	var h turn.Head
	if out.live != nil {
		h = out.live.head()
	} else {
		var err error
		if h, err = s.o.Turns.Head(session.UID); err != nil {
			return nil, resource.StatusError(v1alpha1.Resource("sessions"), session.Name, err)
		}
	}
	out.last = h.Last
	switch {
	case h.First == 0:
		return nil, errNoTurn(session.Name)
	case after > h.Last:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("after: %d: the last frame of this session is %d", after, h.Last))
	case after > 0 && after < h.First-1:
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonGone,
			Message: fmt.Sprintf("after: %d: a later turn began with frame %d, and the frames before it are gone; what was said is in the session's transcript", after, h.First),
		}}
	}
	return out, nil
}

func errNoTurn(session string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: fmt.Sprintf("session %q had no background turn", session),
	}}
}

// Next returns the next frames, in order, and waits for them. It returns io.EOF after the last one, and also when the
// server stops: a client that has not read a frame done or error attaches again.
func (s *Stream) Next(ctx context.Context) ([]turn.Frame, error) {
	if s.live == nil {
		return s.stored()
	}
	for {
		frames, changed, closed := s.live.after(s.sent)
		switch {
		case len(frames) > 0:
			s.sent = frames[len(frames)-1].Seq
			return frames, nil
		case closed:
			return nil, io.EOF
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// stored returns all frames of a turn that is over.
func (s *Stream) stored() (frames []turn.Frame, err error) {
	if s.read {
		return nil, io.EOF
	}
	s.read = true
	err = s.store.Frames(s.uid, s.sent, func(f turn.Frame) error {
		frames = append(frames, f)
		return nil
	})
	if err == nil && len(frames) == 0 {
		err = io.EOF
	}
	return frames, err
}
